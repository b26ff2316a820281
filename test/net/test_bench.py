# SPDX-License-Identifier: Apache-2.0
"""weft bench loss: what it says of a bare path is what the emulator was told to do.

    A ----- E: weft emulate ----- B"""
from __future__ import annotations

import json
import subprocess

import pytest

from lab import binary


def bench_loss(*argv: str, timeout: float = 180) -> subprocess.CompletedProcess:
    return subprocess.run([binary(), "bench", "loss", "--quick", *argv], capture_output=True, text=True, timeout=timeout)


def rows_of(path, contender: str) -> dict[tuple[str, object], float]:
    """Medians by metric and loss."""
    doc = json.loads(path.read_text())
    assert doc["schema"] == "weft-bench-1" and doc["failures"] == [], doc["failures"]
    return {(r["metric"], r.get("x")): r["median"] for r in doc["results"] if r["contender"] == contender}


def test_measures_what_the_emulator_does_to_a_bare_path_and_to_a_tunnel(tmp_path):
    out, page = tmp_path / "out.json", tmp_path / "out.html"
    r = bench_loss("--loss", "0,10", "--seconds", "1", "--delay", "3", "--rate", "200", "--contenders", "bare,weft:fec=off,weft",
                   "--measures", "ping,udp,tcp,copy", "--json", str(out), "--html", str(page))
    assert r.returncode == 0, r.stdout + r.stderr
    for label, wire in (("bare", 1.0), ("weft:fec=off", 300 / 228), ("weft", 300 / 228)):  # 200 B are 228 as a packet, padded to 240, with 32 + 28 around
        n = rows_of(out, label)
        assert n["udp_lost_percent", 0] == n["ping_lost_percent", 0] == 0
        assert abs(n["udp_wire_ratio", 0] - wire) < 0.02
        assert 6 <= n["ping_p50_ms", 0] < 12 and 3 <= n["udp_p50_ms", 0] < 6
        assert 100 < n["tcp_mbit", 0] <= 200
        assert label == "weft" or n["tcp_mbit", 10] < n["tcp_mbit", 0] / 5
        assert 1.0 <= n["tcp_wire_ratio", 0] < 1.15
        assert 0 < n["copy_mb_s", 10] < n["copy_mb_s", 0] <= 25
    assert rows_of(out, "weft")["tcp_mbit", 10] > 2 * rows_of(out, "weft:fec=off")["tcp_mbit", 10]
    # 4000 datagrams: five standard deviations.
    assert abs(rows_of(out, "bare")["udp_lost_percent", 10] - 10) < 2.4
    assert page.read_text().count("<svg") > 10


def test_measures_a_path_that_loses_in_bursts(tmp_path):
    out = tmp_path / "out.json"
    r = bench_loss("--loss", "10:4", "--seconds", "1", "--contenders", "bare", "--measures", "udp", "--json", str(out))
    assert r.returncode == 0, r.stdout + r.stderr
    # Bursts of 4 vary sqrt(7) times as much as single losses.
    assert abs(rows_of(out, "bare")["udp_lost_percent", "10 % in bursts of 4"] - 10) < 6.3


def test_limited_path_fills_its_rate_and_its_queue(tmp_path):
    out = tmp_path / "out.json"
    r = bench_loss("--measures", "limited,clean", "--seconds", "3", "--contenders", "bare,weft", "--json", str(out))
    assert r.returncode == 0, r.stdout + r.stderr
    for label in ("bare", "weft"):
        n = rows_of(out, label)
        assert 14 < n["limited_mbit", None] <= 20
        assert 15 < n["limited_ping_p50_ms", None] < n["limited_ping_p99_ms", None] < 90  # 10 ms, and up to 50 ms of queue
        assert n["clean_up_mbit", None] > 200 and n["clean_down_mbit", None] > 200
    assert n["clean_up_daemon_s_gib", None] > 0


@pytest.mark.parametrize("argv, words", [
    (["--loss", "5,x"], "'x' is no loss"),
    (["--loss", "100"], "'100' is no loss"),
    (["--loss", "5:0.5"], "'5:0.5' is no loss"),
    (["--measures", "ping,nonesuch"], "no measure nonesuch"),
    (["--contenders", "nonesuch"], "no contender 'nonesuch'"),
    (["--contenders", "weft:nonesuch=1"], "is not an option"),
], ids=lambda v: v[-1] if isinstance(v, list) else "")
def test_wrong_usage_is_told_in_one_line(argv, words):
    r = bench_loss(*argv)
    assert r.returncode == 2 and words in r.stderr and r.stderr.count("\n") == 1 and r.stdout == ""

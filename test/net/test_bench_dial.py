# SPDX-License-Identifier: Apache-2.0
"""weft bench dial: its tables and its JSON have what they should, and what they speak of happened.

    A: iperf3 --- forwarder with libweft === B: TUN of a peer --- iperf3"""
from __future__ import annotations

import json
import subprocess

import pytest

from lab import binary


def bench_dial(*argv: str, timeout: float = 240) -> subprocess.CompletedProcess:
    return subprocess.run([binary(), "bench", "dial", "--quick", *argv], capture_output=True, text=True, timeout=timeout)


def test_measures_a_tun_and_forwarders(tmp_path):
    out, page = tmp_path / "out.json", tmp_path / "out.html"
    labels = ("veth", "weft", "dial:deadline=3600:peer=wireguard-go", "forward")
    r = bench_dial("--rates", "50", "--idle", "100", "--contenders", ",".join(labels), "--json", str(out), "--html", str(page))
    assert r.returncode == 0, r.stdout + r.stderr
    doc = json.loads(out.read_text())
    assert doc["schema"] == "weft-bench-1" and doc["failures"] == [] and doc["options"]["congestion_control"] == "cubic"
    for label in labels:
        n = {(row["metric"], row.get("x")): row["median"] for row in doc["results"] if row["contender"] == label}
        for streams in (1, 4):
            assert n[f"tcp{streams}_up_mbit", None] > 0 and n[f"tcp{streams}_down_mbit", None] > 0
        for way in ("up", "down"):
            assert 0 < n[f"udp_{way}_mbit", 50] and 0 <= n[f"udp_{way}_loss_percent", 50] < 100
        assert (label == "forward") == (("connects_s", None) not in n) and n.get(("connects_s", None), 2) > 0
        assert 0 < n["echo_p50_us", None] <= n["echo_p99_us", None]
        if label != "veth":
            assert 0 < n["rss_mib", None] and n["idle_bytes", None] < 1 << 20
            assert all(n[f"{kind}_{way}_calls", None] > 0 for kind in ("tcp", "udp") for way in ("up", "down"))
    heads = [line for line in r.stdout.splitlines() if line.startswith("-----")]
    assert len(heads) == 3 + 2 + 6  # tables; ratios; UDP
    assert all(any(line.startswith(label + " ") for line in r.stdout.splitlines()) for label in labels)
    assert page.read_text().count("<svg") > 5


@pytest.mark.parametrize("argv, words", [
    (["--rates", "10,x"], "--rates 10,x"),
    (["--seconds", "0"], "--rounds and --seconds take 1 or more"),
    (["--tests", "nonesuch"], "no test nonesuch"),
    (["--contenders", "nonesuch"], "no contender 'nonesuch'"),
    (["--contenders", "dial:peer=nonesuch"], "peer=nonesuch"),
    (["--contenders", "dial:deadline=soon"], "deadline=soon"),
    (["--contenders", "forward:deadline=1"], "is not an option; forward takes peer="),
], ids=lambda v: v[-1] if isinstance(v, list) else "")
def test_wrong_usage_is_told_in_one_line(argv, words):
    r = bench_dial(*argv)
    assert r.returncode == 2 and words in r.stderr and r.stderr.count("\n") == 1 and r.stdout == ""

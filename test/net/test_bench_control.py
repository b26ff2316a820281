# SPDX-License-Identifier: Apache-2.0
"""weft bench control: its table and its JSON have what they should. What it says of losses test_control.py claims."""
from __future__ import annotations

import json
import subprocess

import pytest

from lab import binary


def test_measures_what_is_done_beside_a_flow(tmp_path):
    out = tmp_path / "out.json"
    r = subprocess.run([binary(), "bench", "control", "--quick", "--peers", "200", "--json", str(out)], capture_output=True, text=True, timeout=120)
    assert r.returncode == 0, r.stdout + r.stderr
    doc = json.loads(out.read_text())
    assert doc["schema"] == "weft-bench-1" and doc["failures"] == [] and doc["options"]["peers"] == 200
    rows = {(row["contender"], row["metric"], row["x"]): row["median"] for row in doc["results"]}
    for label in ("weft", "wireguard-go"):
        for x in ("nothing", "wg setconf", "wg syncconf, the same", "wg syncconf, 1 % changed", "wg show dump", "wg showconf"):
            assert rows[label, "took_ms", x] > 0 and rows[label, "longest_ms", x] > 0
            assert any(line.startswith(x + " ") for line in r.stdout.splitlines())
    assert rows["weft", "took_ms", "scrape of metrics"] > 0 and rows["weft", "took_ms", "weft status --json"] > 0


@pytest.mark.parametrize("argv, words", [(["--rounds", "0"], "--rounds takes"), (["--contenders", "nonesuch"], "no contender nonesuch")])
def test_wrong_options_are_said(argv, words):
    r = subprocess.run([binary(), "bench", "control", *argv], capture_output=True, text=True, timeout=30)
    assert r.returncode == 2 and words in r.stderr

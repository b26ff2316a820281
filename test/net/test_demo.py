# SPDX-License-Identifier: Apache-2.0
"""tools/demo itself, with little data."""
import os
import signal
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from lab import binary, wait_for

DEMO = Path(__file__).resolve().parents[2] / "tools" / "demo"


def marked(mark: str) -> list[str]:
    """Processes that have the mark in their environment: the demo's, inside its namespaces as well."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if mark.encode() in Path(entry.path, "environ").read_bytes():
                    found.append(entry.name)
            except OSError:
                pass
    return found


def start(size: str) -> tuple[subprocess.Popen, str]:
    """The demo, and the mark by which its processes are known. Without processes a namespace is gone."""
    mark = f"WEFT_TEST_MARK={uuid.uuid4()}"
    key, _, value = mark.partition("=")
    return subprocess.Popen([DEMO, binary(), "--size", size], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env={**os.environ, key: value}), mark


def test_prints_its_table_and_leaves_nothing():
    p, mark = start("32M")
    assert marked(mark)
    out, _ = p.communicate(timeout=60)
    assert p.returncode == 0, out
    for part in ("a.conf", "weft up ./a.conf", "20 of 20 answered", "bare veth", "Mbit/s", "s/GiB", "MiB"):
        assert part in out
    assert "\x1b" not in out, "no colour where there is no terminal"
    wait_for(lambda: not marked(mark), 5, "its processes end")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopped_in_the_middle_leaves_nothing(number):
    p, mark = start("64G")
    seen = ""
    deadline = time.monotonic() + 30
    while "over TCP each way" not in seen and time.monotonic() < deadline:
        seen += p.stdout.readline()
    assert "over TCP each way" in seen, seen
    p.send_signal(number)
    try:
        p.communicate(timeout=20)
    finally:
        p.kill()
    assert p.returncode != 0
    wait_for(lambda: not marked(mark), 5, "its processes end")
    folders = list(Path("/tmp").glob(f"weft-{p.pid}-*"))
    assert number == signal.SIGKILL or not folders


def test_missing_program_is_said():
    r = subprocess.run([DEMO, "/nonexistent/weft"], capture_output=True, text=True)
    assert r.returncode == 2 and "run make" in r.stderr

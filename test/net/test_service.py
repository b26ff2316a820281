# SPDX-License-Identifier: Apache-2.0
"""A device under a service manager: what it tells, what the journal gets, and the unit."""
from __future__ import annotations

import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

from lab import binary, keys, wait_for

TOP = Path(__file__).resolve().parent.parent.parent


class Manager:
    """The receiving end of NOTIFY_SOCKET."""

    def __init__(self, path: Path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.settimeout(10)

    def next(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())


@pytest.fixture
def service(lab):
    """A device in the foreground with a manager, before its first word."""
    ns = lab.namespace("a")
    manager = Manager(lab.dir / "notify")
    file = lab.dir / "svc0.conf"
    file.touch(mode=0o600)
    file.write_text(f"[Interface]\nPrivateKey = {keys().private}\nAddress = 10.1.0.1/24\n")
    process = ns.spawn(binary(), "up", "--foreground", str(file), env={"NOTIFY_SOCKET": str(manager.path)})
    return ns, manager, file, process


def test_manager_hears_of_readiness_reloads_and_the_end(service):
    ns, manager, file, process = service
    first = manager.next()
    assert first["READY"] == "1" and "svc0" in first["STATUS"]
    assert ns.has_device("svc0"), "ready means up"

    ns.run(binary(), "reload", "svc0")
    said = manager.next()
    assert said["RELOADING"] == "1" and int(said["MONOTONIC_USEC"]) > 0
    said = manager.next()
    assert said["READY"] == "1" and "in force" in said["STATUS"]

    file.write_text("[Interface]\nPrivateKey = notakey\nAddress = 10.1.0.1/24\nMTU = 3x\n")
    assert ns.run(binary(), "reload", "svc0", check=False).returncode == 1
    assert manager.next()["RELOADING"] == "1"
    said = manager.next()
    assert said["READY"] == "1" and "changed nothing" in said["STATUS"] and "notakey" not in said["STATUS"]

    ns.run(binary(), "down", "svc0")
    assert manager.next() == {"STOPPING": "1"}
    assert process.wait(5) == 0


def test_device_that_does_not_start_never_says_ready(lab):
    ns = lab.namespace("a")
    manager = Manager(lab.dir / "notify")
    file = lab.dir / "svc0.conf"
    file.write_text(f"[Interface]\nPrivateKey = {keys().private}\nListenPort = 5000\n")
    with ns.udp_socket(port=5000):
        assert ns.run(binary(), "up", "-f", str(file), check=False, env={"NOTIFY_SOCKET": str(manager.path)}).returncode == 1
    manager.socket.settimeout(0.1)
    said = []
    with pytest.raises(TimeoutError):
        while True:
            said.append(manager.next())
    assert all("READY" not in s for s in said)


def test_manager_that_is_gone_does_not_matter(lab):
    ns = lab.namespace("a")
    process = ns.spawn(binary(), "run", "-f", "svc0", env={"NOTIFY_SOCKET": "/nowhere/at/all"})
    wait_for(lambda: ns.has_device("svc0"), 5, "the device")
    assert process.is_running


def test_journal_gets_lines_with_priorities(lab):
    ns = lab.namespace("a")
    file = lab.dir / "svc0.conf"
    file.write_text(f"[Interface]\nPrivateKey = {keys().private}\n")
    log = lab.dir / "journal"
    at = log.open("wb")
    st = os.fstat(at.fileno())
    p = subprocess.Popen(ns._argv([binary(), "up", "-f", str(file)]), stderr=at, env={**os.environ, "JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino}"})
    wait_for(lambda: ns.has_device("svc0"), 5, "the device")
    file.write_text("[Interface]\nMTU = x\n")
    os.kill(ns.processes("weft")[0], 1)
    wait_for(lambda: b"nothing is changed" in log.read_bytes(), 5, "the refusal")
    ns.run(binary(), "down", "svc0")
    p.wait(5)
    lines = log.read_text().splitlines()
    assert any(re.match(r"<3>svc0: nothing is changed", line) for line in lines), lines
    assert "weft: error" not in log.read_text()


def test_unit_is_installed_and_systemd_finds_nothing_wrong_with_it(tmp_path):
    r = subprocess.run(["make", "--no-print-directory", "install", f"DESTDIR={tmp_path}/root"], cwd=TOP, capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    unit = next((tmp_path / "root").rglob("weft@.service"))
    text = unit.read_text()
    program = re.search(r"^ExecStart=(\S+)", text, re.M)[1]
    assert (tmp_path / "root" / program.lstrip("/")).exists(), "the unit starts what is installed"
    checked = tmp_path / "weft@.service"
    checked.write_text(text.replace(program, binary()))
    r = subprocess.run(["systemd-analyze", "verify", "--man=no", checked], capture_output=True, text=True)
    ours = [line for line in r.stderr.splitlines() if "weft" in line]
    assert (r.returncode, ours) == (0, [])

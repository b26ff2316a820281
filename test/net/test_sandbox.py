# SPDX-License-Identifier: Apache-2.0
"""The network process of a device has given up its rights, and everything works all the same. docs/decisions/privileges.md.

    A 10.0.1.1 ---- 10.0.1.2 B"""
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from lab import Conf, binary, keys, pair, wait_for, wait_ping
from lab.device import A4, B4, DEVICE, WEFT, ends, make

NET_ADMIN, NET_BIND_SERVICE = 1 << 12, 1 << 10
NOBODY = 65534


@pytest.fixture
def wire(lab):
    w = pair(lab)
    w.a.run("sh", "-c", "mkdir /run/etc && cp -a /etc/. /run/etc/ && mount --bind /run/etc /etc && rm -f /etc/resolv.conf && echo nameserver 192.0.2.53 >/etc/resolv.conf")
    return w


def status(pid: int, thread: int | None = None) -> dict[str, str]:
    path = Path(f"/proc/{pid}/status") if thread is None else Path(f"/proc/{pid}/task/{thread}/status")
    return dict(line.split(":\t", 1) for line in path.read_text().splitlines() if ":\t" in line)


def is_filtered() -> bool:
    """A build with a sanitizer has no filter, and says so."""
    return not re.search(r"lib[at]san", subprocess.run(["ldd", binary()], capture_output=True, text=True).stdout)


def assert_dropped(pid: int, keeps: int = NET_ADMIN, uid: int = NOBODY) -> None:
    """Each thread of it."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        s = status(pid, int(thread))
        assert set(s["Uid"].split()) == set(s["Gid"].split()) == {str(uid)} and s["Groups"].split() == [], s
        assert [int(s[k], 16) for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")] == [0, keeps, keeps, 0, 0], s
        assert s["NoNewPrivs"] == "1" and s["Seccomp"] == ("2" if is_filtered() else "0"), s


def steward(ns) -> int:
    [pid] = ns.processes("weft-steward")
    return pid


def sandbox(node) -> dict | None:
    return node.status()["device"]["sandbox"]


def test_rights_are_gone_and_all_that_needs_them_still_works(wire, lab):
    """One device through its life: hooks, DNS, default route, reload, save, port, peers by `wg set`, the end."""
    e = ends("", wire.b4)
    notes = "/run/notes"
    a = e.a_conf
    a.extra = ["DNS = 10.99.0.2", f"PostUp = id -u >>{notes}", f"PreDown = id -u >>{notes}; wg show %i listen-port >>{notes}", f"PostDown = id -u >>{notes}; cat /proc/self/status | grep -c 'NoNewPrivs:.1' >>{notes}",
               "SaveConfig = true"]
    a.peers[0].allowed = ["0.0.0.0/0", "::/0"]
    e.options = ["--workers", "2", "--metrics", "9586"]
    e.up(wire.a, WEFT, wire.b, WEFT)
    node = e.a
    wait_ping(wire.a, B4)
    assert_dropped(node.pid)
    assert_dropped(e.b.pid)
    assert sandbox(node) == {"user": "nobody", "seccomp": is_filtered()}
    assert status(steward(wire.a))["Uid"].split() == ["0"] * 4 and status(steward(wire.a))["Threads"] == "1"
    assert "weft_" in wire.a.out("curl", "-s", "http://127.0.0.1:9586/metrics")
    assert "10.99.0.2" in wire.a.out("cat", "/etc/resolv.conf") and f"weft-{DEVICE}" in wire.a.out("nft", "list", "ruleset")

    other = keys().public
    wire.a.run("wg", "set", DEVICE, "listen-port", "41000", "fwmark", "77", "peer", other, "allowed-ips", "10.55.0.0/16")
    assert node.dump().port == 41000 and other in node.dump().peers
    node.ns.run(binary(), "save", DEVICE)
    text = node.file.read_text()
    assert other in text and "41000" in text and "PostUp = id -u" in text and node.file.stat().st_uid == 0 and node.file.stat().st_mode & 0o777 == 0o600

    changed = text.replace("DNS = 10.99.0.2", "DNS = 10.99.0.77").replace("41000", "42000").replace(f"{A4}/24", f"{A4}/24, 10.98.0.1/24").replace("10.55.0.0/16", "10.56.0.0/16").replace("0.0.0.0/0, ", "")
    changed = re.sub(r"FwMark = .*\n", "", changed)
    node.file.write_text(changed)
    wire.a.run(binary(), "reload", DEVICE)
    assert "10.98.0.1/24" in wire.a.ip(f"address show dev {DEVICE}") and node.dump().port == 42000
    assert "10.56.0.0/16" in wire.a.ip("route") and "10.55" not in wire.a.ip("route")
    assert "10.99.0.77" in wire.a.out("cat", "/etc/resolv.conf")
    node.file.write_text(changed.replace("10.98.0.1/24", "10.97.0.1/24"))
    os.kill(node.pid, signal.SIGHUP)
    wait_for(lambda: "10.97.0.1/24" in wire.a.ip(f"address show dev {DEVICE}"), 5, "the address of the second reload")
    assert_dropped(node.pid)
    node.down()
    assert wire.a.out("cat", notes).split() == ["0", "0", "42000", "0", "0"]
    assert "192.0.2.53" in wire.a.out("cat", "/etc/resolv.conf") and wire.a.processes("weft-steward") == []
    assert wire.a.out("find", "/run/weft", "/run/wireguard", "-mindepth", "1") == ""
    assert wire.a.ip("rule").count("lookup") == 3


def test_user_can_be_named_and_low_ports_keep_their_right(wire):
    e = ends("", wire.b4)
    e.a_conf.port = 500
    e.options = ["--user", "1"]
    e.a = make(WEFT, wire.a, e.a_conf, e.options)
    assert_dropped(e.a.pid, NET_ADMIN | NET_BIND_SERVICE, uid=1)
    e.a.write(Conf(e.a_conf.private, e.a_conf.peers, 501, e.a_conf.addresses))
    wire.a.run(binary(), "reload", DEVICE)
    assert e.a.dump().port == 501
    e.a.down()
    r = wire.a.run(binary(), "up", "--user", "nosuchuser", str(e.a.file), check=False)
    assert r.returncode == 1 and "nosuchuser" in r.stderr and not wire.a.has_device(DEVICE), r.stderr
    e.a.options = ["--user", "none"]
    e.a.up()
    assert_dropped(e.a.pid, NET_ADMIN | NET_BIND_SERVICE, uid=0)
    assert sandbox(e.a) == {"user": None, "seccomp": is_filtered()}
    e.a.down()


def test_sandbox_can_be_switched_off_and_says_so(wire):
    e = ends("", wire.b4)
    e.a_conf.extra = ["DNS = 10.99.0.2", "PostDown = echo down >/run/notes"]
    node = make(WEFT, wire.a, e.a_conf, ["--no-sandbox"])
    assert sandbox(node) is None and wire.a.processes("weft-steward") == []
    s = status(node.pid)
    assert s["Seccomp"] == "0" and s["NoNewPrivs"] == "0" and s["Uid"].split() == ["0"] * 4
    node.file.write_text(node.file.read_text().replace("10.99.0.2\n", "10.99.0.3\n"))
    wire.a.run(binary(), "reload", DEVICE)
    assert "10.99.0.3" in wire.a.out("cat", "/etc/resolv.conf")
    node.down()
    assert wire.a.out("cat", "/run/notes") == "down"


def test_user_with_the_one_capability_runs_a_device(wire, lab):
    """As a unit of systemd with User=, AmbientCapabilities=, RuntimeDirectory= and StateDirectory=."""
    e = ends("", wire.b4)
    e.up_b(wire.b, WEFT)
    file = lab.dir / f"{DEVICE}.conf"
    lab.dir.chmod(0o755)
    file.touch(mode=0o600)
    file.write_text(e.a_conf.quick_text())
    os.chown(file, NOBODY, NOBODY)
    wire.a.run("sh", "-c", f"mkdir -p /run/weft /run/wireguard /var/lib/weft && chown {NOBODY} /run/weft /run/wireguard /var/lib/weft && chmod 666 /dev/net/tun")
    p = wire.a.spawn("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=+net_admin", "--ambient-caps=+net_admin", binary(), "up", "-f", str(file))
    wait_ping(wire.a, B4)
    [pid] = wire.a.processes("weft")
    s = status(pid)
    assert s["Uid"].split() == [str(NOBODY)] * 4 and int(s["CapEff"], 16) == int(s["CapPrm"], 16) == NET_ADMIN and int(s["CapInh"], 16) == int(s["CapAmb"], 16) == 0
    assert s["NoNewPrivs"] == "1" and s["Seccomp"] == ("2" if is_filtered() else "0")
    p.signal(signal.SIGTERM)
    p.wait()
    assert not wire.a.has_device(DEVICE)


@pytest.mark.parametrize("who", ["network", "steward"])
def test_kill_of_either_leaves_what_down_and_the_next_start_take_back(wire, who):
    e = ends("", wire.b4)
    e.a_conf.extra = ["DNS = 10.99.0.2"]
    e.a_conf.peers[0].allowed = ["0.0.0.0/0", "::/0"]
    e.up(wire.a, WEFT, wire.b, WEFT)
    node = e.a
    wait_ping(wire.a, B4)
    os.kill(node.pid if who == "network" else steward(wire.a), signal.SIGKILL)
    wait_for(lambda: not wire.a.processes("weft") and not wire.a.processes("weft-steward") and not wire.a.has_device(DEVICE), 5, "the end of the other")
    node.up()
    wait_ping(wire.a, B4)
    os.kill(node.pid if who == "network" else steward(wire.a), signal.SIGKILL)
    wait_for(lambda: not wire.a.processes("weft") and not wire.a.processes("weft-steward"), 5, "the end of the other")
    r = wire.a.run(binary(), "down", str(node.file))
    assert "was not running" in r.stderr
    assert "192.0.2.53" in wire.a.out("cat", "/etc/resolv.conf") and wire.a.ip("rule").count("lookup") == 3
    assert wire.a.out("find", "/run/weft", "/run/wireguard", "-mindepth", "1") == ""


def test_only_a_file_of_that_name_that_root_alone_can_write_is_read(wire, lab):
    e = ends("", wire.b4)
    node = make(WEFT, wire.a, e.a_conf)
    text = node.file.read_text().replace(f"{A4}/24", f"{A4}/24, 10.98.0.1/24") + "\n[Interface]\nPostDown = touch /run/pwned\n"

    def refused(path, why: str) -> None:
        r = wire.a.run(binary(), "reload", str(path), check=False) if Path(path).stem == DEVICE else None
        said = r.stderr if r else request(str(path))
        assert why in said, said
        assert "10.98.0.1" not in wire.a.ip(f"address show dev {DEVICE}")

    def request(path: str) -> str:
        code = f'import socket; s = socket.socket(socket.AF_UNIX); s.connect("/run/weft/{DEVICE}.sock"); s.sendall(b\'{json.dumps({"op": "reload", "file": path})}\\n\'); print(s.makefile().readline())'
        return wire.a.out("python3", "-c", code)
    mine = lab.dir / "elsewhere"
    mine.mkdir(mode=0o700)
    (mine / "other.conf").write_text(text)
    refused(mine / "other.conf", "not of this device")
    file = mine / f"{DEVICE}.conf"
    file.write_text(text)
    os.chown(file, NOBODY, NOBODY)
    refused(file, "others than root")
    os.chown(file, 0, 0)
    file.chmod(0o666)
    refused(file, "others than root")
    file.chmod(0o600)
    mine.chmod(0o777)
    refused(file, "others than root")
    mine.chmod(0o700)
    wire.a.run(binary(), "reload", str(file))
    assert "10.98.0.1" in wire.a.ip(f"address show dev {DEVICE}")
    node.down()

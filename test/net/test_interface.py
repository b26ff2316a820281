# SPDX-License-Identifier: Apache-2.0
"""The interface is deleted, renamed, taken down and up under a running daemon.

    A 10.0.1.1 ---- 10.0.1.2 B"""
import os
import signal

import pytest

from lab import pair, procfs, stays, traffic, wait_for, wait_ping
from lab.device import A4, B4, DEVICE, WEFT, ends


@pytest.fixture
def tunnel(lab):
    wire = pair(lab)
    e = ends(wire.a4, wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    return wire, e


def test_deleted_interface_ends_the_daemon_cleanly(tunnel):
    wire, e = tunnel
    wire.a.ip(f"link del dev {DEVICE}")
    wait_for(lambda: wire.a.processes("weft") == [], 5, "the daemon's end")
    left = wire.a.out("find", "/run/wireguard", "/run/weft", "-type", "s")
    assert left == ""
    e.a.up()
    wait_ping(wire.a, B4)


def test_renamed_interface_keeps_its_sessions(tunnel):
    wire, e = tunnel
    wire.a.ip(f"link set dev {DEVICE} down")
    wire.a.ip(f"link set dev {DEVICE} name other0")
    wire.a.ip("link set dev other0 up")
    wire.a.ip(f"route replace {B4}/32 dev other0")
    handshake = e.b_sees().handshake
    wait_ping(wire.a, B4)
    assert e.b_sees().handshake == handshake
    # Sockets keep the name under which the device was started.
    wait_for(lambda: e.a.status()["device"]["name"] == "other0", 3, "status tells the new name")


def test_interface_that_is_down_stops_quietly_and_comes_back_with_its_session(tunnel):
    wire, e = tunnel
    handshake = e.b_sees().handshake
    wire.a.ip(f"link set dev {DEVICE} down")
    cpu = procfs.cpu_seconds(e.a.pid)
    # B goes on sending into A's interface that is down.
    traffic.ping(wire.b, A4, 50, 0.01)
    assert procfs.cpu_seconds(e.a.pid) - cpu < 0.3
    assert e.a.pid in wire.a.processes("weft")
    assert e.a.drops()["port_down"] + e.a.drops()["port_error"] > 0
    wire.a.ip(f"link set dev {DEVICE} up")
    wire.a.ip(f"route replace {B4}/32 dev {DEVICE}")
    wait_ping(wire.a, B4, 3)
    wait_ping(wire.b, A4, 3)
    assert e.b_sees().handshake == handshake


def test_idle_daemon_uses_no_processor_time(tunnel):
    wire, e = tunnel
    cpu = procfs.cpu_seconds(e.a.pid)
    stays(lambda: procfs.cpu_seconds(e.a.pid) - cpu <= 0.02, 1.5, "idle")


def test_interface_disappears_with_a_killed_daemon(tunnel):
    wire, e = tunnel
    os.kill(e.a.pid, signal.SIGKILL)
    wait_for(lambda: not wire.a.has_device(DEVICE), 3, "the interface goes")


def test_mtu_changed_by_hand_is_followed(tunnel):
    wire, e = tunnel
    for ns in (wire.a, wire.b):
        ns.ip(f"link set dev {DEVICE} mtu 1280")
    r = traffic.ping(wire.a, B4, 3, 0.01, 1252)
    assert r.received == 3
    for ns in (wire.a, wire.b):
        ns.ip(f"link set dev {DEVICE} mtu 8000")
    r = traffic.ping(wire.a, B4, 3, 0.01, 7972)
    assert r.received == 3

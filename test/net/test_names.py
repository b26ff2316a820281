# SPDX-License-Identifier: Apache-2.0
"""Endpoints by name, and the local port when nobody answers.

    A 10.0.1.1 ---- 10.0.1.2 B, where a name server answers for A, or does not"""

from dataclasses import replace

import pytest

from lab import Fault, binary, stays, wait_for, wait_ping
from lab.device import B4, DEVICE, PORT, WEFT, ends
from lab.dns import NameServer, use


@pytest.fixture
def server(wire):
    use(wire.a, wire.b4)
    s = NameServer(wire.b, wire.b4, [wire.b4])
    yield s
    s.stop()


def named(wire, keepalive: int = 1):
    """A looks B up by name."""
    e = ends("", wire.b4)
    e.a_conf.peers[0].endpoint = f"vpn.example.com:{PORT}"
    e.a_conf.peers[0].keepalive = keepalive
    return e


def test_start_does_not_wait_for_a_silent_name_server_and_finds_the_name_later(wire, server):
    server.is_silent = True
    e = named(wire)
    e.up(wire.a, WEFT, wire.b, WEFT)
    wait_for(lambda: server.asked >= 2, 3, "both families are asked")
    e.a.status()  # control waits for nobody
    server.is_silent = False
    wait_ping(wire.a, B4, 30)
    assert e.a_sees().endpoint == f"{wire.b4}:{PORT}"


def test_no_name_server_at_all_is_no_failure(wire):
    use(wire.a, "192.0.2.53")
    named(wire).up(wire.a, WEFT, wire.b, WEFT)
    assert wire.a.has_device(DEVICE)


def test_second_family_is_tried_when_the_first_does_not_answer(wire, server):
    """B drops what comes to its IPv6 address."""
    server.answers = [wire.b4, wire.b6]
    wait_ping(wire.a, wire.b6)
    hole = Fault(wire.b, "six", f"ip6 daddr {wire.b6} udp dport {PORT}", hook="input")
    e = named(wire)
    e.up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4, 30)
    assert e.a_sees().endpoint == f"{wire.b4}:{PORT}"
    assert hole.count() == 1, "IPv6 was first, and once"


def test_first_family_is_kept_when_it_answers(wire, server):
    server.answers = [wire.b4, wire.b6]
    wait_ping(wire.a, wire.b6)  # the neighbour is known: that takes a second in a fresh namespace
    e = named(wire).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4, 4)
    assert e.a_sees().endpoint == f"[{wire.b6}]:{PORT}"


def test_name_is_looked_up_again_when_handshakes_fail(wire, server):
    """B moves to another address, and the name with it. A has no session: B was never up there before."""
    wire.b.ip("address add 10.0.1.9/24 dev eth0")
    server.answers = ["10.0.1.77"]  # nobody
    wire.a.ip("neigh add 10.0.1.77 lladdr 02:00:00:00:00:77 dev eth0")
    e = named(wire).up(wire.a, WEFT, wire.b, WEFT)
    wait_for(lambda: e.a_sees().endpoint == f"10.0.1.77:{PORT}", 5, "the first answer is used")
    events = wire.a.spawn(binary(), "events")
    asked = server.asked
    server.answers = ["10.0.1.9"]
    wait_ping(wire.a, B4, 30)
    assert server.asked > asked and e.a_sees().endpoint == f"10.0.1.9:{PORT}"
    wait_for(lambda: f"vpn.example.com is 10.0.1.9:{PORT}" in events.output, 5, "watchers are told")
    server.answers = []
    e.a_conf.peers[0].endpoint = f"other.example.com:{PORT}"
    e.a.write(e.a_conf)
    wire.a.run(binary(), "reload", DEVICE)
    wait_for(lambda: "cannot resolve other.example.com; it is tried again" in events.output, 10, "also of what is not found")


def test_scope_of_a_link_local_endpoint_may_appear_later(wire, lab):
    link_local = wire.b.out("sh", "-c", "ip -6 -br address show dev eth0 | grep -o 'fe80[^/]*'")
    e = ends("", wire.b4)
    e.a_conf.peers[0].endpoint = f"[{link_local}%late0]:{PORT}"
    e.a_conf.peers[0].keepalive = 1
    e.up(wire.a, WEFT, wire.b, WEFT)
    assert e.a_sees().endpoint == ""
    wire.a.ip("link set eth0 down")
    wire.a.ip("link set eth0 name late0 up")
    wait_ping(wire.a, B4, 30)
    index = wire.a.out("cat", "/sys/class/net/late0/ifindex")
    assert e.a_sees().endpoint in (f"[{link_local}%{index}]:{PORT}", f"[{link_local}%late0]:{PORT}")


def test_port_is_renewed_when_nobody_answers(wire):
    e = ends("", wire.b4)
    e.a_conf.port = 0
    e.a_conf.peers[0].keepalive = 1
    everything = Fault(wire.b, "all", f"udp dport {PORT}", hook="input")
    e.up(wire.a, WEFT, wire.b, WEFT)
    events = wire.a.spawn(binary(), "events")
    old = e.a.dump().port
    Fault(wire.b, "flow", f"udp sport {old} udp dport {PORT}", hook="input")
    everything.remove()
    wait_for(lambda: e.a.dump().port != old, 20, "another port", interval=0.1)
    wait_ping(wire.a, B4, 12)
    wait_for(lambda: f"the port to listen on is now {e.a.dump().port}" in events.output, 5, "watchers are told")


def test_fixed_port_stays_though_nobody_answers(wire):
    e = ends("", "10.0.1.77")
    e.a_conf.peers[0].keepalive = 1
    wire.a.ip("neigh add 10.0.1.77 lladdr 02:00:00:00:00:77 dev eth0")
    e.up(wire.a, WEFT, wire.b, WEFT)
    stays(lambda: e.a.dump().port == PORT, 22, "ListenPort was given", interval=0.5)


def test_peer_that_was_removed_by_hand_comes_back_with_its_endpoint(wire, server):
    e = named(wire).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4, 30)
    wire.a.run("wg", "set", DEVICE, "peer", e.b_keys.public, "remove")
    wire.a.run(binary(), "reload", DEVICE)
    wait_for(lambda: e.a_sees().endpoint == f"{wire.b4}:{PORT}", 5, "its endpoint")


def test_of_a_key_that_comes_twice_the_latest_endpoint_counts(wire, server):
    e = named(wire)
    e.a_conf.peers.append(replace(e.a_conf.peers[0], endpoint="192.0.2.7:1"))
    e.up(wire.a, WEFT, wire.b, WEFT)
    stays(lambda: e.a_sees().endpoint == "192.0.2.7:1" and server.asked == 0, 2, "the name is not looked up")

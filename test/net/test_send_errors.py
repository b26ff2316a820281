# SPDX-License-Identifier: Apache-2.0
"""The kernel refuses to send: counted per send, never fatal.

    A 10.0.1.2 --- R --- 10.0.2.2 B"""
import pytest

from lab import Fault, PeerConf, keys, pair, routed, traffic, wait_for, wait_ping
from lab.bulk import transfer
from lab.device import A4, B4, DEVICE, PORT, WEFT, ends
from lab.traffic import IperfServer


def test_firewall_on_output_is_counted_and_survived(lab):
    wire = pair(lab)
    e = ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    fault = Fault(wire.a, "egress", f"udp dport {PORT}", "drop", "output")
    before = e.a.drops()["link_perm"]
    traffic.ping(wire.a, B4, 5, 0.01)
    wait_for(lambda: e.a.drops()["link_perm"] >= before + 5, 2, "five refused sends are counted")
    fault.remove()
    wait_ping(wire.a, B4, 2)


def test_missing_route_is_counted_and_survived(lab):
    net = routed(lab)
    e = ends("", net.b4).up(net.a, WEFT, net.b, WEFT)
    wait_ping(net.a, B4)
    net.a.ip("route del default")
    before = e.a.drops()["link_unreach"]
    traffic.ping(net.a, B4, 5, 0.01)
    wait_for(lambda: e.a.drops()["link_unreach"] >= before + 5, 2, "five failed sends are counted")
    net.a.ip(f"route add default via {net.ra4}")
    wait_ping(net.a, B4, 2)


def test_one_unreachable_peer_does_not_disturb_another(lab):
    """Both peers are in one batch: a broken endpoint must not abort what follows it."""
    net = routed(lab)
    e = ends("", net.b4)
    dead = PeerConf(keys().public, ["10.50.0.0/16"], "10.200.0.1:9")
    e.a_conf.peers.append(dead)
    e.up(net.a, WEFT, net.b, WEFT)
    net.a.ip("route add unreachable 10.200.0.0/16")
    wait_ping(net.a, B4)
    other = net.a.spawn("ping", "-n", "-i", "0.01", "-c", "300", "-W", "1", "10.50.0.1")
    r = traffic.ping(net.a, B4, 200, 0.01)
    assert r.received == 200
    other.stop()


@pytest.mark.parametrize("family", [4, 6], ids=["over IPv4", "over IPv6"])
def test_closed_port_at_the_far_end_is_survived(lab, family):
    wire = pair(lab)
    e = ends(wire.a4 if family == 4 else wire.a6, wire.b4 if family == 4 else wire.b6).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    e.b.stop()
    traffic.ping(wire.a, B4, 20, 0.01)
    assert e.a.pid in wire.a.processes("weft")
    e.up_b(wire.b, WEFT)
    # B has no session: its own first packet brings one.
    wait_ping(wire.b, A4)
    wait_ping(wire.a, B4, 2)


def test_wire_that_shrinks_below_the_tunnel_carries_on(lab):
    """Outer packets no longer fit the interface: super-sends meet EMSGSIZE and the kernel must fragment."""
    wire = pair(lab)
    e = ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    transfer(wire.a, wire.b, B4, 4 << 20)
    for ns in (wire.a, wire.b):
        ns.ip("link set dev eth0 mtu 1300")
    r = traffic.ping(wire.a, B4, 3, 0.01, 1392)
    assert r.received == 3
    transfer(wire.a, wire.b, B4, 4 << 20)
    transfer(wire.b, wire.a, A4, 4 << 20)
    assert e.a.pid in wire.a.processes("weft")


def test_transmit_queue_that_is_down_and_up_again(lab):
    wire = pair(lab)
    e = ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    IperfServer(wire.b)
    load = wire.a.spawn("iperf3", "-c", B4, "-t", "3")
    wait_for(lambda: wire.b.counters(DEVICE).rx_bytes > 1e6, 5, "load")
    wire.b.ip("link set dev eth0 down")
    wire.b.ip("link set dev eth0 up")
    assert load.wait(30) == 0, load.output
    wait_ping(wire.a, B4)
    assert e.b.pid in wire.b.processes("weft")

# SPDX-License-Identifier: Apache-2.0
"""A peer's address changes: the other side follows authenticated packets, and nothing else.

    A 10.0.1.2 --- R --- 10.0.2.2 B;  the relay runs in R"""
import pytest

from lab import nat, pair, routed, stays, wait_for, wait_ping
from lab.device import A4, B4, GO, PORT, WEFT, at, ends
from lab.relay import Relay

BOTH = pytest.mark.parametrize("a,b", [(WEFT, GO), (GO, WEFT)], ids=["weft moves", "go moves"])


def test_new_address_is_learnt_from_data(lab):
    """One way round only: Debian's wireguard-go keeps the source address that is gone and sends no more."""
    net = routed(lab)
    e = ends("", net.b4).up(net.a, WEFT, net.b, GO)
    wait_ping(net.a, B4)
    assert e.b_sees().endpoint == at(net.a4)
    # Deleting the first address of a subnet takes the others along, so the new one comes after.
    net.a.ip(f"address del {net.a4}/24 dev eth0")
    net.a.ip("address add 10.0.1.77/24 dev eth0")
    net.a.ip(f"route replace default via {net.ra4}")
    wait_ping(net.a, B4)
    assert e.b_sees().endpoint == at("10.0.1.77")
    wait_ping(net.b, A4)


@BOTH
def test_new_port_is_learnt_from_data(lab, a, b):
    wire = pair(lab)
    e = ends("", wire.b4).up(wire.a, a, wire.b, b)
    wait_ping(wire.a, B4)
    wire.a.run("wg", "set", "wg0", "listen-port", "40404")
    wait_ping(wire.a, B4)
    assert e.b_sees().endpoint == at(wire.a4, 40404)


@BOTH
def test_rebinding_nat_is_followed_in_both_directions(lab, a, b):
    net = routed(lab)
    relay = Relay(net.r, 4000, (net.b4, PORT))
    lab.on_exit(relay.stop)
    e = ends("", net.ra4)
    e.a_conf.peers[0].endpoint = at(net.ra4, 4000)
    e.up(net.a, a, net.b, b)
    wait_ping(net.a, B4)
    before = e.b_sees().endpoint
    relay.rebind()
    wait_ping(net.a, B4)
    after = e.b_sees().endpoint
    assert after != before and after.startswith(net.rb4)
    wait_ping(net.b, A4)


@BOTH
def test_masquerading_router_is_no_obstacle(lab, a, b):
    net = routed(lab)
    nat(net.r, "tob")
    e = ends("", net.b4).up(net.a, a, net.b, b)
    wait_ping(net.a, B4)
    wait_ping(net.b, A4)
    assert e.b_sees().endpoint.startswith(net.rb4)


@BOTH
def test_copied_data_from_elsewhere_moves_nothing(lab, a, b):
    net = routed(lab)
    relay = Relay(net.r, 4000, (net.b4, PORT))
    lab.on_exit(relay.stop)
    e = ends("", net.ra4)
    e.a_conf.peers[0].endpoint = at(net.ra4, 4000)
    e.up(net.a, a, net.b, b)
    wait_ping(net.a, B4)
    endpoint = e.b_sees().endpoint
    with net.r.udp_socket() as thief:
        for data in relay.of_kind(4, "to server"):
            thief.sendto(data, (net.b4, PORT))
        stays(lambda: e.b_sees().endpoint == endpoint, 0.5, "the endpoint")
    wait_ping(net.b, A4)
    wait_for(lambda: e.b_sees().endpoint == endpoint, 1, "the endpoint")

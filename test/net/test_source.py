# SPDX-License-Identifier: Apache-2.0
"""Answers leave from the address that the peer used.

    A 10.0.1.2 --- R --- 10.0.2.2 and 10.0.2.3 B"""
import pytest

from lab import Fault, established_only, routed, wait_for, wait_ping
from lab.device import A4, B4, DEVICE, WEFT, at, ends

SECOND4, SECOND6 = "10.0.2.3", "fd00:0:0:2::3"


@pytest.fixture(params=[4, 6], ids=["over IPv4", "over IPv6"])
def net(lab, request):
    """Topology, B's two addresses and A's. B's second address is never the one the kernel would choose."""
    t = routed(lab)
    t.b.ip(f"address add {SECOND4}/24 dev eth0")
    t.b.ip(f"address add {SECOND6}/64 dev eth0 nodad preferred_lft 0")
    t.first, t.second, t.caller = (t.b4, SECOND4, t.a4) if request.param == 4 else (t.b6, SECOND6, t.a6)
    return t


def test_answers_pass_a_firewall_that_lets_only_answers_through(lab, net):
    established_only(net.r, "tob")
    ends("", net.second).up(net.a, WEFT, net.b, WEFT)
    wait_ping(net.a, B4)
    wait_ping(net.b, A4)


def test_source_follows_the_peer_to_our_other_address(lab, net):
    e = ends("", net.second).up(net.a, WEFT, net.b, WEFT)
    wait_ping(net.a, B4)
    family = "ip6" if ":" in net.first else "ip"
    from_first = Fault(net.r, "first", f"{family} saddr {net.first} udp sport 51820", "accept")
    from_second = Fault(net.r, "second", f"{family} saddr {net.second} udp sport 51820", "accept")
    wait_ping(net.b, A4)
    assert from_second.count() > 0 and from_first.count() == 0
    net.a.run("wg", "set", DEVICE, "peer", e.b_keys.public, "endpoint", at(net.first))
    wait_ping(net.a, B4)
    settled = from_second.count()
    wait_ping(net.b, A4)
    assert from_second.count() == settled and from_first.count() > 0


def test_source_address_that_disappears_costs_no_packet(lab, net):
    e = ends(net.caller, net.second).up(net.a, WEFT, net.b, WEFT)
    wait_ping(net.a, B4)
    net.b.ip(f"address del {net.second}/{64 if ':' in net.second else 24} dev eth0")
    # The very next packet must get through: the send is repeated without the pinned address.
    r = net.b.run("ping", "-n", "-c", "1", "-W", "2", A4, check=False)
    assert r.returncode == 0, r.stdout
    wait_for(lambda: e.a_sees().endpoint == at(net.first), 2, "A has learnt B's other address")

# SPDX-License-Identifier: Apache-2.0
"""The default route leads into the tunnel, and the tunnel's own packets must not.

    A 10.0.1.2 --- R 10.0.1.1 | 10.0.2.1 --- 10.0.2.2 B --- 198.51.100.1 on B's lo"""
import pytest

from lab import Fault, procfs, routed, steady, wait_for, wait_ping
from lab.device import B4, DEVICE, PORT, WEFT, ends

FAR4, FAR6 = "198.51.100.1", "2001:db8:77::1"


@pytest.fixture
def net(lab):
    t = routed(lab)
    t.b.ip(f"address add {FAR4}/32 dev lo")
    t.b.ip(f"address add {FAR6}/128 dev lo nodad")
    return t


def everything(net, **kw):
    """A sends all it has to B; B is the whole world."""
    e = ends("", net.b4)
    e.a_conf.peers[0].allowed = ["0.0.0.0/0", "::/0"]
    for key, value in kw.items():
        setattr(e.a_conf, key, value)
    return e


@pytest.mark.parametrize("family", [4, 6], ids=["over IPv4", "over IPv6"])
def test_default_route_goes_through_the_tunnel_and_its_packets_around_it(net, family):
    e = everything(net)
    e.a_conf.peers[0].endpoint = f"{net.b4}:{PORT}" if family == 4 else f"[{net.b6}]:{PORT}"
    outside = Fault(net.r, "bare", f"ip daddr {FAR4}", "accept")
    outside6 = Fault(net.r, "bare6", f"ip6 daddr {FAR6}", "accept")
    e.up(net.a, WEFT, net.b, WEFT)
    wait_ping(net.a, FAR4)
    wait_ping(net.a, FAR6)
    assert outside.count() == outside6.count() == 0, "what should be inside was seen outside"
    assert e.a.drops()["tx_loop"] == 0
    # The endpoint's own address is reached through the tunnel as well, by those who have no mark.
    wait_ping(net.a, net.b4)
    # The local net stays reachable without the tunnel: its route is longer than 0.
    wait_ping(net.a, net.ra4)
    assert e.a.dump().fwmark != 0


def test_down_takes_the_default_route_and_its_rules_away(net):
    def state() -> str:
        return "\n".join(steady(net.a.out("ip", *words.split())) for words in
                         ("rule", "-6 rule", "route show table all", "-6 route show table all", "-br address")) + net.a.out("nft", "list", "ruleset")
    before = state()
    e = everything(net).up(net.a, WEFT, net.b, WEFT)
    wait_ping(net.a, FAR4)
    assert state() != before
    e.a.down()
    assert state() == before


def test_own_mark_of_the_file_is_used_for_the_rules(net):
    e = everything(net, fwmark=0x4242).up(net.a, WEFT, net.b, WEFT)
    wait_ping(net.a, FAR4)
    assert e.a.dump().fwmark == 0x4242
    assert "0x4242" in net.a.ip("rule")


def test_outer_packet_that_comes_back_is_dropped_under_its_own_reason_and_does_not_spin(net):
    e = everything(net, table="off").up(net.a, WEFT, net.b, WEFT)
    net.a.ip(f"route replace {B4} dev {DEVICE}")
    wait_ping(net.a, B4)
    # Now the endpoint itself is routed into the tunnel, and no mark leads around it.
    net.a.ip(f"route replace {net.b4} dev {DEVICE}")
    before = e.a.drops()["tx_loop"]
    cpu = procfs.cpu_seconds(e.a.pid)
    net.a.run("ping", "-n", "-c", "10", "-i", "0.05", "-W", "1", B4, check=False)
    wait_for(lambda: e.a.drops()["tx_loop"] >= before + 10, 2, "looped packets are counted")
    assert procfs.cpu_seconds(e.a.pid) - cpu < 0.3
    net.a.ip(f"route del {net.b4} dev {DEVICE}")
    wait_ping(net.a, B4, 3)


def test_mark_set_later_opens_the_way_around(net):
    e = everything(net, table="off").up(net.a, WEFT, net.b, WEFT)
    net.a.ip(f"route add default dev {DEVICE} table 77")
    net.a.ip("rule add not fwmark 0x77 table 77")
    net.a.run("ping", "-n", "-c", "2", "-i", "0.2", "-W", "1", FAR4, check=False)
    assert e.a.drops()["tx_loop"] > 0
    net.a.run("wg", "set", DEVICE, "fwmark", "0x77")
    wait_ping(net.a, FAR4, 8)
    # A rebind keeps the mark.
    net.a.run("wg", "set", DEVICE, "listen-port", "50505")
    wait_ping(net.a, FAR4, 3)

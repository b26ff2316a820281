# SPDX-License-Identifier: Apache-2.0
"""Traffic through two weft nodes: content, order, ECN, several workers, a lossy and reordering wire.

    A 10.0.1.2 --- R --- 10.0.2.2 B"""
import pytest

from lab import burst, loss, offload, pair, routed, traffic, wait_ping
from lab.bulk import datagrams, transfer
from lab.device import A4, A6, B4, B6, DEVICE, WEFT, ends, make
from lab.packet import Injector, Ip, Sniffer, destination, plain, udp
from lab.traffic import IperfServer

SIZE = 16 << 20


@pytest.mark.parametrize("workers", ["1", "4"])
@pytest.mark.parametrize("family", [4, 6], ids=["over IPv4", "over IPv6"])
def test_tcp_arrives_unchanged_both_ways(lab, family, workers):
    wire = pair(lab)
    e = ends("", wire.b4 if family == 4 else wire.b6)
    e.options = ["--workers", workers]
    e.up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    transfer(wire.a, wire.b, B4, SIZE, 1)
    transfer(wire.b, wire.a, A6, SIZE, 2)
    transfer(wire.a, wire.b, B6, SIZE, 3)
    transfer(wire.b, wire.a, A4, SIZE, 4)


def test_tcp_arrives_unchanged_over_a_wire_without_segmentation(lab):
    """Every datagram of a super-send becomes a packet of its own on the wire."""
    wire = pair(lab)
    for ns in (wire.a, wire.b):
        offload.segmentation_off(ns, "eth0")
    ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    transfer(wire.a, wire.b, B4, SIZE, 1)
    transfer(wire.b, wire.a, A4, SIZE, 2)


@pytest.mark.parametrize("aead", ["libcrypto", "auto"])
def test_each_backend_speaks_with_the_other(lab, aead):
    wire = pair(lab)
    e = ends("", wire.b4)
    e.options = ["--aead", aead]
    e.up_b(wire.b, WEFT)
    e.a = make(WEFT, wire.a, e.a_conf, ["--aead", "libcrypto"])
    wait_ping(wire.a, B4)
    transfer(wire.a, wire.b, B4, 8 << 20, 1)
    transfer(wire.b, wire.a, A4, 8 << 20, 2)


@pytest.mark.parametrize("workers", ["1", "4"])
def test_one_flow_is_never_reordered(lab, workers):
    wire = pair(lab)
    e = ends("", wire.b4)
    e.options = ["--workers", workers]
    e.up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    IperfServer(wire.b)
    for reverse in (False, True):
        r = traffic.udp(wire.a, B4, 150, 2, reverse=reverse)
        assert r.out_of_order == 0


def test_tiny_segments_are_never_too_many_for_a_batch(lab):
    """61,000 B in segments of 138 B would be 442 of them, more than a batch holds."""
    wire = pair(lab)
    e = ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    IperfServer(wire.b)
    wire.a.run("iperf3", "-c", B4, "-M", "150", "-n", "32M", timeout=60)
    assert e.a.status()["drops"]["tx_too_big"] == 0


@pytest.mark.parametrize("workers", ["1", "4"])
@pytest.mark.parametrize("offload_key", ["on", "off"])
def test_every_datagram_arrives_once_and_in_order(lab, workers, offload_key):
    """Without loss recovery, whose late packets may come from another thread (docs/decisions/lanes.md)."""
    wire = pair(lab)
    e = ends("", wire.b4)
    e.options = ["--workers", workers]
    e.a_conf.extra = [f"Offload = {offload_key}", "Fec = off"]
    e.b_conf.extra = ["Fec = off"]
    e.up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    for sender, receiver, address in ((wire.a, wire.b, B4), (wire.b, wire.a, A6)):
        assert datagrams(sender, receiver, address) == list(range(2000))


@pytest.mark.parametrize("fault", ["loss 3 %", "burst 10 of 500"])
def test_tcp_gets_through_a_lossy_wire_unchanged(lab, fault):
    net = routed(lab)
    e = ends("", net.b4).up(net.a, WEFT, net.b, WEFT)
    wait_ping(net.a, B4)
    rule = loss(net.r, 3) if fault.startswith("loss") else burst(net.r, 10, 500)
    transfer(net.a, net.b, B4, 2 << 20, 5)
    # Offloads make few packets of them, so that sometimes none is dropped.
    for seed in range(6, 26):
        transfer(net.b, net.a, A4, 2 << 20, seed)
        if rule.count() > 0:
            break
    assert rule.count() > 0
    assert e.b.pid in net.b.processes("weft")


OUTER_CE = """table ip marks {
    chain congested { type filter hook forward priority 0;
        ip protocol udp ip ecn set ce
    }
}"""


@pytest.mark.parametrize("inner,arrives", [(0, None), (1, 3), (2, 3), (3, 3)], ids=["not-ECT", "ECT(1)", "ECT(0)", "CE"])
def test_congestion_marks_of_the_path_reach_the_inner_packet(lab, inner, arrives):
    """RFC 6040: the outer header copies ECN; a CE there goes in, and where the inner one cannot carry it the packet is dropped."""
    net = routed(lab)
    ends("", net.b4).up(net.a, WEFT, net.b, WEFT)
    wait_ping(net.a, B4)
    sniffer, injector = Sniffer(net.b, DEVICE), Injector(net.a, DEVICE)
    mine = lambda p: destination(p) == B4 and p[9] == 17
    packet = plain(udp(Ip(A4, B4, tos=inner), 1, 9, b"ecn"))
    injector.send(packet)
    (clean,) = sniffer.take(1, mine)
    assert clean[1] & 3 == inner
    net.r.nft(OUTER_CE)
    injector.send(packet)
    marked = sniffer.take(1, mine, 2.0 if arrives is not None else 0.5)
    assert [p[1] & 3 for p in marked] == ([] if arrives is None else [arrives])
    injector.close()
    sniffer.close()


def test_inner_dscp_stays_inside(lab):
    net = routed(lab)
    ends("", net.b4).up(net.a, WEFT, net.b, WEFT)
    wait_ping(net.a, B4)
    sniffer = Sniffer(net.r, "toa")
    net.a.run("ping", "-n", "-c", "1", "-Q", "0xb8", "-W", "1", B4)
    (outer,) = sniffer.take(1, lambda p: destination(p) == net.b4)
    assert outer[1] >> 2 == 0
    sniffer.close()

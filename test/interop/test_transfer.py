# SPDX-License-Identifier: Apache-2.0
"""Large transfers, compared byte by byte, over every combination of families and offloads.

    A 10.0.1.1 ---- 10.0.1.2 B"""
import pytest

from lab import Lab, pair, traffic, wait_ping
from lab.bulk import datagrams, transfer
from lab.device import A4, A6, B4, B6, GO, WEFT, ends

SIZE = 8 << 20


@pytest.mark.parametrize("offload", ["on", "off"])
@pytest.mark.parametrize("family", [4, 6], ids=["over IPv4", "over IPv6"])
def test_tcp_arrives_unchanged_in_both_directions_and_families(lab, family, offload):
    wire = pair(lab)
    e = ends("", wire.b4 if family == 4 else wire.b6)
    e.a_conf.extra.append(f"Offload = {offload}")
    e.up(wire.a, WEFT, wire.b, GO)
    wait_ping(wire.a, B4)
    for seed, (sender, receiver, address) in enumerate([(wire.a, wire.b, B4), (wire.b, wire.a, A4), (wire.a, wire.b, B6), (wire.b, wire.a, A6)]):
        transfer(sender, receiver, address, SIZE, seed)


@pytest.mark.parametrize("offload", ["on", "off"])
def test_udp_arrives_in_order_and_each_datagram_once(lab, offload):
    wire = pair(lab)
    e = ends("", wire.b4)
    e.a_conf.extra.append(f"Offload = {offload}")
    e.up(wire.a, WEFT, wire.b, GO)
    wait_ping(wire.a, B4)
    for sender, receiver, address in ((wire.a, wire.b, B4), (wire.b, wire.a, A4), (wire.a, wire.b, B6)):
        assert datagrams(sender, receiver, address) == list(range(2000))


@pytest.fixture(scope="module")
def tunnel():
    """One tunnel for all sizes."""
    with Lab() as lab:
        wire = pair(lab)
        ends("", wire.b4).up(wire.a, WEFT, wire.b, GO)
        wait_ping(wire.a, B4)
        yield wire.a, wire.b


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 1200, 1391, 1392, 1393, 4000, 30000])
def test_pings_of_every_kind_of_size_pass(tunnel, size):
    """1392 + 28 = the tunnel's MTU; longer ones are fragmented inside."""
    a, b = tunnel
    for ns, address in ((a, B4), (b, A4)):
        r = traffic.ping(ns, address, 3, 0.01, size)
        assert r.received == 3

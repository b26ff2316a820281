# SPDX-License-Identifier: Apache-2.0
"""The mark of outer packets, seen by nft on their way out.

    A 10.0.1.1 ---- 10.0.1.2 B"""
import pytest

from lab import Fault, pair, wait_ping
from lab.device import B4, GO, WEFT, ends


def marked(ns, name: str, mark: int) -> Fault:
    return Fault(ns, name, f"udp dport 51820 meta mark {mark}", "accept", "output")


@pytest.mark.parametrize("family", [4, 6], ids=["over IPv4", "over IPv6"])
def test_every_outer_packet_carries_the_configured_mark(lab, family):
    wire = pair(lab)
    e = ends("", wire.b4 if family == 4 else wire.b6)
    e.a_conf.fwmark = 0x1234
    right, none = marked(wire.a, "right", 0x1234), marked(wire.a, "none", 0)
    e.up(wire.a, WEFT, wire.b, GO)
    wait_ping(wire.a, B4)
    assert right.count() >= 2 and none.count() == 0
    assert e.a.dump().fwmark == 0x1234


def test_mark_set_changed_and_cleared_on_open_sockets(lab):
    wire = pair(lab)
    ends("", wire.b4).up(wire.a, WEFT, wire.b, GO)
    wait_ping(wire.a, B4)
    first, second, none = marked(wire.a, "first", 0x11), marked(wire.a, "second", 0x22), marked(wire.a, "none", 0)

    def counts() -> tuple[int, int, int]:
        return first.count(), second.count(), none.count()
    for mark, which in (("0x11", 0), ("0x22", 1), ("off", 2)):
        wire.a.run("wg", "set", "wg0", "fwmark", mark)
        before = counts()
        wait_ping(wire.a, B4)
        after = counts()
        assert [i for i in range(3) if after[i] > before[i]] == [which], f"mark {mark}: {before} {after}"
    # A new port is a new socket: the mark must be on it too.
    wire.a.run("wg", "set", "wg0", "fwmark", "0x22", "listen-port", "51999")
    before = counts()
    wait_ping(wire.a, B4)
    after = counts()
    assert after[1] > before[1] and after[0] == before[0] and after[2] == before[2]

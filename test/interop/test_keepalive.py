# SPDX-License-Identifier: Apache-2.0
"""Persistent keepalives, counted on the wire. The passive ones are in background.py.

    A 10.0.1.1 ---- 10.0.1.2 B"""
import time

import pytest

from lab import Fault, pair, stays, wait_for
from lab.device import GO, WEFT, ends

KEEPALIVE = "udp length 40"  # 8 of UDP, 32 of an empty data message
INITIATION = "udp length 156"
BOTH = pytest.mark.parametrize("a,b", [(WEFT, GO), (GO, WEFT)], ids=["weft keeps alive", "go keeps alive"])


@BOTH
def test_persistent_keepalive_starts_the_session_and_comes_every_second(lab, a, b):
    wire = pair(lab)
    e = ends("", wire.b4)
    e.a_conf.peers[0].keepalive = 1
    seen, initiations = Fault(wire.b, "keepalives", KEEPALIVE, "accept", "input"), Fault(wire.b, "initiations", INITIATION, "accept", "input")
    e.up(wire.a, a, wire.b, b)
    # Nobody sends anything: the first keepalive brings the handshake.
    wait_for(lambda: e.b_sees().handshake > 0, 5, "a session without traffic")
    start = seen.count()
    t0 = time.monotonic()
    wait_for(lambda: seen.count() >= start + 4, 7, "four keepalives")
    took = time.monotonic() - t0
    # weft asks 0.25 and 1 s after the session whether the peer is a weft node, and what was sent needs no keepalive.
    assert 3.0 <= took <= (5.8 if a == WEFT else 4.6), f"4 keepalives took {took:.2f} s"
    assert initiations.count() == 1
    assert e.a_sees().keepalive == 1


@BOTH
def test_keepalive_set_and_cleared_by_wg_set(lab, a, b):
    wire = pair(lab)
    e = ends("", wire.b4).up(wire.a, a, wire.b, b)
    seen = Fault(wire.b, "keepalives", KEEPALIVE, "accept", "input")
    wire.a.run("wg", "set", "wg0", "peer", e.b_keys.public, "persistent-keepalive", "1")
    wait_for(lambda: seen.count() >= 2, 6, "keepalives")
    wire.a.run("wg", "set", "wg0", "peer", e.b_keys.public, "persistent-keepalive", "off")
    assert e.a_sees().keepalive == 0
    after = seen.count()
    stays(lambda: seen.count() == after, 1.5, "no more keepalives")


@BOTH
def test_idle_tunnel_without_keepalive_is_silent(lab, a, b):
    wire = pair(lab)
    anything = Fault(wire.b, "anything", "meta l4proto udp", "accept", "input")
    ends(wire.a4, wire.b4).up(wire.a, a, wire.b, b)
    stays(lambda: anything.count() == 0, 1.0, "silence")

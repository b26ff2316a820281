# SPDX-License-Identifier: Apache-2.0
"""Loss recovery where packets change places or come twice: nothing twice, nothing taken for lost, no order broken.

    A 10.0.1.1 --- toa [E: weft emulate] tob --- 10.0.1.2 B"""
from __future__ import annotations

import struct
import threading

import pytest

from lab import flow, pair, peer, wait_for, wait_ping
from lab.device import A4, B4, DEVICE, WEFT, ends
from lab.lossy import LossyTunnel
from lab.packet import Sniffer, destination

RATE = 2000


def steady(t: LossyTunnel, count: int, is_back: bool = False) -> flow.UdpFlow:
    """From A to B, or back."""
    ends_ = (t.b, t.a, A4) if is_back else (t.a, t.b, B4)
    return flow.udp_at(*ends_, [n / RATE for n in range(count)], [200] * count)


@pytest.mark.parametrize("share", ["1%", "10%"])
def test_reordering_within_the_grace_is_no_loss(lab, share):
    """A knows of a round trip of 160 ms, since it called: 10 ms of grace. Packets come 0.6 ms late, behind the next one."""
    t = LossyTunnel(lab).start("--delay", "80ms")
    t.path("--delay", "80ms", "--reorder", f"{share},600us", "--duplicate", "1%")
    f = steady(t, 3000, is_back=True)
    n = t.path("--delay", "80ms")
    assert n["ba"]["reordered"] > 0 and n["ba"]["duplicated"] > 0
    assert f.received == f.sent and f.duplicates == 0
    assert f.order != sorted(f.order), "the path did not reorder"
    rx, why = t.fec(t.ends.a)["rx"], t.fec(t.ends.b)
    assert rx["lost"] == rx["given_up"] == rx["repairs"] == rx["held"] == 0
    assert why["why"] == "clean" and why["repair_bytes"] == 0


@pytest.mark.parametrize("share,distance", [("1%", "3-30"), ("10%", "3-300"), ("10%", "3-3000")])
def test_each_is_delivered_once_at_any_distance(lab, share, distance):
    """Farther than the grace it looks like loss and may be repaired; the late original is then dropped as what it is."""
    t = LossyTunnel(lab).start()
    t.path("--delay", "2ms", "--reorder", f"{share},{distance}", "--duplicate", "2%")
    f = steady(t, 3000)
    # The last of those held back come when others have passed them.
    late = flow.udp_at(t.a, t.b, B4, [n / 4000 for n in range(3300)], [200] * 3300)
    n = t.path("--delay", "2ms")
    assert n["ab"]["reordered"] > 0 and n["ab"]["duplicated"] > 0
    assert f.duplicates == late.duplicates == 0
    assert f.received == f.sent
    assert t.ends.b.drops()["rx_ext"] == 0


def tcp_order(sniffer: Sniffer, stop: threading.Event) -> list[tuple[int, int]]:
    """(first byte, length) of the segments with payload that arrived, in order."""
    got: list[tuple[int, int]] = []
    while not stop.is_set():
        for p in sniffer.take(1 << 30, lambda d: destination(d) == B4 and d[9] == 6, 0.2):
            l4 = (p[0] & 15) * 4
            size = int.from_bytes(p[2:4], "big") - l4 - (p[l4 + 12] >> 4) * 4
            if size > 0:
                got.append((struct.unpack_from("!I", p, l4 + 4)[0], size))
    return got


def test_four_workers_keep_a_tcp_flow_in_order(lab):
    """Agreed, AES on; no wire between that could reorder. A segment that begins before the end of the one before it, and was
    never sent again, was overtaken by us."""
    wire = pair(lab)
    e = ends("", wire.b4)
    e.options = ["--workers", "4"]
    for conf in (e.a_conf, e.b_conf):
        conf.extra = ["Cipher = aes-256-gcm"]
    e.up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    wait_for(lambda: all(peer(n)["cipher"] == "aes-256-gcm" for n in (e.a, e.b)), 10, "both send in AES")
    sniffer, stop = Sniffer(wire.b, DEVICE), threading.Event()
    segments: list[tuple[int, int]] = []
    watching = threading.Thread(target=lambda: segments.extend(tcp_order(sniffer, stop)), daemon=True)
    watching.start()
    f = flow.tcp(wire.a, wire.b, B4, seconds=10, size=16 << 20)
    stop.set()
    watching.join(5)
    sniffer.close()
    assert f.is_whole and len(segments) > 200
    early = sum(b[0] != (a[0] + a[1]) & 0xFFFFFFFF and (b[0] - a[0]) & 0xFFFFFFFF < 1 << 31 for a, b in zip(segments, segments[1:]))
    late = sum((b[0] - a[0]) & 0xFFFFFFFF >= 1 << 31 for a, b in zip(segments, segments[1:]))
    assert late <= f.retransmits
    assert f.retransmits > 0 or early == 0

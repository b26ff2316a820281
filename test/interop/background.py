# SPDX-License-Identifier: Apache-2.0
"""Cases that only time can show run beside all others, from the first test to test_zz_slow.py.

Rekey needs more than 120 s of traffic, the passive keepalive 10 s of silence. Each case has
namespaces of its own, in which ping runs by itself and nft counts what passes the wire; at the
end one test a case reads the counters."""
from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Iterator

import pytest

from lab import Fault, Lab, Pair, Process, pair, wait_ping
from lab.device import A4, B4, GO, WEFT, Ends, ends
from lab.offload import segmentation_off

REKEY_RUN_S = 132  # REKEY_AFTER_TIME is 120 s
PING_INTERVAL_S = 0.25
UDP_HEADER = 8
INITIATION, RESPONSE, KEEPALIVE = 148, 92, 32  # bytes of a message
PING = 128  # of the 84 bytes that ping sends

ORDERS = {"weft calls go": (WEFT, GO), "go calls weft": (GO, WEFT)}


@dataclass
class Case:
    """One running case; counters stand in B's namespace, at the wire."""

    wire: Pair
    ends: Ends
    started: float
    pings: list[Process] = field(default_factory=list)
    counters: dict[str, Fault] = field(default_factory=dict)


def count_messages(case: Case, name: str, hook: str, length: int) -> None:
    """Counts UDP datagrams of one length that enter (input) or leave (output) B."""
    case.counters[name] = Fault(case.wire.b, name, f"udp length {length + UDP_HEADER}", "accept", hook)


def count_frames(case: Case) -> None:
    """Counts where it arrives what is neither handshake, ping nor keepalive, and data whose second byte is not 0."""
    known = ", ".join(str(n + UDP_HEADER) for n in (INITIATION, RESPONSE, KEEPALIVE, PING))
    for name, ns in (("a", case.wire.a), ("b", case.wire.b)):
        segmentation_off(ns, "eth0")
        udp = "meta l4proto udp udp dport 51820"
        case.counters["frames at " + name] = Fault(ns, "frames", f"{udp} udp length != {{ {known} }}", "accept", "input")
        case.counters["marked at " + name] = Fault(ns, "marked", f"{udp} @th,64,8 4 @th,72,24 != 0", "accept", "input")


def start_rekey(lab: Lab, kinds: tuple[str, str]) -> Case:
    """A calls B, then both ping for longer than a key lives."""
    wire = pair(lab)
    case = Case(wire, ends("", wire.b4), time.time())
    count_messages(case, "initiations", "input", INITIATION)
    count_messages(case, "responses", "output", RESPONSE)
    count_frames(case)
    case.ends.up(wire.a, kinds[0], wire.b, kinds[1])
    wait_ping(wire.a, B4)
    count = str(int(REKEY_RUN_S / PING_INTERVAL_S))
    for ns, address in ((wire.a, B4), (wire.b, A4)):
        case.pings.append(ns.spawn("ping", "-n", "-i", str(PING_INTERVAL_S), "-c", count, "-W", "1", address))
    return case


def start_passive(lab: Lab, kinds: tuple[str, str]) -> Case:
    """A sends one packet that nobody answers; B has to say after 10 s, once, that it lives."""
    wire = pair(lab)
    case = Case(wire, ends("", wire.b4), 0.0)
    case.ends.up(wire.a, kinds[0], wire.b, kinds[1])
    wait_ping(wire.a, B4)
    # B drops what arrives through the tunnel, so that nothing answers.
    Fault(wire.b, "deaf", 'iifname "wg0"', "drop", "input")
    count_messages(case, "keepalives", "output", KEEPALIVE)
    with wire.a.udp_socket() as s:
        s.sendto(b"hello", (B4, 9))
    case.started = time.time()
    return case


@pytest.fixture(scope="session", autouse=True)
def slow_cases(request: pytest.FixtureRequest) -> Iterator[dict[str, Case]]:
    """Starts every slow case when its test is part of the session."""
    cases: dict[str, Case] = {}
    if not any("slow_cases" in getattr(item, "fixturenames", ()) and "test_zz_slow" in item.nodeid for item in request.session.items):
        yield cases
        return
    with Lab() as lab:
        for order, kinds in ORDERS.items():
            cases["rekey: " + order] = start_rekey(lab, kinds)
            cases["passive: " + order] = start_passive(lab, kinds)
        yield cases

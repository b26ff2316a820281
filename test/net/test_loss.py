# SPDX-License-Identifier: Apache-2.0
"""Loss recovery on bad wires: it helps, costs nothing where there is no loss, and never makes anything worse. CASES 16, 17.

    A 10.0.1.1 --- toa [E: weft emulate] tob --- 10.0.1.2 B"""
from __future__ import annotations

import contextlib
import random
import socket
import threading
import time

import pytest

from lab import Fault, binary, flow, pair, traffic, wait_for, wait_ping
from lab.bulk import datagrams, transfer
from lab.capture import Capture
from lab.device import A4, B4, B6, DEVICE, WEFT, ends
from lab.lossy import DELAY, LossyTunnel, peer

ECT0 = 2
RATE = 1000  # packets a second
LOSSES = [["--loss", f"{p}%"] for p in (0, 1, 3, 5, 10, 20, 30, 50)]
BURSTS = [["--loss-gilbert", "6%,3"], ["--loss-gilbert", "20%,10"], ["--loss-gilbert", "30%,30"]]  # CASES: 3/50, 10/50, 30/100


def mixed(t: LossyTunnel, count: int, seed: int) -> flow.UdpFlow:
    """Datagrams of 60 to 1400 bytes of IP, that the emulator's own seed decides about."""
    sizes = random.Random(seed)
    return flow.udp_at(t.a, t.b, B4, [n / RATE for n in range(count)], [sizes.randint(60, 1400) - 28 for _ in range(count)], ecn=ECT0)


def test_at_any_loss_more_is_delivered_than_arrives(lab):
    """On one tunnel, one loss after another: what it believes of the one before must not harm."""
    t = LossyTunnel(lab).start()
    arrivals, arrived = t.arrivals(), 0
    for k, settings in enumerate([*LOSSES, *BURSTS]):
        t.path(*DELAY, *settings, "--seed", str(k + 1))
        f = mixed(t, RATE, k)
        arrived, before = arrivals.count(), arrived
        name = " ".join(settings)
        assert f.duplicates == 0, name
        assert f.received >= arrived - before, name
        assert f.received >= 0.97 * f.sent, name
        assert "0%" in settings or arrived - before < f.sent, name
    rx = t.fec(t.ends.b)["rx"]
    assert rx["recovered_ahead"] > 0 and rx["recovered_answer"] > 0 and rx["repairs_refused"] == 0
    assert t.ends.b.drops()["rx_ext"] == t.ends.a.drops()["rx_ext"] == 0


@pytest.mark.parametrize("settings", [["--loss", "10%"], ["--loss-gilbert", "20%,10"]], ids=" ".join)
def test_on_the_same_path_recovery_off_delivers_what_arrives_and_on_more(lab, settings):
    t = LossyTunnel(lab, extra=["Fec = off"]).start()
    arrivals = t.arrivals()
    t.path(*DELAY, *settings, "--seed", "5")
    off = mixed(t, RATE, 1)
    assert off.received == arrivals.count() < 0.95 * off.sent
    t.path(*DELAY)
    for ns, key in ((t.a, t.ends.b_keys.public), (t.b, t.ends.a_keys.public)):
        ns.run(binary(), "set", DEVICE, "peer", key, "fec", "auto")
    wait_for(lambda: "rx" in t.fec() and "rx" in t.fec(t.ends.b), 10, "recovery is agreed on")
    t.path(*DELAY, *settings, "--seed", "5")
    on = mixed(t, RATE, 1)
    assert on.received > off.received and on.received >= 0.97 * on.sent

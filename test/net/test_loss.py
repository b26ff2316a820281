# SPDX-License-Identifier: Apache-2.0
"""Loss recovery on bad wires: it helps, costs nothing where there is no loss, and never makes anything worse.

    A 10.0.1.1 --- toa [E: weft emulate] tob --- 10.0.1.2 B"""
from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time

import pytest

from lab import Fault, agreement, binary, flow, pair, peer, traffic, wait_agreed, wait_for, wait_ping
from lab.bulk import datagrams, transfer
from lab.capture import Capture
from lab.device import A4, B4, DEVICE, WEFT, ends
from lab.lossy import DELAY, LossyTunnel

ECT0 = 2
RATE = 1000  # packets a second
LOSSES = [["--loss", f"{p}%"] for p in (0, 1, 3, 5, 10, 20, 30, 50)]
BURSTS = [["--loss-gilbert", "6%,3"], ["--loss-gilbert", "20%,10"], ["--loss-gilbert", "30%,30"]]  # 3 in 50, 10 in 50, 30 in 100


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
        # A burst that takes the last packets, and their probe with them, ends the flow: nothing comes that could show it.
        tail = f.sent - 1 - max(f.order)
        # One just before that takes what could be asked for with it.
        assert f.received >= (0.9 if settings in BURSTS else 0.97) * (f.sent - tail), name
        # So does, once in some thousand flows, a path that loses half of all.
        assert tail <= (100 if settings in BURSTS else 2 if "50%" in settings else 0), name
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


class Background(threading.Thread):
    """Something that goes on beside the test; result() waits for it and raises what it raised."""

    def __init__(self, call):
        super().__init__(daemon=True)
        self._call, self._value, self._error = call, None, None
        self.start()

    def run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as e:  # noqa: BLE001
            self._error = e

    def result(self):
        self.join(120)
        if self._error:
            raise self._error
        return self._value


def test_repairs_follow_the_loss_up_and_down(lab):
    """0 -> 15 -> 0 %: within 2 s up and 10 s down, by what status says is sent ahead."""
    t = LossyTunnel(lab).start()
    share = lambda: t.fec()["ahead_share"]
    assert share() == 0
    t.path(*DELAY, "--script-text", "at 1s loss 15%; at 4s loss none")
    sending = Background(lambda: mixed(t, 10 * RATE, 9))
    wait_for(lambda: t.fec()["loss"] > 0, 3, "the first loss is known", 0.05)
    t0 = time.monotonic()
    wait_for(lambda: share() > 0.2, 2, "twice the loss is sent ahead", 0.05)
    wait_for(lambda: time.monotonic() > t0 + 3, 5, "the end of the loss")
    wait_for(lambda: share() == 0, 10, "nothing is sent ahead", 0.1)
    f = sending.result()
    assert f.duplicates == 0 and f.received >= 0.99 * f.sent
    before = t.fec()["repairs_ahead"]
    mixed(t, RATE // 2, 3)
    assert t.fec()["repairs_ahead"] - before <= 5


def test_damaged_datagrams_are_repaired(lab):
    """The kernel refuses them for their checksum and counts them as if the socket had been full: a loss of the path all the same."""
    t = LossyTunnel(lab).start()
    t.path(*DELAY, "--corrupt", "10%,3")
    f = mixed(t, 2 * RATE, 1)
    assert f.duplicates == 0 and f.received >= 0.98 * f.sent
    assert t.fec(t.ends.b)["rx"]["lost"] > 50


# --- where nothing is lost, nothing is done ---

def test_clean_wire_carries_no_repair_and_no_report(lab):
    wire = pair(lab)
    e = ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    wait_for(lambda: peer(e.a)["fec"]["why"] == peer(e.b)["fec"]["why"] == "clean", 5, "both agreed")
    for sender, receiver, address in ((wire.a, wire.b, B4), (wire.b, wire.a, A4)):
        assert datagrams(sender, receiver, address) == list(range(2000))
    for node in (e.a, e.b):
        fec = peer(node)["fec"]
        assert fec["why"] == "clean" and fec["rx"]["lost"] == fec["rx"]["held"] == 0
        assert fec["repair_bytes"] == fec["feedback_tx"] == fec["rx"]["repairs"] == 0


def limited(t: LossyTunnel) -> tuple[flow.TcpFlow, traffic.Ping]:
    """One TCP stream through 20 Mbit/s with a queue of 50 ms, and pings beside it."""
    t.path(*DELAY, "--rate", "20mbit", "--queue", "50ms")
    pinging = Background(lambda: traffic.ping(t.a, B4, 150, 0.02))
    stream = flow.tcp(t.a, t.b, B4, seconds=4)
    return stream, pinging.result()


def test_congestion_is_not_answered_by_more_packets(lab):
    """The bounds are wide, since 4 s of CUBIC are not alike; `weft bench loss --measures limited` has the figures."""
    off_tunnel = LossyTunnel(lab, extra=["Fec = off"]).start()
    off, off_ping = limited(off_tunnel)
    off_tunnel.emulator.stop(may_lose=True)
    t = LossyTunnel(lab).start()
    on, on_ping = limited(t)
    fec = t.fec()
    assert fec["repair_bytes"] <= 0.10 * fec["source_bytes"]
    assert fec["ahead_share"] <= 0.05
    assert on.mbit >= 0.85 * off.mbit > 10
    assert on_ping.p50 <= 1.5 * off_ping.p50 + 5
    assert on_ping.received >= off_ping.received - 5


def test_losses_of_a_queue_that_recovery_hides_are_marked(lab):
    """On a line that loses by itself, so that repairs are sent, and then has a queue that is always full."""
    t = LossyTunnel(lab).start()
    marked = Fault(t.b, "marked", f'iifname "{DEVICE}" ip ecn ce', "accept", "input")
    t.path(*DELAY, "--loss", "2%")
    mixed(t, 2 * RATE, 8)
    assert t.fec()["peer_recovered_ahead"] > 0 and t.fec()["ce_marked"] == marked.count() == 0
    # The flow takes 6.4 Mbit/s, with repairs of 4 % and answers some 7. So the queue drops little, and much of that is repaired. With a slower
    # line most is not: then flows hear of it by themselves, and are marked at best in the first moments.
    t.path(*DELAY, "--loss", "2%", "--rate", "6900kbit", "--queue", "50ms")
    mixed(t, 4 * RATE, 0)
    assert 0 < marked.count() <= t.fec()["ce_marked"] < RATE, str(t.fec())


# --- sparse traffic ---

def armed(t: LossyTunnel, *settings: str) -> None:
    """The path is known to lose packets."""
    t.path(*DELAY, *settings)
    wait_for(lambda: mixed(t, 200, 4) and t.fec()["why"] == "ahead", 10, "it is known that the path loses packets")


def test_voice_leaves_at_once_and_arrives(lab):
    t = LossyTunnel(lab).start()
    armed(t, "--loss", "10%")
    count = 250
    f = flow.udp_at(t.a, t.b, B4, [n / 50 for n in range(count)], [160] * count)
    assert f.received >= 0.98 * count and f.duplicates == 0
    # 5 ms is the wire. What is lost comes later, all else at once.
    assert traffic.percentile(f.delay_ms, 50) < 7, f.delay_ms
    assert traffic.percentile(f.delay_ms, 99) < 60, f.delay_ms


def test_last_packets_of_bursts_are_protected(lab):
    """25 bursts of 5, pauses of 200 ms: what is lost is back before the next burst could tell of it."""
    t = LossyTunnel(lab).start()
    armed(t, "--loss", "10%")
    arrivals = t.arrivals()
    times = [b * 0.2 + k * 0.0005 for b in range(25) for k in range(5)]
    f = flow.udp_at(t.a, t.b, B4, times, [400] * len(times), ecn=ECT0)
    lost = len(times) - arrivals.count()
    assert lost >= 5, "the path lost too little to tell"
    assert f.received >= len(times) - 1
    late = [d for d in f.delay_ms if d > 150]
    assert len(late) <= 1, f.delay_ms


@pytest.mark.parametrize("is_armed", [False, True], ids=["unknown path", "known to be lossy"])
def test_lost_syn_is_sent_again_or_recovered(lab, is_armed):
    t = LossyTunnel(lab).start()
    if is_armed:
        armed(t, "--loss", "10%")
        t.path(*DELAY)
    # The first datagram with a packet of 60 bytes: 64 padded, 32 around, 8 of UDP.
    fault = Fault(t.b, "syn", "udp length 104 numgen inc mod 1000 < 1", "drop", "input")
    with t.b.tcp_socket() as listener, t.a.tcp_socket(timeout=10) as out:
        listener.bind((B4, 0))
        listener.listen(1)
        t0 = time.monotonic()
        out.connect(listener.getsockname())
        took = time.monotonic() - t0
    assert fault.count() == 1
    # The kernel sends a SYN again after 1 s.
    assert took < (0.5 if is_armed else 2.5)


# --- paths with other MTUs, docs/decisions/repair-size.md ---

@pytest.mark.parametrize("mtu,wire_mtu,over_ipv6", [(1420, 1500, True), (8920, 9000, False), (1280, 1500, True)], ids=["1420 over IPv6", "8920 jumbo", "1280 over IPv6"])
def test_full_sized_packets_are_recovered(lab, mtu, wire_mtu, over_ipv6):
    """Repairs of 1420 bytes are longer than an IPv6 path of 1500: the kernel takes them apart."""
    t = LossyTunnel(lab, mtu=mtu, wire_mtu=wire_mtu, over_ipv6=over_ipv6).start()
    capture = Capture(t.a)
    t.path(*DELAY, "--loss", "10%")
    count = 600
    f = flow.udp_at(t.a, t.b, B4, [n / 400 for n in range(count)], [mtu - 28] * count)
    capture.take()
    # What is lost before the first report of a loss is beyond recovery.
    assert f.received >= 0.98 * count and f.duplicates == 0
    assert (capture.fragments > 20) == (mtu == 1420), capture.fragments
    transfer(t.a, t.b, B4, 1 << 20, 1)
    transfer(t.b, t.a, A4, 1 << 20, 2)
    capture.close()


# --- life goes on ---

def test_killed_side_comes_back_on_a_lossy_path(lab):
    t = LossyTunnel(lab).start()
    armed(t, "--loss", "10%")
    sending = Background(lambda: mixed(t, 3 * RATE, 2))
    os.kill(t.ends.b.pid, signal.SIGKILL)
    wait_for(lambda: not t.b.has_device(DEVICE), 5, "B's device goes")
    t.ends.up_b(t.b, WEFT)
    wait_ping(t.b, A4, 20)
    wait_agreed(*t.nodes, timeout=20)
    with contextlib.suppress(OSError):
        sending.result()
    f = mixed(t, RATE, 3)
    assert f.duplicates == 0 and f.received >= 0.98 * f.sent
    assert t.fec(t.ends.b)["rx"]["recovered_ahead"] > 0


def test_switching_recovery_under_loss_and_asking_for_status_harm_nothing(lab):
    """off, auto, a fixed share, another cipher, in the middle of a flow: nothing that arrives is lost, and nothing comes twice."""
    t = LossyTunnel(lab).start()
    arrivals = t.arrivals()
    t.path(*DELAY, "--loss", "5%")
    sending = Background(lambda: mixed(t, 6 * RATE, 6))
    for k, words in enumerate((["fec", "off"], ["fec", "auto"], ["fec", "40%"], ["cipher", "chacha20poly1305"], ["fec", "auto", "cipher", "auto"])):
        ns, key = ((t.a, t.ends.b_keys.public), (t.b, t.ends.a_keys.public))[k % 2]
        ns.run(binary(), "set", DEVICE, "peer", key, *words)
        for _ in range(25):
            assert {agreement(n) for n in t.nodes} <= {"agreed", "asking"}
    f = sending.result()
    assert f.duplicates == 0 and f.received >= arrivals.count()

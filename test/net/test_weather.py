# SPDX-License-Identifier: Apache-2.0
"""Bad wires, made by `weft emulate`: delay, reordering, duplicates, corruption.

    A 10.0.1.1 --- toa [R: weft emulate] tob --- 10.0.1.2 B"""
import pytest

from lab import Fault, Lab, Pair, binary, stays, traffic, wait_for, wait_ping
from lab.bulk import transfer
from lab.device import A4, B4, WEFT, ends


def emulated(lab: Lab, *settings: str) -> Pair:
    """A and B on one Ethernet whose wire is emulated in R."""
    a, r, b = lab.namespace("a"), lab.namespace("r"), lab.namespace("b")
    wire = Pair(a, b)
    lab.veth(a, "eth0", [wire.a4 + "/24", wire.a6 + "/64"], r, "toa", [])
    lab.veth(b, "eth0", [wire.b4 + "/24", wire.b6 + "/64"], r, "tob", [])
    r.spawn(binary(), "emulate", *settings, "toa", "tob")
    wait_ping(a, wire.b4, 15)
    return wire


@pytest.mark.parametrize("settings", [
    ["--delay", "5ms", "--reorder", "1%,3-30"],
    ["--delay", "5ms", "--reorder", "10%,3-300"],
    ["--delay", "2ms", "--duplicate", "10%"],
    ["--delay", "2ms", "--loss-gilbert", "1%,4", "--duplicate", "1%", "--reorder", "1%,2ms"],
], ids=" ".join)
def test_content_survives(lab, settings):
    wire = emulated(lab, *settings)
    ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    transfer(wire.a, wire.b, B4, 2 << 20, 1)
    transfer(wire.b, wire.a, A4, 2 << 20, 2)


def test_duplicates_are_delivered_once_and_counted(lab):
    wire = emulated(lab, "--duplicate", "100%")
    e = ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    before = e.b.drops()["rx_replay"]
    r = wire.a.run("ping", "-n", "-c", "50", "-i", "0.01", B4)
    assert "DUP" not in r.stdout and "50 received" in r.stdout
    assert e.b.drops()["rx_replay"] - before == 50


def test_late_packets_within_the_window_are_not_lost(lab):
    """Reordering alone: nothing is dropped, so nothing may be missing. Without loss recovery, which brings back what is that
    late, and then drops the original: test_reorder.py."""
    wire = emulated(lab, "--delay", "1ms", "--reorder", "10%,3-3000")
    e = ends("", wire.b4)
    e.a_conf.extra = e.b_conf.extra = ["Fec = off"]
    e.up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    # The interface counts joined frames, the peer packets.
    received = lambda: e.b.status()["peers"][0]["rx_packets"]
    before = received()
    with wire.a.udp_socket() as s:
        for i in range(3000):
            s.sendto(i.to_bytes(4, "big") * 50, (B4, 9))
            if i % 100 == 0:
                wait_for(lambda: received() >= before + i * 0.5, 5, "not faster than the emulator")
    wait_for(lambda: received() - before >= 3000, 10, "all 3000 are delivered")
    assert e.b.drops()["rx_replay"] == 0


def test_corrupted_datagrams_are_counted_and_never_delivered(lab):
    wire = emulated(lab, "--corrupt", "5%")
    e = ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4, 20)
    transfer(wire.a, wire.b, B4, 1 << 20, 3)
    transfer(wire.b, wire.a, A4, 1 << 20, 4)
    assert e.a.pid in wire.a.processes("weft") and e.b.pid in wire.b.processes("weft")


@pytest.mark.parametrize("delay", ["25ms", "100ms"])
def test_both_ends_calling_over_a_long_path_converge_and_lose_nothing(lab, delay):
    """Within one round trip each end has called before it hears of the other's call."""
    wire = emulated(lab, "--delay", delay)
    calls = Fault(wire.a, "calls", "udp length 156", "accept", "output"), Fault(wire.b, "calls", "udp length 156", "accept", "output")
    ends(wire.a4, wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    pings = [wire.a.spawn("ping", "-n", "-c", "20", "-i", "0.05", "-W", "5", B4), wire.b.spawn("ping", "-n", "-c", "20", "-i", "0.05", "-W", "5", A4)]
    for p in pings:
        assert p.wait(30) == 0
        result = traffic.parse_ping(p.output)
        assert result.received == result.sent, p.output
    assert sum(c.count() for c in calls) <= 3
    settled = sum(c.count() for c in calls)
    stays(lambda: sum(c.count() for c in calls) == settled, 1.0, "no more handshakes")

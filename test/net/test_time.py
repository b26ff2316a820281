# SPDX-License-Identifier: Apache-2.0
"""Clocks that went backward, daemons that stood still, both ends calling at once.

What needs other clocks than the machine's is in test/sim. Here the last timestamp sent, which is
kept on disk, stands for a clock that was once ahead.

    A 10.0.1.1 ---- 10.0.1.2 B"""
import os
import re
import signal
import time

import pytest

from lab import Fault, pair, stays, traffic, wait_for, wait_ping
from lab.device import A4, B4, WEFT, ends

STATE = "/var/lib/weft"
HOUR = 3600


def stamp_files(ns) -> list[str]:
    return ns.out("find", STATE, "-type", "f").splitlines()


def ahead(ns, seconds: int) -> None:
    """Moves the persisted timestamp into the future, as if the clock had been there."""
    (path,) = stamp_files(ns)
    text = ns.out("cat", path)
    numbers = [int(n) for n in re.findall(r"\d+", text)]
    assert numbers, f"no number in {path}: {text!r}"
    stamp = max(numbers)
    ns.run("sh", "-c", 'cat >"$1"', "sh", path, input=text.replace(str(stamp), str(stamp + seconds)) + "\n")


def test_last_timestamp_is_on_disk_and_never_undercut(wire, tunnel):
    e = tunnel
    e.a.down()
    ahead(wire.a, HOUR)
    e.a.up()
    wait_ping(wire.a, B4)  # sent with a stamp an hour ahead
    # The clock is now an hour behind the last stamp; only the initiator restarts.
    e.a.down()
    e.a.up()
    wait_ping(wire.a, B4)
    assert e.b.drops()["hs_stale"] == 0


def test_peer_with_a_stale_timestamp_is_counted_and_reported(wire, tunnel):
    e = tunnel
    e.a.down()
    ahead(wire.a, HOUR)
    e.a.up()
    wait_ping(wire.a, B4)
    e.a.down()
    wire.a.run("rm", *stamp_files(wire.a))
    e.a.up()
    wire.a.run("ping", "-c", "1", "-W", "1", B4, check=False)
    wait_for(lambda: e.b.drops()["hs_stale"] >= 1, 8, "a stale initiation is counted")
    assert e.b_sees().handshake > 0
    (peer,) = e.b.status()["peers"]
    assert peer["stale_initiations"] >= 1


def test_read_only_state_folder_is_survived(lab):
    wire = pair(lab)
    wire.a.run("mkdir", "-p", STATE)
    wire.a.run("mount", "-t", "tmpfs", "-o", "ro", "tmpfs", STATE)
    ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)


def test_daemons_that_stood_still_for_six_seconds_answer_within_one(wire, tunnel):
    """What fell due in the gap is done at once, and the first packet looks at the age of its key."""
    e = tunnel
    for node in (e.a, e.b):
        os.kill(node.pid, signal.SIGSTOP)
    start = time.monotonic()
    wait_for(lambda: time.monotonic() > start + 6, 7)
    for node in (e.a, e.b):
        os.kill(node.pid, signal.SIGCONT)
    r = traffic.ping(wire.a, B4, 20, 0.05)
    assert r.received == 20
    assert r.rtt_ms[0] < 1000


def test_daemon_sees_that_it_stood_still_and_that_idle_is_no_gap(lab):
    """What it does then is tested with virtual time: test/sim, family sleep, and test/unit/wg/agenda.c."""
    wire = pair(lab)
    e = ends("", wire.b4)
    e.a_conf.peers[0].keepalive = 1
    e.up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    gaps = lambda: [node.status()["gaps"] for node in (e.a, e.b)]
    stays(lambda: gaps() == [0, 0], 1, "no gap while it runs")
    os.kill(e.a.pid, signal.SIGSTOP)
    start = time.monotonic()
    wait_for(lambda: time.monotonic() > start + 6.5, 8)
    os.kill(e.a.pid, signal.SIGCONT)
    wait_for(lambda: gaps() == [1, 0], 2, "a alone has seen its gap")
    wait_ping(wire.a, B4)


@pytest.mark.parametrize("seed", range(10))
def test_both_ends_calling_in_the_same_millisecond_lose_nothing(lab, seed):
    """Both daemons stand still while a packet waits at each; then both go on at once."""
    wire = pair(lab)
    initiations = Fault(wire.b, "calls", "udp length 156", "accept", "input"), Fault(wire.a, "calls", "udp length 156", "accept", "input")
    e = ends(wire.a4, wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    pids = [e.a.pid, e.b.pid] if seed % 2 else [e.b.pid, e.a.pid]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    pings = [wire.a.spawn("ping", "-n", "-c", "3", "-i", "0.2", "-W", "5", B4), wire.b.spawn("ping", "-n", "-c", "3", "-i", "0.2", "-W", "5", A4)]
    for ns in (wire.a, wire.b):
        wait_for(lambda: ns.counters("wg0").tx_packets + queue_length(ns) > 0, 3, "a packet waits")
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    for p in pings:
        assert p.wait(15) == 0
        assert "3 received" in p.output, p.output
    assert sum(f.count() for f in initiations) <= 3
    # One session is left to speak with: no third handshake follows.
    settled = sum(f.count() for f in initiations)
    wait_ping(wire.a, B4)
    stays(lambda: sum(f.count() for f in initiations) == settled, 0.3, "no more handshakes")


def queue_length(ns) -> int:
    """Packets in the interface's own queue, which the daemon has not read."""
    text = ns.out("tc", "-s", "qdisc", "show", "dev", "wg0")
    return sum(int(n) for n in re.findall(r"backlog \S+ (\d+)p", text)) + sum(int(n) for n in re.findall(r"Sent \d+ bytes (\d+) pkt", text))

# SPDX-License-Identifier: Apache-2.0
"""Datagrams that are not what they should be: each is counted under its reason and changes nothing.

    A, and a stranger's socket there, 10.0.1.1 ---- 10.0.1.2 B"""
import os
import random
import signal
import struct

import pytest

from lab import pair, wait_for, wait_ping
from lab.device import A4, B4, DEVICE, PORT, WEFT, ends
from lab.packet import Injector, Ip, plain, udp
from lab.relay import TO_SERVER, Datagram, Relay
from test_flood import initiation

RNG = random.Random(7)
TYPES = {1: 148, 2: 92, 3: 64}


@pytest.fixture
def tunnel(lab, wire, tunnel):
    stranger = wire.a.udp_socket()
    lab.on_exit(stranger.close)
    return wire, tunnel, stranger


def message(kind: int, length: int, rest: int = 0) -> bytes:
    return struct.pack("<I", kind | rest << 8)[:length] + RNG.randbytes(max(0, length - 4))


CASES = {
    "empty": (b"", "rx_short"),
    "one byte": (b"\x04", "rx_short"),
    "three bytes": (b"\x04\0\0", "rx_short"),
    "type 0": (message(0, 100), "rx_type"),
    "type 5": (message(5, 100), "rx_type"),
    "type 255": (message(255, 100), "rx_type"),
    "reserved bits in data": (message(4, 100, 2), "rx_type"),
    "data marked as AES-256-GCM of no session": (message(4, 100, 1), "rx_index"),
    "reserved bits in an initiation": (message(1, 148, 0x800000), "rx_type"),
    "initiation one byte short": (message(1, 147), "rx_short"),
    "response one byte short": (message(2, 91), "rx_short"),
    "cookie reply one byte short": (message(3, 63), "rx_short"),
    "data shorter than header and tag": (message(4, 31), "rx_short"),
    "data for nobody": (message(4, 32), "rx_index"),
    "long data for nobody": (message(4, 1400), "rx_index"),
    "initiation with a wrong mac1": (message(1, 148), "hs_mac1"),
    "response with a wrong mac1": (message(2, 92), "hs_mac1"),
    "cookie reply that answers nothing": (message(3, 64), "hs_index"),
}


@pytest.mark.parametrize("name", CASES)
def test_datagram_is_counted_under_its_reason_alone(tunnel, name):
    wire, e, stranger = tunnel
    data, reason = CASES[name]
    before, seen = e.b.drops(), e.b_sees()
    for _ in range(3):
        stranger.sendto(data, (wire.b4, PORT))
    wait_for(lambda: e.b.drops()[reason] == before[reason] + 3, 2, f"three more {reason}")
    after = e.b.drops()
    assert {k: after[k] - before[k] for k in after if after[k] != before[k]} == {reason: 3}
    assert (e.b_sees().endpoint, e.b_sees().rx, e.b_sees().handshake) == (seen.endpoint, seen.rx, seen.handshake)
    stranger.settimeout(0.05)
    with pytest.raises(TimeoutError):
        stranger.recvfrom(2000)
    wait_ping(wire.a, B4, 2)


def test_forged_initiation_with_right_mac1_does_not_authenticate(tunnel):
    wire, e, stranger = tunnel
    before = e.b.drops()["hs_auth"]
    stranger.sendto(initiation(e.b_keys.public, RNG), (wire.b4, PORT))
    wait_for(lambda: e.b.drops()["hs_auth"] == before + 1, 2, "hs_auth")


def test_rest_of_a_batch_is_opened_around_bad_datagrams(tunnel):
    wire, e, stranger = tunnel
    before = e.b.drops()
    os.kill(e.b.pid, signal.SIGSTOP)
    pings = []
    for _ in range(5):
        seen = wire.b.counters("eth0").rx_packets
        pings.append(wire.a.spawn("ping", "-n", "-c", "1", "-W", "5", B4))
        wait_for(lambda: wire.b.counters("eth0").rx_packets > seen, 3, "a good one is in B's socket")
        for data, _reason in CASES.values():
            stranger.sendto(data, (wire.b4, PORT))
    os.kill(e.b.pid, signal.SIGCONT)
    for p in pings:
        assert p.wait() == 0, p.output
    wait_for(lambda: e.b.drops()["rx_short"] > before["rx_short"], 1)


def test_random_datagrams_of_every_length_do_no_harm(tunnel):
    wire, e, stranger = tunnel
    before = sum(e.b.drops().values())
    rng = random.Random(11)
    for length in range(0, 1473):
        data = bytearray(rng.randbytes(length))
        if length > 3 and rng.random() < 0.8:
            data[:4] = struct.pack("<I", rng.randint(1, 4))
        stranger.sendto(data, (wire.b4, PORT))
        if length % 100 == 0:
            wait_for(lambda: sum(e.b.drops().values()) - before >= length + 1, 5, f"all up to {length} B are counted")
    wait_for(lambda: sum(e.b.drops().values()) - before == 1473, 5, "each is counted once")
    wait_ping(wire.a, B4, 2)


def test_bit_flips_in_true_data_are_counted_as_forgeries(lab):
    wire = pair(lab)
    relay = Relay(wire.a, 4000, (wire.b4, PORT))
    lab.on_exit(relay.stop)
    e = ends("", wire.a4)
    e.a_conf.peers[0].endpoint = "127.0.0.1:4000"
    e.up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    flips = []

    def flip(d: Datagram) -> list[Datagram]:
        if d.way == TO_SERVER and d.kind == 4:
            where = 8 + len(flips) * 8 % (len(d.data) - 8)
            flips.append(where)
            return [Datagram(d.way, d.data[:where] + bytes([d.data[where] ^ 1]) + d.data[where + 1:])]
        return [d]
    before = e.b.drops()
    relay.filter = flip
    wire.a.run("ping", "-n", "-c", "12", "-i", "0.02", "-W", "0.2", B4, check=False)
    relay.filter = lambda d: [d]
    # A flipped counter or body fails the tag; a counter far away is too old or fails the tag as well.
    wait_for(lambda: e.b.drops()["rx_auth"] + e.b.drops()["rx_replay"] - before["rx_auth"] - before["rx_replay"] == len(flips), 2, "every forgery is counted")
    wait_ping(wire.a, B4, 2)


def test_inner_packets_from_foreign_sources_and_broken_ones_are_counted(tunnel):
    wire, e, _stranger = tunnel
    injector = Injector(wire.a, DEVICE)
    before = e.b.drops()
    injector.send(plain(udp(Ip("10.200.0.1", B4), 1, 9, b"x")))
    wait_for(lambda: e.b.drops()["rx_source"] == before["rx_source"] + 1, 2, "a source that is not A's")
    before = e.a.drops()
    injector.send(plain(udp(Ip(A4, "10.123.0.1"), 1, 9, b"x")))
    wait_for(lambda: e.a.drops()["tx_route"] == before["tx_route"] + 1, 2, "a destination that is nobody's")
    injector.send(plain(b"\x45" + bytes(11)))
    wait_for(lambda: e.a.drops()["tx_inner"] >= before["tx_inner"] + 1, 2, "a packet that is none")
    wait_ping(wire.a, B4, 2)
    injector.close()

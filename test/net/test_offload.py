# SPDX-License-Identifier: Apache-2.0
"""Packets are the same bytes behind the tunnel, whether offloads are on or off at either end.

    injector -> A ==== tunnel ==== B --- 10.3.0.1  10.3.0.2 C <- sniffer

A's interface is fed with packets and super-frames made by hand. B forwards to C over a wire on
which the kernel finishes checksums and splits, so that the sniffer sees single packets. With
offloads off at both ends the kernel of A splits: that is the reference."""
from __future__ import annotations

import os
import signal
from dataclasses import dataclass, replace

import pytest

from lab import Lab, offload, pair, wait_ping
from lab.device import A4, A6, B4, DEVICE, WEFT, ends
from lab.packet import (ACK, CWR, ECE, FIN, PSH, RST, SYN, URG, Injector, Ip, Sniffer, destination, plain, super_tcp, super_udp, tcp, udp)

C4, C6 = "10.3.0.2", "fd03::2"
IP4, IP6 = Ip(A4, C4), Ip(A6, C6)
DATA = bytes(range(256)) * 16
TIMESTAMP = bytes([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2])
OTHER_TIMESTAMP = TIMESTAMP[:7] + b"\x09" + TIMESTAMP[8:]


@dataclass
class Vector:
    """Frames of one flow (its port tells it apart), and how many packets arrive."""

    name: str
    port: int
    frames: list[bytes]
    arrives: int
    has_redrawn_ids: bool = False  # splitting may number the packets anew


def run_of(ip: Ip, port: int, count: int, size: int = 1000, change: dict | None = None, change_ip: dict | None = None, at: int = 2) -> list[bytes]:
    """Consecutive TCP segments, of which one differs."""
    frames = []
    for i in range(count):
        here = replace(ip, id=100 + i, **(change_ip or {} if i == at else {}))
        more = change or {} if i == at else {}
        frames.append(plain(tcp(here, 1000, port, 1000 + i * size, DATA[i:i + size], **more)))
    return frames


def udp_run(ip: Ip, port: int, sizes: list[int], change: dict | None = None, change_ip: dict | None = None, at: int = 2) -> list[bytes]:
    return [plain(udp(replace(ip, id=100 + i, **(change_ip or {} if i == at else {})), 1000, port, DATA[i:i + size], **(change or {} if i == at else {})))
            for i, size in enumerate(sizes)]


def vectors() -> list[Vector]:
    made: list[Vector] = []

    def add(name: str, make, arrives: int, **kw) -> None:
        port = 2000 + len(made)
        made.append(Vector(name, port, make(port), arrives, **kw))
    for ip, v in ((IP4, "IPv4"), (IP6, "IPv6")):
        add(f"{v} TCP run", lambda p: run_of(ip, p, 5), 5)
        add(f"{v} TCP run with a bad checksum", lambda p: run_of(ip, p, 5, change={"bad": True}), 5)
        for ecn in (1, 2, 3):
            add(f"{v} TCP run with ECN {ecn} inside", lambda p: run_of(ip, p, 5, change_ip={"tos": ecn}), 5)
        add(f"{v} TCP run with a DSCP inside", lambda p: run_of(ip, p, 5, change_ip={"tos": 0x28}), 5)
        add(f"{v} TCP run with a TTL inside", lambda p: run_of(ip, p, 5, change_ip={"ttl": 9}), 5)
        for flags, name in ((ACK | PSH, "PSH"), (ACK | FIN, "FIN"), (ACK | URG, "URG"), (ACK | ECE, "ECE"), (ACK | CWR, "CWR"), (RST, "RST"), (SYN, "SYN")):
            add(f"{v} TCP run with {name} inside", lambda p: run_of(ip, p, 5, change={"flags": flags}), 5)
        add(f"{v} TCP run with another window inside", lambda p: run_of(ip, p, 5, change={"window": 400}), 5)
        add(f"{v} TCP run with another acknowledgement inside", lambda p: run_of(ip, p, 5, change={"ack": 7}), 5)
        add(f"{v} TCP run with options inside", lambda p: run_of(ip, p, 5, change={"options": TIMESTAMP}), 5)
        add(f"{v} TCP run with other options", lambda p: [plain(tcp(replace(ip, id=i), 1, p, i * 900, DATA[:900], options=TIMESTAMP if i < 3 else OTHER_TIMESTAMP)) for i in range(5)], 5)
        add(f"{v} TCP run with a gap", lambda p: [plain(tcp(replace(ip, id=i), 1, p, i * 900 + 7 * (i > 2), DATA[:900])) for i in range(5)], 5)
        add(f"{v} TCP backwards", lambda p: list(reversed(run_of(ip, p, 5))), 5)
        add(f"{v} TCP twice", lambda p: run_of(ip, p, 3) * 2, 6)
        add(f"{v} pure acknowledgements", lambda p: [plain(tcp(replace(ip, id=i), 1, p, 5, b"", ack=i)) for i in range(5)], 5)
        add(f"{v} TCP longer than the first", lambda p: [plain(tcp(replace(ip, id=i), 1, p, s, DATA[:n])) for i, (s, n) in enumerate([(0, 500), (500, 700), (1200, 700)])], 3)
        add(f"{v} sequence numbers that wrap", lambda p: [plain(tcp(replace(ip, id=i), 1, p, 0xFFFFFFFF - 1500 + i * 1000, DATA[:1000])) for i in range(4)], 4)
        add(f"{v} UDP run", lambda p: udp_run(ip, p, [800] * 5), 5)
        add(f"{v} UDP run with a short end", lambda p: udp_run(ip, p, [800, 800, 800, 10, 800]), 5)
        add(f"{v} UDP run with a bad checksum", lambda p: udp_run(ip, p, [800] * 5, change={"bad": True}), 5)
        add(f"{v} UDP run with a checksum of zero", lambda p: udp_run(ip, p, [800] * 5, change={"zero": True}), 5)
        add(f"{v} UDP run all without checksum", lambda p: [plain(udp(replace(ip, id=i), 1, p, DATA[:800], zero=True)) for i in range(5)], 5)
        add(f"{v} UDP run with ECN inside", lambda p: udp_run(ip, p, [800] * 5, change_ip={"tos": 3}), 5)
        add(f"{v} UDP empty", lambda p: udp_run(ip, p, [0, 0, 0, 1]), 4)
        add(f"{v} TCP super-frame", lambda p: [super_tcp(ip, 1000, sport=1, dport=p, seq=1, payload=DATA[:3300], flags=ACK | PSH)], 4)
        add(f"{v} TCP super-frame with FIN", lambda p: [super_tcp(ip, 1000, sport=1, dport=p, seq=1, payload=DATA[:3000], flags=ACK | PSH | FIN)], 3)
        add(f"{v} TCP super-frame with CWR", lambda p: [super_tcp(ip, 1000, sport=1, dport=p, seq=1, payload=DATA[:3000], flags=ACK | CWR)], 3)
        add(f"{v} TCP super-frame with options", lambda p: [super_tcp(ip, 700, sport=1, dport=p, seq=0xFFFFFF00, payload=DATA[:3000], options=TIMESTAMP)], 5)
        add(f"{v} TCP super-frame with ECN and DSCP", lambda p: [super_tcp(replace(ip, tos=0x2A), 1000, sport=1, dport=p, seq=1, payload=DATA[:3000])], 3)
        add(f"{v} TCP super-frames in a row", lambda p: [super_tcp(replace(ip, id=10 * i), 1000, sport=1, dport=p, seq=1 + 4000 * i, payload=DATA[:4000]) for i in range(4)], 16)
        add(f"{v} UDP super-frame", lambda p: [super_udp(ip, 900, sport=1, dport=p, payload=DATA[:3000])], 4)
        add(f"{v} UDP super-frame with ECN", lambda p: [super_udp(replace(ip, tos=2), 900, sport=1, dport=p, payload=DATA[:2700])], 3)
    add("IPv4 without DF", lambda p: run_of(replace(IP4, has_df=False), p, 5), 5)
    add("IPv4 with one id for all", lambda p: [plain(tcp(replace(IP4, id=7), 1, p, i * 900, DATA[:900])) for i in range(5)], 5, has_redrawn_ids=True)
    add("IPv4 without DF with one id for all", lambda p: [plain(tcp(replace(IP4, id=7, has_df=False), 1, p, i * 900, DATA[:900])) for i in range(5)], 5)
    add("IPv4 with ids in leaps", lambda p: [plain(tcp(replace(IP4, id=7 * i, has_df=False), 1, p, i * 900, DATA[:900])) for i in range(5)], 5)
    add("IPv4 with ids that wrap", lambda p: [plain(tcp(replace(IP4, id=(65534 + i) & 0xFFFF), 1, p, i * 900, DATA[:900])) for i in range(5)], 5)
    add("IPv4 with DF inside a run", lambda p: run_of(replace(IP4, has_df=False), p, 5, change_ip={"has_df": True}), 5)
    add("IPv4 options", lambda p: run_of(replace(IP4, options=b"\x01\x01\x01\x00"), p, 4), 4)
    add("IPv4 first fragments", lambda p: run_of(replace(IP4, has_df=False, fragment=0x2000), p, 4), 4)
    add("IPv6 flow label inside a run", lambda p: run_of(IP6, p, 5, change_ip={"flow": 77}), 5)
    add("IPv6 destination options", lambda p: run_of(replace(IP6, options=bytes([6, 0, 1, 4, 0, 0, 0, 0]), extension=60), p, 4), 4)
    add("VXLAN inside", lambda p: [plain(udp(replace(IP4, id=i), 1, 4789, bytes([8, 0, 0, 0, 0, 0, 1, 0]) + DATA[:700])) for i in range(4)], 4)
    made[-1].port = 4789
    return made


VECTORS = vectors()


def port_of(packet: bytes) -> int:
    """Destination port, behind the options of these vectors."""
    if packet[0] >> 4 == 4:
        start = (packet[0] & 15) * 4
    else:
        start = 48 if packet[6] == 60 else 40
    return int.from_bytes(packet[start + 2:start + 4], "big")


def caught(a_offload: str, b_offload: str) -> tuple[dict[int, list[bytes]], int]:
    """Packets by port as C sees them, and how many writes B's interface has counted."""
    with Lab() as lab:
        wire = pair(lab)
        a, b, c = wire.a, wire.b, lab.namespace("c")
        lab.veth(b, "toc", ["10.3.0.1/24", "fd03::1/64"], c, "eth0", [C4 + "/24", C6 + "/64"])
        offload.segmentation_off(b, "toc")
        offload.checksums_off(b, "toc")
        b.sysctl(net__ipv4__ip_forward=1, net__ipv6__conf__all__forwarding=1)
        e = ends("", wire.b4)
        e.a_conf.peers[0].allowed += ["10.3.0.0/24", "fd03::/64"]
        e.a_conf.extra.append(f"Offload = {a_offload}")
        e.b_conf.extra.append(f"Offload = {b_offload}")
        e.up(a, WEFT, b, WEFT)
        wait_ping(a, B4)
        for address in (C4, C6):
            wait_ping(b, address)  # so that B knows C's hardware address
        sniffer, injector = Sniffer(c, "eth0"), Injector(a, DEVICE)
        flows: dict[int, list[bytes]] = {}
        writes = 0
        for v in VECTORS:
            before = b.counters(DEVICE).rx_packets
            # While the daemon stands still the frames queue up; then it reads them as one batch.
            os.kill(e.a.pid, signal.SIGSTOP)
            for frame in v.frames:
                injector.send(frame)
            os.kill(e.a.pid, signal.SIGCONT)
            flows[v.port] = sniffer.take(v.arrives, lambda p: destination(p) in (C4, C6) and port_of(p) == v.port, 3.0)
            writes += b.counters(DEVICE).rx_packets - before
        injector.close()
        sniffer.close()
        return flows, writes


def without_id(packet: bytes) -> bytes:
    """IPv4: identification and header checksum blanked."""
    return packet[:4] + b"\0\0" + packet[6:10] + b"\0\0" + packet[12:] if packet[0] >> 4 == 4 else packet


@pytest.fixture(scope="module")
def reference() -> tuple[dict[int, list[bytes]], int]:
    return caught("off", "off")


def test_reference_has_every_packet(reference):
    missing = [f"{v.name}: {len(reference[0][v.port])} of {v.arrives}" for v in VECTORS if len(reference[0][v.port]) != v.arrives]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("a_offload,b_offload", [("on", "on"), ("on", "off"), ("off", "on")])
def test_packets_are_byte_identical_to_those_without_offloads(reference, a_offload, b_offload):
    flows, writes = caught(a_offload, b_offload)
    differences = []
    for v in VECTORS:
        want, got = reference[0][v.port], flows[v.port]
        if v.has_redrawn_ids:
            want, got = [without_id(p) for p in want], [without_id(p) for p in got]
        if got != want:
            where = next((i for i, (w, g) in enumerate(zip(want, got)) if w != g), min(len(want), len(got)))
            shown = "".join(f"\n    {n}: {p[where][:72].hex()}" for n, p in (("want", want), ("got ", got)) if where < len(p))
            differences.append(f"{v.name}: {len(got)} packets for {len(want)}, the first difference at {where}{shown}")
    assert not differences, "\n".join(differences)
    if b_offload == "on":
        assert writes < reference[1], "nothing was joined, so this test has shown nothing"

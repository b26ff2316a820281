# SPDX-License-Identifier: Apache-2.0
"""weft emulate: what it does to packets, and that it counts every one.

    A 10.0.1.1 --- toa [R: weft emulate] tob --- 10.0.1.2 B        two interfaces

    client ---> relay port [weft emulate] ---> server              one namespace, UDP"""
from __future__ import annotations

import hashlib
import json
import re
import signal
import socket
import struct
import threading

import pytest

from lab import Namespace, binary, packet, traffic, wait_for, wait_ping
from lab.emulator import Emulator, wire

SO_RCVBUFFORCE = 33


def drain(s: socket.socket, silence: float = 1.0) -> list[bytes]:
    """All that arrives, until nothing has for that long."""
    got = []
    s.settimeout(silence)
    try:
        while True:
            got.append(s.recv(65536))
    except TimeoutError:
        return got


def sink(ns: Namespace, address: str, port: int) -> socket.socket:
    """A socket with room for all that a test sends."""
    s = ns.udp_socket(address, port)
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 27)
    return s


def send_many(ns: Namespace, to: str, count: int, size: int, burst: int = 50) -> None:
    """Datagrams of one size, each burst one call when there is room (UDP_SEGMENT)."""
    with ns.udp_socket(timeout=10) as s:
        s.setsockopt(socket.IPPROTO_UDP, 103, size)
        for done in range(0, count, burst):
            s.sendto(b"x" * (size * min(burst, count - done)), (to, 9))


# --- delay ---

@pytest.mark.parametrize("settings, least_ms", [
    (["--delay", "10ms"], 20),
    (["--ab", "delay 3ms", "--ba", "delay=12ms"], 15),
    (["--delay", "5ms", "--jitter", "1ms"], 8),
], ids=["fixed", "asymmetric", "jitter"])
def test_ping_sees_the_delay(lab, settings, least_ms):
    pair, r = wire(lab)
    e = Emulator(r, *settings, "toa", "tob")
    ping = traffic.ping(pair.a, pair.b4, 100, 0.01)
    n = e.stop()
    assert ping.received == 100
    assert least_ms <= min(ping.rtt_ms)
    # Half of them are on time even where others want the processor too.
    assert ping.p50 < least_ms + (4 if "--jitter" in settings else 1), ping.rtt_ms
    assert n["ab"]["in_packets"] == n["ba"]["in_packets"] == 100
    assert n["ab"]["reordered"] == n["ba"]["reordered"] == 0


def test_script_changes_the_link_at_its_times(lab):
    """Of a ping every 10 ms, those between 0.5 and 1.0 s are lost, in one piece."""
    pair, r = wire(lab)
    e = Emulator(r, "--script-text", "at 1s ab.loss none ; at 500ms ab.loss 100%", "toa", "tob")
    text = pair.a.run("ping", "-n", "-c", "150", "-i", "0.01", "-W", "1", pair.b4, check=False).stdout
    n = e.stop()
    answered = {int(s) for s in re.findall(r"icmp_seq=(\d+)", text)}
    missing = sorted(set(range(1, 151)) - answered)
    assert missing == list(range(missing[0], missing[-1] + 1)), "more than one gap"
    assert 25 <= len(missing) <= 60
    assert n["ab"]["lost"] == len(missing) and n["ba"]["in_packets"] == len(answered)


# --- conservation ---

@pytest.mark.parametrize("settings", [
    ["--loss", "5%", "--delay", "2ms"],
    ["--loss-gilbert", "10%,4", "--duplicate", "10%"],
    ["--delay", "1ms", "--jitter", "1ms,normal,unordered", "--reorder", "2%,3-30"],
    ["--rate", "200mbit", "--queue", "64KiB"],
    ["--rate", "100mbit", "--queue", "5ms", "--loss", "3%", "--duplicate", "3%", "--delay", "3ms"],
    ["--mtu", "1000"],
], ids=" ".join)
def test_every_datagram_is_accounted_for(lab, settings):
    pair, r = wire(lab)
    sent = 20000
    half = sent // 2
    with sink(pair.b, pair.b4, 9) as receiver:
        e = Emulator(r, *settings, "toa", "tob")
        send_many(pair.a, pair.b4, half, 1200)
        send_many(pair.a, pair.b4, sent - half, 400)
        got = drain(receiver)
        n = e.stop()["ab"]
    assert n["in_packets"] == sent
    assert n["in_bytes"] == half * (1200 + 42) + (sent - half) * (400 + 42)
    assert n["pending"] == 0
    assert len(got) == n["out_packets"]
    assert sum(map(len, got)) == n["out_bytes"] - 42 * len(got)
    if "--mtu" in settings:
        assert n["mtu_dropped"] == half
    if "--loss" in settings:
        share = n["lost"] / (sent - n["queue_dropped"])
        want = float(settings[settings.index("--loss") + 1].rstrip("%")) / 100
        assert abs(share - want) < 5 * (want / (sent - n["queue_dropped"])) ** 0.5
    if "--rate" in settings:
        assert n["queue_dropped"] > 0 and n["ring_full"] == 0


def test_tcp_super_frames_lose_single_packets(lab):
    """The ends hand over frames of up to 64 KiB, yet each packet of the wire has its own fate."""
    pair, r = wire(lab)
    e = Emulator(r, "--loss", "1%", "--delay", "1ms", "toa", "tob")
    payload = bytes(range(251)) * 40000
    digests = []
    with pair.b.tcp_socket() as listener:
        listener.bind((pair.b4, 7000))
        listener.listen(1)

        def receive() -> None:
            s, _ = listener.accept()
            h = hashlib.sha256()
            with s:
                while part := s.recv(1 << 20):
                    h.update(part)
            digests.append(h.digest())

        t = threading.Thread(target=receive)
        t.start()
        with pair.a.tcp_socket() as s:
            s.settimeout(60)
            s.connect((pair.b4, 7000))
            s.sendall(payload)
        t.join(60)
    n = e.stop()["ab"]
    assert digests == [hashlib.sha256(payload).digest()]
    assert n["in_bytes"] / n["in_packets"] <= 1514
    assert n["in_packets"] >= len(payload) / 1448
    assert abs(n["lost"] - 0.01 * n["in_packets"]) < 5 * (0.01 * n["in_packets"]) ** 0.5
    assert n["rx_calls"] < n["in_packets"] / 2, "super-frames were expected to come in"
    assert n["tx_calls"] < n["out_packets"] / 2, "and to go out"


def test_mtu_is_a_silent_hole(lab):
    pair, r = wire(lab)
    e = Emulator(r, "--mtu", "1400", "toa", "tob")
    assert traffic.ping(pair.a, pair.b4, 3, 0.01, 1372).received == 3
    assert traffic.ping(pair.a, pair.b4, 3, 0.01, 1373).received == 0
    n = e.stop()
    assert n["ab"]["mtu_dropped"] == 3 and n["ba"]["mtu_dropped"] == 0


def test_vlan_tag_survives_splitting_and_joining(lab):
    """The kernel takes the tag out of what a packet socket receives, and tells it aside."""
    pair, r = wire(lab)
    e = Emulator(r, "--delay", "1ms", "toa", "tob")
    mac = bytes.fromhex("020000000002" "020000000001") + struct.pack("!HH", 0x8100, 0x2005) + b"\x08\x00"
    vnet_and_ip = packet.super_tcp(packet.Ip(pair.a4, pair.b4), 1000, sport=1, dport=2, seq=7, payload=bytes(4500))
    flags, kind, hdr_len, size, start, offset = struct.unpack("<BBHHHH", vnet_and_ip[:10])
    vnet = struct.pack("<BBHHHH", flags, kind, hdr_len + len(mac), size, start + len(mac), offset)
    with pair.a.entered():
        out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        out.setsockopt(packet.SOL_PACKET, packet.PACKET_VNET_HDR, 1)
        out.bind(("eth0", 0))
    with pair.b.entered():
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(packet.ETH_P_ALL))
        tap.setsockopt(packet.SOL_PACKET, 8, 1)  # PACKET_AUXDATA
        tap.bind(("eth0", packet.ETH_P_ALL))
        tap.settimeout(5)
    with out, tap:
        out.send(vnet + mac + vnet_and_ip[10:])
        frame, notes, _, _ = tap.recvmsg(1 << 17, 200)
    n = e.stop()["ab"]
    assert frame == mac[:12] + mac[16:] + vnet_and_ip[10:]
    assert struct.unpack_from("H", notes[0][2], 16)[0] == 0x2005
    assert n["in_packets"] == n["out_packets"] == 5
    assert n["in_bytes"] == 5 * (18 + 40) + 4500


# --- relay ---

class Server:
    """Answers each datagram with the sender's port before it, and notes the ports."""

    def __init__(self, ns: Namespace, address: str, port: int):
        self.ports: list[int] = []
        self.count = 0
        self._socket = ns.udp_socket(address, port, timeout=None)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            data, sender = self._socket.recvfrom(65536)
            if data == b"end":
                return
            self.count += 1
            if sender[1] not in self.ports:
                self.ports.append(sender[1])
            self._socket.sendto(struct.pack("!H", sender[1]) + data, sender)

    def stop(self, ns: Namespace) -> None:
        address = self._socket.getsockname()
        with ns.udp_socket(address[0]) as s:
            s.sendto(b"end", address[:2])
        self._thread.join(5)
        self._socket.close()


def ask(s: socket.socket, to: tuple[str, int], data: bytes) -> int:
    """The port that the server saw."""
    s.sendto(data, to)
    answer, sender = s.recvfrom(65536)
    assert answer[2:] == data and sender[:2] == to
    return struct.unpack("!H", answer[:2])[0]


@pytest.mark.parametrize("host, text", [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_relay_keeps_clients_apart_and_rebinds_at_a_signal(lab, host, text):
    ns = lab.namespace("n")
    server = Server(ns, host, 5001)
    e = Emulator(ns, "--delay", "1ms", "--udp", f"{text}:5000", "--to", f"{text}:5001")
    relay = (host, 5000)
    with ns.udp_socket(host) as one, ns.udp_socket(host) as two:
        first, second = ask(one, relay, b"one"), ask(two, relay, b"two")
        assert first != second
        assert ask(one, relay, b"again") == first
        e.process.signal(signal.SIGUSR1)

        def has_moved() -> bool:
            return ask(one, relay, b"moved?") not in (first, second)

        wait_for(has_moved, 5, "a new port towards the server")
        assert ask(two, relay, b"two too") not in (first, second)
        assert ask(one, relay, b"x" * 8000) == server.ports[2] or len(server.ports) == 4
    n = e.stop()
    server.stop(ns)
    assert n["clients"] == 2 and n["rebinds"] == 1
    assert len(server.ports) == 4
    assert n["ab"]["in_packets"] == n["ab"]["out_packets"] == server.count == n["ba"]["in_packets"] == n["ba"]["out_packets"]


def test_relay_rebinds_by_script(lab):
    ns = lab.namespace("n")
    server = Server(ns, "127.0.0.1", 5001)
    e = Emulator(ns, "--script-text", "at 100ms rebind", "--udp", "5000", "--to", "127.0.0.1:5001")
    with ns.udp_socket("127.0.0.1") as s:
        first = ask(s, ("127.0.0.1", 5000), b"early")
        # An early start may have met the new port already; then there was only one.
        wait_for(lambda: ask(s, ("127.0.0.1", 5000), b"later") != first or e.process.output.count("rebinds"), 5, "another port")
    n = e.stop()
    server.stop(ns)
    assert n["rebinds"] == 1 and 1 <= len(server.ports) <= 2


def test_relay_carries_runs_of_datagrams_and_counts_each(lab):
    """UDP_SEGMENT in, UDP_GRO at the relay, loss by the datagram."""
    ns = lab.namespace("n")
    with sink(ns, "127.0.0.1", 5001) as receiver, ns.udp_socket() as s:
        e = Emulator(ns, "--loss", "10%", "--delay", "5ms", "--udp", "127.0.0.1:5000", "--to", "127.0.0.1:5001")
        s.setsockopt(socket.IPPROTO_UDP, 103, 1000)
        sizes = [1000] * 49 + [300]
        for k in range(100):
            s.sendto(b"".join(struct.pack("!I", k * 50 + i) + b"z" * (size - 4) for i, size in enumerate(sizes)), ("127.0.0.1", 5000))
        got = drain(receiver)
        n = e.stop()["ab"]
    assert n["in_packets"] == 5000
    numbers = [struct.unpack("!I", data[:4])[0] for data in got]
    assert [len(data) for data in got] == [sizes[k % 50] for k in numbers]
    assert len(numbers) == n["out_packets"] == 5000 - n["lost"]
    assert numbers == sorted(set(numbers)), "in order and each once"
    assert abs(n["lost"] - 500) < 5 * 500 ** 0.5
    assert n["rx_calls"] < 1000 and n["tx_calls"] < 2500


def test_relay_records_what_came_in_as_pcap(lab):
    ns = lab.namespace("n")
    path = lab.dir / "record.pcap"
    server = Server(ns, "127.0.0.1", 5001)
    e = Emulator(ns, "--record", str(path), "--udp", "127.0.0.1:5000", "--to", "127.0.0.1:5001")
    with ns.udp_socket("127.0.0.1") as s:
        port = s.getsockname()[1]
        ask(s, ("127.0.0.1", 5000), b"hello")
    e.stop()
    server.stop(ns)
    raw = path.read_bytes()
    assert struct.unpack_from("<IHH", raw) == (0xA1B23C4D, 2, 4) and struct.unpack_from("<I", raw, 20)[0] == 101
    packets, at = [], 24
    while at < len(raw):
        length = struct.unpack_from("<I", raw, at + 8)[0]
        packets.append(raw[at + 16:at + 16 + length])
        at += 16 + length
    assert [p[28:] for p in packets] == [b"hello", struct.pack("!H", server.ports[0]) + b"hello"]
    assert struct.unpack_from("!HH", packets[0], 20) == (port, 5000)
    assert struct.unpack_from("!HH", packets[1], 20) == (5001, port)
    assert all(p[12:20] == socket.inet_aton("127.0.0.1") * 2 for p in packets)


# --- ends ---

def test_duration_ends_it_with_a_table(lab):
    ns = lab.namespace("n")
    r = ns.run(binary(), "emulate", "--udp", "0", "--to", "127.0.0.1:5001", "--duration", "50ms")
    assert re.match(r"relaying \* port [1-9]\d* <-> 127\.0\.0\.1:5001, seed 1\n", r.stdout)
    assert re.search(r"packets in +0 +0", r.stdout)
    r = ns.run(binary(), "emulate", "--udp", "5000", "--to", "127.0.0.1:5001", "--duration", "50ms", "--json", "-")
    assert json.loads(r.stdout)["mode"] == "udp" and r.stderr == ""


def test_deleted_interface_ends_it_with_the_reason(lab):
    pair, r = wire(lab)
    e = Emulator(r, "toa", "tob")
    wait_ping(pair.a, pair.b4)
    r.ip("link set tob down")
    r.ip("link set tob up")
    wait_ping(pair.a, pair.b4)
    r.ip("link del toa")
    assert e.process.wait(5) == 1
    assert "an interface is gone" in e.process.output


@pytest.mark.parametrize("argv, words", [
    (["--loss", "5", "x", "y"], "--loss: 1:1: expected a share"),
    (["--ab", "delay 5ms loss", "x", "y"], "--ab: 1:15: expected a share"),
    (["--script-text", "at 5s loss 5%; at 6s", "x", "y"], "--script-text: 1:21: expected a setting"),
    (["--bogus"], "no option --bogus"),
    (["--delay"], "--delay needs a value"),
    (["x"], "two interfaces"),
    (["x", "x"], "the same"),
    (["--script-text", "at 5s rebind", "x", "y"], "rebind is for the relay"),
    (["--udp", "5000"], "go together"),
    (["--udp", "5000", "--to", "127.0.0.1"], "is not ADDRESS:PORT"),
    (["--udp", "host:5000", "--to", "127.0.0.1:1"], "neither PORT nor ADDRESS:PORT"),
    (["--clients", "0", "--udp", "5000", "--to", "127.0.0.1:1"], "1 to 1024 clients"),
], ids=lambda v: v[0] if isinstance(v, list) else "")
def test_wrong_usage_is_told_with_its_place(lab, argv, words):
    r = lab.namespace("n").run(binary(), "emulate", *argv, check=False)
    assert r.returncode == 2 and words in r.stderr and r.stdout == ""


def test_failures_name_what_is_missing(lab):
    ns = lab.namespace("n")
    r = ns.run(binary(), "emulate", "none0", "none1", check=False)
    assert r.returncode == 1 and "none0: cannot find the interface" in r.stderr
    r = ns.run(binary(), "emulate", "--script", "/nowhere", "x", "y", check=False)
    assert r.returncode == 1 and "cannot read /nowhere: not found" in r.stderr
    assert ns.run(binary(), "emulate", "--help").stdout.startswith("Usage: weft emulate")

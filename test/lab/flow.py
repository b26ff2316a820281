# SPDX-License-Identifier: Apache-2.0
"""Flows that are measured through lossy paths.

iperf3 talks to its server over the path that it measures, so a path that loses every fifth packet
holds up its set-up and its result. Here both ends are sockets of this process: nothing but the flow
itself crosses the path, and both ends read one clock. Python makes the system calls, no more; how
long a datagram was on its way is the kernel's time stamp of its arrival less the time of its sending."""
from __future__ import annotations

import contextlib
import math
import socket
import struct
import threading
import time
from dataclasses import dataclass, field

from .ns import Namespace

SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
TCP_INFO_BYTES = 192
HEADERS_UDP = 28  # IPv4 and UDP
HEADERS_TCP = 52  # IPv4, and TCP with time stamps
CHUNK = 1 << 18
RECEIVE_S = 0.02  # the longest wait of one receiving call, so that a deadline is met
MISSING_S = 1.0  # of silence that ends a UDP flow of which something is missing


@dataclass
class UdpFlow:
    """Numbered datagrams."""

    sent: int
    received: int  # each counted once
    duplicates: int
    delay_ms: list[float] = field(default_factory=list)  # one way, of those received
    inner_bytes: int = 0  # IP packets sent
    order: list[int] = field(default_factory=list)  # numbers as they arrived, duplicates included


@dataclass
class TcpFlow:
    """One stream; bytes of payload that had arrived in time."""

    bytes: int
    seconds: float
    is_whole: bool  # all that was to be sent has arrived
    segments: int  # that carried payload, those sent again included
    retransmits: int
    inner_bytes: int  # IP packets that carried all the payload that ever arrived, once each, and its acknowledgements

    @property
    def mbit(self) -> float:
        return self.bytes * 8 / self.seconds / 1e6


def udp(sender: Namespace, receiver: Namespace, address: str, *, rate: float, seconds: float, payload: int, silence: float = 0.3) -> UdpFlow:
    """Sends at an even pace."""
    count = round(rate * seconds)
    return udp_at(sender, receiver, address, [n / rate for n in range(count)], [payload] * count, silence=silence)


def udp_at(sender: Namespace, receiver: Namespace, address: str, times: list[float], payloads: list[int], *, silence: float = 0.3, ecn: int = 0) -> UdpFlow:
    """Sends each at its time, in seconds from now. The receiving socket holds everything until the end, so that reading costs
    the flow no processor time."""
    with receiver.udp_socket(address) as inbound, sender.udp_socket("::" if ":" in address else "0.0.0.0") as out:
        inbound.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, min(sum(payloads) + len(times) * 2048 + (1 << 20), 1 << 29))
        inbound.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        if ecn:
            out.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ecn)
        out.connect(inbound.getsockname()[:2])
        t0 = time.monotonic()
        for n, (at, payload) in enumerate(zip(times, payloads)):
            wait = t0 + at - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            with contextlib.suppress(ConnectionRefusedError):
                out.send(struct.pack("!IQ", n, time.time_ns()) + bytes(payload - 12))
        order, seen, delays = [], set(), []
        while True:
            # What is missing may be on its way by recovery, whose last tries a busy machine stretches.
            inbound.settimeout(silence if len(seen) == len(times) else max(silence, MISSING_S))
            try:
                data, notes, _flags, _from = inbound.recvmsg(12, 64)
            except TimeoutError:
                inner = sum(payloads) + len(payloads) * HEADERS_UDP
                return UdpFlow(len(times), len(seen), len(order) - len(seen), delays, inner, order)
            n, sent_ns = struct.unpack_from("!IQ", data)
            order.append(n)
            if n in seen:
                continue
            seen.add(n)
            seconds_, ns = struct.unpack("qq", notes[0][2])
            delays.append((seconds_ * 10**9 + ns - sent_ns) / 1e6)


class _Receiver(threading.Thread):
    """Takes what comes; counts apart what came until a deadline."""

    def __init__(self, listener: socket.socket):
        super().__init__(daemon=True)
        self.listener = listener
        self.deadline = self.give_up = math.inf
        self.total = self.in_time = 0
        self.last = 0.0  # time of the last byte, or of the end
        self.has_ended = False
        self.acks = 0
        self.start()

    def run(self) -> None:
        try:
            connection, _ = self.listener.accept()
        except TimeoutError:
            return
        with connection:
            connection.settimeout(RECEIVE_S)
            room = bytearray(1 << 20)
            while time.monotonic() < self.give_up:
                try:
                    n = connection.recv_into(room)
                except TimeoutError:
                    continue
                except ConnectionResetError:
                    break
                self.last = time.monotonic()
                if n == 0:
                    self.has_ended = True
                    break
                self.total += n
                if self.last <= self.deadline:
                    self.in_time += n
            self.acks = struct.unpack_from("I", connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES), 136)[0]


def tcp(sender: Namespace, receiver: Namespace, address: str, *, seconds: float, size: int | None = None, connect_s: float = 15.0) -> TcpFlow:
    """One CUBIC stream. Without size: sends for that long from the connection on, its slow start included. With size: that
    many bytes, the time from before the connection to the last byte; after the given seconds it is ended unfinished.
    No connection within connect_s is a flow of no bytes."""
    with receiver.tcp_socket(timeout=connect_s) as listener, sender.tcp_socket(timeout=connect_s) as out:
        listener.bind((address, 0))
        listener.listen(1)
        assert out.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0") == b"cubic"
        r = _Receiver(listener)
        t0 = time.monotonic()
        try:
            out.connect(listener.getsockname())
        except TimeoutError:
            return TcpFlow(0, seconds, False, 0, 0, 0)
        if size is None:
            t0 = time.monotonic()
        r.deadline = t0 + seconds
        r.give_up = r.deadline + (RECEIVE_S if size else 1)  # a second for what is on its way, since the wire has counted it
        _send(out, size, r.deadline)
        info = out.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
        mss = struct.unpack_from("I", info, 16)[0]  # a later one may be 0: the connection is closed
        r.join()
        info = out.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
        retransmits, segments = struct.unpack_from("I", info, 100)[0], struct.unpack_from("I", info, 156)[0]
        # What is still queued is not to go on crossing the path.
        out.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    is_whole = r.has_ended and (size is None or r.total == size)
    took = r.last - t0 if size and is_whole else seconds
    inner = r.total + HEADERS_TCP * (-(-r.total // mss) + r.acks)
    return TcpFlow(r.in_time if not (size and is_whole) else r.total, took, is_whole, segments, retransmits, inner)


def _send(out: socket.socket, size: int | None, deadline: float) -> None:
    """Until the deadline, or until size bytes are in the kernel; then the end of the stream."""
    chunk = memoryview(bytes(CHUNK))
    left = math.inf if size is None else size
    while left > 0 and (wait := deadline - time.monotonic()) > 0:
        out.settimeout(wait)
        try:
            left -= out.send(chunk[:min(CHUNK, left)])
        except TimeoutError:
            break
    with contextlib.suppress(OSError):
        out.shutdown(socket.SHUT_WR)

# SPDX-License-Identifier: Apache-2.0
"""A device with many peers, and a flow between two of them through it while it is set and shown.

    B 10.0.1.2 --- 10.0.1.1 A 10.0.2.1 --- 10.0.2.2 C        inside: B 10.99.0.2, A 10.99.0.1, C 10.99.0.3

A is the hub: the flow from B to C comes out of A's interface and goes back into it."""
from __future__ import annotations

import base64
import contextlib
import ipaddress
import random
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from .flow import SO_RCVBUFFORCE, SO_TIMESTAMPNS
from .ns import Lab
from .topo import wait_ping
from .wait import wait_for
from .weft import Node, Run
from .wg import Conf, GoDevice, PeerConf, keys

PORT = 51820
DEVICE = "wg0"
B4, C4 = "10.99.0.2", "10.99.0.3"
PAYLOAD = 200


def many_peers(count: int, seed: int = 1) -> list[PeerConf]:
    """Peers with random public keys and one /32 each."""
    rng = random.Random(seed)
    base = int(ipaddress.IPv4Address("10.64.0.0"))
    return [PeerConf(base64.b64encode(rng.randbytes(32)).decode(), [f"{ipaddress.IPv4Address(base + i)}/32"],
                     f"192.0.2.{i % 254 + 1}:{1024 + i % 60000}") for i in range(count)]


@dataclass
class Meanwhile:
    """Of a flow, and what went on beside it."""

    took_s: float
    sent: int
    received: int
    delays_ms: list[float] = field(default_factory=list)  # one way, from the sending call to the receiver's kernel

    @property
    def lost(self) -> int:
        return self.sent - self.received

    @property
    def longest_ms(self) -> float:
        return max(self.delays_ms)


class _Sender(threading.Thread):
    """Numbered datagrams at an even pace until told to stop."""

    def __init__(self, out: socket.socket, rate: float):
        super().__init__(daemon=True)
        self.out, self.rate, self.sent, self.stop = out, rate, 0, False

    def run(self) -> None:
        t0 = time.monotonic()
        while not self.stop:
            wait = t0 + self.sent / self.rate - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            with contextlib.suppress(ConnectionRefusedError):
                self.out.send(struct.pack("!IQ", self.sent, time.time_ns()) + bytes(PAYLOAD - 12))
            self.sent += 1


class Hub:
    """kind: "weft" or "go", of the device in A; B and C are weft's."""

    def __init__(self, lab: Lab, kind: str, peers: int, options: list[str] | None = None):
        self.lab = lab
        self.a, self.b, self.c = (lab.namespace(n) for n in "abc")
        lab.veth(self.a, "tob", ["10.0.1.1/24"], self.b, "eth0", ["10.0.1.2/24"])
        lab.veth(self.a, "toc", ["10.0.2.1/24"], self.c, "eth0", ["10.0.2.2/24"])
        self.a.sysctl(net__ipv4__ip_forward=1)
        own, b, c = keys(), keys(), keys()
        self.ends = [b.public, c.public]
        self.conf = Conf(own.private, [PeerConf(b.public, [B4 + "/32"], f"10.0.1.2:{PORT}"), PeerConf(c.public, [C4 + "/32"], f"10.0.2.2:{PORT}"),
                                       *many_peers(peers)], PORT)
        self.device = Run(self.a, DEVICE, options) if kind == "weft" else GoDevice(self.a, DEVICE, Conf(own.private, [], PORT))
        self.a.run("ip", "address", "add", "10.99.0.1/24", "dev", DEVICE)
        self.a.run("ip", "link", "set", "dev", DEVICE, "up")
        for ns, k, address, hub in ((self.b, b, B4, "10.0.1.1"), (self.c, c, C4, "10.0.2.1")):
            Node(ns, DEVICE, Conf(k.private, [PeerConf(own.public, ["10.99.0.0/24"], f"{hub}:{PORT}")], PORT, [address + "/24"]))

    def file(self, conf: Conf) -> Path:
        path = self.lab.dir / "hub.wg"
        path.write_text(conf.wg_text())
        return path

    def wait(self) -> None:
        """The flow has sessions on its whole way. A calls first: B and C may have one that A has forgotten."""
        for ns, address in ((self.a, B4), (self.a, C4), (self.b, C4)):
            wait_ping(ns, address)

    def during(self, work: Callable[[], object], rate: float = 1000, around_s: float = 0.1) -> Meanwhile:
        """Runs work while the flow goes; a little of the flow is before and behind it."""
        with self.c.udp_socket(C4) as inbound, self.b.udp_socket(B4) as out:
            inbound.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 28)
            inbound.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            out.connect(inbound.getsockname())
            sender = _Sender(out, rate)
            sender.start()
            wait_for(lambda: sender.sent >= rate * around_s, 10, "the flow's start")
            t0 = time.monotonic()
            try:
                work()
            finally:
                took, until = time.monotonic() - t0, sender.sent + rate * around_s
                wait_for(lambda: sender.sent >= until, 10, "the flow's end")
                sender.stop = True
                sender.join()
            return _collect(inbound, sender.sent, took)


def _collect(inbound: socket.socket, sent: int, took_s: float) -> Meanwhile:
    inbound.settimeout(1)
    delays: dict[int, float] = {}
    while len(delays) < sent:
        try:
            data, notes, _flags, _from = inbound.recvmsg(12, 64)
        except TimeoutError:
            break
        n, sent_ns = struct.unpack_from("!IQ", data)
        seconds, ns = struct.unpack("qq", notes[0][2])
        delays.setdefault(n, (seconds * 10**9 + ns - sent_ns) / 1e6)
    return Meanwhile(took_s, sent, len(delays), list(delays.values()))

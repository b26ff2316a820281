# SPDX-License-Identifier: Apache-2.0
"""Load and its measures: iperf3, ping, the processor time of daemons."""
from __future__ import annotations

import json
import os
import re
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterable

from . import procfs
from .ns import CommandFailed, Namespace, Process
from .wait import wait_for

GIB = float(1 << 30)


@dataclass
class Tcp:
    """One iperf3 TCP run: what the receiving side had got when the sender said that it was done."""

    bytes: int
    seconds: float
    sent_bytes: int = 0
    retransmits: int = 0

    @property
    def mbit(self) -> float:
        return self.bytes * 8 / self.seconds / 1e6 if self.seconds else 0.0


@dataclass
class Udp:
    """One iperf3 UDP run."""

    sent_mbit: float
    received_mbit: float
    lost: int
    packets: int
    bytes: int  # received
    seconds: float
    out_of_order: int = 0

    @property
    def loss(self) -> float:
        """Part lost, 0 to 1."""
        return self.lost / self.packets if self.packets else 1.0


class IperfServer:
    """An iperf3 server that serves run after run, one at a time."""

    def __init__(self, ns: Namespace, port: int = 5201):
        self.ns, self.port = ns, port
        self.process: Process = ns.spawn("iperf3", "-s", "-p", str(port))
        wait_for(lambda: procfs.is_listening(ns.pid, port), 5, f"iperf3 server in {ns.name}")

    def stop(self) -> None:
        self.process.stop()


def _iperf(ns: Namespace, argv: list[str], timeout: float) -> dict:
    # A server that has just ended a run may refuse the next for some milliseconds.
    deadline = time.monotonic() + 3
    while True:
        r = ns.run("iperf3", "-J", *argv, check=False, timeout=timeout)
        try:
            answer = json.loads(r.stdout)
        except json.JSONDecodeError:
            raise CommandFailed(f"iperf3 {' '.join(argv)}: {r.stdout[-500:]}{r.stderr[-500:]}") from None
        if "error" not in answer:
            return answer
        if "busy" not in answer["error"] or time.monotonic() > deadline:
            raise CommandFailed(f"{ns.name}: iperf3 {' '.join(argv)}: {answer['error']}")


def tcp_argv(address: str, seconds: float | None = None, size: int | None = None, streams: int = 1, reverse: bool = False,
             port: int = 5201, omit: int = 0) -> list[str]:
    """Arguments of an iperf3 client. reverse: the server sends. -C sets CUBIC on the sockets of both sides."""
    argv = ["-c", address, "-p", str(port), "-P", str(streams), "-C", "cubic"]
    argv += ["-t", f"{seconds:g}"] if size is None else ["-n", str(size)]
    return argv + (["-R"] if reverse else []) + (["-O", str(omit)] if omit else [])


def tcp(ns: Namespace, address: str, seconds: float | None = None, *, size: int | None = None, streams: int = 1,
        reverse: bool = False, port: int = 5201, timeout: float | None = None) -> Tcp:
    """Sends for some seconds, or a number of bytes; returns what arrived."""
    argv = tcp_argv(address, seconds, size, streams, reverse, port)
    return parse_tcp(_iperf(ns, argv, timeout or (seconds or 60) + 20))


def parse_tcp(answer: dict) -> Tcp:
    received, sent = answer["end"]["sum_received"], answer["end"]["sum_sent"]
    return Tcp(received["bytes"], received["seconds"], sent["bytes"], sent.get("retransmits", 0))


def udp(ns: Namespace, address: str, mbit: float, seconds: float, *, payload: int = 1200, reverse: bool = False,
        port: int = 5201) -> Udp:
    """Sends datagrams at a rate; mbit 0 = as fast as iperf3 can."""
    # A receiver that loses the processor for some milliseconds must not lose datagrams by that: its
    # buffer is as large as the kernel lets everybody have, up to 4 MiB.
    window = min(4 << 20, int(Path("/proc/sys/net/core/rmem_max").read_text()))
    # With a pacing timer of 100 us iperf3 sends shorter bursts than with its 1 ms. Even so it makes
    # one call a datagram, which is what limits it on a fast path.
    argv = ["-u", "-c", address, "-p", str(port), "-b", f"{mbit * 1e6:.0f}", "-l", str(payload), "-t", f"{seconds:g}",
            "-w", str(window), "--pacing-timer", "100"] + (["-R"] if reverse else [])
    end = _udp_answer(ns, argv, seconds + 20)["end"]
    if "sum_received" in end and "sum_sent" in end:
        received, sent = end["sum_received"], end["sum_sent"]
    else:
        received = sent = end["sum"]
    lost, packets = received["lost_packets"], received["packets"]
    got = (packets - lost) * payload
    elapsed = received["seconds"] or seconds
    order = sum(s["udp"].get("out_of_order", 0) for s in end["streams"])
    return Udp(sent["bytes"] * 8 / (sent["seconds"] or seconds) / 1e6, got * 8 / elapsed / 1e6, lost, packets, got, elapsed, order)


def _udp_answer(ns: Namespace, argv: list[str], timeout: float) -> dict:
    """iperf3 opens a UDP test with one datagram, and fails when it is lost to what a run before left in queues."""
    for _ in range(2):
        try:
            return _iperf(ns, argv, timeout)
        except CommandFailed:
            pass
    return _iperf(ns, argv, timeout)


@dataclass
class Ping:
    """Round trips in milliseconds, in order of sending."""

    sent: int
    received: int
    rtt_ms: list[float] = field(default_factory=list)

    @property
    def p50(self) -> float:
        return percentile(self.rtt_ms, 50)

    @property
    def p99(self) -> float:
        return percentile(self.rtt_ms, 99)


def percentile(values: Iterable[float], p: float) -> float:
    """Nearest rank; nan without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * p // 100).__int__() - 1))] if ordered else float("nan")


def median(values: Iterable[float]) -> float:
    values = list(values)
    return statistics.median(values) if values else float("nan")


def parse_ping(text: str) -> Ping:
    m = re.search(r"(\d+) packets transmitted, (\d+) received", text)
    if not m:
        raise CommandFailed(f"no summary in the output of ping:\n{text[-500:]}")
    return Ping(int(m[1]), int(m[2]), [float(x) for x in re.findall(r"time=([\d.]+) ms", text)])


def ping(ns: Namespace, address: str, count: int = 200, interval: float = 0.01, size: int = 56) -> Ping:
    """Echo requests at a steady pace."""
    r = ns.run("ping", "-n", "-i", f"{interval:g}", "-c", str(count), "-s", str(size), "-W", "1", address, check=False,
               timeout=count * max(interval, 0.001) * 3 + 20)
    return parse_ping(r.stdout)


class Meter:
    """Processor seconds of some processes, and of the whole machine, between start and stop."""

    def __init__(self, pids: Iterable[int] = ()):
        self.pids = list(pids)
        self.cores = os.cpu_count() or 1
        self.daemons = self.machine = self.wall = 0.0
        self.start()

    def start(self) -> None:
        self._daemons = sum(map(procfs.cpu_seconds, self.pids))
        self._machine, self._wall = procfs.machine_cpu_seconds(), time.monotonic()

    def stop(self) -> Meter:
        self.daemons = sum(map(procfs.cpu_seconds, self.pids)) - self._daemons
        self.machine = procfs.machine_cpu_seconds() - self._machine
        self.wall = time.monotonic() - self._wall
        return self

    def peak_rss_kib(self) -> int:
        """The largest of the processes' peaks."""
        return max(map(procfs.peak_rss_kib, self.pids), default=0)

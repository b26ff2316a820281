# SPDX-License-Identifier: Apache-2.0
"""One contender, one round: each test gives metrics by name.

Metrics that count: tcp*_mbit, udp_mbit, *_daemon_s_gib (both daemons), *_machine_s_gib (whole
machine, iperf3 and kernel included), ping_*_ms, peak_rss_mib."""
from __future__ import annotations

import math
import threading
import time
from typing import Callable

from lab import Lab, offload, pair, procfs, wait_for
from lab import traffic
from lab.traffic import GIB, IperfServer, Meter

from contenders import Contender, Spec

UDP_PAYLOAD = 1200
UDP_LOSS_MAX = 0.01
UDP_PROBE_S = 1.0
UDP_STEPS = 6
PING_COUNT = 300
OTHERS_S = 0.5
PING_INTERVAL = 0.01

# key: (unit, what, True when more is better)
METRICS: dict[str, tuple[str, str, bool]] = {
    "tcp1_up_mbit": ("Mbit/s", "TCP, 1 stream, A to B", True),
    "tcp1_down_mbit": ("Mbit/s", "TCP, 1 stream, B to A", True),
    "tcp8_up_mbit": ("Mbit/s", "TCP, 8 streams, A to B", True),
    "tcp8_down_mbit": ("Mbit/s", "TCP, 8 streams, B to A", True),
    "udp_mbit": ("Mbit/s", f"UDP of {UDP_PAYLOAD} B at under 1 % loss", True),
    "tcp1_up_daemon_s_gib": ("s/GiB", "daemons' CPU, TCP up", False),
    "tcp1_down_daemon_s_gib": ("s/GiB", "daemons' CPU, TCP down", False),
    "tcp8_up_daemon_s_gib": ("s/GiB", "daemons' CPU, 8 TCP up", False),
    "tcp8_down_daemon_s_gib": ("s/GiB", "daemons' CPU, 8 TCP down", False),
    "udp_daemon_s_gib": ("s/GiB", "daemons' CPU, UDP", False),
    "tcp1_up_machine_s_gib": ("s/GiB", "whole machine's CPU, TCP up", False),
    "tcp1_down_machine_s_gib": ("s/GiB", "whole machine's CPU, TCP down", False),
    "tcp8_up_machine_s_gib": ("s/GiB", "whole machine's CPU, 8 TCP up", False),
    "tcp8_down_machine_s_gib": ("s/GiB", "whole machine's CPU, 8 TCP down", False),
    "udp_machine_s_gib": ("s/GiB", "whole machine's CPU, UDP", False),
    "udp_loss_percent": ("%", "loss in the UDP run that counts", False),
    "ping_idle_p50_ms": ("ms", "ping, idle, median", False),
    "ping_idle_p99_ms": ("ms", "ping, idle, p99", False),
    "ping_loaded_p50_ms": ("ms", "ping under one TCP stream, median", False),
    "ping_loaded_p99_ms": ("ms", "ping under one TCP stream, p99", False),
    "idle_rss_mib": ("MiB", "resident memory 5 s after the first packets, larger daemon", False),
    "peak_rss_mib": ("MiB", "peak resident memory, larger daemon", False),
    "others_percent": ("%", "processors in use by other programs before the round", False),
}
IDLE_S = 5  # what the start and a handshake needed may be given back by then
TESTS = ("ping", "tcp1", "tcp8", "udp", "loaded")

Say = Callable[[str], None]


class Round:
    """Runs tests on a contender that is up, and collects metrics."""

    def __init__(self, contender: Contender, seconds: float, say: Say):
        self.c, self.seconds, self.say = contender, seconds, say
        self.a, self.b = contender.pair.a, contender.pair.b
        self.pids = contender.pids()
        self.metrics: dict[str, float] = {}

    def _cost(self, name: str, meter: Meter, moved: int) -> None:
        if moved:
            if self.pids:
                self.metrics[f"{name}_daemon_s_gib"] = meter.daemons / (moved / GIB)
            self.metrics[f"{name}_machine_s_gib"] = meter.machine / (moved / GIB)

    def ping(self) -> None:
        p = traffic.ping(self.a, self.c.address, PING_COUNT, PING_INTERVAL)
        self.metrics |= {"ping_idle_p50_ms": p.p50, "ping_idle_p99_ms": p.p99}

    def _tcp(self, streams: int) -> None:
        for way, reverse in (("up", False), ("down", True)):
            name = f"tcp{streams}_{way}"
            self.say(name)
            meter = Meter(self.pids)
            r = traffic.tcp(self.a, self.c.address, self.seconds, streams=streams, reverse=reverse)
            self._cost(name, meter.stop(), r.bytes)
            self.metrics[f"{name}_mbit"] = r.mbit

    def tcp1(self) -> None:
        self._tcp(1)

    def tcp8(self) -> None:
        self._tcp(8)

    def udp(self) -> None:
        """Bisects for the highest rate under the loss limit, then measures at that rate.

        A probe that loses too much is tried once more: on a machine shared with others one
        preemption costs more than 1 % of a second. If the long run then loses too much, the rate
        goes down by 5 % until it does not."""
        def passes(mbit: float) -> bool:
            return any(traffic.udp(self.a, self.c.address, mbit, UDP_PROBE_S, payload=UDP_PAYLOAD).loss < UDP_LOSS_MAX for _ in range(2))

        flat_out = traffic.udp(self.a, self.c.address, 0, UDP_PROBE_S, payload=UDP_PAYLOAD)
        high = flat_out.sent_mbit
        low = max(10.0, min(flat_out.received_mbit * 0.5, high * 0.5))
        if flat_out.loss < UDP_LOSS_MAX:
            low = high
        else:
            for step in range(UDP_STEPS):
                rate = math.sqrt(low * high)
                self.say(f"udp {step + 1}/{UDP_STEPS} {rate:.0f} Mbit/s")
                if passes(rate):
                    low = rate
                else:
                    high = rate
        for _ in range(20):
            self.say(f"udp at {low:.0f} Mbit/s")
            meter = Meter(self.pids)
            r = traffic.udp(self.a, self.c.address, low, self.seconds, payload=UDP_PAYLOAD)
            meter.stop()
            if r.loss < UDP_LOSS_MAX:
                self._cost("udp", meter, r.bytes)
                self.metrics |= {"udp_mbit": r.received_mbit, "udp_loss_percent": r.loss * 100}
                return
            low *= 0.95
        self.metrics |= {"udp_mbit": 0.0, "udp_loss_percent": r.loss * 100}

    def loaded(self) -> None:
        before = self.b.counters("eth0").rx_bytes
        argv = traffic.tcp_argv(self.c.address, seconds=PING_COUNT * PING_INTERVAL * 3 + 10)
        load = self.a.spawn("iperf3", *argv)
        try:
            wait_for(lambda: self.b.counters("eth0").rx_bytes > before + 20e6, 10, "load on the wire")
            p = traffic.ping(self.a, self.c.address, PING_COUNT, PING_INTERVAL)
            if not load.is_running:
                raise RuntimeError(f"the load ended before ping did: {load.output}")
        finally:
            load.stop()
        self.metrics |= {"ping_loaded_p50_ms": p.p50, "ping_loaded_p99_ms": p.p99}


def others_percent() -> float:
    """How busy the machine is while this program waits: figures of a busy machine compare badly."""
    meter = Meter()
    threading.Event().wait(OTHERS_S)
    meter.stop()
    return 100 * meter.machine / meter.wall / meter.cores


def run_round(spec: Spec, tests: list[str], seconds: float, no_offload: bool, say: Say) -> tuple[dict[str, float], list[str]]:
    """Fresh namespaces, one contender, the tests in order. Returns its metrics and what failed."""
    failed: list[str] = []
    others = others_percent()
    with Lab() as lab:
        say("up")
        p = pair(lab)
        if no_offload:
            for ns in (p.a, p.b):
                offload.segmentation_off(ns, "eth0")
        try:
            contender = spec.start(p)
        except AssertionError as e:
            return {}, [f"does not come up: {e}\n{lab.logs(800)}"]
        IperfServer(p.b)
        r = Round(contender, seconds, say)
        r.metrics["others_percent"] = others
        time.sleep(IDLE_S)
        idle = max(map(procfs.rss_kib, r.pids), default=0) / 1024
        for test in TESTS:
            if test in tests:
                say(test)
                try:
                    getattr(r, test)()
                except (AssertionError, RuntimeError) as e:
                    failed.append(f"{test}: {e}")
        if r.pids:
            r.metrics["idle_rss_mib"] = idle
            r.metrics["peak_rss_mib"] = Meter(r.pids).peak_rss_kib() / 1024
        contender.stop()
        return r.metrics, failed

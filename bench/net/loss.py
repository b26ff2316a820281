# SPDX-License-Identifier: Apache-2.0
"""One contender at one point of `weft bench loss`: a path, the measures on it, and their metrics.

    A eth0 --- toa [E: weft emulate] tob --- eth0 B

Each measure has an emulator of its own, so its counters are those of the measure alone. It is started
anew between measures; the tunnel stays up meanwhile."""
from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Callable

from lab import Lab, flow, offload, traffic
from lab.emulator import Emulator, unasked, wire
from lab.traffic import Meter

from contenders import Contender, Spec
from measure import others_percent, run_round

PING_INTERVAL = 0.005
PING_COUNT = 1000
UDP_RATE, UDP_PAYLOAD = 4000, 200
COPY_BYTES = 20_000_000
COPY_S_MAX = 20.0
HEADERS_ETHERNET, HEADERS_OUTER = 14, 42  # what in_bytes counts before the IP packet; before the payload of a datagram
LIMITED = ["--rate", "20mbit", "--queue", "50ms"]
LIMITED_PING_INTERVAL = 0.02
MEASURES = ("ping", "udp", "tcp", "copy")  # at each loss
EXTRAS = ("limited", "clean")              # once a round

# key: (title of the diagram, unit, True when more is better)
METRICS: dict[str, tuple[str, str, bool]] = {
    "tcp_mbit": ("TCP, one stream", "Mbit/s", True),
    "copy_mb_s": ("copy of 20 MB over TCP, connection included", "MB/s", True),
    "udp_lost_percent": (f"UDP of {UDP_PAYLOAD} B at {UDP_RATE}/s, residual loss", "%", False),
    "ping_lost_percent": ("ping, residual loss", "%", False),
    "udp_wire_ratio": ("UDP: bytes of IP on the wire / inner bytes", "times", False),
    "udp_datagram_ratio": ("UDP: bytes inside outer datagrams / inner bytes", "times", False),
    "tcp_wire_ratio": ("TCP: bytes of IP on the wire / inner bytes delivered, both ways", "times", False),
    "ping_p50_ms": ("ping, median", "ms", False),
    "ping_p99_ms": ("ping, p99", "ms", False),
    "udp_p50_ms": ("UDP, one way, median", "ms", False),
    "udp_p99_ms": ("UDP, one way, p99", "ms", False),
    "tcp_retransmits": ("segments that the inner TCP sent again, share of all", "%", False),
    "tcp_daemon_percent": ("TCP: processor time of both daemons", "% of a core", False),
    "tcp_emulator_percent": ("TCP: processor time of the emulator", "% of a core", False),
    "tcp_machine_percent": ("TCP: processor time of the whole machine", "% of all cores", False),
    "emulator_late_ms": ("the emulator's own lateness, p99 of its latest measure", "ms", False),
    "limited_mbit": ("20 Mbit/s with a queue of 50 ms: TCP, one stream", "Mbit/s", True),
    "limited_ping_p50_ms": ("20 Mbit/s with a queue of 50 ms: ping beside TCP, median", "ms", False),
    "limited_ping_p99_ms": ("20 Mbit/s with a queue of 50 ms: ping beside TCP, p99", "ms", False),
    "limited_wire_ratio": ("20 Mbit/s with a queue of 50 ms: bytes of IP on the wire / inner bytes", "times", False),
    "clean_up_mbit": ("no emulator: TCP, one stream, A to B", "Mbit/s", True),
    "clean_down_mbit": ("no emulator: TCP, one stream, B to A", "Mbit/s", True),
    "clean_up_daemon_s_gib": ("no emulator: processor time of both daemons, A to B", "s/GiB", False),
    "clean_down_daemon_s_gib": ("no emulator: processor time of both daemons, B to A", "s/GiB", False),
}


@dataclass(frozen=True)
class Loss:
    """A point of --loss: a share in percent, and the mean length of bursts; 0 = independent losses."""

    percent: float
    burst: float = 0

    @staticmethod
    def parse(word: str) -> Loss:
        share, colon, burst = word.partition(":")
        try:
            loss = Loss(float(share), float(burst) if colon else 0)
        except ValueError:
            loss = Loss(-1)
        if not 0 <= loss.percent < 100 or (colon and loss.burst < 1):
            raise ValueError(f"{word!r} is no loss: a share in percent as 5, or with the mean length of bursts as 5:4")
        return loss

    def __str__(self) -> str:
        return f"{self.percent:g} % in bursts of {self.burst:g}" if self.burst else f"{self.percent:g} %"

    def argv(self) -> list[str]:
        if self.burst:
            return ["--loss-gilbert", f"{self.percent:g}%,{self.burst:g}"]
        return ["--loss", f"{self.percent:g}%"] if self.percent else []


@dataclass
class Settings:
    """What holds for the whole run."""

    seconds: float
    is_quick: bool
    delay_ms: float
    rate_mbit: float
    queue_ms: float
    has_no_offload: bool
    wants_recovery: bool  # after each measure, what weft says of it

    def delay(self) -> list[str]:
        return ["--delay", f"{self.delay_ms * 1000:.0f}us"]

    def path(self) -> list[str]:
        return [*self.delay(), "--rate", f"{self.rate_mbit * 1000:.0f}kbit", "--queue", f"{self.queue_ms * 1000:.0f}us"]

    def estimate(self, measure: str) -> float:
        """Seconds that a measure takes, about; 'up' is what comes before them."""
        ping = self.ping_count() * PING_INTERVAL
        return {"ping": ping + 1, "udp": self.seconds + 1.4, "tcp": self.seconds + 0.5, "copy": 0.4 * self.copy_s(), "limited": self.seconds + 1.5,
                "clean": 2 * self.seconds + 3, "up": 2.5}[measure]

    def ping_count(self) -> int:
        return min(PING_COUNT, round(self.seconds / PING_INTERVAL)) if self.is_quick else PING_COUNT

    def copy_s(self) -> float:
        return 2 * self.seconds if self.is_quick else COPY_S_MAX


@dataclass
class Outcome:
    metrics: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)  # of recovery


def wire_bytes(counters: dict, headers: int) -> int:
    """Both ways, before any loss, without so many bytes of headers a packet."""
    return sum(counters[way]["in_bytes"] - headers * counters[way]["in_packets"] for way in ("ab", "ba"))


class Point:
    """Measures on a contender that is up."""

    def __init__(self, contender: Contender, e, settings: Settings, path: list[str], outcome: Outcome):
        self.c, self.e, self.s, self.path = contender, e, settings, path
        self.a, self.b = contender.pair.a, contender.pair.b
        self.metrics, self.notes, self.said = outcome.metrics, outcome.notes, outcome.said

    def run(self, measure: str, seed: int) -> None:
        emulator = Emulator(self.e, *self.path, "--seed", str(seed), "toa", "tob")
        try:
            finish = getattr(self, measure)()
        finally:
            counters = emulator.stop(may_lose=True)
        finish(counters)
        if self.s.wants_recovery:
            self.said += [f"{measure} {side}: {json.dumps(state)}" for side, state in self.c.recovery().items()]
        late_ms = max(counters[way]["late_p99_us"] for way in ("ab", "ba")) / 1000
        self.metrics["emulator_late_ms"] = max(late_ms, self.metrics.get("emulator_late_ms", 0))
        lost = sum(unasked(counters[way]) for way in ("ab", "ba"))
        if lost:
            self.notes.append(f"{measure}: {lost} packets were lost by no setting: the emulator did not get the processor in time")

    def ping(self) -> Callable[[dict], None]:
        p = traffic.ping(self.a, self.c.address, self.s.ping_count(), PING_INTERVAL)
        self.metrics |= {"ping_lost_percent": 100 * (1 - p.received / p.sent), "ping_p50_ms": p.p50, "ping_p99_ms": p.p99}
        return lambda counters: None

    def udp(self) -> Callable[[dict], None]:
        u = flow.udp(self.a, self.b, self.c.address, rate=UDP_RATE, seconds=self.s.seconds, payload=UDP_PAYLOAD)
        self.metrics |= {"udp_lost_percent": 100 * (1 - u.received / u.sent), "udp_p50_ms": traffic.percentile(u.delay_ms, 50),
                         "udp_p99_ms": traffic.percentile(u.delay_ms, 99)}
        if u.duplicates:
            self.notes.append(f"udp: {u.duplicates} datagrams arrived twice")

        def finish(counters: dict) -> None:
            self.metrics["udp_wire_ratio"] = wire_bytes(counters, HEADERS_ETHERNET) / u.inner_bytes
            if self.c.address != self.c.pair.b4:
                self.metrics["udp_datagram_ratio"] = wire_bytes(counters, HEADERS_OUTER) / u.inner_bytes
        return finish

    def tcp(self) -> Callable[[dict], None]:
        meter = Meter(self.c.pids())
        t = flow.tcp(self.a, self.b, self.c.address, seconds=self.s.seconds)
        meter.stop()
        self.metrics |= {"tcp_mbit": t.mbit, "tcp_machine_percent": 100 * meter.machine / meter.wall / meter.cores}
        if meter.pids:
            self.metrics["tcp_daemon_percent"] = 100 * meter.daemons / meter.wall
        if t.segments:
            self.metrics["tcp_retransmits"] = 100 * t.retransmits / t.segments

        def finish(counters: dict) -> None:
            self.metrics["tcp_emulator_percent"] = 100 * (counters["cpu_user_s"] + counters["cpu_system_s"]) / meter.wall
            if t.inner_bytes:
                self.metrics["tcp_wire_ratio"] = wire_bytes(counters, HEADERS_ETHERNET) / t.inner_bytes
        return finish

    def copy(self) -> Callable[[dict], None]:
        t = flow.tcp(self.a, self.b, self.c.address, seconds=self.s.copy_s(), size=COPY_BYTES)
        self.metrics["copy_mb_s"] = t.bytes / t.seconds / 1e6
        return lambda counters: None

    def limited(self) -> Callable[[dict], None]:
        count = round(max(self.s.seconds - 1, 1) / LIMITED_PING_INTERVAL)
        with ThreadPoolExecutor(1) as other:
            pinging = other.submit(traffic.ping, self.a, self.c.address, count, LIMITED_PING_INTERVAL)
            t = flow.tcp(self.a, self.b, self.c.address, seconds=self.s.seconds)
            p = pinging.result()
        self.metrics |= {"limited_mbit": t.mbit, "limited_ping_p50_ms": p.p50, "limited_ping_p99_ms": p.p99}

        def finish(counters: dict) -> None:
            if t.inner_bytes:
                self.metrics["limited_wire_ratio"] = wire_bytes(counters, HEADERS_ETHERNET) / t.inner_bytes
        return finish


def run_clean(spec: Spec, settings: Settings, say: Callable[[str], None]) -> Outcome:
    """The test of `weft bench net`: no emulator, so what limits is the processor."""
    metrics, failed = run_round(spec, ["tcp1"], settings.seconds, settings.has_no_offload, say)
    renamed = {key.replace("tcp1_", "clean_"): value for key, value in metrics.items()}
    return Outcome({key: value for key, value in renamed.items() if key in METRICS or key == "others_percent"}, failed)


def run_point(spec: Spec, path: list[str], measures: list[str], settings: Settings, seed: int, say: Callable[[str], None]) -> Outcome:
    """Fresh namespaces; the tunnel comes up on a path that loses nothing; then the measures in order."""
    outcome = Outcome({"others_percent": others_percent()})
    with Lab() as lab:
        say("up")
        pair, e = wire(lab)
        if settings.has_no_offload:
            for ns in (pair.a, pair.b):
                offload.segmentation_off(ns, "eth0")
        emulator = Emulator(e, *settings.delay(), "toa", "tob")
        try:
            contender = spec.start(pair)
        except AssertionError as error:
            outcome.failed.append(f"does not come up: {error}\n{lab.logs(800)}")
            return outcome
        emulator.stop(may_lose=True)
        point = Point(contender, e, settings, path, outcome)
        for k, measure in enumerate(measures):
            say(measure)
            try:
                point.run(measure, seed + k)
            except (AssertionError, RuntimeError, OSError) as error:
                outcome.failed.append(f"{measure}: {error}")
        contender.stop()
    return outcome

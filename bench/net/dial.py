# SPDX-License-Identifier: Apache-2.0
"""What `weft bench dial` compares, and one round of one contender.

In A a program carries what iperf3 hands it at 127.0.0.1 into the overlay; B has a TUN. Metrics are
keyed by name, or by (name, offered Mbit/s) for UDP."""
from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator

from lab import Conf, GoDevice, Lab, Namespace, Node, Pair, Process, binary, pair, procfs, wait_for
from lab import traffic
from lab.traffic import GIB, IperfServer, Meter

from contenders import B4, Contender, Spec, Weft, WireguardGo, confs, not_installed, unusable
from measure import others_percent

UDP_PAYLOAD = 1200
STREAMS = 4
ECHO_PORT, IPERF_PORT = 7, 5201
LOCAL = "127.0.0.1"
ECHOES_S = 2000  # echoes a second of a test
SEGMENT = 1368  # payload that counts as a packet of TCP
CALLS_MBIT = 500
CALLS_S = 2
FILES_BESIDE = 1000  # open files of a program but those of idle connections
STALL_SAMPLE_S = 0.02
STALL_BYTES = 5000  # what a sample of a flow that runs has at least: 10 Mbit/s are 25,000
TESTS = ("tcp", "udp", "calls", "connections")
WAYS = (("up", False), ("down", True))

Key = str | tuple[str, float]
# name: (unit, what, True when more is better)
METRICS: dict[str, tuple[str, str, bool]] = {
    **{f"tcp{n}_{way}_mbit": ("Mbit/s", f"TCP, {n} stream{'s' * (n > 1)}, {how}", True)
       for n in (1, STREAMS) for way, how in (("up", "A to B"), ("down", "B to A"))},
    "tcp1_up_machine_s_gib": ("s/GiB", "whole machine's CPU, TCP up", False),
    "tcp1_down_machine_s_gib": ("s/GiB", "whole machine's CPU, TCP down", False),
    "udp_up_mbit": ("Mbit/s", "UDP received, A to B", True),
    "udp_down_mbit": ("Mbit/s", "UDP received, B to A", True),
    "udp_up_sent_mbit": ("Mbit/s", "UDP that iperf3 could send, A to B", True),
    "udp_down_sent_mbit": ("Mbit/s", "UDP that iperf3 could send, B to A", True),
    "udp_up_loss_percent": ("%", "UDP lost, A to B", False),
    "udp_down_loss_percent": ("%", "UDP lost, B to A", False),
    "stall_ms": ("ms", "longest time without data on the wire, in any TCP or UDP run", False),
    **{f"{kind}_{way}_{what}": ("", f"{name} a packet in the carrier, {kind.upper()} {way}", False)
       for what, name in (("calls", "system calls"), ("switches", "context switches")) for kind in ("tcp", "udp") for way in ("up", "down")},
    "connects_s": ("1/s", "connections made one after the other, a second", True),
    "echo_p50_us": ("us", "echo of one byte over TCP, median", False),
    "echo_p99_us": ("us", "echo of one byte over TCP, p99", False),
    "idle_bytes": ("B", "memory of the carrier for an idle connection", False),
    "rss_mib": ("MiB", "resident memory of the carrier after one echo", False),
    "others_percent": ("%", "processors in use by other programs before the round", False),
}


@dataclass
class Settings:
    tests: list[str]
    seconds: int
    rates: list[float]  # Mbit/s
    idle: int


def program(name: str) -> str:
    """Of those that meson builds from this folder: beside this file when installed, else in the build folder of weft."""
    for folder in (Path(__file__).resolve().parent, Path(binary()).parent / "bench" / "net"):
        if os.access(folder / name, os.X_OK):
            return str(folder / name)
    raise FileNotFoundError(f"{name} is not built: run make")


class Way:
    """How a contender is used; the rest of it is a Contender."""

    @property
    def front(self) -> str:
        """Where iperf3 in A connects to."""
        return self.address

    def dialer(self) -> list[str]:
        """First arguments of `dialer` in A."""
        return ["-", f"{self.front}:{ECHO_PORT}"]

    def carriers(self) -> list[int]:
        """Processes in A whose calls count."""
        return self.pids()[:1]

    def is_carrier_dialer(self) -> bool:
        """Is `dialer` itself what carries, in place of carriers()?"""
        return False

    def make_way(self) -> None:
        """Called before `dialer` runs."""


class Bare(Way, Contender):
    pass


class Tun(Way, Weft):
    pass


class TunGo(Way, WireguardGo):
    pass


class Carried(Way, Contender):
    """A program in A with a node of its own; B has a TUN of peer=weft or wireguard-go."""

    @classmethod
    def missing(cls, options: dict[str, str]) -> str:
        peer = options.get("peer", "weft")
        if peer not in ("weft", "wireguard-go"):
            raise ValueError(f"peer={peer}: there are weft, wireguard-go")
        return (not_installed(*WireguardGo.programs) if peer == "wireguard-go" else "") or unusable({})

    def setup(self) -> None:
        a_conf, b_conf = confs(self.pair)
        if self.options.get("peer") == "wireguard-go":
            self.far: Node | GoDevice = GoDevice(self.pair.b, "wg0", b_conf)
        else:
            self.far = Node(self.pair.b, "weft0", b_conf)
        self.file = self.write(a_conf)
        self.carrier: Process = self.pair.a.spawn(*self.argv())
        self.processes = [self.carrier]

    def write(self, conf: Conf) -> str:
        file = self.folder(self.pair.a) / "a.conf"
        file.touch(mode=0o600)
        file.write_text(conf.quick_text())
        return str(file)

    def argv(self) -> list[str]:
        raise NotImplementedError

    def wait(self) -> None:
        def is_up() -> bool:
            return procfs.is_listening(self.pair.a.pid, IPERF_PORT) or not self.carrier.is_running
        wait_for(is_up, 10, "the forwarder")
        assert self.carrier.is_running, self.carrier.output
        use_cubic(self.carrier.pid)

    @property
    def front(self) -> str:
        return LOCAL

    def stop(self) -> None:
        super().stop()
        self.far.stop()


class Dial(Carried):
    """The forwarder of this folder; then connections straight from a program."""

    takes = ("peer", "deadline", "binary", "label")

    @classmethod
    def missing(cls, options: dict[str, str]) -> str:
        if not options.get("deadline", "0").isdigit():
            raise ValueError(f"deadline={options['deadline']}: takes seconds")
        path = options.get("binary") or program("forwarder")
        return super().missing(options) or ("" if os.access(path, os.X_OK) else f"{path} is not a program")

    def argv(self) -> list[str]:
        path = str(Path(self.options.get("binary") or program("forwarder")).resolve())
        return [path, self.file, str(IPERF_PORT), f"{B4}:{IPERF_PORT}", *([self.options["deadline"]] if "deadline" in self.options else [])]

    def dialer(self) -> list[str]:
        return [self.file, f"{B4}:{ECHO_PORT}"]

    def is_carrier_dialer(self) -> bool:
        return True

    def make_way(self) -> None:
        self.carrier.stop()  # two nodes of one key would take packets from each other


class Forward(Carried):
    """`weft forward`, for iperf3 and for connections."""

    takes = ("peer", "binary", "label")

    @classmethod
    def missing(cls, options: dict[str, str]) -> str:
        why = super().missing(options) or unusable(options)
        if not why and subprocess.run([options.get("binary") or binary(), "forward", "--help"], capture_output=True).returncode:
            why = "this weft has no `forward`"
        return why

    def argv(self) -> list[str]:
        rules = (f"{LOCAL}:{IPERF_PORT}:{B4}:{IPERF_PORT}", f"udp:{LOCAL}:{IPERF_PORT}:{B4}:{IPERF_PORT}", f"{LOCAL}:{ECHO_PORT}:{B4}:{ECHO_PORT}")
        path = str(Path(self.options.get("binary") or binary()).resolve())
        return [path, "forward", "--connections", "20000", self.file, *(word for rule in rules for word in ("-L", rule))]


KINDS: dict[str, type[Contender]] = {"veth": Bare, "weft": Tun, "dial": Dial, "forward": Forward, "wireguard-go": TunGo}
DEFAULT = "veth,weft,dial,dial:deadline=3600,forward,dial:peer=wireguard-go"
OPTIONS_HELP = "dial:peer=wireguard-go:deadline=SECONDS:binary=FORWARDER:label=NAME, forward:peer=wireguard-go:binary=PATH; weft as in weft bench net"


def use_cubic(pid: int) -> None:
    """In the private namespace of a program's node, which is that of its helper process. It has the machine's default else."""
    home = os.readlink(f"/proc/{pid}/ns/net")
    helpers = [c for c in procfs.children(pid) if os.readlink(f"/proc/{c}/ns/net") != home]
    assert helpers, f"process {pid} has no helper in a namespace of its own"
    for helper in helpers:
        subprocess.run(["nsenter", "-t", str(helper), "-n", "sh", "-c", "echo cubic >/proc/sys/net/ipv4/tcp_congestion_control"], check=True)


class Stall(threading.Thread):
    """The longest time in which the wire brought a namespace nothing, between the first data and the last."""

    def __init__(self, ns: Namespace):
        super().__init__(daemon=True)
        self.ns, self.longest_s = ns, 0.0
        self._end = threading.Event()
        self.start()

    def run(self) -> None:
        before, last = self.ns.counters("eth0").rx_bytes, None
        while not self._end.wait(STALL_SAMPLE_S):
            now, t = self.ns.counters("eth0").rx_bytes, time.monotonic()
            if now - before >= STALL_BYTES:
                if last is not None:
                    self.longest_s = max(self.longest_s, t - last - STALL_SAMPLE_S)
                last = t
            before = now

    def stop(self) -> float:
        self._end.set()
        self.join()
        return max(self.longest_s, 0.0)


class Counter:
    """System calls, and with perf context switches, of processes and their threads while it runs."""

    def __init__(self, pids: list[int], folder: Path):
        self.file = folder / f"calls-{time.monotonic_ns()}"
        self.has_perf = shutil.which("perf") is not None
        which = ",".join(map(str, pids))
        argv = (["perf", "stat", "-x,", "-e", "raw_syscalls:sys_enter,context-switches", "-o", str(self.file), "-p", which] if self.has_perf
                else ["strace", "-c", "-f", "-o", str(self.file), *(w for p in pids for w in ("-p", str(p)))])
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.3)  # until it is attached, which it does not tell

    def stop(self) -> dict[str, float]:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(10)
        text = self.file.read_text()
        if not self.has_perf:
            m = re.search(r"(\d+)\s+(?:\d+\s+)?total", text)
            return {"calls": float(m[1])} if m else {}
        found = {}
        for line in text.splitlines():
            cells = line.split(",")
            if len(cells) > 2 and cells[0].isdigit():
                found["calls" if "sys_enter" in cells[2] else "switches"] = float(cells[0])
        return found


class Round:
    """Runs tests on a contender that is up, and collects metrics."""

    def __init__(self, contender: Contender, settings: Settings, say: Callable[[str], None]):
        self.c, self.s, self.say = contender, settings, say
        self.a, self.b = contender.pair.a, contender.pair.b
        self.metrics: dict[Key, float] = {}

    def iperf(self, run: Callable, *args, **kw):
        """One run of traffic. A server that still ends the one before would refuse it, and by a reset, which a forwarder hands
        on without the word that came before it."""
        wait_for(lambda: not procfs.has_connection(self.b.pid, IPERF_PORT), 10, "the end of the run before")
        return run(self.a, self.c.front, *args, **kw)

    @contextlib.contextmanager
    def watched(self, is_reverse: bool) -> Iterator[None]:
        stall = Stall(self.a if is_reverse else self.b)
        try:
            yield
        finally:
            ms = stall.stop() * 1000
            self.metrics["stall_ms"] = max(ms, self.metrics.get("stall_ms", 0.0))

    def tcp(self) -> None:
        for streams in (1, STREAMS):
            for way, is_reverse in WAYS:
                self.say(f"tcp{streams} {way}")
                with self.watched(is_reverse):
                    meter = Meter()
                    r = self.iperf(traffic.tcp, self.s.seconds, streams=streams, reverse=is_reverse)
                    meter.stop()
                self.metrics[f"tcp{streams}_{way}_mbit"] = r.mbit
                if streams == 1 and r.bytes:
                    self.metrics[f"tcp1_{way}_machine_s_gib"] = meter.machine / (r.bytes / GIB)

    def udp(self) -> None:
        for way, is_reverse in WAYS:
            for rate in self.s.rates:
                self.say(f"udp {way} {rate:g} Mbit/s")
                with self.watched(is_reverse):
                    r = self.iperf(traffic.udp, rate, self.s.seconds, payload=UDP_PAYLOAD, reverse=is_reverse)
                self.metrics |= {(f"udp_{way}_mbit", rate): r.received_mbit, (f"udp_{way}_sent_mbit", rate): r.sent_mbit,
                                 (f"udp_{way}_loss_percent", rate): 100 * r.loss}

    def calls(self) -> None:
        pids = self.c.carriers()
        if not pids:
            return
        seconds = min(self.s.seconds, CALLS_S)
        for way, is_reverse in WAYS:
            for kind in ("tcp", "udp"):
                self.say(f"calls of {kind} {way}")
                counter = Counter(pids, self.a.lab.dir)
                if kind == "tcp":
                    packets = self.iperf(traffic.tcp, seconds, reverse=is_reverse).bytes / SEGMENT
                else:
                    packets = self.iperf(traffic.udp, CALLS_MBIT, seconds, payload=UDP_PAYLOAD, reverse=is_reverse).packets
                for what, count in counter.stop().items():
                    self.metrics[f"{kind}_{way}_{what}"] = count / max(packets, 1)

    def connections(self) -> None:
        """The last: the forwarder of `dial` is gone afterwards."""
        self.c.make_way()
        pids = [] if self.c.is_carrier_dialer() else self.c.carriers()
        before = sum(map(procfs.rss_kib, pids)) * 1024
        idle = self.s.idle
        if self.c.front == LOCAL and pids:  # two files for each
            idle = min(idle, (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - FILES_BESIDE) // 2)
        dialer = self.a.spawn(program("dialer"), *self.c.dialer(), f"{self.s.seconds:g}", str(max(round(ECHOES_S * self.s.seconds), 10)), str(idle))
        try:
            wait_for(lambda: dialer.output.endswith("}\n") or not dialer.is_running, 120 + self.s.seconds, "dialer's answer")
            assert dialer.is_running, dialer.output
            answer = json.loads(dialer.output)
            self.metrics |= {key: answer[key] for key in ("connects_s", "echo_p50_us", "echo_p99_us")}
            if self.c.front == LOCAL and not self.c.is_carrier_dialer():
                del self.metrics["connects_s"]  # a forwarder accepts before it dials
            if self.c.is_carrier_dialer():
                before, after, resident = answer["idle_before_bytes"], answer["idle_after_bytes"], answer["echoed_bytes"]
            else:
                resident, after = before, sum(map(procfs.rss_kib, pids)) * 1024
            if self.c.is_carrier_dialer() or pids:
                self.metrics["rss_mib"] = resident / (1 << 20)
                if idle:
                    self.metrics["idle_bytes"] = (after - before) / idle
        finally:
            dialer.stop()


def run_round(spec: Spec, settings: Settings, say: Callable[[str], None]) -> tuple[dict[Key, float], list[str]]:
    """Fresh namespaces, one contender, the tests in order. Returns its metrics and what failed."""
    failed: list[str] = []
    others = others_percent()
    with Lab() as lab:
        say("up")
        p: Pair = pair(lab)
        IperfServer(p.b, IPERF_PORT)
        p.b.spawn(program("echoer"), str(ECHO_PORT))
        wait_for(lambda: procfs.is_listening(p.b.pid, ECHO_PORT), 5, "echoer")
        try:
            contender = spec.start(p)
        except AssertionError as e:
            return {}, [f"does not come up: {e}\n{lab.logs(800)}"]
        r = Round(contender, settings, say)
        r.metrics["others_percent"] = others
        for test in TESTS:
            if test in settings.tests:
                try:
                    getattr(r, test)()
                except (AssertionError, RuntimeError) as e:
                    failed.append(f"{test}: {e}\n{lab.logs(400)}")
        contender.stop()
        return r.metrics, failed

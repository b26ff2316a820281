#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""weft bench dial: programs with libweft beside a TUN, on this machine, in namespaces.

    A: iperf3 --- forwarder with libweft === B: TUN of a peer --- iperf3

veth: no tunnel. weft, wireguard-go: a TUN on both sides, as in weft bench net. dial: a forwarder as
a user would write it, on libweft's public API; with deadline= each dial, read and write has one.
forward: `weft forward`. UDP is offered at each of the rates. Connections are made by a program with
libweft (dial), else by plain sockets. Rounds are interleaved: every contender once, then again;
medians count. CUBIC everywhere. Needs root. A contender that cannot run is left out and said."""
from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2] / "test")]

from contenders import Spec, chosen  # noqa: E402
from dial import DEFAULT, FILES_BESIDE, KINDS, METRICS, OPTIONS_HELP, STREAMS, TESTS, UDP_PAYLOAD, Key, Settings, run_round  # noqa: E402
from document import busy_notes, document, guarded, say_notes, write  # noqa: E402
from lab import need_root  # noqa: E402
from lab.traffic import median  # noqa: E402
from table import Progress, number, table  # noqa: E402

RATES = "10,100,300,500,800,1000,2000"
IDLE, IDLE_QUICK = 10000, 1000
BASES = ("veth", "weft")  # what ratios are taken to
TCP = [f"tcp{n}_{way}_mbit" for n in (1, STREAMS) for way in ("up", "down")]
TABLES = [("Mbit/s; CPU s/GiB of the whole machine; longest stall, ms", [*TCP, "tcp1_up_machine_s_gib", "tcp1_down_machine_s_gib", "stall_ms"]),
          ("System calls and context switches a packet in the carrier in A", [f"{k}_{w}_{x}" for x in ("calls", "switches") for k in ("tcp", "udp") for w in ("up", "down")]),
          ("Connections a second; echo of one byte, us; bytes an idle connection; RSS, MiB",
           ["connects_s", "echo_p50_us", "echo_p99_us", "idle_bytes", "rss_mib"])]
SHOWN = ["tcp1_up_mbit", "tcp1_down_mbit", "connects_s", "echo_p50_us", "idle_bytes", "stall_ms", "others_percent"]


def short(metric: str) -> str:
    """Column head: the metric without its unit."""
    for tail in ("_mbit", "_ms", "_mib", "_us", "_bytes", "_s"):
        metric = metric.removesuffix(tail)
    return metric.replace("_machine_s_gib", " CPU").replace("_", " ")


class Results:
    """All rounds of all contenders, and what follows from them."""

    def __init__(self, specs: list[Spec], rates: list[float]):
        self.labels, self.rates = [s.label for s in specs], rates
        self.rounds: dict[str, list[dict[Key, float]]] = {label: [] for label in self.labels}
        self.failures: list[str] = []

    def values(self, label: str, key: Key) -> list[float]:
        return [r[key] for r in self.rounds.get(label, []) if key in r]

    def median(self, label: str, key: Key) -> float:
        return median(self.values(label, key))

    def has(self, key: Key) -> bool:
        return any(self.values(label, key) for label in self.labels)

    def ratio(self, label: str, base: str, key: Key) -> float:
        below = self.median(base, key) if label != base else 0
        return self.median(label, key) / below if below else float("nan")

    def text(self) -> str:
        """The tables at the end."""
        parts = []
        for title, metrics in TABLES:
            shown = [m for m in metrics if self.has(m)]
            if shown:
                rows = [[label, *(number(self.median(label, m)) for m in shown)] for label in self.labels]
                parts.append(f"{title}\n" + table(["", *map(short, shown)], rows))
        for base in BASES:
            shown = [m for m in TCP if self.has(m)]
            if base in self.labels and shown and len(self.labels) > 1:
                rows = [[label, *(number(self.ratio(label, base, m)) for m in shown)] for label in self.labels if label != base]
                parts.append(f"times {base}\n" + table(["", *map(short, shown)], rows))
        for way in ("up", "down"):
            for metric in (f"udp_{way}_mbit", f"udp_{way}_sent_mbit", f"udp_{way}_loss_percent"):
                if any(self.has((metric, rate)) for rate in self.rates):
                    rows = [[label, *(number(self.median(label, (metric, rate))) for rate in self.rates)] for label in self.labels]
                    parts.append(f"{METRICS[metric][1]}, {METRICS[metric][0]}, by Mbit/s offered\n" + table(["", *(f"{r:g}" for r in self.rates)], rows))
        return "\n\n".join(parts)

    def json(self) -> list[dict]:
        """One row a contender and metric, for UDP and offered rate."""
        rows = []
        for label in self.labels:
            for metric, (unit, what, more_is_better) in METRICS.items():
                for place in (None, *self.rates):
                    key = metric if place is None else (metric, place)
                    values = self.values(label, key)
                    if not values:
                        continue
                    row = {"contender": label, "metric": metric, "what": what, "unit": unit, "better": "more" if more_is_better else "less",
                           "median": median(values), "min": min(values), "max": max(values), "rounds": values}
                    if place is not None:
                        row |= {"plot": what, "x": place, "x_name": "Mbit/s offered"}
                    for base in BASES:
                        ratio = self.ratio(label, base, key)
                        if ratio == ratio and place is None:
                            row[f"times_{base}"] = ratio
                    rows.append(row)
        return rows


def arguments() -> argparse.Namespace:
    ap = argparse.ArgumentParser(prog="weft bench dial", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--rounds", type=int, metavar="N", help="(3; with --quick 1)")
    ap.add_argument("--seconds", type=int, metavar="S", help="of each run, whole ones as iperf3 wants (3; with --quick 1)")
    ap.add_argument("--contenders", default=DEFAULT, metavar="A,B", help=f"({DEFAULT}) of bare,{','.join(KINDS)}; {OPTIONS_HELP}")
    ap.add_argument("--tests", default=",".join(TESTS), metavar="A,B", help=f"of {','.join(TESTS)}")
    ap.add_argument("--rates", default=RATES, metavar="A,B", help=f"UDP offered, Mbit/s ({RATES})")
    ap.add_argument("--idle", type=int, metavar="N", help=f"connections held open at once ({IDLE}; with --quick {IDLE_QUICK})")
    ap.add_argument("--quick", action="store_true", help="one round of one second")
    ap.add_argument("--json", metavar="FILE")
    ap.add_argument("--html", metavar="FILE")
    return ap.parse_args()


def numbers(text: str) -> list[float]:
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"--rates {text}: takes numbers with commas between") from None
    if min(found) <= 0:
        raise ValueError(f"--rates {text}: must be above 0")
    return found


def raise_files(idle: int) -> None:
    """As many open files as idle connections need at one end; what we start has the same limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = max(idle + FILES_BESIDE, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except ValueError:
        raise ValueError(f"the limit of {hard} open files allows --idle {max(hard - FILES_BESIDE, 0)}") from None


def bench(a: argparse.Namespace) -> int:
    tests = a.tests.split(",")
    unknown = set(tests) - set(TESTS)
    if unknown:
        raise ValueError(f"no test {', '.join(sorted(unknown))}; there are {', '.join(TESTS)}")
    if any(x is not None and x < 1 for x in (a.rounds, a.seconds)) or (a.idle or 0) < 0:
        raise ValueError("--rounds and --seconds take 1 or more, --idle 0 or more")
    rounds = a.rounds or (1 if a.quick else 3)
    settings = Settings(tests, a.seconds or (1 if a.quick else 3), numbers(a.rates), a.idle if a.idle is not None else IDLE_QUICK if a.quick else IDLE)
    specs = chosen(a.contenders, kinds=KINDS)
    need_root()
    if "connections" in tests:
        raise_files(settings.idle)
    results, progress = Results(specs, settings.rates), Progress()
    for n in range(rounds):
        for spec in specs:
            t0 = time.monotonic()
            metrics, failed = run_round(spec, settings, lambda what: progress(f"round {n + 1}/{rounds}  {spec.label}  {what}"))
            progress.clear()
            for what in failed:
                print(f"FAILED round {n + 1} {spec.label} {what}", flush=True)
                results.failures.append(f"round {n + 1} {spec.label} {what.partition(chr(10))[0]}")
            results.rounds[spec.label].append(metrics)
            shown = "  ".join(f"{short(m)} {number(metrics[m])}" for m in SHOWN if m in metrics)
            print(f"round {n + 1}/{rounds}  {spec.label}: {shown}  ({time.monotonic() - t0:.0f} s)", flush=True)
    print("\n" + results.text())
    notes = busy_notes([x for label in results.labels for x in results.values(label, "others_percent")], "dial")
    say_notes(notes)
    options = {"rounds": rounds, "seconds": settings.seconds, "tests": tests, "rates_mbit": settings.rates, "idle": settings.idle,
               "congestion_control": "cubic", "udp_payload": UDP_PAYLOAD}
    write(a, document("dial", "dial", options, results.json(), failures=results.failures, notes=notes))
    return 1 if results.failures or not specs else 0


if __name__ == "__main__":
    sys.exit(guarded("dial", lambda: bench(arguments())))

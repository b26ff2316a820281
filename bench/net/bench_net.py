#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""weft bench net: tunnels side by side on this machine, in namespaces, by iperf3 and ping.

Rounds are interleaved: every contender once, then again; medians count. CUBIC everywhere.
iperf3 makes one system call a datagram, so for UDP the bare wire's figure is iperf3's own limit.
Needs root. A contender that is not installed is left out and said."""
from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2] / "test")]

from contenders import KINDS, OPTIONS_HELP, Spec, chosen  # noqa: E402
from document import busy_notes, document, guarded, say_notes, write  # noqa: E402
from lab.traffic import median  # noqa: E402
from measure import METRICS, TESTS, run_round  # noqa: E402
from table import Progress, number, table  # noqa: E402

BASES = ("veth", "wireguard-go")  # what ratios are taken to

OVERVIEW = ["tcp1_up_mbit", "tcp1_down_mbit", "tcp8_up_mbit", "tcp8_down_mbit", "udp_mbit", "ping_idle_p50_ms", "ping_idle_p99_ms",
            "ping_loaded_p50_ms", "ping_loaded_p99_ms", "idle_rss_mib", "peak_rss_mib"]
COSTS = [f"{t}_{who}_s_gib" for who in ("daemon", "machine") for t in ("tcp1_up", "tcp1_down", "tcp8_up", "tcp8_down", "udp")]
RATIOS = ["tcp1_up_mbit", "tcp1_down_mbit", "tcp8_up_mbit", "tcp8_down_mbit", "udp_mbit"]


def short(metric: str) -> str:
    """Column head: the metric without its unit."""
    for tail in ("_mbit", "_ms", "_mib", "_s_gib"):
        metric = metric.removesuffix(tail)
    return metric.replace("_daemon", "").replace("_machine", "").replace("_", " ")


class Results:
    """All rounds of all contenders, and what follows from them."""

    def __init__(self, specs: list[Spec]):
        self.labels = [s.label for s in specs]
        self.rounds: dict[str, list[dict[str, float]]] = {label: [] for label in self.labels}
        self.failures: list[str] = []

    def median(self, label: str, metric: str) -> float:
        return median(r[metric] for r in self.rounds[label] if metric in r)

    def ratio(self, label: str, base: str, metric: str) -> float:
        if base not in self.rounds or label == base:
            return float("nan")
        below = self.median(base, metric)
        return self.median(label, metric) / below if below else float("nan")

    def others(self) -> list[float]:
        return [r["others_percent"] for rounds in self.rounds.values() for r in rounds if "others_percent" in r]

    def has(self, metric: str) -> bool:
        return any(metric in r for rounds in self.rounds.values() for r in rounds)

    def text(self) -> str:
        """The tables at the end."""
        parts = []
        for title, metrics in (("Mbit/s; ms; RSS of the larger daemon, idle and peak, in MiB", OVERVIEW),
                               ("CPU s/GiB of the two daemons", COSTS[:5]), ("CPU s/GiB of the whole machine", COSTS[5:])):
            shown = [m for m in metrics if self.has(m)]
            if shown:
                rows = [[label, *(number(self.median(label, m)) for m in shown)] for label in self.labels]
                parts.append(f"{title}\n" + table(["", *map(short, shown)], rows))
        for base in BASES:
            shown = [m for m in RATIOS if self.has(m)]
            if base in self.labels and shown and len(self.labels) > 1:
                rows = [[label, *(number(self.ratio(label, base, m)) for m in shown)] for label in self.labels if label != base]
                parts.append(f"times {base}\n" + table(["", *map(short, shown)], rows))
        return "\n\n".join(parts)

    def json(self) -> list[dict]:
        """One row a contender and metric."""
        rows = []
        for label in self.labels:
            for metric, (unit, what, more_is_better) in METRICS.items():
                values = [r[metric] for r in self.rounds[label] if metric in r]
                if values:
                    row = {"contender": label, "metric": metric, "what": what, "unit": unit, "better": "more" if more_is_better else "less",
                           "median": median(values), "min": min(values), "max": max(values), "rounds": values}
                    for base in BASES:
                        ratio = self.ratio(label, base, metric)
                        if ratio == ratio:
                            row["times_" + base.replace("-", "_")] = ratio
                    rows.append(row)
        return rows


def arguments() -> argparse.Namespace:
    ap = argparse.ArgumentParser(prog="weft bench net", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--rounds", type=int, default=3, metavar="N")
    ap.add_argument("--seconds", type=float, default=5, metavar="S", help="of each TCP run and of the UDP run that counts (5)")
    ap.add_argument("--contenders", default=",".join(KINDS), metavar="A,B", help=f"of {','.join(KINDS)}; {OPTIONS_HELP}")
    ap.add_argument("--tests", default=",".join(TESTS), metavar="A,B", help=f"of {','.join(TESTS)}")
    ap.add_argument("--quick", action="store_true", help="one round of one second")
    ap.add_argument("-x", "--no-offload", action="store_true", help="segmentation offloads of the veth off: every datagram is a packet of its own")
    ap.add_argument("--backend", choices=["auto", "libcrypto", "ipsec-mb"], help="AEAD of weft")
    ap.add_argument("--workers", metavar="N", help="of weft")
    ap.add_argument("--idle", action="store_true", help="measure memory and start instead: idle, and with --peers peers")
    ap.add_argument("--peers", type=int, default=10000, metavar="N")
    ap.add_argument("--json", metavar="FILE")
    ap.add_argument("--html", metavar="FILE")
    return ap.parse_args()


def bench(a: argparse.Namespace) -> int:
    tests = a.tests.split(",")
    unknown = set(tests) - set(TESTS)
    if unknown:
        raise ValueError(f"no test {', '.join(sorted(unknown))}; there are {', '.join(TESTS)}")
    rounds, seconds = (1, 1.0) if a.quick else (a.rounds, a.seconds)
    given = {k: v for k, v in (("aead", a.backend), ("workers", a.workers)) if v}
    specs = chosen(a.contenders, given)
    results, progress = Results(specs), Progress()
    for n in range(rounds):
        for spec in specs:
            t0 = time.monotonic()
            metrics, failed = run_round(spec, tests, seconds, a.no_offload, lambda what: progress(f"round {n + 1}/{rounds}  {spec.label}  {what}"))
            progress.clear()
            for what in failed:
                print(f"FAILED round {n + 1} {spec.label} {what}", flush=True)
                results.failures.append(f"round {n + 1} {spec.label} {what.partition(chr(10))[0]}")
            results.rounds[spec.label].append(metrics)
            shown = "  ".join(f"{short(m)} {number(metrics[m])}" for m in [*OVERVIEW, "others_percent"] if m in metrics)
            print(f"round {n + 1}/{rounds}  {spec.label}: {shown}  ({time.monotonic() - t0:.0f} s)", flush=True)
    print("\n" + results.text())
    notes = busy_notes(results.others())
    say_notes(notes)
    options = {"rounds": rounds, "seconds": seconds, "tests": tests, "no_offload": a.no_offload, "backend": a.backend or "auto",
               "workers": a.workers or "auto", "congestion_control": "cubic", "udp_payload": 1200}
    write(a, document("net", "net", options, results.json(), failures=results.failures, notes=notes))
    return 1 if results.failures or not specs else 0


def run(a: argparse.Namespace) -> int:
    if a.idle:
        from idle import bench_idle
        return bench_idle(a)
    return bench(a)


if __name__ == "__main__":
    sys.exit(guarded("net", lambda: run(arguments())))

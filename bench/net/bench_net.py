#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""weft bench net: tunnels side by side on this machine, in namespaces, by iperf3 and ping.

Rounds are interleaved: every contender once, then again; medians count. CUBIC everywhere.
iperf3 makes one system call a datagram, so for UDP the bare wire's figure is iperf3's own limit.
Needs root. A contender that is not installed is left out and said."""
from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2] / "test")]

from contenders import KINDS, Spec  # noqa: E402
from lab import NotRoot, binary  # noqa: E402
from lab.traffic import median  # noqa: E402
from measure import METRICS, TESTS, run_round  # noqa: E402
from table import Progress, number, table  # noqa: E402

SCHEMA = "weft-bench-1"
BUSY_PERCENT = 5
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


def machine() -> dict[str, object]:
    cpu = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    return {"cpu": cpu, "cores": os.cpu_count(), "kernel": platform.release(), "system": platform.machine()}


def document(kind: str, options: dict, rows: list[dict], **more: object) -> dict:
    """The JSON that bench/README.md describes."""
    return {"schema": SCHEMA, "bench": kind, "command": shlex.join(["weft", "bench", "net", *sys.argv[1:]]), "machine": machine(),
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "options": options, "results": rows, **more}


def write(a: argparse.Namespace, doc: dict) -> None:
    if a.json:
        Path(a.json).write_text(json.dumps(doc, indent=1) + "\n")
        print(f"wrote {a.json}")
    if a.html:
        source = Path(a.json) if a.json else Path(a.html).with_suffix(".json")
        source.write_text(json.dumps(doc, indent=1) + "\n")
        subprocess.run([binary(), "bench", "report", str(source), a.html], check=True)
        print(f"wrote {a.html}")


def arguments() -> argparse.Namespace:
    ap = argparse.ArgumentParser(prog="weft bench net", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--rounds", type=int, default=3, metavar="N")
    ap.add_argument("--seconds", type=float, default=5, metavar="S", help="of each TCP run and of the UDP run that counts (5)")
    ap.add_argument("--contenders", default=",".join(KINDS), metavar="A,B", help=f"of {','.join(KINDS)}; weft takes options: "
                    "weft:aead=libcrypto:workers=2:binary=PATH:offload=off:label=NAME")
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


def chosen(a: argparse.Namespace) -> list[Spec]:
    """Contenders that can run here; the others are named."""
    specs = []
    for word in a.contenders.split(","):
        spec = Spec.parse(word)
        if spec.kind == "weft":
            if a.backend:
                spec.options.setdefault("aead", a.backend)
            if a.workers:
                spec.options.setdefault("workers", a.workers)
        why = spec.missing()
        if why:
            print(f"without {spec.label}: {why}")
        else:
            specs.append(spec)
    return specs


def bench(a: argparse.Namespace) -> int:
    tests = a.tests.split(",")
    unknown = set(tests) - set(TESTS)
    if unknown:
        raise ValueError(f"no test {', '.join(sorted(unknown))}; there are {', '.join(TESTS)}")
    rounds, seconds = (1, 1.0) if a.quick else (a.rounds, a.seconds)
    specs = chosen(a)
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
    busy = median(results.others())
    notes = []
    if busy > BUSY_PERCENT:
        text = f"Other programs used {busy:.0f} % of the processors (median before each round): trust ratios, not absolutes."
        notes.append({"bench": "net", "text": text})
        print(f"\nNOTE {text}")
    options = {"rounds": rounds, "seconds": seconds, "tests": tests, "no_offload": a.no_offload, "backend": a.backend or "auto",
               "workers": a.workers or "auto", "congestion_control": "cubic", "udp_payload": 1200}
    write(a, document("net", options, results.json(), failures=results.failures, notes=notes))
    return 1 if results.failures or not specs else 0


def main() -> int:
    a = arguments()
    try:
        if a.idle:
            from idle import bench_idle
            return bench_idle(a, document, write)
        return bench(a)
    except NotRoot as e:
        print(f"weft bench net: {e}", file=sys.stderr)
    except (ValueError, FileNotFoundError) as e:
        print(f"weft bench net: {e}", file=sys.stderr)
    except KeyboardInterrupt:
        print("\ninterrupted; everything is removed", file=sys.stderr)
        return 130
    return 2


if __name__ == "__main__":
    sys.exit(main())

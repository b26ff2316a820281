#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""weft bench control: a device of many peers is set and shown while a flow passes between two of them.

    B --- A, the device --- C

UDP goes from B to C through A at an even pace. Beside it, one after the other: wg setconf with all
peers, wg syncconf without a change and with one peer in a hundred changed, wg show dump, wg showconf,
weft status --json, a scrape of the metrics. Told of each: how long it took, and of the flow meanwhile
the longest delay and what was lost. "nothing" is the flow alone, "a program that computes" half a second
of processor time in which no daemon has a part: what packets wait then, they wait for a processor.
setconf ends all sessions, those of the flow too, so it may lose some. Needs root, and curl for the
scrape. A contender that cannot run is left out and said."""
from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from pathlib import Path
from typing import Callable

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2] / "test")]

from document import document, guarded, say_notes, write  # noqa: E402
from lab import Lab, binary, need_root  # noqa: E402
from lab.hub import DEVICE, Hub, Meanwhile, many_peers  # noqa: E402
from lab.traffic import median  # noqa: E402
from table import Progress, number, table  # noqa: E402

URL = "http://127.0.0.1:9586/metrics"
KINDS = {"weft": "weft", "wireguard-go": "go"}
TIMEOUT = 300
BUSY = "import time\nwhile time.process_time() < 0.5: pass"
METRICS = {"took_ms": ("ms", "time"), "longest_ms": ("ms", "longest delay of a packet of others meanwhile"), "lost": ("packets", "lost of others' packets meanwhile")}


def works(hub: Hub, kind: str) -> dict[str, Callable[[], object]]:
    """In order: each finds the peers that it is about."""
    a, conf = hub.a, hub.conf
    peers = list(conf.peers)
    for i in range(2, len(peers), 100):
        peers[i] = dataclasses.replace(peers[i], allowed=[f"10.200.{i >> 8 & 255}.{i & 255}/32"])
    files = {}
    for name, c in (("all", conf), ("changed", dataclasses.replace(conf, peers=peers))):
        files[name] = hub.lab.dir / f"{name}.wg"
        files[name].write_text(c.wg_text())

    def run(*words: str) -> Callable[[], object]:
        return lambda: a.run(*words, timeout=TIMEOUT)
    found = {
        "nothing": lambda: time.sleep(0.5),
        "a program that computes": run(sys.executable, "-c", BUSY),
        "wg setconf": run("wg", "setconf", DEVICE, str(files["all"])),
        "wg syncconf, the same": run("wg", "syncconf", DEVICE, str(files["all"])),
        "wg syncconf, 1 % changed": run("wg", "syncconf", DEVICE, str(files["changed"])),
        "wg show dump": run("wg", "show", DEVICE, "dump"),
        "wg showconf": run("wg", "showconf", DEVICE),
    }
    if kind == "weft":
        found |= {"weft status --json": run(binary(), "status", "--json", DEVICE), "scrape of metrics": run("curl", "-sS", "-o", "/dev/null", "--max-time", "60", URL)}
    return found


def one_round(kind: str, peers: int, rate: float, progress: Callable[[str], None]) -> dict[str, Meanwhile]:
    got = {}
    with Lab(handle_signals=True) as lab:
        hub = Hub(lab, KINDS[kind], peers, ["--metrics", "9586"] if kind == "weft" else None)
        hub.a.run("wg", "setconf", DEVICE, str(hub.file(hub.conf)), timeout=TIMEOUT)
        for name, work in works(hub, kind).items():
            progress(name)
            hub.wait()
            got[name] = hub.during(work, rate)
    return got


def values(rounds: list[dict[str, Meanwhile]], what: str, metric: str) -> list[float]:
    pick = {"took_ms": lambda m: m.took_s * 1000, "longest_ms": lambda m: m.longest_ms, "lost": lambda m: float(m.lost)}[metric]
    return [pick(r[what]) for r in rounds if what in r]


def rows_of(label: str, rounds: list[dict[str, Meanwhile]]) -> list[dict]:
    rows = []
    for metric, (unit, what) in METRICS.items():
        for x in rounds[0]:
            v = values(rounds, x, metric)
            rows.append({"contender": label, "metric": metric, "what": what, "plot": what, "x": x, "x_name": "beside the flow", "unit": unit, "better": "less",
                         "median": median(v), "min": min(v), "max": max(v), "rounds": v})
    return rows


def arguments() -> argparse.Namespace:
    ap = argparse.ArgumentParser(prog="weft bench control", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--rounds", type=int, metavar="N", help="(3; with --quick 1)")
    ap.add_argument("--peers", type=int, metavar="N", help="(10000; with --quick 1000)")
    ap.add_argument("--rate", type=float, metavar="N", default=1000, help="packets a second of the flow (1000)")
    ap.add_argument("--contenders", default="weft,wireguard-go", metavar="A,B", help="(weft,wireguard-go)")
    ap.add_argument("--quick", action="store_true", help="one round with 1000 peers")
    ap.add_argument("--json", metavar="FILE")
    ap.add_argument("--html", metavar="FILE")
    return ap.parse_args()


def bench(a: argparse.Namespace) -> int:
    rounds = a.rounds if a.rounds is not None else 1 if a.quick else 3
    peers = a.peers if a.peers is not None else 1000 if a.quick else 10000
    labels = a.contenders.split(",")
    if rounds < 1 or not 1 <= peers <= 200_000 or a.rate <= 0:
        raise ValueError("--rounds takes 1 or more, --peers 1 to 200000, --rate more than 0")
    if unknown := set(labels) - set(KINDS):
        raise ValueError(f"no contender {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    need_root()
    progress, results, failures, notes = Progress(), {}, [], []
    for label in labels:
        try:
            results[label] = [one_round(label, peers, a.rate, lambda what: progress(f"round {n + 1}/{rounds}  {label}  {what}")) for n in range(rounds)]
        except FileNotFoundError as e:
            notes.append({"bench": "control", "text": f"without {label}: {e}"})
        progress.clear()
    for label, got in results.items():
        rows = [[x, *(number(median(values(got, x, m))) for m in METRICS), number(max(values(got, x, "longest_ms")))] for x in got[0]]
        print(f"{label}, {peers} peers, {rounds} rounds, {a.rate:g} packets/s\n" + table(["", "time, ms", "longest delay, ms", "lost", "worst of all rounds, ms"], rows) + "\n")
        failures += [f"{label}: {x} lost packets" for x in got[0] if label == "weft" and x != "wg setconf" and sum(values(got, x, "lost"))]
    for f in failures:
        print(f"FAILED {f}")
    say_notes(notes)
    rows = [row for label, got in results.items() for row in rows_of(label, got)]
    write(a, document("control", "control", {"peers": peers, "rounds": rounds, "rate": a.rate}, rows, failures=failures, notes=notes))
    return 1 if failures or not results else 0


if __name__ == "__main__":
    sys.exit(guarded("control", lambda: bench(arguments())))

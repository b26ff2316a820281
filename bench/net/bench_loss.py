#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""weft bench loss: tunnels side by side through a path that loses packets.

    A ----- E ----- B        three namespaces; E runs `weft emulate`

At each loss: 1000 pings; UDP of 200 B at 4000/s; one TCP stream; a copy of 20 MB over TCP, cut off
after 20 s. CUBIC in A and B. Bytes on the wire are counted by the emulator, both ways, before it
loses any. Rounds are interleaved: every contender once at one loss, then at the next; medians count.
Needs root. A contender that is not installed is left out and said."""
from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2] / "test")]

from contenders import KINDS, OPTIONS_HELP, Spec, chosen  # noqa: E402
from document import busy_notes, document, guarded, say_notes, write  # noqa: E402
from lab import need_root  # noqa: E402
from lab.traffic import median  # noqa: E402
from loss import EXTRAS, LIMITED, MEASURES, METRICS, Loss, Outcome, Settings, run_clean, run_point  # noqa: E402
from table import Progress, number, table  # noqa: E402

CONTENDERS = "bare,weft:fec=off,weft:fec=auto,wireguard-go,openvpn,n2n,tinc"
LOSSES, LOSSES_QUICK = "0,1,3,5,10,20,5:4", "0,5,10"
QUICK_SECONDS = 2.0
SHOWN = ("tcp_mbit", "copy_mb_s", "udp_lost_percent", "udp_wire_ratio", "ping_lost_percent", "limited_mbit", "limited_ping_p50_ms",
         "clean_up_mbit", "clean_down_mbit")
# metric: (what it is taken from, title)
ADDED = {"ping_added_ms": ("ping_p50_ms", "ping, median, more than on the bare path"), "udp_added_ms": ("udp_p50_ms", "UDP, one way, median, more than on the bare path")}

Place = Loss | str  # a loss, or one of EXTRAS


class Results:
    """Metrics of all rounds by contender and place, and what follows from them."""

    def __init__(self, specs: list[Spec], places: list[Place]):
        self.labels, self.places = [s.label for s in specs], places
        self.bare = next((s.label for s in specs if s.kind == "veth"), None)
        self.rounds: dict[tuple[str, Place], list[dict[str, float]]] = {(label, place): [] for label in self.labels for place in places}

    def add(self, label: str, place: Place, metrics: dict[str, float]) -> None:
        """A round's; contenders come in the same order in each, the bare path's before those compared with it."""
        mine = dict(metrics)
        bare = self.rounds.get((self.bare, place), [])
        for metric, (base, _title) in ADDED.items():
            if label != self.bare and bare and base in metrics and base in bare[-1]:
                mine[metric] = metrics[base] - bare[-1][base]
        self.rounds[label, place].append(mine)

    def values(self, label: str, place: Place, metric: str) -> list[float]:
        return [r[metric] for r in self.rounds[label, place] if metric in r]

    def others(self) -> list[float]:
        return [r["others_percent"] for rounds in self.rounds.values() for r in rounds if "others_percent" in r]

    def metrics(self) -> dict[str, tuple[str, str, bool]]:
        """Those that were measured, in the order of their diagrams."""
        known = {**METRICS, **{metric: (title, "ms", False) for metric, (_base, title) in ADDED.items()}}
        return {m: about for m, about in known.items() if any(m in r for rounds in self.rounds.values() for r in rounds)}

    def text(self) -> str:
        """A table a metric; columns are losses."""
        parts = []
        for metric, (title, unit, _better) in self.metrics().items():
            places = [p for p in self.places if any(self.values(label, p, metric) for label in self.labels)]
            rows = [[label, *(number(median(self.values(label, p, metric))) for p in places)] for label in self.labels
                    if any(self.values(label, p, metric) for p in places)]
            parts.append(f"{title}, {unit}\n" + table(["loss" if isinstance(places[0], Loss) else "", *map(str, places)], rows))
        return "\n\n".join(parts)

    def json(self) -> list[dict]:
        """One row a metric, contender and place. Independent losses are numbers on one axis, bursts words in a diagram of their own."""
        rows = []
        for metric, (title, unit, more_is_better) in self.metrics().items():
            for label in self.labels:
                for place in self.places:
                    values = self.values(label, place, metric)
                    if not values:
                        continue
                    where = {"plot": title}
                    if isinstance(place, Loss):
                        where = {"plot": f"{title}: bursts", "x": str(place)} if place.burst else {**where, "x": place.percent}
                        where["x_name"] = "loss, %"
                    rows.append({"contender": label, "metric": metric, **where, "unit": unit, "better": "more" if more_is_better else "less",
                                 "median": median(values), "min": min(values), "max": max(values), "rounds": values})
        return rows


class Clock:
    """Time left, from estimates that are scaled by how long the steps so far took."""

    def __init__(self, total_s: float):
        self.total_s, self.done_s, self.t0 = total_s, 0.0, time.monotonic()

    def passed(self, estimate_s: float) -> None:
        self.done_s += estimate_s

    def left(self) -> str:
        scale = (time.monotonic() - self.t0) / self.done_s if self.done_s else 1.0
        s = round((self.total_s - self.done_s) * scale)
        return f"{s // 60}:{s % 60:02} left"


def arguments() -> argparse.Namespace:
    ap = argparse.ArgumentParser(prog="weft bench loss", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--rounds", type=int, metavar="N", help="medians of so many (3)")
    ap.add_argument("--seconds", type=float, metavar="S", help="of the UDP flow and of the TCP stream (8)")
    ap.add_argument("--loss", metavar="LIST", help=f"percent, 5:4 for 5 %% in bursts of 4 on average ({LOSSES})")
    ap.add_argument("--delay", type=float, default=5, metavar="MS", help="one way (5)")
    ap.add_argument("--rate", type=float, default=1000, metavar="MBIT", help="of the path, each way (1000)")
    ap.add_argument("--queue", type=float, default=50, metavar="MS", help="that may wait for the path (50)")
    ap.add_argument("--seed", type=int, default=1, metavar="N", help="of the losses of the first round (1)")
    ap.add_argument("--contenders", default=CONTENDERS, metavar="A,B", help=f"({CONTENDERS}) of bare,{','.join(KINDS)}; {OPTIONS_HELP}")
    ap.add_argument("--measures", default=",".join(MEASURES), metavar="A,B", help=f"of {','.join(MEASURES)} at each loss, and, once a round, of "
                    f"limited (TCP and ping through {LIMITED[1]} with a queue of {LIMITED[3]}) and clean (TCP without emulator) ({','.join(MEASURES)})")
    ap.add_argument("--quick", action="store_true", help=f"one round of {QUICK_SECONDS:g} s at {LOSSES_QUICK} unless --rounds, --seconds, --loss say otherwise; "
                    "shorter pings and copies")
    ap.add_argument("-x", "--no-offload", action="store_true", help="segmentation offloads of the veth off: every packet comes to the emulator on its own")
    ap.add_argument("--recovery", action="store_true", help="after each measure, what both weft peers' status says of loss recovery")
    ap.add_argument("--json", metavar="FILE")
    ap.add_argument("--html", metavar="FILE")
    a = ap.parse_args()
    a.rounds = a.rounds or (1 if a.quick else 3)
    a.seconds = a.seconds or (QUICK_SECONDS if a.quick else 8.0)
    a.loss = a.loss or (LOSSES_QUICK if a.quick else LOSSES)
    return a


def places_of(a: argparse.Namespace, measures: list[str]) -> list[Place]:
    unknown = set(measures) - {*MEASURES, *EXTRAS}
    if unknown:
        raise ValueError(f"no measure {', '.join(sorted(unknown))}; there are {', '.join((*MEASURES, *EXTRAS))}")
    losses = [Loss.parse(word) for word in a.loss.split(",")] if set(measures) & set(MEASURES) else []
    return [*losses, *(e for e in EXTRAS if e in measures)]


def measures_at(place: Place, measures: list[str]) -> list[str]:
    return [m for m in MEASURES if m in measures] if isinstance(place, Loss) else [place]


class Bench:
    """All rounds, with what is said meanwhile."""

    def __init__(self, a: argparse.Namespace):
        self.a, self.measures = a, a.measures.split(",")
        self.settings = Settings(a.seconds, a.quick, a.delay, a.rate, a.queue, a.no_offload, a.recovery)
        self.places = places_of(a, self.measures)
        self.specs = chosen(a.contenders)
        self.results, self.progress = Results(self.specs, self.places), Progress()
        self.failures: list[str] = []
        self.notes: list[str] = []
        self.clock = Clock(a.rounds * len(self.specs) * sum(map(self.estimate, self.places)))

    def estimate(self, place: Place) -> float:
        return self.settings.estimate("up") + sum(map(self.settings.estimate, measures_at(place, self.measures)))

    def run(self) -> None:
        for n in range(self.a.rounds):
            for k, place in enumerate(self.places):
                for spec in self.specs:
                    self.step(n, spec, place, self.a.seed + 1000 * n + 10 * k)

    def step(self, n: int, spec: Spec, place: Place, seed: int) -> None:
        where = f"round {n + 1}/{self.a.rounds}  {place}  {spec.label}"

        def say(what: str) -> None:
            self.progress(f"{self.clock.left()}  {where}  {what}")
        outcome = self.outcome(spec, place, seed, say)
        self.clock.passed(self.estimate(place))
        self.progress.clear()
        self.failures += [f"{where} {what.partition(chr(10))[0]}" for what in outcome.failed]
        self.notes += [f"{where} {what}" for what in outcome.notes]
        for word, lines in (("FAILED", outcome.failed), ("NOTE", outcome.notes)):
            for what in lines:
                print(f"{word} {where} {what}")
        for what in outcome.said:
            print(f"{where}  {what}")
        self.results.add(spec.label, place, outcome.metrics)
        shown = "  ".join(f"{m} {number(outcome.metrics[m])}" for m in SHOWN if m in outcome.metrics)
        print(f"{where}: {shown}  ({self.clock.left()})", flush=True)

    def outcome(self, spec: Spec, place: Place, seed: int, say) -> Outcome:
        if place == "clean":
            return run_clean(spec, self.settings, say)
        path = [*self.settings.path(), *place.argv()] if isinstance(place, Loss) else [*self.settings.delay(), *LIMITED]
        return run_point(spec, path, measures_at(place, self.measures), self.settings, seed, say)


def bench(a: argparse.Namespace) -> int:
    need_root()
    b = Bench(a)
    path = f"{a.delay:g} ms each way, {a.rate:g} Mbit/s, queue {a.queue:g} ms, CUBIC in A and B"
    print(f"{path}; {a.rounds} round{'s' * (a.rounds != 1)} of {a.seconds:g} s; about {b.clock.left()}", flush=True)
    b.run()
    print("\n" + b.results.text())
    busy = busy_notes(b.results.others(), "loss")
    say_notes(busy)
    notes = [{"bench": "loss", "text": f"Path: {path}."}, *busy, *({"bench": "loss", "text": text} for text in b.notes)]
    options = {"rounds": a.rounds, "seconds": a.seconds, "quick": a.quick, "loss": a.loss, "delay_ms": a.delay, "rate_mbit": a.rate, "queue_ms": a.queue,
               "seed": a.seed, "no_offload": a.no_offload, "measures": b.measures, "congestion_control": "cubic"}
    write(a, document("loss", "loss", options, b.results.json(), failures=b.failures, notes=notes))
    return 1 if b.failures or not b.specs else 0


if __name__ == "__main__":
    sys.exit(guarded("loss", lambda: bench(arguments())))

# SPDX-License-Identifier: Apache-2.0
"""Memory and start: one daemon with one peer, idle; then with thousands of configured peers."""
from __future__ import annotations

import argparse
import statistics
import time
from typing import Callable

from lab import Conf, GoDevice, Lab, Namespace, Node, genkey
from lab import procfs
from lab.hub import many_peers
from lab.weft import Run
from document import document, write
from table import number, table


def _setconf(lab: Lab, ns: Namespace, name: str, conf: Conf) -> float:
    path = lab.dir / f"{ns.name}.wg"
    path.write_text(conf.wg_text())
    t0 = time.monotonic()
    ns.run("wg", "setconf", name, str(path), timeout=300)
    return time.monotonic() - t0


def weft_up(peers: int) -> dict[str, float]:
    """`weft up` with a file; Table = off, since installing one kernel route a peer is not the daemon's time."""
    with Lab() as lab:
        ns = lab.namespace("idle")
        conf = Conf(genkey(), many_peers(peers), 51820, ["10.99.0.1/24"], table="off")
        t0 = time.monotonic()
        node = Node(ns, "weft0", conf)
        return {"start_s": time.monotonic() - t0, "rss_kib": procfs.rss_kib(node.pid), "peak_kib": procfs.peak_rss_kib(node.pid)}


def weft_setconf(peers: int) -> dict[str, float]:
    with Lab() as lab:
        ns = lab.namespace("idle")
        d = Run(ns, "weft0")
        took = _setconf(lab, ns, "weft0", Conf(genkey(), many_peers(peers), 51820))
        return {"start_s": took, "rss_kib": procfs.rss_kib(d.pid), "peak_kib": procfs.peak_rss_kib(d.pid)}


def go_setconf(peers: int) -> dict[str, float]:
    with Lab() as lab:
        ns = lab.namespace("idle")
        d = GoDevice(ns, "wg0", Conf(genkey(), [], 51820))
        took = _setconf(lab, ns, "wg0", Conf(genkey(), many_peers(peers), 51820))
        return {"start_s": took, "rss_kib": procfs.rss_kib(d.process.pid), "peak_kib": procfs.peak_rss_kib(d.process.pid)}


WAYS: dict[str, tuple[str, Callable[[int], dict[str, float]]]] = {
    "weft up": ("weft", weft_up),
    "weft run, wg setconf": ("weft", weft_setconf),
    "wireguard-go, wg setconf": ("wireguard-go", go_setconf),
}
UNITS = {"start_s": ("s", "start with all peers"), "idle_rss_mib": ("MiB", "resident memory with 1 peer"),
         "full_rss_mib": ("MiB", "resident memory with all peers"), "peer_bytes": ("B", "resident memory a peer")}


def bench_idle(a: argparse.Namespace) -> int:
    """Runs every way a.rounds times; prints, writes."""
    kinds = {word.partition(":")[0] for word in a.contenders.split(",")}
    rounds = 1 if a.quick else a.rounds
    rows, results = [], []
    for name, (kind, way) in WAYS.items():
        if kind not in kinds:
            continue
        try:
            got = []
            for _ in range(rounds):
                one, full = way(1), way(a.peers)
                got.append({"start_s": full["start_s"], "idle_rss_mib": one["rss_kib"] / 1024, "full_rss_mib": full["rss_kib"] / 1024,
                            "peer_bytes": (full["rss_kib"] - one["rss_kib"]) * 1024 / (a.peers - 1)})
        except FileNotFoundError as e:
            print(f"without {name}: {e}")
            continue
        middle = {k: statistics.median(g[k] for g in got) for k in UNITS}
        rows.append([name, *(number(middle[k]) for k in UNITS)])
        results += [{"contender": name, "metric": k, "what": what, "unit": unit, "better": "less", "median": middle[k],
                     "min": min(g[k] for g in got), "max": max(g[k] for g in got), "rounds": [g[k] for g in got]}
                    for k, (unit, what) in UNITS.items()]
    print(f"{a.peers} peers, {rounds} rounds\n" + table(["", "start s", "idle MiB", "full MiB", "B a peer"], rows))
    write(a, document("net", "net-idle", {"peers": a.peers, "rounds": rounds}, results))
    return 0 if results else 1

# SPDX-License-Identifier: Apache-2.0
"""A device of 10,000 peers is set and shown while a flow passes between two of them.

    B --- A, the hub --- C        test/lab/hub.py"""
from __future__ import annotations

import dataclasses
import json
import socket
import threading

from lab import binary
from lab.hub import DEVICE, Hub, many_peers

PEERS = 10_000
URL = "http://127.0.0.1:9586/metrics"


def changed(hub: Hub, count: int):
    """Some peers go, some come, some get another prefix: a third of count each."""
    third = count // 3
    kept = [p for p in hub.conf.peers[2 + third:]]
    moved = [dataclasses.replace(p, allowed=[f"10.200.{i // 256}.{i % 256}/32"]) for i, p in enumerate(kept[:third])]
    return dataclasses.replace(hub.conf, peers=[*hub.conf.peers[:2], *moved, *kept[third:], *many_peers(third, seed=2)])


def test_setting_and_showing_10000_peers_loses_no_packet_of_others(lab):
    hub = Hub(lab, "weft", PEERS, ["--metrics", "9586"])
    a, got = hub.a, {}
    a.run("wg", "setconf", DEVICE, str(hub.file(hub.conf)), timeout=120)
    hub.wait()
    before = hub.device.dump().peers
    assert set(before) == {p.public for p in hub.conf.peers} and len(before) == PEERS + 2

    def ask(name: str, *words: str) -> None:
        got[name] = a.run(*words, timeout=120).stdout

    def both(*threads: threading.Thread) -> None:
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    new = changed(hub, 300)
    works = {
        "syncconf without a change": lambda: a.run("wg", "syncconf", DEVICE, str(hub.file(hub.conf)), timeout=120),
        "syncconf of 3 percent": lambda: a.run("wg", "syncconf", DEVICE, str(hub.file(new)), timeout=120),
        "set": lambda: a.run("wg", "set", DEVICE, "peer", new.peers[50].public, "persistent-keepalive", "0", "endpoint", "192.0.2.77:7"),
        "dump": lambda: ask("dump", "wg", "show", DEVICE, "dump"),
        "showconf": lambda: ask("showconf", "wg", "showconf", DEVICE),
        "status": lambda: ask("status", binary(), "status", "--json", DEVICE),
        "metrics": lambda: ask("metrics", "curl", "-sS", "--max-time", "30", URL),
        "all at once": lambda: both(*(threading.Thread(target=ask, args=(n, *w)) for n, w in {
            "dump2": ["wg", "show", DEVICE, "dump"], "status2": [binary(), "status", "--json", DEVICE],
            "metrics2": ["curl", "-sS", "--max-time", "30", URL], "metrics3": ["curl", "-sS", "--max-time", "30", URL]}.items())),
    }
    lost = {}
    for name, work in works.items():
        flow = hub.during(work)
        lost[name] = flow.lost
        print(f"{name}: {flow.took_s:.3f} s, {flow.lost} of {flow.sent} lost, longest delay {flow.longest_ms:.1f} ms")
    assert not any(lost.values()), lost

    # What was asked for is there, and what was not has stayed.
    after = hub.device.dump().peers
    assert {k: (p.allowed, p.endpoint if k != new.peers[50].public else "192.0.2.77:7") for k, p in after.items()} == \
        {p.public: (p.allowed, p.endpoint if p.public != new.peers[50].public else "192.0.2.77:7") for p in new.peers}
    assert all(after[k].handshake == before[k].handshake and after[k].rx + after[k].tx > before[k].rx + before[k].tx for k in hub.ends)
    # Every way of showing shows every peer, whoever else is served.
    public = {p.public for p in new.peers}
    for name in ("dump", "dump2"):
        assert {line.split("\t")[0] for line in got[name].splitlines()[1:]} == public
    for name in ("status", "status2"):
        assert {p["public_key"] for p in json.loads(got[name])["peers"]} == public
    for name in ("metrics", "metrics2", "metrics3"):
        lines = [line for line in got[name].splitlines() if line.startswith("weft_peer_receive_bytes_total{")]
        assert {line.split('public_key="')[1].split('"')[0] for line in lines} == public and len(lines) == len(public)
    assert got["showconf"].count("[Peer]") == len(public)

    # Who asks for metrics and goes disturbs nobody who waits for them.
    with a.entered():
        gone, waiting = ([socket.create_connection(("127.0.0.1", 9586)) for _ in range(5)] for _ in range(2))
    for s in gone + waiting:
        s.settimeout(20)
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    for s in gone:
        s.close()
    whole = [sum(len(d) for d in iter(lambda s=s: s.recv(1 << 20), b"")) for s in waiting]
    assert len(set(whole)) == 1 and whole[0] > len(got["metrics"]) * 0.9
    a.run(binary(), "down", DEVICE)
    assert hub.device.process.wait(5) == 0

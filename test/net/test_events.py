# SPDX-License-Identifier: Apache-2.0
"""weft events: what happens to a device, as it happens.

    A 10.0.1.1 ---- 10.0.1.2 B"""
import json
import re

import pytest

from lab import PeerConf, binary, keys, pair, wait_for, wait_ping
from lab.device import A4, B4, DEVICE, PORT, WEFT, ends


@pytest.fixture
def wire(lab):
    return pair(lab)


class Listener:
    """weft events --json in a namespace."""

    def __init__(self, ns, *argv: str):
        self.process = ns.spawn(binary(), "events", "--json", *argv)

    def all(self) -> list[dict]:
        return [json.loads(line) for line in self.process.output.splitlines(keepends=True) if line.endswith("\n")]

    def find(self, kind: str, **members) -> dict | None:
        found = [e for e in self.all() if e["event"] == kind and members.items() <= e.items()]
        return found[-1] if found else None

    def wait(self, kind: str, **members) -> dict:
        return wait_for(lambda: self.find(kind, **members), 10, f"event {kind} {members}")


def test_events_of_a_session_a_move_reloads_peers_drops_and_the_end(wire):
    e = ends("", wire.b4)
    e.a_conf.peers[0].extra.append("Name = harbour")
    waiting = Listener(wire.a, "--follow", DEVICE)
    e.up(wire.a, WEFT, wire.b, WEFT)
    words = wire.a.spawn(binary(), "events")
    b = e.b_keys.public
    # Both listen before anything happens: a reload that changes nothing is seen by both.
    def heard() -> bool:
        wire.a.run(binary(), "reload", DEVICE)
        return bool(waiting.find("reload")) and "is in force" in words.output
    wait_for(heard, 10, "both listen", interval=0.2)
    wait_ping(wire.a, B4)
    up = waiting.wait("peer_up", public_key=b)
    assert up["device"] == DEVICE and up["endpoint"] == f"{wire.b4}:{PORT}" and up["time_s"] > 1e9
    waiting.wait("recovery", public_key=b, was="not_agreed", why="clean")

    # B moves.
    wire.b.ip("address del 10.0.1.2/24 dev eth0")
    wire.b.ip("address add 10.0.1.9/24 dev eth0")
    wire.b.run("ping", "-c1", "-W2", A4)
    moved = waiting.wait("endpoint_moved", public_key=b)
    assert (moved["endpoint"], moved["from"]) == (f"10.0.1.9:{PORT}", f"{wire.b4}:{PORT}")

    # Something is dropped: told once, with its count.
    wire.a.run("ping", "-c", "2", "-i", "0.2", "-W", "1", "-I", DEVICE, "198.51.100.1", check=False)
    drop = waiting.wait("drop", reason="tx_route")
    assert drop["total"] >= drop["count"] >= 1

    # Reloads: another peer, a port, a fault.
    other = keys()
    e.a_conf.peers.append(PeerConf(other.public, ["10.77.0.0/24"]))
    e.a_conf.port = PORT + 1
    e.a.write(e.a_conf)
    wire.a.run(binary(), "reload", DEVICE)
    waiting.wait("peer_added", public_key=other.public)
    waiting.wait("listen_port", port=PORT + 1)
    good = e.a.file.read_text()
    e.a.file.write_text("[Interface]\nPrivateKey = nonsense\n")
    assert wire.a.run(binary(), "reload", DEVICE, check=False).returncode == 1
    refused = waiting.wait("reload_refused")
    assert "PrivateKey" in refused["text"] and "nonsense" not in json.dumps(refused)
    e.a.file.write_text(good)

    # Peers that go by other ways.
    wire.a.run("wg", "set", DEVICE, "peer", other.public, "remove")
    waiting.wait("peer_removed", public_key=other.public)

    # The end, and what follows it.
    e.a.down()
    waiting.wait("stopping")
    assert words.wait() == 0 and words.output.splitlines()[-1].endswith(f"{DEVICE}: the device is stopping")
    assert all(re.match(rf"\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d {DEVICE}: \S", line) for line in words.output.splitlines())
    assert f"peer {b[:8]}: session is up" in words.output or f"({b[:8]}): session is up" in words.output
    e.a.up()

    def heard_again() -> bool:
        wire.a.run(binary(), "reload", DEVICE)
        return [x["event"] for x in waiting.all()][-1:] == ["reload"]
    wait_for(heard_again, 10, "it listens to the device that came back", interval=0.2)


def test_listening_to_what_does_not_run_says_so(wire):
    r = wire.a.run(binary(), "events", "nosuch", check=False)
    assert r.returncode == 1 and "nosuch: no such device is running" in r.stderr and not r.stdout
    r = wire.a.run(binary(), "events")
    assert r.stdout == "no device is running\n"
    r = wire.a.run(binary(), "events", "--follow", check=False)
    assert r.returncode == 2 and "--follow wants a NAME" in r.stderr

# SPDX-License-Identifier: Apache-2.0
"""A flood of handshakes with a right mac1.

    A 10.0.1.2 --- R (flooder) --- 10.0.2.2 B;  C 10.0.3.2 behind R, honest and late"""
import base64
import hashlib
import random
import struct
import threading

import pytest

from lab import Conf, PeerConf, keys, procfs, routed, traffic, wait_for, wait_ping
from lab.device import A4, B4, PORT, WEFT, at, ends, make

C4 = "10.99.0.3"


def initiation(public: str, rng: random.Random) -> bytes:
    """Random bytes in the form of an initiation, whose mac1 is right: all that costs no Diffie-Hellman."""
    body = struct.pack("<II", 1, rng.getrandbits(32)) + rng.randbytes(32 + 48 + 28)
    key = hashlib.blake2s(b"mac1----" + base64.b64decode(public)).digest()
    return body + hashlib.blake2s(body, digest_size=16, key=key).digest() + bytes(16)


class Flood:
    """Sends initiations from a thread as fast as it can, from several source ports."""

    def __init__(self, ns, target: tuple[str, int], public: str, seed: int):
        rng = random.Random(seed)
        self.messages = [initiation(public, rng) for _ in range(500)]
        self.sockets = [ns.udp_socket() for _ in range(8)]
        self.target, self.sent = target, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            for i, message in enumerate(self.messages):
                try:
                    self.sockets[i % 8].sendto(message, self.target)
                    self.sent += 1
                except OSError:
                    pass

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(5)
        for s in self.sockets:
            s.close()


@pytest.fixture
def besieged(lab):
    """A and B speak, R floods B, C is configured at B and not up yet."""
    net = routed(lab)
    c = lab.namespace("c")
    lab.veth(c, "eth0", ["10.0.3.2/24"], net.r, "toc", ["10.0.3.1/24"])
    c.ip("route add default via 10.0.3.1")
    kc = keys()
    e = ends("", net.b4)
    e.b_conf.peers.append(PeerConf(kc.public, [C4 + "/32"]))
    e.up(net.a, WEFT, net.b, WEFT)
    wait_ping(net.a, B4)
    flood = Flood(net.r, (net.b4, PORT), e.b_keys.public, 1)
    lab.on_exit(flood.stop)
    wait_for(lambda: flood.sent > 20000, 10, "the flood is on")
    late = Conf(kc.private, [PeerConf(e.b_keys.public, [B4 + "/32"], at(net.b4))], PORT, [C4 + "/24"])
    return net, c, e, flood, late


def test_established_session_loses_less_than_one_percent(besieged):
    net, _c, e, flood, _late = besieged
    sent = flood.sent
    r = traffic.ping(net.a, B4, 300, 0.01)
    assert flood.sent - sent > 5000
    assert r.received >= 0.99 * r.sent
    r = traffic.ping(net.b, A4, 100, 0.01)
    assert r.received >= 0.99 * r.sent
    drops = e.b.drops()
    assert drops["hs_mac2"] + drops["hs_rate"] > 0.5 * sent, "most are refused without Diffie-Hellman"


def test_honest_client_gets_in_within_thirty_seconds(besieged):
    net, c, e, _flood, late = besieged
    make(WEFT, c, late)
    wait_ping(c, B4, 30)


def test_memory_stays_bounded_and_rate_returns_to_normal(besieged):
    net, c, e, flood, late = besieged
    wait_for(lambda: flood.sent > 100000, 30, "a longer flood")
    assert procfs.peak_rss_kib(e.b.pid) <= 10 * 1024
    flood.stop()
    make(WEFT, c, late)
    wait_ping(c, B4, 12)


def test_clients_behind_one_address_are_not_locked_out_by_each_other(lab):
    """Forty honest clients share one source address, as behind a NAT, and start at once."""
    net = routed(lab)
    e = ends("", net.b4)
    clients = [keys() for _ in range(40)]
    e.b_conf.peers += [PeerConf(k.public, [f"10.98.0.{i + 1}/32"]) for i, k in enumerate(clients)]
    e.up(net.a, WEFT, net.b, WEFT)
    for i, k in enumerate(clients):
        conf = Conf(k.private, [PeerConf(e.b_keys.public, [f"10.97.{i}.1/32"], at(net.b4), keepalive=25)], table="off")
        make(WEFT, net.a, conf, name=f"client{i}")
    wait_for(lambda: sum(p.handshake > 0 for p in e.b.dump().peers.values()) >= 40, 30, "all forty are connected", 0.2)

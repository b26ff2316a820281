# SPDX-License-Identifier: Apache-2.0
"""Memory has a ceiling, and what does not fit is counted at the socket.

    A 10.0.1.1 ---- 10.0.1.2 B"""
import base64
import os
import random
import signal

import pytest

from lab import Conf, PeerConf, genkey, pair, procfs, traffic, wait_for, wait_ping
from lab.device import B4, DEVICE, WEFT, ends, make
from lab.traffic import IperfServer

PEAK_KIB = 10 * 1024
IDLE_KIB = 5 * 1024


@pytest.fixture
def tunnel(wire, tunnel):
    IperfServer(wire.b)
    return wire, tunnel


def test_daemon_that_has_carried_nothing_yet_is_small(lab):
    wire = pair(lab)
    e = ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    for node in (e.a, e.b):
        wait_for(lambda: procfs.rss_kib(node.pid) <= IDLE_KIB, 2, "at most 5 MiB once the start is over")


def test_daemon_that_is_quiet_again_is_small_again_in_seconds(tunnel):
    wire, e = tunnel
    for node in (e.a, e.b):
        wait_for(lambda: procfs.rss_kib(node.pid) <= IDLE_KIB, 7, "at most 5 MiB after the first packets")
    traffic.tcp(wire.a, B4, 2)
    for node in (e.a, e.b):
        wait_for(lambda: procfs.rss_kib(node.pid) <= IDLE_KIB, 20, "at most 5 MiB after traffic")


def test_peak_under_tcp_and_udp_floods_stays_under_the_ceiling(tunnel):
    wire, e = tunnel
    traffic.tcp(wire.a, B4, 2, streams=8)
    traffic.tcp(wire.a, B4, 2, streams=8, reverse=True)
    traffic.udp(wire.a, B4, 0, 2)
    for node in (e.a, e.b):
        assert procfs.peak_rss_kib(node.pid) <= PEAK_KIB


def test_receiver_that_does_not_run_loses_at_its_socket_and_counts_it(tunnel):
    wire, e = tunnel
    before = e.b.drops()["link_rx_overflow"]
    load = wire.a.spawn("iperf3", "-u", "-c", B4, "-b", "500M", "-l", "1200", "-t", "3")
    wait_for(lambda: wire.b.counters(DEVICE).rx_bytes > 1e6, 5, "load")
    arrived = wire.b.counters("eth0").rx_bytes
    os.kill(e.b.pid, signal.SIGSTOP)
    # More than any socket buffer that the kernel gives.
    wait_for(lambda: wire.b.counters("eth0").rx_bytes > arrived + 40e6, 10, "40 MB arrive meanwhile")
    peak = procfs.peak_rss_kib(e.b.pid)
    os.kill(e.b.pid, signal.SIGCONT)
    load.wait()
    wait_ping(wire.a, B4)
    assert e.b.drops()["link_rx_overflow"] > before
    assert procfs.peak_rss_kib(e.b.pid) <= max(PEAK_KIB, peak)


def test_packets_that_wait_for_a_handshake_are_bounded_and_counted(lab):
    wire = pair(lab)
    e = ends("", "10.0.1.99")  # nobody there
    e.up(wire.a, WEFT, wire.b, WEFT)
    with wire.a.udp_socket() as s:
        for _ in range(2000):
            s.sendto(bytes(1200), (B4, 9))
    wait_for(lambda: e.a.drops()["tx_staged"] > 1000, 3, "the oldest are dropped and counted")
    assert procfs.peak_rss_kib(e.a.pid) <= PEAK_KIB


def test_more_workers_take_at_most_two_mebibytes_each(lab):
    wire = pair(lab)
    e = ends("", wire.b4)
    e.options = ["--workers", "4"]
    e.up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    IperfServer(wire.b)
    traffic.tcp(wire.a, B4, 2, streams=8)
    traffic.tcp(wire.a, B4, 2, streams=8, reverse=True)
    for node in (e.a, e.b):
        assert procfs.peak_rss_kib(node.pid) <= PEAK_KIB + 3 * 2048


def test_ten_thousand_peers_take_less_than_two_kibibytes_each(lab):
    count = 10000
    ns = lab.namespace("many")
    rng = random.Random(3)
    peers = [PeerConf(base64.b64encode(rng.randbytes(32)).decode(), [f"10.{64 + i // 65536}.{i // 256 % 256}.{i % 256}/32"], f"192.0.2.1:{1024 + i}")
             for i in range(count)]
    one = make(WEFT, ns, Conf(genkey(), peers[:1], 1000, table="off"), name="one")
    many = make(WEFT, ns, Conf(genkey(), peers, 2000, table="off"), name="many")
    assert len(many.dump().peers) == count
    assert (procfs.rss_kib(many.pid) - procfs.rss_kib(one.pid)) * 1024 / count < 2048
    wait_for(lambda: many.status()["peer_count"] == count, 5, "status answers")

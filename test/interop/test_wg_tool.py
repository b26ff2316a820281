# SPDX-License-Identifier: Apache-2.0
"""`wg` from Debian drives a weft device that `weft run NAME` started, as it drives any other.

    A 10.0.1.1 ---- 10.0.1.2 B"""
import pytest

from lab import Conf, PeerConf, genpsk, keys, pair, wait_for, wait_ping
from lab.device import A4, B4, GO, ends, make
from lab.weft import Run


@pytest.fixture
def device(lab):
    """A fresh device in A, down and without key."""
    wire = pair(lab)
    return wire, Run(wire.a, "wg0")


def test_fresh_device_is_there_and_empty(device):
    wire, run = device
    assert wire.a.out("wg", "show", "interfaces") == "wg0"
    d = run.dump()
    assert d.private == "(none)" and d.peers == {} and d.fwmark == 0
    assert "state DOWN" in wire.a.ip("link show dev wg0") or "UP" not in wire.a.ip("-br link show dev wg0").split("<")[1]


def test_setconf_then_getconf_gives_the_same_back(device, lab):
    wire, run = device
    k, p1, p2 = keys(), keys(), keys()
    conf = Conf(k.private, [PeerConf(p1.public, ["10.1.0.0/16", "fd01::/48"], "192.0.2.1:1000", genpsk(), 25),
                            PeerConf(p2.public, ["10.2.0.0/16"], "[2001:db8::1]:2000")], 1234, fwmark=0x77)
    run.setconf(conf)
    d = run.dump()
    assert (d.private, d.public, d.port, d.fwmark) == (k.private, k.public, 1234, 0x77)
    one, two = d.peers[p1.public], d.peers[p2.public]
    assert (one.endpoint, one.allowed, one.psk, one.keepalive) == ("192.0.2.1:1000", ["10.1.0.0/16", "fd01::/48"], conf.peers[0].psk, 25)
    assert (two.endpoint, two.allowed, two.psk, two.keepalive) == ("[2001:db8::1]:2000", ["10.2.0.0/16"], "", 0)
    text = wire.a.out("wg", "showconf", "wg0")
    again = lab.dir / "again.wg"
    again.write_text(text + "\n")
    wire.a.run("wg", "setconf", "wg0", str(again))
    assert wire.a.out("wg", "showconf", "wg0") == text


def test_show_names_mark_port_and_peers(device):
    wire, run = device
    k, p = keys(), keys()
    run.setconf(Conf(k.private, [PeerConf(p.public, ["10.1.0.0/16"], "192.0.2.1:1000", keepalive=25)], 1234, fwmark=0x77))
    shown = wire.a.out("wg", "show", "wg0")
    for part in (f"public key: {k.public}", "listening port: 1234", "fwmark: 0x77", f"peer: {p.public}", "endpoint: 192.0.2.1:1000",
                 "allowed ips: 10.1.0.0/16", "persistent keepalive: every 25 seconds"):
        assert part in shown
    assert k.private not in shown


def test_set_peer_changes_one_thing_at_a_time(device):
    wire, run = device
    p = keys().public
    wg = lambda *words: wire.a.run("wg", "set", "wg0", "peer", p, *words)
    wg("endpoint", "192.0.2.9:9")
    assert run.dump().peers[p].endpoint == "192.0.2.9:9"
    wg("allowed-ips", "10.7.0.0/24,10.8.0.0/24")
    wg("persistent-keepalive", "7")
    assert run.dump().peers[p].allowed == ["10.7.0.0/24", "10.8.0.0/24"]
    wg("allowed-ips", "10.9.0.0/24")
    seen = run.dump().peers[p]
    assert (seen.allowed, seen.keepalive, seen.endpoint) == (["10.9.0.0/24"], 7, "192.0.2.9:9")
    wg("remove")
    assert run.dump().peers == {}


def test_prefix_moves_to_the_peer_that_is_given_it_last(device):
    wire, run = device
    p1, p2 = keys().public, keys().public
    wire.a.run("wg", "set", "wg0", "peer", p1, "allowed-ips", "10.7.0.0/24,10.8.0.0/24")
    wire.a.run("wg", "set", "wg0", "peer", p2, "allowed-ips", "10.8.0.0/24")
    assert run.dump().peers[p1].allowed == ["10.7.0.0/24"]
    assert run.dump().peers[p2].allowed == ["10.8.0.0/24"]


def test_syncconf_keeps_the_session_of_an_unchanged_peer(lab):
    wire = pair(lab)
    e = ends("", wire.b4)
    run = Run(wire.a, "wg0")
    run.configure(e.a_conf)
    make(GO, wire.b, e.b_conf)
    wait_ping(wire.a, B4)
    before = run.dump().peers[e.b_keys.public]
    extra = PeerConf(keys().public, ["10.50.0.0/16"])
    path = lab.dir / "sync.wg"
    path.write_text(Conf(e.a_conf.private, [*e.a_conf.peers, extra], e.a_conf.port).wg_text())
    wire.a.run("wg", "syncconf", "wg0", str(path))
    after = run.dump().peers
    assert set(after) == {e.b_keys.public, extra.public}
    assert after[e.b_keys.public].handshake == before.handshake and after[e.b_keys.public].rx >= before.rx
    wait_ping(wire.a, B4)
    assert run.dump().peers[e.b_keys.public].handshake == before.handshake


def test_device_filled_by_setconf_carries_traffic_both_ways(lab):
    wire = pair(lab)
    e = ends("", wire.b4, genpsk())
    run = Run(wire.a, "wg0")
    run.configure(e.a_conf)
    make(GO, wire.b, e.b_conf)
    wait_ping(wire.a, B4)
    wait_ping(wire.b, A4)


def test_refused_setting_changes_nothing(device):
    wire, run = device
    k, p = keys(), keys().public
    run.setconf(Conf(k.private, [PeerConf(p, ["10.1.0.0/16"])], 1234))
    before = run.dump()
    with wire.a.udp_socket(port=4321):
        # The port is taken, so the whole request fails.
        assert wire.a.run("wg", "set", "wg0", "listen-port", "4321", check=False).returncode != 0
    assert run.dump() == before


def test_daemon_ends_when_its_interface_is_deleted(device):
    wire, run = device
    wire.a.ip("link del dev wg0")
    wait_for(lambda: not run.process.is_running, 5, "the daemon's end")
    assert wire.a.out("wg", "show", "interfaces") == ""

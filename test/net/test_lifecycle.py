# SPDX-License-Identifier: Apache-2.0
"""Up, down, twice, killed, several beside each other.

    A 10.0.1.1 ---- 10.0.1.2 B"""
import os
import signal

import pytest

from lab import Conf, PeerConf, binary, keys, steady, wait_for, wait_ping
from lab.device import A4, B4, DEVICE, WEFT, at, ends, make
from lab.dns import NameServer, use
from lab.user import as_nobody


def state(ns) -> str:
    """All that `weft up` could leave: addresses, routes, rules, firewall, sockets, processes."""
    parts = [ns.out("ip", *words.split()) for words in ("-br address", "rule", "-6 rule", "route show table all", "-6 route show table all")]
    return "\n".join([*map(steady, parts), ns.out("nft", "list", "ruleset"), ns.out("find", "/run/wireguard", "/run/weft", "-type", "s", check=False),
                      str(ns.processes("weft"))])


def test_up_configures_addresses_routes_and_mtu(wire):
    e = ends("", wire.b4)
    e.a_conf.peers[0].allowed.append("10.44.0.0/16")
    e.a_conf.mtu = 1380
    e.up(wire.a, WEFT, wire.b, WEFT)
    shown = wire.a.ip(f"address show dev {DEVICE}")
    assert f"inet {A4}/24" in shown and "inet6 fd99::1/64" in shown and "mtu 1380" in shown and "UP" in shown
    assert f"10.44.0.0/16 dev {DEVICE}" in wire.a.ip("route")
    wait_ping(wire.a, B4)


def test_down_removes_exactly_what_up_added(wire):
    before = state(wire.a)
    e = ends("", wire.b4)
    e.a_conf.peers[0].allowed.append("10.44.0.0/16")
    e.up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    e.a.down()
    assert state(wire.a) == before


def test_table_off_leaves_routes_alone_and_a_number_names_the_table(wire):
    e = ends("", wire.b4)
    e.a_conf.table = "off"
    e.a_conf.peers[0].allowed.append("10.44.0.0/16")
    e.up(wire.a, WEFT, wire.b, WEFT)
    assert "10.44" not in wire.a.ip("route show table all")
    e.a.down()
    e.a_conf.table = "123"
    e.a.write(e.a_conf)
    e.a.up()
    assert "10.44.0.0/16" in wire.a.ip("route show table 123")
    assert "10.44" not in wire.a.ip("route show table main")


def test_table_by_name_is_the_one_that_ip_knows_and_follows_a_reload(wire):
    wire.a.run("sh", "-c", "mkdir /run/tables && cp -a /etc/iproute2/. /run/tables/ && mount --bind /run/tables /etc/iproute2 && mkdir -p /etc/iproute2/rt_tables.d && "
                           "echo '124 office # ours' >>/etc/iproute2/rt_tables && echo '125 lab' >/etc/iproute2/rt_tables.d/lab.conf")
    e = ends("", wire.b4)
    e.a_conf.table = "office"
    e.a_conf.peers[0].allowed.append("10.44.0.0/16")
    e.up(wire.a, WEFT, wire.b, WEFT)
    assert "10.44.0.0/16" in wire.a.ip("route show table office") and "10.44.0.0/16" in wire.a.ip("route show table 124")
    e.a_conf.table = "lab"
    e.a.write(e.a_conf)
    wire.a.run(binary(), "reload", DEVICE)
    assert "10.44.0.0/16" in wire.a.ip("route show table 125") and wire.a.run("ip", "route", "show", "table", "124", check=False).stdout == ""
    e.a_conf.table = "nowhere"
    e.a.write(e.a_conf)
    r = wire.a.run(binary(), "reload", DEVICE, check=False)
    assert r.returncode == 1 and "nowhere" in r.stderr and "rt_tables" in r.stderr, r.stderr
    assert "10.44.0.0/16" in wire.a.ip("route show table 125")
    e.a_conf.table = "main"
    e.a.write(e.a_conf)
    wire.a.run(binary(), "reload", DEVICE)
    assert f"10.44.0.0/16 dev {DEVICE}" in wire.a.ip("route")


def test_second_up_of_a_running_device_is_refused_and_disturbs_nothing(wire):
    e = ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    before = state(wire.a)
    r = wire.a.run(binary(), "up", str(e.a.file), check=False)
    assert r.returncode != 0 and DEVICE in r.stderr
    assert state(wire.a) == before
    wait_ping(wire.a, B4, 2)


def test_up_that_fails_half_way_leaves_nothing(wire):
    e = ends("", wire.b4)
    before = state(wire.a)
    with wire.a.udp_socket(port=51820):
        with pytest.raises(AssertionError):
            make(WEFT, wire.a, e.a_conf)
    wait_for(lambda: state(wire.a) == before, 3, "nothing is left")


def test_invalid_file_is_named_with_line_and_leaves_nothing(wire, lab):
    before = state(wire.a)
    path = lab.dir / "broken.conf"
    path.write_text("[Interface]\nPrivateKey = notakey\n")
    r = wire.a.run(binary(), "up", str(path), check=False)
    assert r.returncode != 0 and "broken.conf:2" in r.stderr
    assert "notakey" not in r.stderr, "private keys are never printed"
    assert state(wire.a) == before


def test_killed_and_started_again_twenty_times(wire):
    e = ends(wire.a4, wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    for _ in range(20):
        os.kill(e.a.pid, signal.SIGKILL)
        wait_for(lambda: wire.a.processes("weft") == [] and not wire.a.has_device(DEVICE), 5, "it is gone")
        e.a.up()
    # B knows A's last session only; A's own packet brings the new one.
    wait_ping(wire.a, B4)
    assert len(wire.a.processes("weft")) == 1


def test_device_killed_with_a_default_route_is_taken_down_or_up_again_without_leftovers(wire):
    before = state(wire.a)
    e = ends("", wire.b4)
    e.a_conf.peers[0].allowed = ["0.0.0.0/0"]
    e.up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    os.kill(e.a.pid, signal.SIGKILL)
    wait_for(lambda: wire.a.processes("weft") == [], 5)
    e.a.up()
    wait_ping(wire.a, B4)
    e.a.down()
    assert state(wire.a) == before


def test_default_route_leaves_the_local_network_alone_beside_another_tunnel(wire):
    """The kernel asks a rule that was added later first: another's companion rule does not do for ours."""
    wire.a.ip("rule add not fwmark 77 table 77")
    wire.a.ip("rule add table main suppress_prefixlength 0")
    before = state(wire.a)
    e = ends("", wire.b4)
    e.a_conf.peers[0].allowed = ["0.0.0.0/0"]
    e.up(wire.a, WEFT, wire.b, WEFT)
    assert "dev eth0" in wire.a.ip(f"route get {wire.b4}")
    assert f"dev {DEVICE}" in wire.a.ip("route get 198.51.100.1")
    wait_ping(wire.a, B4)
    e.a.down()
    assert state(wire.a) == before


def test_endpoint_by_name_is_found_though_the_name_server_is_behind_the_default_route(wire):
    wire.b.ip("address add 203.0.113.53/32 dev lo")
    wire.a.ip(f"route add default via {wire.b4}")
    use(wire.a, "203.0.113.53")
    server = NameServer(wire.b, "203.0.113.53", [wire.b4])
    try:
        e = ends("", wire.b4)
        e.a_conf.peers[0].allowed = ["0.0.0.0/0"]
        e.a_conf.peers[0].endpoint = "vpn.example.com:" + e.a_conf.peers[0].endpoint.rpartition(":")[2]
        e.up(wire.a, WEFT, wire.b, WEFT)
        wait_ping(wire.a, B4)
    finally:
        server.stop()


def test_several_devices_in_one_namespace_do_not_mix(wire):
    many = []
    for i in range(3):
        ka, kb = keys(), keys()
        a4, b4, port = f"10.{60 + i}.0.1", f"10.{60 + i}.0.2", 5000 + i
        a = make(WEFT, wire.a, Conf(ka.private, [PeerConf(kb.public, [b4 + "/32"], at(wire.b4, port))], port, [a4 + "/24"]), name=f"net{i}")
        b = make(WEFT, wire.b, Conf(kb.private, [PeerConf(ka.public, [a4 + "/32"])], port, [b4 + "/24"]), name=f"net{i}")
        many.append((a, b, b4, kb.public))
    for a, _b, b4, _key in many:
        wait_ping(wire.a, b4)
    assert sorted(wire.a.out("wg", "show", "interfaces").split()) == ["net0", "net1", "net2"]
    for a, _b, _b4, key in many:
        assert set(a.dump().peers) == {key}
    shown = wire.a.out(binary(), "show")
    assert all(f"net{i}" in shown for i in range(3))
    many[1][0].down()
    for i in (0, 2):
        wait_ping(wire.a, many[i][2], 2)
    assert not wire.a.has_device("net1")


def test_down_by_name_and_by_file_both_work(wire):
    e = ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    wire.a.run(binary(), "down", DEVICE)
    wait_for(lambda: not wire.a.has_device(DEVICE), 5, "the interface goes")
    e.b.down()
    r = wire.a.run(binary(), "down", DEVICE, check=False)
    assert r.returncode != 0 and DEVICE in r.stderr


def test_name_is_looked_for_in_the_standard_folder(wire, lab):
    e = ends("", wire.b4)
    text = e.a_conf.quick_text()
    wire.a.run("sh", "-c", "mkdir -p /etc/wireguard && umask 077 && cat >/etc/wireguard/home.conf", input=text)
    wire.a.run(binary(), "up", "home")
    assert wire.a.has_device("home")
    wire.a.run(binary(), "down", "home")
    wait_for(lambda: not wire.a.has_device("home"), 5, "the interface goes")


def test_without_root_up_says_what_is_missing(wire, lab):
    e = ends("", wire.b4)
    path = lab.dir / "nobody.conf"
    path.write_text(e.a_conf.quick_text())
    path.chmod(0o644)
    lab.dir.chmod(0o755)
    r = wire.a.run(*as_nobody(binary(), "up", str(path)), check=False)
    assert r.returncode != 0
    assert "root" in r.stderr or "CAP_NET_ADMIN" in r.stderr, r.stderr

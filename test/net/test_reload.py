# SPDX-License-Identifier: Apache-2.0
"""weft reload: the difference of two configurations, applied under traffic.

    A 10.0.1.1 ---- 10.0.1.2 B"""
import base64
import os
import signal
import threading

from lab import PeerConf, binary, genpsk, keys, peer, wait_for, wait_ping
from lab.bulk import transfer
from lab.device import A4, B4, DEVICE, WEFT, ends
from lab.traffic import ping

from test_lifecycle import state


def reload(node, what: str = "", rc: int = 0) -> str:
    r = node.ns.run(binary(), "reload", what or node.name, check=False)
    assert r.returncode == rc, (r.returncode, r.stdout, r.stderr)
    return r.stderr


def rewrite(node, conf) -> None:
    node.write(conf)
    reload(node)


def test_peers_that_stay_keep_sessions_counters_and_roamed_endpoints(wire, tunnel):
    # B moves; nothing in A's file says so.
    wire.b.ip("address del 10.0.1.2/24 dev eth0")
    wire.b.ip("address add 10.0.1.9/24 dev eth0")
    wire.b.run("ping", "-c1", "-W2", A4)
    wait_for(lambda: tunnel.a_sees().endpoint == "10.0.1.9:51820", 5, "A sees B elsewhere")
    before = peer(tunnel.a)
    other = keys()
    tunnel.a_conf.peers.append(PeerConf(other.public, ["10.77.0.0/24"]))
    rewrite(tunnel.a, tunnel.a_conf)
    after = peer(tunnel.a)
    assert after["handshakes"] == before["handshakes"] and after["latest_handshake_s"] == before["latest_handshake_s"]
    assert after["rx_bytes"] >= before["rx_bytes"] > 0 and after["endpoint"] == "10.0.1.9:51820"
    assert "10.77.0.0/24" in wire.a.ip(f"route show dev {DEVICE}")
    assert set(tunnel.a.dump().peers) == {tunnel.b_keys.public, other.public}
    wait_ping(wire.a, B4, 2)

    tunnel.a_conf.peers.pop()
    rewrite(tunnel.a, tunnel.a_conf)
    assert "10.77.0.0/24" not in wire.a.ip(f"route show dev {DEVICE}")
    assert set(tunnel.a.dump().peers) == {tunnel.b_keys.public}
    assert peer(tunnel.a)["handshakes"] == before["handshakes"]


def test_settings_of_a_peer_follow(wire, tunnel):
    p = tunnel.a_conf.peers[0]
    p.psk, p.keepalive, p.extra = genpsk(), 7, ["Fec = off"]
    p.allowed = [B4 + "/32", "10.55.0.0/16"]
    rewrite(tunnel.a, tunnel.a_conf)
    seen = tunnel.a_sees()
    assert (seen.psk, seen.keepalive, set(seen.allowed)) == (p.psk, 7, {B4 + "/32", "10.55.0.0/16"})
    assert peer(tunnel.a)["policy"]["fec"] == "off"
    wait_ping(wire.a, B4, 2)  # the session is as it was
    p.psk, p.keepalive, p.extra, p.endpoint = "", 0, [], f"{wire.b4}:9"
    rewrite(tunnel.a, tunnel.a_conf)
    seen = tunnel.a_sees()
    assert (seen.psk, seen.keepalive, seen.endpoint) == ("", 0, f"{wire.b4}:9"), "a changed endpoint is taken"


def test_prefix_moves_between_peers(wire, tunnel):
    other = keys()
    tunnel.a_conf.peers.append(PeerConf(other.public, ["10.77.0.0/24", "10.78.0.0/24"]))
    rewrite(tunnel.a, tunnel.a_conf)
    tunnel.a_conf.peers[1].allowed = ["10.78.0.0/24"]
    tunnel.a_conf.peers[0].allowed.append("10.77.0.0/24")
    rewrite(tunnel.a, tunnel.a_conf)
    d = tunnel.a.dump()
    assert "10.77.0.0/24" in d.peers[tunnel.b_keys.public].allowed and d.peers[other.public].allowed == ["10.78.0.0/24"]


def test_addresses_follow_and_one_that_stays_keeps_its_listener_and_connection(wire, tunnel):
    listener = wire.a.tcp_socket()
    listener.bind((A4, 5001))
    listener.listen()
    client = wire.b.tcp_socket()
    client.connect((A4, 5001))
    server, _ = listener.accept()
    tunnel.a_conf.addresses = [A4 + "/24", "10.99.7.1/24", "fd99:7::1/64"]
    rewrite(tunnel.a, tunnel.a_conf)
    shown = wire.a.ip(f"address show dev {DEVICE}")
    assert "10.99.7.1/24" in shown and "fd99:7::1/64" in shown and "fd99::1/64" not in shown
    tunnel.a_conf.addresses = [A4 + "/24"]
    rewrite(tunnel.a, tunnel.a_conf)
    assert "10.99.7.1" not in wire.a.ip(f"address show dev {DEVICE}")
    client.sendall(b"still there")
    assert server.recv(100) == b"still there"
    second = wire.b.tcp_socket()
    second.connect((A4, 5001))
    for s in (listener, client, server, second):
        s.close()


def test_second_address_of_a_network_survives_the_first(wire, tunnel):
    tunnel.a_conf.addresses = [A4 + "/24", "10.99.0.77/24"]
    rewrite(tunnel.a, tunnel.a_conf)
    tunnel.a_conf.addresses = ["10.99.0.77/24"]
    rewrite(tunnel.a, tunnel.a_conf)
    shown = wire.a.ip(f"-4 address show dev {DEVICE}")
    assert "10.99.0.77/24" in shown and A4 + "/24" not in shown
    assert "10.99.0.0/24" in wire.a.ip(f"route show dev {DEVICE}")


def test_mtu_port_and_key_follow(wire, tunnel):
    tunnel.a_conf.mtu, tunnel.a_conf.port = 1300, 51999
    rewrite(tunnel.a, tunnel.a_conf)
    assert tunnel.a.dump().port == 51999 and "mtu 1300" in wire.a.ip(f"link show {DEVICE}")
    wait_ping(wire.a, B4, 2)
    fresh = keys()
    tunnel.a_conf.private = fresh.private
    tunnel.b_conf.peers[0].public = fresh.public
    rewrite(tunnel.b, tunnel.b_conf)
    rewrite(tunnel.a, tunnel.a_conf)
    assert tunnel.a.dump().public == fresh.public
    wait_ping(wire.a, B4, 8)


def test_default_route_and_marks_come_change_and_go(wire, tunnel):
    before = state(wire.a)
    prefixes = tunnel.a_conf.peers[0].allowed
    tunnel.a_conf.peers[0].allowed = ["0.0.0.0/0", "::/0"]
    rewrite(tunnel.a, tunnel.a_conf)
    assert tunnel.a.dump().fwmark == 51820 and f"dev {DEVICE}" in wire.a.ip("route get 198.51.100.1")
    wait_ping(wire.a, B4, 2)
    tunnel.a_conf.fwmark = 77
    rewrite(tunnel.a, tunnel.a_conf)
    assert tunnel.a.dump().fwmark == 77
    rules = wire.a.ip("rule")
    assert "lookup 77" in rules and "51820" not in rules and rules.count("suppress_prefixlength") == 1
    assert "dev eth0" in wire.a.ip(f"route get {wire.b4}") and "table 77" in wire.a.ip("route get 198.51.100.1")
    wait_ping(wire.a, B4, 2)
    tunnel.a_conf.table = "off"
    rewrite(tunnel.a, tunnel.a_conf)
    assert "lookup 77" not in wire.a.ip("rule") and tunnel.a.dump().fwmark == 77
    tunnel.a_conf.table, tunnel.a_conf.fwmark, tunnel.a_conf.peers[0].allowed = "", 0, prefixes
    rewrite(tunnel.a, tunnel.a_conf)
    assert state(wire.a) == before


def test_file_with_faults_changes_nothing_and_is_explained(wire, tunnel):
    before, shown = state(wire.a), tunnel.a.dump()
    good = tunnel.a.file.read_text()
    tunnel.a.file.write_text(good.replace("ListenPort = 51820", "ListenPort = 99999") + "AllowedIPs = 10.1.1.1/77\n")
    why = reload(tunnel.a, rc=1)
    assert "wg0.conf:" in why and "ListenPort" in why and "AllowedIPs" in why
    assert tunnel.a_conf.private not in why
    # What the kernel refuses, too: somebody has the port.
    taken = wire.a.udp_socket("0.0.0.0", 40000)
    tunnel.a_conf.port = 40000
    tunnel.a_conf.peers.append(PeerConf(keys().public, ["10.77.0.0/24"]))
    tunnel.a.write(tunnel.a_conf)
    assert "40000" in reload(tunnel.a, rc=1)
    taken.close()
    # And late: a route that is there already.
    tunnel.a_conf.port, tunnel.a_conf.addresses = 51820, [A4 + "/24", "10.99.8.1/24"]
    wire.a.ip("route add 10.77.0.0/24 dev eth0")
    tunnel.a.write(tunnel.a_conf)
    assert "10.77.0.0/24" in reload(tunnel.a, rc=1)
    wire.a.ip("route del 10.77.0.0/24 dev eth0")
    assert "10.99.8.1" not in wire.a.ip(f"address show dev {DEVICE}")
    after = tunnel.a.dump()
    assert (after.port, set(after.peers)) == (shown.port, set(shown.peers))
    tunnel.a.file.unlink()
    assert str(tunnel.a.file) in reload(tunnel.a, rc=1)
    wait_ping(wire.a, B4, 2)
    assert peer(tunnel.a)["handshakes"] == 1


def test_refused_reload_leaves_a_roamed_peer_where_it_is(wire, tunnel):
    wire.a.run("wg", "set", DEVICE, "peer", tunnel.b_keys.public, "endpoint", "10.0.1.77:7777")
    taken = wire.a.udp_socket("0.0.0.0", 40000)
    tunnel.a_conf.peers[0].endpoint = "10.0.1.66:6666"
    tunnel.a_conf.port = 40000
    tunnel.a.write(tunnel.a_conf)
    assert "40000" in reload(tunnel.a, rc=1)
    assert tunnel.a_sees().endpoint == "10.0.1.77:7777"
    taken.close()


def test_peer_with_the_key_that_was_ours_comes_with_the_reload_that_changes_it(wire, tunnel):
    old = wire.a.out("wg", "show", DEVICE, "public-key").strip()
    tunnel.a_conf.private = keys().private
    tunnel.a_conf.peers.append(PeerConf(old, ["10.77.0.0/24"]))
    rewrite(tunnel.a, tunnel.a_conf)
    assert set(tunnel.a.dump().peers) == {tunnel.b_keys.public, old}


def test_hangup_reads_the_file_again(wire, tunnel):
    tunnel.a_conf.peers[0].keepalive = 21
    tunnel.a.write(tunnel.a_conf)
    os.kill(tunnel.a.pid, signal.SIGHUP)
    wait_for(lambda: tunnel.a_sees().keepalive == 21, 5, "the new keepalive")
    tunnel.a.file.write_text("[Interface]\nnonsense\n")
    os.kill(tunnel.a.pid, signal.SIGHUP)
    for _ in range(2):  # its loop has come round
        tunnel.a.status()
    assert tunnel.a_sees().keepalive == 21 and tunnel.a.pid in wire.a.processes("weft")


def test_device_without_a_file_takes_one(wire, lab):
    e = ends("", wire.b4)
    e.up_b(wire.b, WEFT)
    p = wire.a.spawn(binary(), "run", "--foreground", DEVICE)
    wait_for(lambda: wire.a.has_device(DEVICE) and wire.a.run(binary(), "show", DEVICE, check=False).returncode == 0, 5)
    r = wire.a.run(binary(), "reload", DEVICE, check=False)
    assert r.returncode == 1 and "without a file" in r.stderr
    path = lab.dir / f"{DEVICE}.conf"
    path.touch(mode=0o600)
    path.write_text(e.a_conf.quick_text())
    wire.a.run(binary(), "reload", str(path))
    wait_ping(wire.a, B4)
    wire.a.run(binary(), "reload", DEVICE)
    p.stop()


def test_changes_by_hand_give_way(wire, tunnel):
    stranger = keys().public
    wire.a.run("wg", "set", DEVICE, "peer", stranger, "allowed-ips", "10.88.0.0/16")
    wire.a.run("wg", "set", DEVICE, "peer", tunnel.b_keys.public, "persistent-keepalive", "9")
    reload(tunnel.a)
    d = tunnel.a.dump()
    assert set(d.peers) == {tunnel.b_keys.public} and d.peers[tunnel.b_keys.public].keepalive == 0


def test_transfer_through_reloads_loses_nothing(wire, tunnel):
    before = tunnel.a.drops()
    done = threading.Event()
    failed = []

    n = 0

    def run() -> None:
        try:
            while n < 3:
                transfer(wire.a, wire.b, B4, 150_000_000)
        except Exception as e:
            failed.append(e)
        finally:
            done.set()
    t = threading.Thread(target=run)
    t.start()
    while not done.is_set():
        n += 1
        tunnel.a_conf.peers[1:] = [PeerConf(keys().public, [f"10.77.{n % 200}.0/24"])]
        rewrite(tunnel.a, tunnel.a_conf)
    t.join()
    assert not failed and n >= 3, (n, failed)
    after = {**tunnel.a.drops(), "tx_route": before["tx_route"]}  # the kernel asks for routers at times
    assert after == before, {k: after[k] - before[k] for k in after if after[k] != before[k]}
    assert peer(tunnel.a)["handshakes"] == 1


def test_ten_thousand_peers_reload_under_pings_and_none_is_lost(wire, tunnel):
    """Half of them go, half come."""
    crowd = [PeerConf(k, [f"10.{128 + i // 250 % 100}.{i % 250}.{i // 25000}/32"], f"192.0.2.1:{1 + i % 60000}") for i, k in enumerate(public_keys(15000))]
    first = tunnel.a_conf.peers[:]
    tunnel.a_conf.table = "off"
    tunnel.a_conf.peers = first + crowd[:10000]
    rewrite(tunnel.a, tunnel.a_conf)
    wire.a.ip(f"route replace {B4}/32 dev {DEVICE}")
    assert tunnel.a.status()["peer_count"] == 10001
    tunnel.a_conf.peers = first + crowd[5000:]
    tunnel.a.write(tunnel.a_conf)
    pings = []
    t = threading.Thread(target=lambda: pings.append(ping(wire.a, B4, 400, 0.005)))
    t.start()
    reload(tunnel.a)
    t.join()
    assert tunnel.a.status()["peer_count"] == 10001
    assert pings[0].received == 400, "none is lost"
    assert peer(tunnel.a)["handshakes"] == 1


def public_keys(n: int) -> list[str]:
    """Numbers in the form of keys: whoever only adds peers never looks closer."""
    return [base64.b64encode(i.to_bytes(4, "big") + bytes(28)).decode() for i in range(1, n + 1)]

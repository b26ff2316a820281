# SPDX-License-Identifier: Apache-2.0
"""`weft why` names each cause, and what to do, while it lasts. One set of namespaces for many peers:

    A 10.0.1.2 --- 10.0.1.1 R 10.0.2.1 --- 10.0.2.2 B

A's device has a peer a cause; most of them are devices of B, at ports of their own."""
from __future__ import annotations

import json
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab import Conf, Fault, Lab, Node, PeerConf, binary, keys, routed, wait_for, wait_ping
from lab.wg import genpsk

DEVICE = "wg0"
TOP = Path(__file__).resolve().parent.parent.parent


def why(ns, *words: str) -> SimpleNamespace:
    r = ns.run(binary(), "why", "--json", *words, check=False)
    assert r.returncode in (0, 1), r.stderr + r.stdout
    o = json.loads(r.stdout)
    assert o["flows"] == (r.returncode == 0)
    return SimpleNamespace(status=r.returncode, codes=[f["code"] for f in o["findings"]], first=next(iter(o["findings"]), None), **o)


def told(x) -> str:
    return " ".join([x.first["text"], x.first["advice"], *x.first["evidence"]])


class Peers:
    """A's device and its peers; each peer has an address 10.99.0.N, and B a device wgN for it."""

    def __init__(self, lab: Lab):
        self.lab, self.net = lab, routed(lab)
        self.a_keys = keys()
        self.conf = Conf(self.a_keys.private, [], 51820, ["10.99.0.1/24"])
        self.keys: dict[str, object] = {}
        self.addresses: dict[str, str] = {}

    def add(self, name: str, endpoint: str | None = "", *, psk: str = "", allowed: list[str] | None = None, key: str = "") -> str:
        """A peer of A without anybody there. endpoint: "" is B's device of it, None none."""
        n = len(self.conf.peers) + 2
        self.keys[name] = keys()
        self.addresses[name] = f"10.99.0.{n}"
        at = f"{self.net.b4}:{40000 + n}" if endpoint == "" else endpoint or ""
        self.conf.peers.append(PeerConf(key or self.keys[name].public, [self.addresses[name] + "/32", *(allowed or [])], at, psk, extra=[f"Name = {name}"]))
        return self.addresses[name]

    def number(self, name: str) -> int:
        return int(self.addresses[name].rsplit(".", 1)[1])

    def serve(self, name: str, *, calls: bool = False, psk: str = "", private: str = "", ns=None, keepalive: int = 0) -> Node:
        """B's device of that peer; what has its address as source leaves by it."""
        n, ns = self.number(name), ns or self.net.b
        peer = PeerConf(self.a_keys.public, ["10.99.0.1/32"], f"{self.net.a4}:51820" if calls else "", psk, keepalive)
        node = Node(ns, f"wg{n}", Conf(private or self.keys[name].private, [peer], 40000 + n, [self.addresses[name] + "/32"], table="off"))
        ns.ip(f"route add 10.99.0.1/32 dev wg{n} table {1000 + n}")
        ns.ip(f"rule add from {self.addresses[name]} lookup {1000 + n}")
        return node

    def up(self) -> None:
        self.a = Node(self.net.a, DEVICE, self.conf)

    def send(self, *names: str) -> None:
        """One packet to each, without waiting for an answer."""
        s = self.net.a.udp_socket()
        for name in names:
            s.sendto(b"x", (self.addresses[name], 9))
        s.close()

    def why(self, target: str, *words: str) -> SimpleNamespace:
        return why(self.net.a, *words, DEVICE, target)

    def expect(self, name: str, code: str, *words: str, timeout: float = 6.0, severity: str = "fault") -> SimpleNamespace:
        """The first cause, with its words."""
        last = []

        def is_told() -> bool:
            last[:] = [self.why(name)]
            return last[0].codes[:1] == [code]
        try:
            wait_for(is_told, timeout, code, interval=0.1)
        except AssertionError:
            raise AssertionError(f"{name}: {code} is wanted: {json.dumps(last[0].findings, indent=1)}") from None
        x = last[0]
        assert x.first["severity"] == severity and x.first["advice"], x.first
        for word in words:
            assert word in told(x), (word, x.first)
        return x


@pytest.fixture(scope="module")
def peers():
    with Lab() as lab:
        p = Peers(lab)
        psk = genpsk()
        p.add("well")
        p.add("closed")
        p.add("swallowed", f"{p.net.b4}:39999")
        p.add("rejected", f"{p.net.b4}:39998")
        p.add("dark", "10.0.9.9:7")
        p.add("psk", psk=psk)
        p.add("waiting", None)
        p.add("nameless", "no-such-host.invalid:7")
        p.add("wrong")                # B's device has another key than the one configured here
        p.add("stranger")             # and another one's calls come from there
        p.add("forbidden")
        p.add("nowhere", "192.0.2.9:7")
        p.add("deaf")                 # calls and does not hear
        p.add("past")                 # was started with a clock that was ahead
        p.add("lossy")
        p.conf.peers[-1].extra.append("Fec = off")
        p.add("idle", f"{p.net.b4}:39997")
        p.add("wide", f"{p.net.b4}:39996", allowed=["10.88.0.0/16"])
        p.add("narrow", f"{p.net.b4}:39995", allowed=["10.88.7.0/24"])
        p.add("robbed", f"{p.net.b4}:39994", allowed=["10.77.0.0/24"])
        p.add("robber", f"{p.net.b4}:39993", allowed=["10.77.0.0/24"])
        p.up()
        p.net.b.nft("""table inet swallow { chain in { type filter hook input priority 0;
            udp dport 39999 drop
            udp dport 39998 reject
        }
        }""")
        p.net.r.ip("route add unreachable 10.0.9.0/24")
        p.net.r.sysctl(net__ipv4__icmp_ratelimit=0)
        # These call for some time, before they are asked for.
        Fault(p.net.b, "deaf", f"udp dport {40000 + p.number('deaf')}", "drop", "input")
        p.serve("deaf", calls=True, keepalive=1)
        p.stranger = p.serve("stranger", private=keys().private, calls=True, keepalive=1)
        p.serve("well")
        p.serve("psk", psk=genpsk())
        p.serve("wrong", private=keys().private)
        p.serve("forbidden")
        p.serve("lossy")
        yield p


def test_all_is_well_with_its_evidence(peers):
    wait_ping(peers.net.a, peers.addresses["well"])
    for target in ("well", "WELL", peers.keys["well"].public, peers.keys["well"].public[:12], peers.addresses["well"]):
        x = peers.why(target)
        assert x.flows and all(f["severity"] == "note" for f in x.findings), x.findings
        assert x.target["public_key"] == peers.keys["well"].public and x.target["name"] == "well"
        assert f"{peers.net.b4}:40002" in x.evidence[0] and "s ago" in x.evidence[1] and len(x.evidence) == 3
        assert x.facts["peer"]["received_age_s"] < 20 and x.facts["peer"]["sent_age_s"] < 20
    text = peers.net.a.run(binary(), "why", "well").stdout
    assert text.startswith(f"{DEVICE}: Traffic flows to well") and max(map(len, text.splitlines())) < 80


def test_handshakes_that_nobody_answers(peers):
    names = ["closed", "swallowed", "rejected", "dark", "psk", "wrong", "nowhere"]
    peers.net.a.ip("route add unreachable 192.0.2.0/24")
    peers.send(*names, "nameless", "waiting")
    peers.expect("psk", "psk_mismatch", "One is set here", "reload")
    peers.expect("closed", "port_closed", f"{peers.net.b4}:40003", "Start WireGuard", "within")
    peers.expect("rejected", "port_closed", "firewall")
    x = peers.expect("swallowed", "no_answer", f"{peers.net.b4}:39999", "firewall", "public key", "within", "all is swallowed")
    assert x.facts["peer"]["tries"] >= 1 and not x.facts["peer"]["has_session"]
    peers.expect("wrong", "no_answer", "its own key the one that is configured here")
    peers.expect("nowhere", "endpoint_unreachable", "192.0.2.9", "ip route get")
    peers.expect("dark", "host_unreachable", "EHOSTUNREACH")
    peers.expect("nameless", "name_unresolved", "no-such-host.invalid", "getent hosts", timeout=8)
    peers.expect("waiting", "no_endpoint", "PersistentKeepalive")
    x = peers.why("swallowed", "--no-probe")
    assert x.codes[0] == "no_answer" and "swallowed" not in " ".join(x.first["evidence"])
    # The other side of it: B is called by a key for another key than it has.
    wrong = why(peers.net.b, "wg10", peers.a_keys.public)
    assert wrong.codes[0] in ("no_endpoint", "other_key_here"), wrong.findings


def test_addresses_and_routes(peers):
    a = peers.net.a
    x = peers.why("10.99.0.200")
    assert x.codes[0] == "no_peer" and not x.flows and x.target["public_key"] is None
    assert "the closest is 10.99.0." in told(x) and "AllowedIPs" in told(x)
    assert peers.why("10.88.9.9").target["name"] == "wide"
    x = peers.why("10.88.7.1")
    assert x.target["name"] == "narrow" and "10.88.0.0/16" in json.dumps([f for f in x.findings if f["code"] == "other_peer"])
    x = peers.why("10.88.7.1", "--expect", "wide")
    assert x.codes[0] == "other_peer" and "and not to wide" in told(x) and "longest" in told(x)
    assert peers.why("10.99.0.1").codes[0] == "own_address"
    x = peers.why("robbed")
    f = next(f for f in x.findings if f["code"] == "allowed_ip_taken")
    assert "10.77.0.0/24" in f["text"] and "robber" in f["text"] and f["severity"] == "loss"
    a.ip(f"route add {peers.addresses['well']}/32 via {peers.net.ra4}")
    for target in ("well", peers.addresses["well"]):
        peers.expect(target, "route_elsewhere", "by eth0 instead of wg0", "ip route")
    a.ip(f"route del {peers.addresses['well']}/32")
    a.ip("route del 10.99.0.0/24")
    peers.net.a.ip("route del default")
    peers.expect("well", "route_missing", "ip route add")
    a.ip("route add 10.99.0.0/24 dev wg0 src 10.99.0.1")
    a.ip(f"route add default via {peers.net.ra4}")
    assert peers.why("well").flows


def test_firewall_of_this_machine_with_its_errno(peers):
    fault = Fault(peers.net.a, "egress", "udp dport 40012", "drop", "output")
    peers.send("forbidden")
    peers.expect("forbidden", "firewall", "EPERM", "Operation not permitted", "nft list ruleset", f"{peers.net.b4}:40012")
    assert peers.why("well").flows  # it is nobody else's trouble
    fault.remove()
    wait_ping(peers.net.a, peers.addresses["forbidden"])
    assert peers.why("forbidden").flows


def test_endpoint_that_is_routed_into_the_tunnel(peers):
    peers.net.a.ip(f"route add {peers.net.b4}/32 dev wg0")
    peers.expect("well", "endpoint_loop", peers.net.b4, "ip route add")
    peers.net.a.ip(f"route del {peers.net.b4}/32 dev wg0")


def test_mtu_of_the_path(peers):
    peers.net.a.ip("link set dev eth0 mtu 1300")
    try:
        x = peers.expect("well", "mtu", "1420", "MTU = 1240", severity="loss")
    finally:
        peers.net.a.ip("link set dev eth0 mtu 1500")
    assert x.facts["path"] == {"has_route": True, "interface": "eth0", "mtu": 1300}
    assert peers.why("well").flows


def test_loss_while_recovery_is_off(peers):
    wait_ping(peers.net.a, peers.addresses["lossy"])
    fault = Fault(peers.net.r, "loss", "meta l4proto udp numgen inc mod 10 < 1")
    with peers.net.b.udp_socket(peers.addresses["lossy"]) as s:
        # The fault drops whole runs of UDP_SEGMENT, which two sizes in turn keep short.
        for i in range(400):
            s.sendto(b"x" * (20 if i % 2 else 80), ("10.99.0.1", 9))
    peers.expect("lossy", "loss", "of the present keys did not come", "fec auto", severity="loss")
    fault.remove()


def test_source_that_is_not_the_peers(peers):
    b, source = peers.net.b, peers.addresses["idle"]
    b.ip(f"address add {source}/32 dev lo")
    b.ip(f"rule add from {source} lookup 1002")
    s = b.udp_socket(source)
    s.sendto(b"x", ("10.99.0.1", 9))
    peers.expect("well", "source_refused", source, "in AllowedIPs of idle", severity="loss")
    b.ip(f"address del {source}/32 dev lo")
    assert "source_refused" not in peers.why("forbidden").codes


def test_key_that_is_not_configured_calls_from_the_endpoint(peers):
    """The peer's key was renewed over there alone."""
    peers.send("stranger")
    peers.expect("stranger", "other_key_there", peers.stranger.dump().public, "PublicKey")


def test_peer_that_calls_and_does_not_hear(peers):
    peers.expect("deaf", "handshake_incomplete", "answers do not reach it", timeout=12)


def test_clock_that_went_back(peers):
    """The last timestamp sent, on disk over there, stands for a clock that was an hour ahead."""
    b, path = peers.net.b, f"/var/lib/weft/wg{peers.number('past')}.stamp"
    b.run("sh", "-c", 'mkdir -p /var/lib/weft && echo "$1" >"$2"', "sh", str((1 << 62) + int(time.time()) + 3600), path)
    ahead = peers.serve("past", calls=True, keepalive=1)
    wait_for(lambda: peers.why("past").flows, 5, "it is there", interval=0.1)
    ahead.down()
    b.run("rm", path)
    b.ip(f"rule del from {peers.addresses['past']}")
    behind = peers.serve("past", calls=True, keepalive=1)
    peers.expect("past", "stale_timestamp", "clock", peers.net.b4, "weft down", severity="loss")
    behind.down()


def test_key_in_use_at_two_places(peers):
    other, name = peers.lab.namespace("c"), "well"
    peers.lab.veth(other, "eth0", ["10.0.3.2/24"], peers.net.r, "toc", ["10.0.3.1/24"])
    other.ip("route add default via 10.0.3.1")
    second = peers.serve(name, ns=other, calls=True)

    sockets = [ns.udp_socket(peers.addresses[name]) for ns in (other, peers.net.b)]

    def are_both_seen() -> bool:
        sockets.append(sockets.pop(0))
        sockets[0].sendto(b"x", ("10.99.0.1", 9))
        return "key_in_two_places" in peers.why(name).codes
    wait_for(are_both_seen, 8, "both are seen", interval=0.05)
    x = peers.expect(name, "key_in_two_places", peers.net.b4, "10.0.3.2", "weft genkey", severity="loss")
    assert not x.flows
    second.down()


def test_interface_down_and_address_missing(peers):
    a = peers.net.a
    a.ip("address del 10.99.0.1/24 dev wg0")
    peers.expect("closed", "address_missing", "10.99.0.1/24", "ip address add")
    a.ip("address add 10.99.0.1/24 dev wg0")
    a.ip("link set dev wg0 down")
    peers.expect("closed", "interface_down", "ip link set wg0 up")
    a.ip("link set dev wg0 up")


def test_what_cannot_be_told_is_status_2(peers):
    a = peers.net.a
    for words, text in [(["wg9", "well"], "wg9 is not running"), ([DEVICE, "nobody"], "nobody"), ([], "a peer or an address"),
                        ([DEVICE, "a", "b"], "too many"), ([DEVICE, "--loud", "a"], "--loud"), ([DEVICE, "well", "--expect"], "--expect")]:
        r = a.run(binary(), "why", *words, check=False)
        assert r.returncode == 2 and text in r.stdout + r.stderr, (words, r)
    r = a.run(binary(), "why", "--json", "wg9", "well", check=False)
    assert r.returncode == 2 and json.loads(r.stdout)["findings"][0]["code"] == "not_running"
    assert peers.a_keys.private not in a.run(binary(), "why", "--json", "well", check=False).stdout


def test_manual_has_every_finding():
    codes = set()
    for name in ("judge.c", "judge_peer.c"):
        text = (TOP / "src" / "ctl" / name).read_text()
        codes |= set(re.findall(r'judge_add\(\s*v,\s*"(\w+)"', text))
    page = (TOP / "man" / "weft.8").read_text().split(".SH FINDINGS")[1].split(".SH ")[0]
    assert len(codes) > 25
    assert [c for c in sorted(codes) if c not in page] == []

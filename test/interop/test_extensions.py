# SPDX-License-Identifier: Apache-2.0
"""Extension frames: silent towards plain WireGuard, and what two weft nodes agree on. docs/protocol.md, section 5.

Three witnesses: lengths and headers on the wire, where everything but a frame is a ping or a keepalive;
the log of wireguard-go, which tells of each message that holds no IP packet; and weft's status."""
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from lab import Conf, GoDevice, Lab, Namespace, Node, Pair, PeerConf, agreement, keys, pair, peer, traffic, wait_agreed, wait_for, wait_ping
from lab.capture import Capture, Message, data
from lab.device import A4, B4, DEVICE, GO, PORT, WEFT, Ends, at, ends
from lab.offload import segmentation_off

KEEPALIVE, PING = 0, 96  # inside the seal; a ping of 84 bytes is padded
REQUESTS_MAX, GIVEN_UP_S = 3, 3.5  # of HELLO
FOREIGN = "Packet with invalid IP version"
CHACHA, AES = 0, 1
NAMES = {CHACHA: "chacha20poly1305", AES: "aes-256-gcm"}


def frames(messages: list[Message], is_out: bool | None = None) -> list[Message]:
    return data(messages, is_out, (KEEPALIVE, PING))


def pings(messages: list[Message], is_out: bool | None = None) -> list[Message]:
    return [m for m in data(messages, is_out) if m.inner_len == PING]


def watch(ns: Namespace, other: Namespace, device: str = "eth0") -> Capture:
    """Both ways, one message a packet."""
    segmentation_off(other, "eth0")
    return Capture(ns, device)


def lengths(messages: list[Message]) -> list[int]:
    return [m.inner_len for m in messages]


def complaints(go: GoDevice) -> int:
    """Messages without an IP packet, as wireguard-go counts them."""
    return go.process.output.count(FOREIGN)


def has_fast_aes() -> bool:
    with open("/proc/cpuinfo") as f:
        words = set(f.read().split())
    return {"aes", "pclmulqdq"} <= words or {"aes", "pmull"} <= words


def all_answered(ns, address: str, seconds: float) -> None:
    p = traffic.ping(ns, address, round(seconds / 0.02), 0.02)
    assert p.received == p.sent


# --- plain WireGuard: these take as long as weft asks, so they run side by side ---

@dataclass
class Seen:
    """What a case left behind."""

    messages: list[Message]  # while it asks
    later: list[Message]     # after it gave up
    ends: Ends
    complaints: int
    later_complaints: int
    state: str
    cipher: str


def stock_case(kinds: tuple[str, str], off_at_b: bool = False) -> Seen:
    with Lab() as lab:
        return play_stock(pair(lab), kinds, off_at_b)


def play_stock(wire: Pair, kinds: tuple[str, str], off_at_b: bool) -> Seen:
    """A calls B; both ping until the asking is over, and a while longer. A's port changes while it asks."""
    e = ends("", wire.b4)
    if off_at_b:
        e.b_conf.peers[0].extra = ["Extensions = off"]
    capture = watch(wire.a, wire.b)
    make = lambda kind, ns, conf: GoDevice(ns, DEVICE, conf, is_verbose=True) if kind == GO else Node(ns, DEVICE, conf)
    e.b, e.a = make(kinds[1], wire.b, e.b_conf), make(kinds[0], wire.a, e.a_conf)
    go = next((d for d in (e.a, e.b) if isinstance(d, GoDevice)), None)
    weft = e.a if isinstance(e.a, Node) else e.b
    wait_ping(wire.a, B4)
    all_answered(wire.a, B4, 1.5)
    wire.a.run("wg", "set", DEVICE, "listen-port", "40404")
    all_answered(wire.a, B4, GIVEN_UP_S - 1.5)
    wait_for(lambda: agreement(weft) == "stock", 5, "it gave up")
    asked, heard = capture.take(), complaints(go) if go else 0
    all_answered(wire.a, B4, 2)
    all_answered(wire.b, A4, 0.5)
    p = peer(weft)
    return Seen(asked, capture.take(), e, heard, complaints(go) - heard if go else 0, p["extensions"]["state"], p["cipher"])


@pytest.fixture(scope="module")
def stock() -> dict[str, Seen]:
    with ThreadPoolExecutor() as pool:
        cases = {"weft calls go": pool.submit(stock_case, (WEFT, GO)), "go calls weft": pool.submit(stock_case, (GO, WEFT)),
                 "weft calls weft without extensions": pool.submit(stock_case, (WEFT, WEFT), True)}
        return {name: case.result() for name, case in cases.items()}


@pytest.mark.parametrize("case", ["weft calls go", "weft calls weft without extensions"])
def test_caller_asks_three_times_and_never_again(stock, case):
    seen = stock[case]
    assert len(frames(seen.messages, True)) == REQUESTS_MAX
    assert lengths(frames(seen.messages, False)) == lengths(frames(seen.later)) == []
    assert seen.state == "stock"
    if case == "weft calls go":
        assert seen.complaints == REQUESTS_MAX and seen.later_complaints == 0


def test_called_side_asks_nothing(stock):
    seen = stock["go calls weft"]
    assert lengths(frames(seen.messages + seen.later)) == []
    assert seen.complaints == seen.later_complaints == 0
    assert seen.state == "stock"


@pytest.mark.parametrize("case", ["weft calls go", "go calls weft", "weft calls weft without extensions"])
def test_no_message_to_a_stock_peer_is_marked(stock, case):
    seen = stock[case]
    sent = data(seen.messages + seen.later)
    assert len(pings(sent)) > 500
    assert {m.cipher for m in sent} == {CHACHA} and all(m.data[1:4] == b"\0\0\0" for m in sent)
    assert seen.cipher == NAMES[CHACHA]


# --- two nodes of weft ---

def ciphers_after_agreement(wire: Pair, e: Ends, capture: Capture) -> tuple[set[int], set[int]]:
    """Ciphers of A's and of B's packets from now on."""
    wait_ping(wire.a, B4)
    wait_agreed(e.a, e.b)
    capture.take()
    all_answered(wire.a, B4, 0.5)
    all_answered(wire.b, A4, 0.5)
    sent = capture.take()
    assert lengths(frames(sent)) == []
    return {m.cipher for m in pings(sent, True)}, {m.cipher for m in pings(sent, False)}


def test_two_nodes_agree_within_one_round_trip(wire):
    """One request and one answer; what each sends after it knows is AES where processors have it."""
    capture = watch(wire.a, wire.b)
    e = ends("", wire.b4).up(wire.a, WEFT, wire.b, WEFT)
    all_answered(wire.a, B4, 1)
    assert (agreement(e.a), agreement(e.b)) == ("agreed", "agreed")
    sent = capture.take()
    request, answer = frames(sent, True), frames(sent, False)
    assert len(request) == len(answer) == 1
    best = AES if has_fast_aes() else CHACHA
    index = {way: sent.index(m) for way, (m,) in {"request": request, "answer": answer}.items()}
    # The answer shows that B had agreed; with it, A has.
    assert {m.cipher for m in pings(sent[index["answer"]:], False)} == {best}
    after = pings(sent[index["answer"]:], True)
    assert {m.cipher for m in after[2:]} == {best}, "a ping may have been under way when the answer came"
    assert {m.cipher for m in data(sent[:index["request"]])} <= {CHACHA}
    assert {p["cipher"] for p in (peer(e.a), peer(e.b))} == {NAMES[best]}
    assert peer(e.a)["extensions"]["name"] and peer(e.a)["fec"]["why"] == peer(e.b)["fec"]["why"] == "clean"


@pytest.mark.parametrize("a,b,expected", [
    ("aes-256-gcm", "aes-256-gcm", AES), ("chacha20poly1305", "auto", CHACHA), ("aes-256-gcm", "chacha20poly1305", CHACHA),
])
def test_cipher_is_what_both_want(wire, a, b, expected):
    e, capture = ends("", wire.b4), watch(wire.a, wire.b)
    e.a_conf.extra, e.b_conf.extra = [f"Cipher = {a}"], [f"Cipher = {b}"]
    e.up(wire.a, WEFT, wire.b, WEFT)
    assert ciphers_after_agreement(wire, e, capture) == ({expected}, {expected})
    assert peer(e.a)["cipher"] == peer(e.b)["cipher"] == NAMES[expected]


def test_caller_without_extensions_sends_no_frame_and_hears_none(wire):
    e, capture = ends("", wire.b4), watch(wire.a, wire.b)
    e.a_conf.extra = ["Extensions = off"]
    e.up(wire.a, WEFT, wire.b, WEFT)
    all_answered(wire.a, B4, 1)
    sent = capture.take()
    assert frames(sent) == [] and {m.cipher for m in data(sent)} == {CHACHA}
    assert agreement(e.a) == "off" and agreement(e.b) != "agreed"


def aes(e: Ends) -> Ends:
    """Both want AES, whatever the processor."""
    e.a_conf.extra = e.b_conf.extra = ["Cipher = aes-256-gcm"]
    return e


def test_roaming_changes_nothing_that_was_agreed(wire):
    e, capture = aes(ends("", wire.b4)), watch(wire.a, wire.b)
    e.up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    wait_agreed(e.a, e.b)
    handshakes = peer(e.a)["handshakes"], peer(e.b)["handshakes"]
    capture.take()
    for port in (40404, 40405):
        wire.a.run("wg", "set", DEVICE, "listen-port", str(port))
        all_answered(wire.a, B4, 0.3)
        all_answered(wire.b, A4, 0.3)
        assert e.b_sees().endpoint == at(wire.a4, port)
    sent = capture.take()
    assert frames(sent) == [] and {m.cipher for m in pings(sent)} == {AES}
    assert (peer(e.a)["handshakes"], peer(e.b)["handshakes"]) == handshakes


@pytest.mark.parametrize("end", ["down", "kill -9"])
def test_restarted_side_agrees_anew(wire, end):
    e, capture = aes(ends(wire.a4, wire.b4)), watch(wire.a, wire.b)
    e.up(wire.a, WEFT, wire.b, WEFT)
    wait_ping(wire.a, B4)
    wait_agreed(e.a, e.b)
    if end == "down":
        e.b.down()
    else:
        wire.b.run("kill", "-9", "--", wire.b.out("pgrep", "-x", "weft"))
    wait_for(lambda: not wire.b.has_device(DEVICE), 5, "B's device goes")
    capture.take()
    e.up_b(wire.b, WEFT)
    wait_ping(wire.b, A4)
    wait_agreed(e.a, e.b)
    all_answered(wire.a, B4, 0.5)
    sent = capture.take()
    # A's old session has no other end: whatever A still sends in it, it asks nothing there.
    assert len(frames(sent, False)) == len(frames(sent, True)) == 1
    assert {m.cipher for m in pings(sent)[-20:]} == {AES}
    # The old agreement allowed nothing in the new session before the new one stood.
    first = frames(sent, True)[0]
    new = [m for m in data(sent, False) if m.data[4:8] == frames(sent, False)[0].data[4:8]]
    assert all(m.cipher == CHACHA for m in new[:new.index(frames(sent, False)[0]) + 1])
    assert first.cipher in (CHACHA, AES)


def test_stock_and_weft_peers_on_one_port_do_not_mix(lab):
    """B is weft, C wireguard-go; A talks to both at once.

    B 10.0.1.2 ---- 10.0.1.1 A 10.0.3.1 ---- 10.0.3.2 C"""
    a, b, c = lab.namespace("a"), lab.namespace("b"), lab.namespace("c")
    lab.veth(a, "eth0", ["10.0.1.1/24"], b, "eth0", ["10.0.1.2/24"])
    lab.veth(a, "eth1", ["10.0.3.1/24"], c, "eth0", ["10.0.3.2/24"])
    ka, kb, kc = keys(), keys(), keys()
    aes_ = ["Cipher = aes-256-gcm"]
    node_b = Node(b, DEVICE, Conf(kb.private, [PeerConf(ka.public, [A4 + "/32"], at("10.0.1.1"))], PORT, [B4 + "/24"], extra=aes_))
    go = GoDevice(c, DEVICE, Conf(kc.private, [PeerConf(ka.public, [A4 + "/32"], at("10.0.3.1"))], PORT, ["10.99.0.3/24"]), is_verbose=True)
    to_b, to_c = watch(a, b), watch(a, c, "eth1")
    node_a = Node(a, DEVICE, Conf(ka.private, [PeerConf(kb.public, [B4 + "/32"], at("10.0.1.2")), PeerConf(kc.public, ["10.99.0.3/32"], at("10.0.3.2"))],
                                  PORT, [A4 + "/24"], extra=aes_))
    with ThreadPoolExecutor() as pool:
        for job in [pool.submit(all_answered, a, B4, 2), pool.submit(all_answered, a, "10.99.0.3", 2),
                    pool.submit(all_answered, b, A4, 2), pool.submit(all_answered, c, A4, 2)]:
            job.result()
    b_sent, c_sent = to_b.take(), to_c.take()
    assert {m.cipher for m in data(c_sent)} == {CHACHA} and len(pings(c_sent)) >= 400
    assert len(frames(c_sent, True)) == complaints(go) <= REQUESTS_MAX and frames(c_sent, False) == []
    assert {m.cipher for m in pings(b_sent)[-100:]} == {AES}
    assert agreement(node_a, kb.public) == agreement(node_b) == "agreed" and agreement(node_a, kc.public) in ("asking", "stock", "unknown")
    assert peer(node_a, kc.public)["cipher"] == NAMES[CHACHA] and peer(node_a, kb.public)["cipher"] == NAMES[AES]

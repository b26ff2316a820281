# SPDX-License-Identifier: Apache-2.0
"""Handshakes between weft and wireguard-go, either side calling.

    A 10.0.1.1 ---- 10.0.1.2 B"""
import pytest

from lab import Fault, cut, genpsk, keys, pair, stays, traffic, wait_for, wait_ping
from lab.device import A4, A6, B4, B6, GO, WEFT, ends

BOTH_ORDERS = pytest.mark.parametrize("a,b", [(WEFT, GO), (GO, WEFT)], ids=["weft calls go", "go calls weft"])


@BOTH_ORDERS
def test_caller_with_an_endpoint_reaches_a_listener_without_one(lab, a, b):
    wire = pair(lab)
    e = ends("", wire.b4).up(wire.a, a, wire.b, b)
    wait_ping(wire.a, B4)
    wait_ping(wire.b, A6)
    assert e.b_sees().endpoint == f"{wire.a4}:51820"
    for seen in (e.a_sees(), e.b_sees()):
        assert seen.handshake > 0 and seen.rx > 0 and seen.tx > 0


@BOTH_ORDERS
def test_first_packets_wait_for_the_handshake_and_none_is_lost(lab, a, b):
    wire = pair(lab)
    ends("", wire.b4).up(wire.a, a, wire.b, b)
    result = traffic.ping(wire.a, B4, 20, 0.01)
    assert result.received == 20


@BOTH_ORDERS
def test_preshared_key_is_mixed_in(lab, a, b):
    wire = pair(lab)
    e = ends("", wire.b4, genpsk()).up(wire.a, a, wire.b, b)
    wait_ping(wire.a, B4)
    assert e.a_sees().psk == e.b_sees().psk == e.a_conf.peers[0].psk


@BOTH_ORDERS
def test_different_preshared_keys_make_no_session(lab, a, b):
    wire = pair(lab)
    e = ends("", wire.b4, genpsk())
    e.b_conf.peers[0].psk = genpsk()
    responses = Fault(wire.b, "responses", "udp length 100", "accept", "output")
    e.up(wire.a, a, wire.b, b)
    wire.a.run("ping", "-c", "1", "-W", "1", B4, check=False)
    wait_for(lambda: responses.count() >= 1, 5, "a response that does not fit")
    stays(lambda: e.a_sees().handshake == 0, 1.0, "no session")


@BOTH_ORDERS
def test_preshared_key_set_on_both_sides_later_is_used_by_the_next_handshake(lab, a, b):
    wire = pair(lab)
    e = ends("", wire.b4).up(wire.a, a, wire.b, b)
    wait_ping(wire.a, B4)
    psk = lab.dir / "psk"
    psk.write_text(genpsk() + "\n")
    # A new private key on A ends its sessions, so the next packet brings a handshake.
    private = lab.dir / "private"
    new = keys()
    private.write_text(new.private + "\n")
    wire.a.run("wg", "set", "wg0", "private-key", str(private), "peer", e.b_keys.public, "preshared-key", str(psk))
    wire.b.run("wg", "set", "wg0", "peer", e.a_keys.public, "remove", "peer", new.public, "preshared-key", str(psk),
               "allowed-ips", f"{A4}/32,{A6}/128")
    wait_ping(wire.a, B4)
    assert set(e.b.dump().peers) == {new.public}
    assert e.b.dump().peers[new.public].psk == psk.read_text().strip()


@BOTH_ORDERS
def test_unknown_key_gets_no_answer(lab, a, b):
    wire = pair(lab)
    e = ends("", wire.b4)
    e.b_conf.peers[0].public = keys().public
    answers = Fault(wire.b, "answers", "meta l4proto udp", "accept", "output")
    arrivals = Fault(wire.b, "arrivals", "meta l4proto udp", "accept", "input")
    e.up(wire.a, a, wire.b, b)
    wire.a.run("ping", "-c", "1", "-W", "1", B4, check=False)
    wait_for(lambda: arrivals.count() >= 1, 5, "an initiation")
    stays(lambda: answers.count() == 0, 0.5, "silence")


@BOTH_ORDERS
def test_handshake_is_tried_again_until_the_wire_is_there(lab, a, b):
    wire = pair(lab)
    e = ends("", wire.b4)
    fault = cut(wire.b, "input")
    e.up(wire.a, a, wire.b, b)
    ping = wire.a.spawn("ping", "-n", "-c", "1", "-W", "20", B4)
    wait_for(lambda: fault.count() >= 1, 5, "the first try")
    fault.remove()
    # REKEY_TIMEOUT is 5 s and up to 333 ms of jitter.
    assert ping.wait(15) == 0, ping.output


@BOTH_ORDERS
def test_restarted_side_is_reached_again(lab, a, b):
    wire = pair(lab)
    e = ends(wire.a4, wire.b4).up(wire.a, a, wire.b, b)
    wait_ping(wire.a, B4)
    e.b.stop()
    wait_for(lambda: not wire.b.has_device("wg0"), 5, "B's device goes")
    e.up_b(wire.b, b)
    # B has no session and starts one at its first packet.
    wait_ping(wire.b, A4)
    wait_ping(wire.a, B4)


@BOTH_ORDERS
def test_both_sides_call_at_once(lab, a, b):
    wire = pair(lab)
    e = ends(wire.a4, wire.b4).up(wire.a, a, wire.b, b)
    pings = [wire.a.spawn("ping", "-n", "-i", "0.01", "-c", "100", B4), wire.b.spawn("ping", "-n", "-i", "0.01", "-c", "100", A4)]
    for p in pings:
        p.wait()
        result = traffic.parse_ping(p.output)
        assert result.received == result.sent, p.output[-300:]
    assert e.a_sees().handshake and e.b_sees().handshake


@BOTH_ORDERS
def test_ipv6_addresses_inside_and_outside(lab, a, b):
    wire = pair(lab)
    e = ends("", wire.b6).up(wire.a, a, wire.b, b)
    wait_ping(wire.a, B6)
    wait_ping(wire.b, A4)
    assert e.b_sees().endpoint == f"[{wire.a6}]:51820"

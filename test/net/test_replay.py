# SPDX-License-Identifier: Apache-2.0
"""Recorded messages from another address move no endpoint and open nothing.

    A 10.0.1.2 --- relay in R, and a thief there --- 10.0.2.2 B"""
import pytest

from lab import routed, stays, wait_for, wait_ping
from lab.device import A4, B4, PORT, WEFT, at, ends
from lab.relay import TO_CLIENT, TO_SERVER, Relay

INITIATION, RESPONSE, COOKIE, DATA = 1, 2, 3, 4


@pytest.fixture
def heard(lab):
    """A tunnel through a relay that has recorded its beginning, and a thief's socket in R. Without loss recovery: it would
    ask again for what is held back, and then what comes late is a copy."""
    net = routed(lab)
    relay = Relay(net.r, 4000, (net.b4, PORT))
    lab.on_exit(relay.stop)
    e = ends("", net.ra4)
    e.a_conf.peers[0].endpoint = at(net.ra4, 4000)
    e.a_conf.extra = e.b_conf.extra = ["Fec = off"]
    e.up(net.a, WEFT, net.b, WEFT)
    wait_ping(net.a, B4)
    wait_ping(net.b, A4)
    thief = net.r.udp_socket(port=6666)
    lab.on_exit(thief.close)
    return net, relay, e, thief


def test_replayed_data_is_counted_and_moves_nothing(heard):
    net, relay, e, thief = heard
    endpoint, before = e.b_sees().endpoint, e.b.drops()["rx_replay"]
    copies = relay.of_kind(DATA, TO_SERVER)
    for data in copies:
        thief.sendto(data, (net.b4, PORT))
    wait_for(lambda: e.b.drops()["rx_replay"] == before + len(copies), 10, "every copy is counted as a replay")
    assert e.b_sees().endpoint == endpoint
    wait_ping(net.b, A4)


def test_replayed_initiation_is_counted_as_stale_and_not_answered(heard):
    net, relay, e, thief = heard
    endpoint, before = e.b_sees().endpoint, e.b.drops()
    thief.sendto(relay.of_kind(INITIATION, TO_SERVER)[0], (net.b4, PORT))
    wait_for(lambda: e.b.drops()["hs_stale"] + e.b.drops()["hs_flood"] == before["hs_stale"] + before["hs_flood"] + 1, 10, "a stale initiation")
    thief.settimeout(0.3)
    with pytest.raises(TimeoutError):
        thief.recvfrom(2000)
    assert e.b_sees().endpoint == endpoint


def test_replayed_response_is_counted_and_moves_nothing(heard):
    net, relay, e, thief = heard
    endpoint, before = e.a_sees().endpoint, e.a.drops()["hs_index"]
    thief.sendto(relay.of_kind(RESPONSE, TO_CLIENT)[0], (net.a4, PORT))
    wait_for(lambda: e.a.drops()["hs_index"] == before + 1, 10, "a response that answers nothing")
    assert e.a_sees().endpoint == endpoint


def test_after_a_restart_of_the_responder_old_messages_still_move_nothing(heard):
    """B has forgotten the timestamps, so it may answer the old initiation; but only a confirmed session may move the endpoint."""
    net, relay, e, thief = heard
    old_initiation, old_data = relay.of_kind(INITIATION, TO_SERVER)[0], relay.of_kind(DATA, TO_SERVER)
    e.b_conf.peers[0].endpoint = at(net.rb4, 4001)  # nobody there: B must not believe the thief instead
    e.b.down()
    e.up_b(net.b, WEFT)
    configured = at(net.rb4, 4001)
    for data in [old_initiation, *old_data]:
        thief.sendto(data, (net.b4, PORT))
    stays(lambda: e.b_sees().endpoint == configured, 1.0, "the endpoint of the file")
    # The true A is still followed, once its own handshake is through.
    ping = net.a.spawn("ping", "-n", "-c", "30", "-i", "1", "-W", "1", B4)
    wait_for(lambda: e.b_sees().endpoint.startswith(net.rb4) and e.b_sees().endpoint != configured, 25, "A's fresh handshake moves the endpoint")
    ping.stop()


def test_fresh_data_moves_the_endpoint_but_a_late_copy_does_not_move_it_back(heard):
    net, relay, e, thief = heard
    first = e.b_sees().endpoint
    late = relay.of_kind(DATA, TO_SERVER)[-1]
    relay.rebind()
    wait_ping(net.a, B4)
    second = e.b_sees().endpoint
    assert second != first
    thief.sendto(late, (net.b4, PORT))
    stays(lambda: e.b_sees().endpoint == second, 0.5, "the newer endpoint")


def test_data_held_back_and_released_late_but_in_the_window_is_delivered_once(heard):
    net, relay, e, _thief = heard
    held = []

    def hold(d):
        if d.kind == DATA and d.way == TO_SERVER and len(held) < 3:
            held.append(d)
            return []
        return [d]
    relay.filter = hold
    ping = net.a.spawn("ping", "-n", "-c", "6", "-i", "0.05", "-W", "3", B4)
    wait_for(lambda: len(held) == 3, 3, "three held packets")
    before = e.b.drops()["rx_replay"]
    for d in held * 2:
        relay.send_to_server(d.data)
    assert ping.wait(10) == 0
    assert "6 received" in ping.output, ping.output
    wait_for(lambda: e.b.drops()["rx_replay"] >= before + 3, 10, "the second copies are replays")
    assert e.b.drops()["rx_replay"] == before + 3

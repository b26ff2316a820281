# SPDX-License-Identifier: Apache-2.0
"""Ends of the slow cases of background.py. The file's name puts it last."""
import time

import pytest

from background import ORDERS, REKEY_RUN_S
from lab import traffic, wait_for


@pytest.mark.parametrize("order", ORDERS)
def test_one_rekey_in_132_seconds_of_traffic_and_no_packet_lost(slow_cases, order):
    case = slow_cases["rekey: " + order]
    for p in case.pings:
        p.wait(REKEY_RUN_S + 30)
        result = traffic.parse_ping(p.output)
        assert result.received == result.sent, p.output[-400:]
    assert case.counters["initiations"].count() == 2
    assert case.counters["responses"].count() == 2
    for seen in (case.ends.a_sees(), case.ends.b_sees()):
        assert seen.handshake - case.started > 115


@pytest.mark.parametrize("order", ORDERS)
def test_a_rekeyed_session_with_a_stock_peer_has_no_more_frames(slow_cases, order):
    """Who calls asks three times in the first session, the other side never."""
    counters = slow_cases["rekey: " + order].counters
    wait_for(lambda: counters["responses"].count() == 2, 30, "the rekey")
    assert counters["frames at b"].count() == (3 if order.startswith("weft") else 0)
    assert counters["frames at a"].count() == counters["marked at a"].count() == counters["marked at b"].count() == 0


@pytest.mark.parametrize("order", ORDERS)
def test_silent_receiver_sends_exactly_one_passive_keepalive(slow_cases, order):
    case = slow_cases["passive: " + order]
    # 10 s after the packet; a second would come 10 s later at the earliest.
    wait_for(lambda: time.time() > case.started + 19, 25, "19 s after the only packet")
    assert case.counters["keepalives"].count() == 1

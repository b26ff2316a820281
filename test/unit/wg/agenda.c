/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "wg/engine.h"
#include "world.h"

static void
data_without_answer_is_answered_by_a_keepalive_after_10_s(void **state)
{
	(void)state;
	struct world w;
	world_init_connected(&w, 1);
	uint64_t before = w.sides[0].keepalives;
	world_send(&w, 0, 1, "E"); /* begins as IPv4 does, and so is data */
	world_run_s(&w, 9.9);
	assert_int_equal(w.sides[0].keepalives, before);
	world_run_s(&w, 0.2);
	assert_int_equal(w.sides[0].keepalives, before + 1);
	/* A keepalive asks for no answer: silence from then on. */
	uint64_t sent = w.seq;
	world_run_s(&w, 60);
	assert_int_equal(w.seq, sent);
	world_fini(&w);
}

static void
answered_data_needs_no_keepalive(void **state)
{
	(void)state;
	struct world w;
	world_init_connected(&w, 2);
	uint64_t a = w.sides[0].keepalives, b = w.sides[1].keepalives;
	for (int i = 0; i < 100; i++) {
		world_send(&w, 0, 1, "ping");
		world_run_s(&w, 0.5);
		world_send(&w, 1, 0, "pong");
		world_run_s(&w, 0.5);
	}
	assert_int_equal(w.sides[0].keepalives, a);
	assert_int_equal(w.sides[1].keepalives, b);
	assert_int_equal(world_initiations(&w, 0) + world_initiations(&w, 1), 1);
	world_fini(&w);
}

static void
data_without_any_answer_for_15_s_starts_a_handshake(void **state)
{
	(void)state;
	struct world w;
	world_init_connected(&w, 3);
	w.sides[1].is_deaf = true;
	world_send(&w, 0, 1, "x");
	world_run_s(&w, 14.9);
	assert_int_equal(world_initiations(&w, 0), 1);
	world_run_s(&w, 0.5);
	assert_int_equal(world_initiations(&w, 0), 2);
	world_fini(&w);
}

static void
initiator_renews_after_120_s_when_it_sends(void **state)
{
	(void)state;
	struct world w;
	world_init_connected(&w, 4);
	struct mono born = world_info(&w, 0, 1).session_born;
	world_run_ns(&w, born.ns + 119 * WEFT_NS_PER_S - w.now.ns);
	world_send(&w, 0, 1, "x");
	world_run_s(&w, 0.5);
	assert_int_equal(world_initiations(&w, 0), 1);
	world_send(&w, 1, 0, "y"); /* keeps the timers for missing answers out of it */
	world_run_s(&w, 0.6);
	world_send(&w, 0, 1, "x");
	world_run_s(&w, 0.1);
	assert_int_equal(world_initiations(&w, 0), 2);
	assert_int_equal(w.sides[1].delivered, 3);
	assert_int_equal(world_info(&w, 1, 0).handshakes, 2);
	world_fini(&w);
}

static void
responder_does_not_renew_at_120_s(void **state)
{
	(void)state;
	struct world w;
	world_init_connected(&w, 5);
	struct mono born = world_info(&w, 1, 0).session_born;
	world_run_ns(&w, born.ns + 121 * WEFT_NS_PER_S - w.now.ns);
	world_send(&w, 1, 0, "x");
	world_run_s(&w, 0.5);
	assert_int_equal(world_initiations(&w, 1), 0);
	world_fini(&w);
}

/* Side 1 sends, side 0 receives and its keepalives are lost. Returns the initiations of side 0
 * until the age of its session in seconds. */
static uint64_t
only_receive_until(struct world *w, double age_s)
{
	int64_t end = world_info(w, 0, 1).session_born.ns + (int64_t)(age_s * 1e9);
	while (w->now.ns < end) {
		w->sides[1].is_deaf = true;
		world_send(w, 1, 0, "x");
		world_run_ns(w,
			end - w->now.ns < WEFT_NS_PER_S / 2 ? end - w->now.ns : WEFT_NS_PER_S / 2);
		w->sides[1].is_deaf = false;
	}
	return world_initiations(w, 0);
}

static void
initiator_that_only_receives_renews_at_165_s_once(void **state)
{
	(void)state;
	struct world w;
	world_init_connected(&w, 6);
	/* Without traffic of its own but passive keepalives, which would renew at 120 s; so time
	 * passes in silence until then. */
	for (int round = 0; round < 3; round++) {
		int64_t born = world_info(&w, 0, 1).session_born.ns;
		world_run_ns(&w, born + 156 * WEFT_NS_PER_S - w.now.ns);
		uint64_t before = world_initiations(&w, 0);
		assert_int_equal(only_receive_until(&w, 164.9), before);
		world_send(&w, 1, 0, "y");
		world_run_s(&w, 0.2);
		assert_int_equal(world_initiations(&w, 0), before);
		world_send(&w, 1, 0, "z");
		world_run_s(&w, 0.2);
		assert_int_equal(world_initiations(&w, 0), before + 1);
		assert_true(world_info(&w, 0, 1).session_born.ns > born);
	}
	world_fini(&w);
}

static void
session_neither_sends_nor_opens_after_180_s(void **state)
{
	(void)state;
	struct world w;
	world_init_connected(&w, 7);
	struct wg_peer *p = world_peer(&w, 0, 1);
	struct wg_session *s = p->current;
	struct mono born = s->born;
	struct wg_note note;
	uint64_t counter;
	struct mono late = mono_add_ns(born, WG_REJECT_AFTER_TIME_NS);
	struct mono just = mono_add_ns(late, -1);
	assert_true(wg_session_can_open(s, just));
	assert_false(wg_session_can_open(s, late));
	assert_non_null(wg_peer_begin_send(w.sides[0].device, p, just, 1, 64, &counter, &note));
	wg_device_settle(w.sides[0].device, world_time(&w, 0), &note, 1, &w.out);
	assert_null(wg_peer_begin_send(w.sides[0].device, p, late, 1, 64, &counter, &note));
	assert_int_equal(note.needs, WG_NEED_HANDSHAKE);
	wg_device_settle(w.sides[0].device, world_time(&w, 0), &note, 1, &w.out);
	world_fini(&w);
}

static void
handshake_is_tried_every_5_s_and_given_up_after_90_s(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 2, 8);
	world_meet(&w, 0, 1, true);
	world_send(&w, 0, 1, "a");
	world_send(&w, 0, 1, "b");
	for (int i = 1; i <= 16; i++) {
		assert_in_range(world_initiations(&w, 0), i, i);
		assert_int_equal(w.sides[0].values[WG_EVENT_HANDSHAKE], i);
		world_run_s(&w, 5.34);
	}
	world_run_ns(&w, 1000 + 90 * WEFT_NS_PER_S - 1 - w.now.ns); /* from the start */
	assert_int_equal(w.sides[0].events[WG_EVENT_GAVE_UP], 0);
	world_run_ns(&w, 1);
	assert_int_equal(w.sides[0].events[WG_EVENT_GAVE_UP], 1);
	assert_int_equal(w.sides[0].values[WG_EVENT_GAVE_UP], 2);
	assert_int_equal(world_drops(&w, 0, DROP_TX_NO_SESSION), 2);
	assert_int_equal(world_info(&w, 0, 1).staged_packets, 0);
	uint64_t sent = w.seq;
	world_run_s(&w, 600);
	assert_int_equal(w.seq, sent);
	/* New data starts anew, at once. */
	world_meet(&w, 1, 0, false);
	world_send(&w, 0, 1, "c");
	assert_int_equal(w.sides[0].values[WG_EVENT_HANDSHAKE], 1);
	world_run_s(&w, 1);
	assert_string_equal(w.sides[1].last, "c");
	world_fini(&w);
}

static void
keys_are_gone_540_s_after_the_last_handshake(void **state)
{
	(void)state;
	struct world w;
	world_init_connected(&w, 9);
	struct mono born = world_info(&w, 0, 1).session_born;
	world_run_ns(&w, born.ns + 539 * WEFT_NS_PER_S - w.now.ns);
	assert_true(world_info(&w, 0, 1).has_session);
	world_run_s(&w, 1.1);
	assert_false(world_info(&w, 0, 1).has_session);
	assert_false(world_info(&w, 1, 0).has_session);
	assert_int_equal(w.sides[0].device->index.used, 0);
	assert_int_equal(wg_device_deadline(w.sides[0].device).ns, INT64_MAX);
	world_fini(&w);
}

static void
persistent_keepalive_starts_at_once_and_follows_silence(void **state)
{
	(void)state;
	struct world w;
	world_init_connected(&w, 10);
	uint64_t before = w.sides[1].keepalives;
	wg_peer_set_keepalive(
		w.sides[0].device, world_peer(&w, 0, 1), 25, world_time(&w, 0), &w.out);
	world_flush(&w, 0);
	world_run_s(&w, 0.1);
	assert_int_equal(w.sides[1].keepalives, before + 1);
	world_run_s(&w, 25);
	assert_int_equal(w.sides[1].keepalives, before + 2);
	/* Traffic puts it off. */
	world_run_s(&w, 20);
	world_send(&w, 0, 1, "x");
	world_run_s(&w, 8); /* the other side's passive keepalive comes after 10 s */
	assert_int_equal(w.sides[1].keepalives, before + 2);
	world_run_s(&w, 600);
	assert_in_range(w.sides[1].keepalives, before + 24, before + 34);
	wg_peer_set_keepalive(
		w.sides[0].device, world_peer(&w, 0, 1), 0, world_time(&w, 0), &w.out);
	world_flush(&w, 0);
	world_run_s(&w, 12);
	uint64_t sent = w.seq;
	world_run_s(&w, 100);
	assert_int_equal(w.seq, sent);
	world_fini(&w);
}

static void
persistent_keepalive_makes_a_session_and_never_rests(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 2, 11);
	world_meet(&w, 0, 1, true);
	w.sides[1].is_deaf = true;
	world_meet(&w, 1, 0, false);
	wg_peer_set_keepalive(
		w.sides[0].device, world_peer(&w, 0, 1), 20, world_time(&w, 0), &w.out);
	world_flush(&w, 0);
	world_run_s(&w, 500);
	assert_true(w.sides[0].events[WG_EVENT_GAVE_UP] >= 3);
	w.sides[1].is_deaf = false;
	world_run_s(&w, 21);
	assert_true(world_info(&w, 1, 0).has_session);
	world_fini(&w);
}

static void
going_down_stops_persistent_keepalives_and_keeps_sessions(void **state)
{
	(void)state;
	struct world w;
	world_init_connected(&w, 12);
	struct wg_device *d = w.sides[0].device;
	wg_peer_set_keepalive(d, world_peer(&w, 0, 1), 5, world_time(&w, 0), &w.out);
	world_flush(&w, 0);
	world_run_s(&w, 12);
	wg_device_set_up(d, false, world_time(&w, 0), &w.out);
	world_flush(&w, 0);
	uint64_t sent = w.seq;
	world_run_s(&w, 60);
	assert_int_equal(w.seq, sent);
	assert_true(world_info(&w, 0, 1).has_session);
	wg_device_set_up(d, true, world_time(&w, 0), &w.out);
	world_flush(&w, 0);
	assert_int_equal(w.seq, sent + 1);
	world_fini(&w);
}

static void
sleep_longer_than_the_keys_live_starts_a_handshake_at_once(void **state)
{
	(void)state;
	static const int sleeps[] = {200, 600};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(sleeps); i++) {
		struct world w;
		world_init_connected(&w, 13 + i);
		/* Side 0 sleeps; datagrams for it go into the void. An attempt was under way. */
		w.sides[1].is_deaf = true;
		world_run_s(&w, 110);
		world_send(&w, 0, 1, "before");
		world_run_s(&w, 2);
		assert_int_equal(world_initiations(&w, 0), 2);
		w.now.ns += sleeps[i] * WEFT_NS_PER_S;
		w.sides[1].is_deaf = false;
		world_run_ns(&w, 0);
		world_send(&w, 0, 1, "after");
		world_run_s(&w, 0.1);
		assert_string_equal(w.sides[1].last, "after");
		world_fini(&w);
	}
}

static void
data_right_after_giving_up_starts_anew_by_itself(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 2, 15);
	world_meet(&w, 0, 1, true);
	world_meet(&w, 1, 0, false);
	w.sides[1].is_deaf = true;
	world_send(&w, 0, 1, "before");
	world_run_s(&w, 90.1);
	assert_int_equal(w.sides[0].events[WG_EVENT_GAVE_UP], 1);
	uint64_t before = world_initiations(&w, 0);
	/* Within REKEY_TIMEOUT of the last attempt, and nothing follows it. */
	world_send(&w, 0, 1, "after");
	assert_int_equal(world_initiations(&w, 0), before);
	w.sides[1].is_deaf = false;
	world_run_s(&w, 5.1);
	assert_string_equal(w.sides[1].last, "after");
	assert_int_equal(world_initiations(&w, 0), before + 1);
	world_fini(&w);
}

static void
sleep_during_an_attempt_does_not_make_new_data_wait(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 2, 15);
	world_meet(&w, 0, 1, true);
	world_meet(&w, 1, 0, false);
	w.sides[1].is_deaf = true;
	world_send(&w, 0, 1, "before");
	world_run_s(&w, 2);
	w.now.ns += 200 * WEFT_NS_PER_S;
	w.sides[1].is_deaf = false;
	world_send(&w, 0, 1, "after");
	world_run_s(&w, 0.1);
	assert_string_equal(w.sides[1].last, "after");
	world_fini(&w);
}

static void
full_out_loses_nothing(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1, 16);
	struct wg_device *d = w.sides[0].device;
	enum { PEERS = 300 };
	for (int i = 0; i < PEERS; i++) {
		uint8_t key[32];
		struct wg_peer *p;
		rng_fill(&w.rng, key, sizeof(key));
		assert_int_equal(wg_peer_add(d, key, &p), WEFT_OK);
		struct endpoint e = world_endpoint(77, (uint16_t)(1000 + i));
		wg_peer_set_endpoint(p, &e);
	}
	for (struct wg_peer *p = NULL; (p = wg_peer_next(d, p));) {
		struct wg_note note;
		uint64_t counter;
		assert_null(wg_peer_begin_send(d, p, w.now, 1, 64, &counter, &note));
		/* Nobody empties the out meanwhile. */
		wg_device_settle(d, world_time(&w, 0), &note, 1, &w.out);
	}
	assert_true(w.out.msgs_n + WG_OUT_MSGS_MIN > w.out.msgs_cap ||
		    w.out.events_n + WG_OUT_EVENTS_MIN > w.out.events_cap);
	assert_true(wg_device_deadline(d).ns <= w.now.ns);
	world_flush(&w, 0);
	assert_int_equal(world_initiations(&w, 0), PEERS);
	assert_int_equal(w.sides[0].events[WG_EVENT_HANDSHAKE], PEERS);
	assert_true(wg_device_deadline(d).ns > w.now.ns);
	world_fini(&w);
}

static void
one_call_sends_few_initiations_so_that_others_can_use_the_device(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1, 17);
	struct wg_device *d = w.sides[0].device;
	static struct wg_msg msgs[1000];
	static struct wg_event events[4000];
	struct wg_out out = {msgs, 1000, 0, events, 4000, 0, &w.sides[0].drops};
	wg_device_set_up(d, false, world_time(&w, 0), &out);
	for (int i = 0; i < 100; i++) {
		uint8_t key[32];
		struct wg_peer *p;
		rng_fill(&w.rng, key, sizeof(key));
		assert_int_equal(wg_peer_add(d, key, &p), WEFT_OK);
		struct endpoint e = world_endpoint(77, (uint16_t)(1000 + i));
		wg_peer_set_endpoint(p, &e);
		wg_peer_set_keepalive(d, p, 25, world_time(&w, 0), &out);
	}
	wg_device_set_up(d, true, world_time(&w, 0), &out);
	int calls = 1;
	while (out.msgs_n < 100) {
		size_t before = out.msgs_n;
		assert_true(wg_device_deadline(d).ns <= w.now.ns);
		wg_device_tick(d, world_time(&w, 0), &out);
		assert_in_range(out.msgs_n - before, 1, 16);
		calls++;
	}
	assert_int_equal(calls, 7);
	world_fini(&w);
}

static void
active_flow_needs_few_exclusive_calls(void **state)
{
	(void)state;
	struct world w;
	world_init_connected(&w, 18);
	struct wg_device *d = w.sides[0].device;
	struct wg_peer *p = world_peer(&w, 0, 1);
	struct wg_session *s = p->current;
	struct endpoint from = wg_peer_endpoint(p);
	uint8_t packet[64] = {0x45}; /* IPv4 */
	unsigned notes = 0;
	uint64_t replays = 0;
	int64_t end = w.now.ns + 60 * WEFT_NS_PER_S;
	for (uint64_t i = 100; w.now.ns < end; i++) {
		struct wg_note note[2];
		uint64_t counter;
		struct aead_op op = {packet, 64, true, i};
		assert_non_null(wg_peer_begin_send(d, p, w.now, 1, 96, &counter, &note[0]));
		wg_session_accept(d, s, w.now, &op, 1, &from, &replays, &note[1]);
		for (int k = 0; k < 2; k++) {
			if (note[k].needs) {
				notes++;
				wg_device_settle(d, world_time(&w, 0), &note[k], 1, &w.out);
			}
		}
		w.now.ns += 1 * WEFT_NS_PER_MS;
		if (wg_device_deadline(d).ns <= w.now.ns) {
			notes++;
			wg_device_tick(d, world_time(&w, 0), &w.out);
		}
	}
	assert_int_equal(replays, 0);
	assert_in_range(notes, 5, 14); /* two in ten seconds: the note, and the timer */
	assert_int_equal(w.out.msgs_n, 0);
	world_fini(&w);
}

static void
end_of_a_session_without_successor_is_told_once(void **state)
{
	(void)state;
	struct world w;
	world_init_connected(&w, 44);
	w.sides[0].is_deaf = w.sides[1].is_deaf = true;
	world_run_s(&w, 168); /* world_init_connected() took 11 s */
	assert_int_equal(w.sides[0].events[WG_EVENT_EXPIRED], 0);
	world_run_s(&w, 2);
	assert_int_equal(w.sides[0].events[WG_EVENT_EXPIRED], 1);
	assert_int_equal(w.sides[1].events[WG_EVENT_EXPIRED], 1);
	world_run_s(&w, 1000);
	assert_int_equal(w.sides[0].events[WG_EVENT_EXPIRED], 1);
	world_fini(&w);
}

static void
renewed_session_does_not_expire(void **state)
{
	(void)state;
	struct world w;
	world_init_connected(&w, 45);
	for (int i = 0; i < 300; i++) {
		world_send(&w, 0, 1, "ping");
		world_run_s(&w, 1);
	}
	assert_int_equal(w.sides[0].events[WG_EVENT_EXPIRED], 0);
	assert_int_equal(w.sides[1].events[WG_EVENT_EXPIRED], 0);
	world_fini(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_without_answer_is_answered_by_a_keepalive_after_10_s),
		cmocka_unit_test(answered_data_needs_no_keepalive),
		cmocka_unit_test(data_without_any_answer_for_15_s_starts_a_handshake),
		cmocka_unit_test(initiator_renews_after_120_s_when_it_sends),
		cmocka_unit_test(responder_does_not_renew_at_120_s),
		cmocka_unit_test(initiator_that_only_receives_renews_at_165_s_once),
		cmocka_unit_test(session_neither_sends_nor_opens_after_180_s),
		cmocka_unit_test(handshake_is_tried_every_5_s_and_given_up_after_90_s),
		cmocka_unit_test(keys_are_gone_540_s_after_the_last_handshake),
		cmocka_unit_test(persistent_keepalive_starts_at_once_and_follows_silence),
		cmocka_unit_test(persistent_keepalive_makes_a_session_and_never_rests),
		cmocka_unit_test(going_down_stops_persistent_keepalives_and_keeps_sessions),
		cmocka_unit_test(sleep_longer_than_the_keys_live_starts_a_handshake_at_once),
		cmocka_unit_test(data_right_after_giving_up_starts_anew_by_itself),
		cmocka_unit_test(sleep_during_an_attempt_does_not_make_new_data_wait),
		cmocka_unit_test(full_out_loses_nothing),
		cmocka_unit_test(one_call_sends_few_initiations_so_that_others_can_use_the_device),
		cmocka_unit_test(active_flow_needs_few_exclusive_calls),
		cmocka_unit_test(end_of_a_session_without_successor_is_told_once),
		cmocka_unit_test(renewed_session_does_not_expire),
	};
	return cmocka_run_group_tests_name("agenda", tests, NULL, NULL);
}

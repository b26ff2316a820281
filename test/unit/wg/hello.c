/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "hello_case.h"

static void
requests_leave_at_0_a_quarter_and_1_second_and_end_at_3(void **state)
{
	(void)state;
	struct wg_hello h;
	case_begin(&h, T0);
	static const int64_t when[] = {T0 + 250 * MS, T0 + S};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(when); i++) {
		assert_true(wg_hello_deadline(&h).ns == when[i]);
		wg_hello_tick(&h, at(when[i] - 1));
		case_takes_nothing(&h, when[i] - 1);
		wg_hello_tick(&h, at(when[i]));
		case_takes_request(&h, when[i], 1);
		case_takes_nothing(&h, when[i]);
	}
	assert_true(wg_hello_deadline(&h).ns == T0 + 3 * S);
	wg_hello_tick(&h, at(T0 + 3 * S));
	case_takes_nothing(&h, T0 + 3 * S);
	assert_int_equal(wg_hello_state(&h, 1), STCK);
	assert_true(wg_hello_deadline(&h).ns == MONO_NEVER.ns);
}

static void
a_frame_gives_away_that_a_request_arrived(void **state)
{
	(void)state;
	struct wg_hello h;
	struct wg_hello_terms terms;
	case_begin(&h, T0);
	assert_false(wg_hello_agreed(&h, 1, NULL));
	assert_true(wg_hello_frame_in(&h, at(T0 + 10 * MS), 1, NULL));
	assert_true(wg_hello_agreed(&h, 1, &terms));
	assert_int_equal(terms.features, WIRE_EXT_FEATURE_FEC);
	assert_int_equal(terms.cipher, WIRE_EXT_CIPHER_CHACHA20_POLY1305);
	/* The answer may still say more, ... */
	struct wg_hello told = h;
	assert_false(case_answered(&told, T0 + 20 * MS, 1, T0)); /* no news: it was agreed */
	assert_true(wg_hello_agreed(&told, 1, &terms));
	assert_true(terms.rtt_ns > 0);
	assert_string_equal(terms.name, "there");
	/* ... and is asked for until requests are used up. */
	struct asked a = case_run_until_given_up(&h, 1);
	assert_int_equal(a.requests, WG_HELLO_UNANSWERED_MAX);
	assert_int_equal(wg_hello_state(&h, 1), AGRD);
	assert_true(wg_hello_agreed(&h, 1, NULL));
	assert_false(case_answered(&h, a.end + 10 * S, 1, a.last));
	assert_true(wg_hello_agreed(&h, 1, &terms));
	assert_true(terms.rtt_ns > 0);
}

static void
another_request_brings_its_own_terms(void **state)
{
	(void)state;
	struct wg_hello h;
	struct wg_hello_terms terms;
	wg_hello_init(&h, &case_here);
	wg_hello_session(&h, at(T0), 1, false);
	struct wire_ext_hello in = case_hello(false, 0);
	assert_true(wg_hello_frame_in(&h, at(T0), 1, &in));
	assert_true(wg_hello_agreed(&h, 1, &terms));
	assert_int_equal(terms.features, WIRE_EXT_FEATURE_FEC);
	in.features = 0;
	in.ciphers = WIRE_EXT_CIPHER_CHACHA20_POLY1305;
	assert_false(wg_hello_frame_in(&h, at(T0 + S), 1, &in));
	assert_true(wg_hello_agreed(&h, 1, &terms));
	assert_int_equal(terms.features, 0);
	assert_int_equal(terms.cipher, WIRE_EXT_CIPHER_CHACHA20_POLY1305);
}

static void
requests_that_nobody_takes_do_not_pile_up(void **state)
{
	(void)state;
	struct wg_hello h;
	wg_hello_init(&h, &case_here);
	wg_hello_session(&h, at(T0), 1, true);
	assert_true(wg_hello_deadline(&h).ns == T0);
	wg_hello_tick(&h, at(T0 + S));
	case_takes_request(&h, T0 + S, 1);
	case_takes_nothing(&h, T0 + S);
	/* A tick that is late by far makes one request, not all that were due. */
	wg_hello_tick(&h, at(T0 + 100 * S));
	case_takes_request(&h, T0 + 100 * S, 1);
	wg_hello_tick(&h, at(T0 + 100 * S));
	case_takes_nothing(&h, T0 + 100 * S);
	assert_true(wg_hello_deadline(&h).ns == T0 + 102 * S);
}

static void
silent_stranger_is_asked_once_an_hour(void **state)
{
	(void)state;
	struct wg_hello h;
	case_begin(&h, T0);
	int64_t end = case_run_until_given_up(&h, 1).end;
	uint64_t session = 2;
	for (int64_t now = end; now < end + HOUR; now += 120 * S) {
		wg_hello_session(&h, at(now), session, true);
		assert_int_equal(wg_hello_state(&h, session++), STCK);
		case_takes_nothing(&h, now);
		assert_true(wg_hello_deadline(&h).ns == MONO_NEVER.ns);
	}
	wg_hello_session(&h, at(end + HOUR), session, true);
	case_takes_request(&h, end + HOUR, session);
	(void)case_run_until_given_up(&h, session);
	wg_hello_session(&h, at(end + HOUR + 120 * S), ++session, true);
	case_takes_nothing(&h, end + HOUR + 120 * S);
}

static void
silence_in_one_session_ends_the_asking_in_another(void **state)
{
	(void)state;
	struct wg_hello h;
	case_begin(&h, T0);
	wg_hello_tick(&h, at(T0 + S));
	case_takes_request(&h, T0 + S, 1);
	wg_hello_tick(&h, at(T0 + 3 * S));
	case_takes_request(&h, T0 + 3 * S, 1);
	wg_hello_session(&h, at(T0 + 4 * S), 2, true);
	case_takes_request(&h, T0 + 4 * S, 2);
	wg_hello_tick(&h, at(T0 + 5 * S)); /* both are due */
	case_takes_nothing(&h, T0 + 5 * S);
	assert_int_equal(wg_hello_state(&h, 1), STCK);
	assert_int_equal(wg_hello_state(&h, 2), STCK);
}

static void
stranger_with_ever_new_sessions_is_not_asked_for_ever(void **state)
{
	(void)state;
	struct wg_hello h;
	wg_hello_init(&h, &case_here);
	unsigned requests = 0;
	for (uint64_t session = 1; session <= 1000; session++) {
		uint64_t s;
		struct wire_ext_hello out;
		int64_t now = T0 + (int64_t)session * 500 * MS;
		wg_hello_session(&h, at(now), session, true);
		wg_hello_tick(&h, at(now));
		while (wg_hello_take(&h, at(now), &s, &out)) {
			requests++;
		}
	}
	assert_in_range(requests, 3, 9);
}

static void
stranger_on_a_path_that_loses_is_asked_in_three_sessions_before_the_hour(void **state)
{
	(void)state;
	struct wg_hello h;
	wg_hello_init(&h, &case_here);
	int64_t now = T0;
	uint64_t session = 1;
	for (; session <= 4; session++, now += 120 * S) {
		wg_hello_session(&h, at(now), session, true);
		assert_int_equal(wg_hello_state(&h, session), session <= 3 ? ASKS : STCK);
		case_arrive(&h, now, session, 100); /* and most before it did not */
		struct asked a = case_run_until_given_up(&h, session);
		assert_int_equal(a.requests, session <= 3 ? 3 : 0);
	}
	/* After the hour it has one session only. */
	now += HOUR;
	for (int i = 0; i < 2; i++, session++, now += 120 * S) {
		wg_hello_session(&h, at(now), session, true);
		assert_int_equal(wg_hello_state(&h, session), i == 0 ? ASKS : STCK);
		case_arrive(&h, now, session, 100);
		(void)case_run_until_given_up(&h, session);
	}
}

static void
known_peer_is_asked_on_at_growing_distances(void **state)
{
	(void)state;
	struct wg_hello h;
	case_begin_known(&h, T0);
	unsigned requests = 1, by_10_s = 0;
	int64_t before = T0, gap = 0;
	for (int64_t now = T0; now <= T0 + 120 * S; now += MS) {
		(void)wg_hello_sent(&h, at(now), 1);
		wg_hello_tick(&h, at(now));
		if (case_take(&h, now) == A_REQUEST) {
			assert_true(now - before >= gap && now - before >= 250 * MS);
			gap = now - before - MS;
			before = now;
			requests++;
		}
		by_10_s = now <= T0 + 10 * S ? requests : by_10_s;
	}
	assert_true(gap <= 8 * S);
	assert_in_range(by_10_s, 26, 28);
	assert_in_range(requests, 50, 60);
	/* Until it answers, to whichever it was of late. */
	assert_true(case_answered(&h, before + 2 * S, 1, before));
	assert_true(wg_hello_deadline(&h).ns == MONO_NEVER.ns);
}

static void
known_peer_is_asked_only_while_packets_pass(void **state)
{
	(void)state;
	struct wg_hello h;
	case_begin_known(&h, T0);
	unsigned requests = 1;
	int64_t now;
	while ((now = wg_hello_deadline(&h).ns) != MONO_NEVER.ns) {
		wg_hello_tick(&h, at(now));
		requests += case_take(&h, now) == A_REQUEST;
	}
	assert_int_equal(requests, 3);
	assert_int_equal(wg_hello_state(&h, 1), ASKS);
	assert_true(wg_hello_is_silent(&h));
	/* A packet either way, and it goes on at once; more packets change nothing. */
	for (int i = 0; i < 2; i++) {
		now = T0 + (60 + i) * S;
		struct wg_hello_arrival in = {.n = 1, .end = 1};
		assert_false(wg_hello_received(&h, at(now), 1, &in)); /* a keepalive */
		in.has_data = true;
		assert_true(
			i ? wg_hello_sent(&h, at(now), 1) : wg_hello_received(&h, at(now), 1, &in));
		assert_false(wg_hello_sent(&h, at(now), 1));
		assert_true(wg_hello_deadline(&h).ns == now);
		wg_hello_tick(&h, at(now));
		case_takes_request(&h, now, 1);
		wg_hello_tick(&h, wg_hello_deadline(&h));
		case_takes_nothing(&h, now + S);
	}
	/* Nor in a session that nobody asks in. */
	assert_false(wg_hello_sent(&h, at(now), 99));
	assert_false(wg_hello_sent(&h, at(now), 7));
}

static void
known_peer_that_is_there_and_silent_is_taken_for_stock(void **state)
{
	(void)state;
	struct wg_hello h;
	wg_hello_init(&h, &case_here);
	case_become_known(&h, T0 - S);
	unsigned requests = 0;
	uint64_t session = 1;
	int64_t now = T0;
	for (; session <= 3; session++, now += 30 * S) {
		wg_hello_session(&h, at(now), session, true);
		for (int64_t end = now + 30 * S; now < end; now += 10 * MS) {
			uint64_t s;
			struct wire_ext_hello out;
			case_arrive(&h, now, session, 1);
			wg_hello_tick(&h, at(now));
			requests += wg_hello_take(&h, at(now), &s, &out);
		}
	}
	/* The older session has been asked a little, too. */
	assert_in_range(requests, WG_HELLO_UNANSWERED_MAX, WG_HELLO_UNANSWERED_MAX + 6);
	wg_hello_session(&h, at(now), session, true);
	assert_int_equal(wg_hello_state(&h, session), STCK);
	/* A request of its own ends that. */
	struct wire_ext_hello in = case_hello(false, 0);
	wg_hello_session(&h, at(now), 50, false);
	assert_true(wg_hello_frame_in(&h, at(now), 50, &in));
	wg_hello_session(&h, at(now), 51, true);
	assert_int_equal(wg_hello_state(&h, 51), ASKS);
}

static void
known_peer_that_is_not_reached_is_not_taken_for_stock(void **state)
{
	(void)state;
	struct wg_hello h;
	case_begin_known(&h, T0);
	unsigned requests = 0;
	for (int64_t now = T0; now < T0 + HOUR; now += 100 * MS) {
		(void)wg_hello_sent(&h, at(now), 1);
		wg_hello_tick(&h, at(now));
		requests += case_take(&h, now) == A_REQUEST;
	}
	assert_in_range(requests, HOUR / (9 * S), HOUR / (7 * S));
	assert_int_equal(wg_hello_state(&h, 1), ASKS);
}

static void
known_peer_with_ever_new_sessions_is_not_asked_for_ever(void **state)
{
	(void)state;
	struct wg_hello h;
	wg_hello_init(&h, &case_here);
	case_become_known(&h, T0);
	unsigned requests = 0;
	for (uint64_t session = 1; session <= 90; session++) {
		uint64_t s;
		struct wire_ext_hello out;
		int64_t now = T0 + (int64_t)session * 5 * S;
		wg_hello_session(&h, at(now), session, true);
		while (wg_hello_take(&h, at(now), &s, &out)) {
			requests++;
		}
	}
	assert_int_equal(requests, WG_HELLO_UNANSWERED_MAX);
	assert_int_equal(wg_hello_state(&h, 0), STCK);
	wg_hello_session(&h, at(T0 + 2 * HOUR), 91, true);
	assert_int_equal(wg_hello_state(&h, 0), ASKS);
}

static void
responder_asks_a_known_peer_that_is_overdue_and_no_stranger(void **state)
{
	(void)state;
	for (int is_known = 0; is_known < 2; is_known++) {
		struct wg_hello h;
		wg_hello_init(&h, &case_here);
		if (is_known) {
			case_become_known(&h, T0 - S);
		}
		wg_hello_session(&h, at(T0), 1, false);
		assert_true(wg_hello_deadline(&h).ns == T0 + (is_known ? S : 4 * S));
		wg_hello_tick(&h, at(T0 + S));
		if (!is_known) {
			case_takes_nothing(&h, T0 + S);
			wg_hello_tick(&h, at(T0 + 4 * S));
			case_takes_nothing(&h, T0 + 4 * S);
			continue;
		}
		case_takes_request(&h, T0 + S, 1);
		assert_true(case_answered(&h, T0 + S + MS, 1, T0 + S));
	}
}

static void
request_of_the_responder_reaches_a_side_that_gave_up(void **state)
{
	(void)state;
	struct wg_hello h;
	struct wg_hello_terms t;
	case_begin(&h, T0);
	int64_t now = case_run_until_given_up(&h, 1).end;
	struct wire_ext_hello in = case_hello(false, 0);
	assert_true(wg_hello_frame_in(&h, at(now), 1, &in));
	assert_int_equal(case_take(&h, now), AN_ANSWER);
	assert_true(wg_hello_agreed(&h, 1, &t) && t.rtt_ns == 0);
	/* A late answer still measures. */
	assert_false(case_answered(&h, now + 1000 * MS, 1, T0 + S));
	assert_true(wg_hello_agreed(&h, 1, &t) && t.rtt_ns > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_leave_at_0_a_quarter_and_1_second_and_end_at_3),
		cmocka_unit_test(a_frame_gives_away_that_a_request_arrived),
		cmocka_unit_test(another_request_brings_its_own_terms),
		cmocka_unit_test(requests_that_nobody_takes_do_not_pile_up),
		cmocka_unit_test(silent_stranger_is_asked_once_an_hour),
		cmocka_unit_test(silence_in_one_session_ends_the_asking_in_another),
		cmocka_unit_test(stranger_with_ever_new_sessions_is_not_asked_for_ever),
		cmocka_unit_test(
			stranger_on_a_path_that_loses_is_asked_in_three_sessions_before_the_hour),
		cmocka_unit_test(known_peer_is_asked_on_at_growing_distances),
		cmocka_unit_test(known_peer_is_asked_only_while_packets_pass),
		cmocka_unit_test(known_peer_that_is_there_and_silent_is_taken_for_stock),
		cmocka_unit_test(known_peer_that_is_not_reached_is_not_taken_for_stock),
		cmocka_unit_test(known_peer_with_ever_new_sessions_is_not_asked_for_ever),
		cmocka_unit_test(responder_asks_a_known_peer_that_is_overdue_and_no_stranger),
		cmocka_unit_test(request_of_the_responder_reaches_a_side_that_gave_up),
	};
	return cmocka_run_group_tests_name("hello", tests, NULL, NULL);
}

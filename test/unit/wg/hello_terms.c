/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "hello_case.h"

static void
terms_are_what_both_offer(void **state)
{
	(void)state;
	static const struct {
		uint8_t ours, theirs, cipher;
	} cases[] = {{CHACHA | AES, CHACHA | AES, AES}, {CHACHA | AES, CHACHA, CHACHA},
		{CHACHA, CHACHA | AES, CHACHA}, {AES, AES, AES}, {CHACHA, AES, CHACHA},
		{0, 255, CHACHA}, {CHACHA | AES, 252, CHACHA}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		for (int is_initiator = 0; is_initiator < 2; is_initiator++) {
			struct wg_hello h;
			struct wg_hello_terms t;
			struct wg_hello_config c = case_here;
			c.ciphers = cases[i].ours;
			wg_hello_init(&h, &c);
			wg_hello_session(&h, at(T0), 1, is_initiator);
			struct wire_ext_hello in =
				case_hello(is_initiator, is_initiator ? (uint32_t)(T0 / US) : 0);
			in.ciphers = cases[i].theirs;
			if (is_initiator) {
				case_takes_request(&h, T0, 1);
			}
			assert_false(wg_hello_agreed(&h, 1, &t));
			assert_true(wg_hello_frame_in(&h, at(T0 + MS), 1, &in));
			assert_true(wg_hello_agreed(&h, 1, &t));
			assert_int_equal(t.cipher, cases[i].cipher);
			assert_int_equal(t.version, 1);
			assert_int_equal(t.features, FEC);
			assert_int_equal(t.datagram_max, 1400);
			assert_string_equal(t.name, "there");
			assert_int_equal(t.rtt_ns != 0, is_initiator);
		}
	}
}

static void
hello_says_what_was_configured(void **state)
{
	(void)state;
	struct wg_hello h;
	uint64_t session;
	struct wire_ext_hello out;
	uint8_t frame[WIRE_EXT_HELLO_MAX];
	struct wg_hello_config c = case_here;
	c.name = "caf\xc3\xa9 at home";
	wg_hello_init(&h, &c);
	wg_hello_session(&h, at(T0), 1, true);
	assert_true(wg_hello_take(&h, at(T0), &session, &out));
	assert_int_equal(out.version_min, 1);
	assert_int_equal(out.version_max, WIRE_EXT_VERSION);
	assert_int_equal(out.ciphers, CHACHA | AES);
	assert_int_equal(out.features, FEC);
	assert_int_equal(out.datagram_max, 1472);
	assert_int_equal(out.echo_us | out.delay_us, 0);
	assert_string_equal(out.name, "caf---at-home");
	assert_int_equal(wire_ext_hello_encode(&out, frame, sizeof(frame)), 24 + 13);
	/* A name that is too long is cut; none is none. */
	c.name = "0123456789012345678901234567890123456789012345678901234567890123456789";
	wg_hello_configure(&h, at(T0), &c);
	wg_hello_session(&h, at(T0), 2, true);
	assert_true(wg_hello_take(&h, at(T0), &session, &out));
	assert_int_equal(out.name_len, 63);
	assert_int_equal(wire_ext_hello_encode(&out, frame, sizeof(frame)), WIRE_EXT_HELLO_MAX);
	c.name = NULL;
	wg_hello_configure(&h, at(T0), &c);
	wg_hello_session(&h, at(T0), 3, true);
	assert_true(wg_hello_take(&h, at(T0), &session, &out));
	assert_int_equal(out.name_len, 0);
}

static void
answer_gives_round_trip_and_clock_difference(void **state)
{
	(void)state;
	/* Their clock less ours; the answer waits 3 ms there, the ways take 10 ms each. */
	static const int64_t diffs[] = {0, 5000, -5000, INT64_C(2147000000), -INT64_C(2147000000)};
	/* Our clock wraps around between the second case's request and answer. */
	static const int64_t starts[] = {T0, INT64_C(4294967296) * US - 15 * MS, 7 * HOUR};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(diffs) * WEFT_ARRAY_LEN(starts); i++) {
		struct wg_hello h;
		struct wg_hello_terms t;
		int64_t diff = diffs[i / WEFT_ARRAY_LEN(starts)];
		int64_t start = starts[i % WEFT_ARRAY_LEN(starts)];
		case_begin(&h, start);
		struct wire_ext_hello in = case_hello(true, (uint32_t)(start / US));
		in.delay_us = 3000;
		in.clock_us = (uint32_t)((start + 13 * MS) / US + diff);
		assert_true(wg_hello_frame_in(&h, at(start + 23 * MS), 1, &in));
		assert_true(wg_hello_agreed(&h, 1, &t));
		assert_true(t.rtt_ns == 20 * MS);
		assert_true(t.clock_diff_us == diff);
	}
}

static void
answer_to_each_try_measures_that_try(void **state)
{
	(void)state;
	struct wg_hello h;
	struct wg_hello_terms t;
	case_begin(&h, T0);
	wg_hello_tick(&h, at(T0 + S));
	case_takes_request(&h, T0 + S + 5 * MS, 1);
	assert_true(case_answered(&h, T0 + S + 30 * MS, 1, T0 + S + 5 * MS));
	assert_true(wg_hello_agreed(&h, 1, &t));
	assert_true(t.rtt_ns == 25 * MS);
	case_takes_nothing(&h, T0 + 10 * S);
	assert_true(wg_hello_deadline(&h).ns == MONO_NEVER.ns);

	case_begin(&h, T0);
	wg_hello_tick(&h, at(T0 + S));
	case_takes_request(&h, T0 + S, 1);
	assert_true(case_answered(&h, T0 + S + 30 * MS, 1, T0));
	assert_true(wg_hello_agreed(&h, 1, &t));
	assert_true(t.rtt_ns == S + 30 * MS);
}

static void
delay_longer_than_the_exchange_leaves_the_round_trip_unknown(void **state)
{
	(void)state;
	struct wg_hello h;
	struct wg_hello_terms t;
	case_begin(&h, T0);
	struct wire_ext_hello in = case_hello(true, (uint32_t)(T0 / US));
	in.delay_us = 10000;
	assert_true(wg_hello_frame_in(&h, at(T0 + 10 * MS), 1, &in));
	assert_true(wg_hello_agreed(&h, 1, &t));
	assert_true(t.rtt_ns == 0 && t.clock_diff_us == 0);
}

static void
answer_in_another_session_agrees_to_nothing(void **state)
{
	(void)state;
	struct wg_hello h;
	case_begin(&h, T0);
	wg_hello_session(&h, at(T0 + MS), 2, true); /* its request is not taken */
	assert_false(case_answered(&h, T0 + 2 * MS, 2, T0));
	assert_false(case_answered(&h, T0 + 2 * MS, 3, T0)); /* nobody told of it */
	assert_false(case_answered(&h, T0 + 2 * MS, 0, T0));
	assert_int_equal(wg_hello_state(&h, 2), ASKS);
	assert_true(case_answered(&h, T0 + 2 * MS, 1, T0));
}

static void
responder_answers_each_request_and_so_many_a_session(void **state)
{
	(void)state;
	struct wg_hello h;
	wg_hello_init(&h, &case_here);
	for (uint64_t session = 1; session <= 2; session++) {
		wg_hello_session(&h, at(T0), session, false);
		for (uint32_t i = 0; i < WG_HELLO_ANSWERS_MAX + 5; i++) {
			uint64_t s;
			struct wire_ext_hello out, in = case_hello(false, 0);
			in.clock_us = 1000 + i;
			int64_t now = T0 + i * S;
			bool is_answered = i < WG_HELLO_ANSWERS_MAX;
			assert_int_equal(wg_hello_frame_in(&h, at(now), session, &in), i == 0);
			assert_int_equal(
				wg_hello_take(&h, at(now + 2 * MS), &s, &out), is_answered);
			if (is_answered) {
				assert_true(s == session && out.is_answer);
				assert_int_equal(out.echo_us, 1000 + i);
				assert_int_equal(out.delay_us, 2000);
			}
			assert_true(wg_hello_agreed(&h, session, NULL));
		}
	}
}

static void
agreement_is_its_sessions(void **state)
{
	(void)state;
	struct wg_hello h;
	case_begin(&h, T0);
	assert_true(case_answered(&h, T0 + MS, 1, T0));
	for (uint64_t session = 2; session <= 4; session++) {
		int64_t now = T0 + (int64_t)session * 120 * S;
		wg_hello_session(&h, at(now), session, true);
		assert_false(wg_hello_agreed(&h, session, NULL));
		case_takes_request(&h, now, session); /* at once */
		assert_true(case_answered(&h, now + MS, session, now));
		/* Three are remembered. */
		assert_true(wg_hello_agreed(&h, session, NULL));
		assert_true(wg_hello_agreed(&h, session - 1, NULL));
		assert_int_equal(wg_hello_agreed(&h, 1, NULL), session <= 3);
	}
	assert_int_equal(wg_hello_state(&h, 1), UNKN);
	assert_false(wg_hello_agreed(&h, 0, NULL));
}

static void
sessions_that_cross_agree_side_by_side(void **state)
{
	(void)state;
	struct wg_hello h;
	case_begin(&h, T0);
	wg_hello_session(&h, at(T0 + MS), 2, false);
	struct wire_ext_hello in = case_hello(false, 0);
	assert_true(wg_hello_frame_in(&h, at(T0 + MS), 2, &in));
	assert_int_equal(wg_hello_state(&h, 1), ASKS);
	wg_hello_tick(&h, at(T0 + S));
	uint64_t s;
	struct wire_ext_hello out;
	unsigned requests = 0, answers = 0;
	while (wg_hello_take(&h, at(T0 + S), &s, &out)) {
		assert_true(s == (out.is_answer ? 2u : 1u));
		requests += !out.is_answer;
		answers += out.is_answer;
	}
	assert_int_equal(requests, 1);
	assert_int_equal(answers, 1);
	assert_true(case_answered(&h, T0 + 2 * S, 1, T0));
	assert_true(wg_hello_agreed(&h, 1, NULL) && wg_hello_agreed(&h, 2, NULL));
}

/* --- configuration --- */

static void
change_of_the_offer_counts_from_the_next_session_on(void **state)
{
	(void)state;
	struct wg_hello h;
	struct wg_hello_terms t;
	struct wire_ext_hello out;
	uint64_t s;
	case_begin(&h, T0);
	struct wg_hello_config c = case_here;
	c.features = 0;
	c.ciphers = CHACHA;
	wg_hello_configure(&h, at(T0 + MS), &c);
	assert_int_equal(wg_hello_state(&h, 1), ASKS);
	wg_hello_tick(&h, at(T0 + S));
	assert_true(wg_hello_take(&h, at(T0 + S), &s, &out));
	assert_int_equal(out.ciphers, CHACHA | AES);
	assert_int_equal(out.features, FEC);
	assert_true(case_answered(&h, T0 + 2 * S, 1, T0 + S));
	assert_true(wg_hello_agreed(&h, 1, &t));
	assert_int_equal(t.cipher, AES);
	wg_hello_session(&h, at(T0 + 3 * S), 2, true);
	assert_true(wg_hello_take(&h, at(T0 + 3 * S), &s, &out));
	assert_int_equal(out.ciphers, CHACHA);
	assert_int_equal(out.features, 0);
}

static void
switching_off_and_on_asks_again_with_what_is_left_of_the_tries(void **state)
{
	(void)state;
	struct wg_hello h;
	static const struct wg_hello_config off = {.is_off = true};
	case_begin(&h, T0);
	unsigned requests = 1;
	for (int64_t i = 1; i < 10; i++) {
		wg_hello_configure(&h, at(T0 + i * MS), &off);
		assert_int_equal(wg_hello_state(&h, 0), NONE);
		case_takes_nothing(&h, T0 + i * MS);
		assert_true(wg_hello_deadline(&h).ns == MONO_NEVER.ns);
		wg_hello_configure(&h, at(T0 + i * MS), &case_here);
		requests += case_take(&h, T0 + i * MS) == A_REQUEST;
	}
	assert_int_equal(requests, WG_HELLO_STRANGER_TRIES);
}

static void
switching_on_asks_a_peer_that_was_taken_for_stock(void **state)
{
	(void)state;
	struct wg_hello h;
	static const struct wg_hello_config off = {.is_off = true};
	case_begin(&h, T0);
	int64_t now = case_run_until_given_up(&h, 1).end;
	wg_hello_configure(&h, at(now), &off);
	wg_hello_session(&h, at(now), 2, true);
	assert_int_equal(wg_hello_state(&h, 2), NONE);
	wg_hello_configure(&h, at(now), &case_here);
	case_takes_request(&h, now, 2);
	case_takes_nothing(&h, now); /* not in the older session */
}

static void
switching_on_a_session_whose_tries_are_used_up_asks_in_the_next(void **state)
{
	(void)state;
	struct wg_hello h;
	struct wg_hello_config off = case_here;
	int64_t now = T0;
	off.is_off = true;
	case_begin(&h, now);
	for (unsigned i = 0; i < 2 * WG_HELLO_STRANGER_TRIES; i++) {
		uint64_t s;
		struct wire_ext_hello out;
		now += MS;
		wg_hello_configure(&h, at(now), &off);
		wg_hello_configure(&h, at(now), &case_here);
		/* Whoever configures tells of the session again. */
		wg_hello_session(&h, at(now), 1, true);
		assert_true(
			wg_hello_take(&h, at(now), &s, &out) == (i + 1 < WG_HELLO_STRANGER_TRIES));
	}
	assert_int_equal(wg_hello_state(&h, 1), WG_HELLO_STATE_UNKNOWN);
	wg_hello_tick(&h, wg_hello_deadline(&h));
	assert_int_equal(wg_hello_state(&h, 1), WG_HELLO_STATE_STOCK);
	now += S;
	wg_hello_session(&h, at(now), 2, true);
	case_takes_request(&h, now, 2);
}

static void
off_from_the_start_neither_asks_nor_answers(void **state)
{
	(void)state;
	struct wg_hello h;
	static const struct wg_hello_config off = {.is_off = true};
	struct wire_ext_hello in = case_hello(false, 0);
	wg_hello_init(&h, &off);
	assert_int_equal(wg_hello_state(&h, 0), NONE);
	wg_hello_session(&h, at(T0), 1, true);
	wg_hello_session(&h, at(T0), 2, false);
	assert_false(wg_hello_frame_in(&h, at(T0), 2, &in));
	case_takes_nothing(&h, T0);
	assert_true(wg_hello_deadline(&h).ns == MONO_NEVER.ns);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(terms_are_what_both_offer),
		cmocka_unit_test(hello_says_what_was_configured),
		cmocka_unit_test(answer_gives_round_trip_and_clock_difference),
		cmocka_unit_test(answer_to_each_try_measures_that_try),
		cmocka_unit_test(delay_longer_than_the_exchange_leaves_the_round_trip_unknown),
		cmocka_unit_test(answer_in_another_session_agrees_to_nothing),
		cmocka_unit_test(responder_answers_each_request_and_so_many_a_session),
		cmocka_unit_test(agreement_is_its_sessions),
		cmocka_unit_test(sessions_that_cross_agree_side_by_side),
		cmocka_unit_test(change_of_the_offer_counts_from_the_next_session_on),
		cmocka_unit_test(switching_off_and_on_asks_again_with_what_is_left_of_the_tries),
		cmocka_unit_test(switching_on_asks_a_peer_that_was_taken_for_stock),
		cmocka_unit_test(switching_on_a_session_whose_tries_are_used_up_asks_in_the_next),
		cmocka_unit_test(off_from_the_start_neither_asks_nor_answers),
	};
	return cmocka_run_group_tests_name("hello_terms", tests, NULL, NULL);
}

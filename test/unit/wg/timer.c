/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "wg/timer.h"

#define S WEFT_NS_PER_S
#define T0 (100 * S) /* when the awaited thing began */
#define T1 (101 * S) /* when the event happens */

enum awaited {
	NOTHING,
	ANSWER_TO_DATA,
	OUR_ANSWER,
	RESPONSE,
	END_OF_KEYS,
	PERSISTENT,
	AWAITED_COUNT
};

enum happened {
	SENT_DATA,
	SENT_EMPTY,
	RECEIVED_DATA,
	RECEIVED_EMPTY,
	WANT_SESSION,
	INITIATION_SENT,
	DERIVED,
	COMPLETE,
	STOP,
	HAPPENED_COUNT
};

static struct mono
at(int64_t ns)
{
	return (struct mono){ns};
}

static void
begin(struct wg_timers *t, enum awaited a)
{
	wg_timers_init(t);
	switch (a) {
	case ANSWER_TO_DATA:
		(void)wg_timers_sent(t, at(T0), true);
		break;
	case OUR_ANSWER:
		(void)wg_timers_received(t, at(T0), true);
		break;
	case RESPONSE:
		wg_timers_want_session(t, at(T0));
		wg_timers_initiation_sent(t, at(T0), 0);
		break;
	case END_OF_KEYS:
		wg_timers_session_derived(t, at(T0));
		break;
	case PERSISTENT:
		wg_timers_set_persistent(t, 25, true, at(T0));
		break;
	case NOTHING:
	case AWAITED_COUNT:
		break;
	}
}

static void
happen(struct wg_timers *t, enum happened e)
{
	switch (e) {
	case SENT_DATA:
		(void)wg_timers_sent(t, at(T1), true);
		break;
	case SENT_EMPTY:
		(void)wg_timers_sent(t, at(T1), false);
		break;
	case RECEIVED_DATA:
		(void)wg_timers_received(t, at(T1), true);
		break;
	case RECEIVED_EMPTY:
		(void)wg_timers_received(t, at(T1), false);
		break;
	case WANT_SESSION:
		wg_timers_want_session(t, at(T1));
		break;
	case INITIATION_SENT:
		wg_timers_initiation_sent(t, at(T1), 0);
		break;
	case DERIVED:
		wg_timers_session_derived(t, at(T1));
		break;
	case COMPLETE:
		wg_timers_session_complete(t);
		break;
	case STOP:
		wg_timers_stop(t);
		break;
	case HAPPENED_COUNT:
		break;
	}
}

/* The next thing due, in seconds, and what it is. */
struct want {
	double s; /* 0 = never */
	uint32_t due;
};

#define NEVER                                                                                      \
	{                                                                                          \
		0, 0                                                                               \
	}
#define NH WG_DUE_NEW_HANDSHAKE
#define KA WG_DUE_KEEPALIVE
#define RT WG_DUE_RETRANSMIT
#define ZK WG_DUE_ZERO_KEYS
#define PK WG_DUE_PERSISTENT

/* Initiations without WANT_SESSION before belong to the series that began at time 0, which is
 * over for 90 s at T1: the retransmission is then a giving up. */
#define GU WG_DUE_GIVE_UP

static const struct want table[AWAITED_COUNT][HAPPENED_COUNT] = {
	[NOTHING] = {[SENT_DATA] = {116, NH},
		[RECEIVED_DATA] = {111, KA},
		[INITIATION_SENT] = {90, GU},
		[DERIVED] = {641, ZK}},
	[ANSWER_TO_DATA] = {[SENT_DATA] = {115, NH},
		[SENT_EMPTY] = {115, NH},
		[RECEIVED_DATA] = {111, KA},
		[RECEIVED_EMPTY] = NEVER,
		[WANT_SESSION] = {115, NH},
		[INITIATION_SENT] = {90, GU},
		[DERIVED] = {115, NH},
		[COMPLETE] = {115, NH},
		[STOP] = NEVER},
	[OUR_ANSWER] = {[SENT_DATA] = {116, NH},
		[SENT_EMPTY] = NEVER,
		[RECEIVED_DATA] = {110, KA},
		[RECEIVED_EMPTY] = {110, KA},
		[WANT_SESSION] = {110, KA},
		[INITIATION_SENT] = {90, GU},
		[DERIVED] = {110, KA},
		[COMPLETE] = {110, KA},
		[STOP] = NEVER},
	[RESPONSE] = {[SENT_DATA] = {105, RT},
		[SENT_EMPTY] = {105, RT},
		[RECEIVED_DATA] = {105, RT},
		[RECEIVED_EMPTY] = {105, RT},
		[WANT_SESSION] = {105, RT},
		[INITIATION_SENT] = {106, RT},
		[DERIVED] = {105, RT},
		[COMPLETE] = NEVER,
		[STOP] = NEVER},
	[END_OF_KEYS] = {[SENT_DATA] = {116, NH},
		[SENT_EMPTY] = {640, ZK},
		[RECEIVED_DATA] = {111, KA},
		[RECEIVED_EMPTY] = {640, ZK},
		[WANT_SESSION] = {640, ZK},
		[INITIATION_SENT] = {90, GU},
		[DERIVED] = {641, ZK},
		[COMPLETE] = {640, ZK},
		[STOP] = NEVER},
	[PERSISTENT] = {[SENT_DATA] = {116, NH},
		[SENT_EMPTY] = {126, PK},
		[RECEIVED_DATA] = {111, KA},
		[RECEIVED_EMPTY] = {126, PK},
		[WANT_SESSION] = {125, PK},
		[INITIATION_SENT] = {90, GU},
		[DERIVED] = {125, PK},
		[COMPLETE] = {125, PK},
		[STOP] = {125, PK}},
};

static void
every_event_meets_every_awaited_thing(void **state)
{
	(void)state;
	for (int a = 0; a < AWAITED_COUNT; a++) {
		for (int e = 0; e < HAPPENED_COUNT; e++) {
			struct wg_timers t;
			begin(&t, (enum awaited)a);
			happen(&t, (enum happened)e);
			const struct want *w = &table[a][e];
			int64_t due = wg_timers_deadline(&t).ns;
			int64_t want = w->s > 0 ? (int64_t)(w->s * 1e9) : INT64_MAX;
			if (due != want) {
				fail_msg("awaited %d event %d: due %lld", a, e, (long long)due);
			}
			if (w->s > 0) {
				assert_int_equal(wg_timers_run(&t, at(due - 1), 0), 0);
				assert_int_equal(wg_timers_run(&t, at(due), 0), w->due);
				assert_int_equal(wg_timers_run(&t, at(due), 0), 0);
			}
		}
	}
}

static void
jitter_moves_the_answer_and_the_retransmission(void **state)
{
	(void)state;
	struct wg_timers t;
	wg_timers_init(&t);
	t.jitter_ns = 300;
	(void)wg_timers_sent(&t, at(T0), true);
	assert_int_equal(wg_timers_deadline(&t).ns, T0 + 15 * S + 300);
	wg_timers_want_session(&t, at(T0));
	wg_timers_initiation_sent(&t, at(T0), 77);
	assert_int_equal(wg_timers_deadline(&t).ns, T0 + 5 * S + 77);
}

static void
series_of_attempts_ends_after_90_s(void **state)
{
	(void)state;
	struct wg_timers t;
	int64_t now = T0;
	wg_timers_init(&t);
	wg_timers_want_session(&t, at(now));
	wg_timers_initiation_sent(&t, at(now), 100 * WEFT_NS_PER_MS);
	uint32_t due;
	int attempts = 1;
	for (;;) {
		now = wg_timers_deadline(&t).ns;
		due = wg_timers_run(&t, at(now), 0);
		if (due != WG_DUE_RETRANSMIT) {
			break;
		}
		attempts++;
		wg_timers_initiation_sent(&t, at(now), 100 * WEFT_NS_PER_MS);
		assert_int_equal(t.attempts, attempts);
	}
	assert_int_equal(due, WG_DUE_GIVE_UP);
	assert_int_equal(now, T0 + 90 * S);
	assert_int_equal(attempts, 18);
	/* What keys there are go in the end. */
	assert_int_equal(wg_timers_deadline(&t).ns, now + 540 * S);
}

static void
new_data_begins_the_series_anew(void **state)
{
	(void)state;
	struct wg_timers t;
	wg_timers_init(&t);
	wg_timers_want_session(&t, at(T0));
	wg_timers_initiation_sent(&t, at(T0 + 88 * S), 0);
	wg_timers_want_session(&t, at(T0 + 89 * S));
	assert_int_equal(wg_timers_deadline(&t).ns, T0 + 93 * S);
	assert_int_equal(wg_timers_run(&t, at(T0 + 93 * S), 0), WG_DUE_RETRANSMIT);
}

static void
data_path_asks_for_a_timer_only_when_none_covers_it(void **state)
{
	(void)state;
	struct wg_timers t;
	wg_timers_init(&t);
	assert_true(wg_timers_sent(&t, at(T0), true));
	t.armed_ns = wg_timers_deadline(&t).ns;
	assert_false(wg_timers_sent(&t, at(T0 + 1), true));
	/* Our answer is due sooner than the other's. */
	assert_true(wg_timers_received(&t, at(T0 + 2), true));
	t.armed_ns = wg_timers_deadline(&t).ns;
	/* A busy flow for the time until the timer fires: nobody asks. */
	for (int64_t now = T0 + 3; now < t.armed_ns; now += S / 10) {
		assert_false(wg_timers_sent(&t, at(now), true));
		assert_false(wg_timers_received(&t, at(now), true));
	}
	assert_int_equal(wg_timers_run(&t, at(t.armed_ns), 0), 0);
}

static void
persistent_keepalive_stops_while_down_and_when_off(void **state)
{
	(void)state;
	struct wg_timers t;
	wg_timers_init(&t);
	wg_timers_set_persistent(&t, 25, false, at(T0));
	assert_int_equal(wg_timers_deadline(&t).ns, INT64_MAX);
	wg_timers_set_persistent(&t, 25, true, at(T1));
	assert_int_equal(wg_timers_deadline(&t).ns, T1 + 25 * S);
	assert_int_equal(wg_timers_run(&t, at(T1 + 25 * S), 0), WG_DUE_PERSISTENT);
	assert_int_equal(wg_timers_deadline(&t).ns, T1 + 50 * S);
	wg_timers_set_persistent(&t, 0, true, at(T1));
	assert_int_equal(wg_timers_deadline(&t).ns, INT64_MAX);
}

static void
time_zero_counts_as_a_time(void **state)
{
	(void)state;
	struct wg_timers t;
	wg_timers_init(&t);
	assert_true(wg_timers_sent(&t, at(0), true));
	assert_int_equal(wg_timers_deadline(&t).ns, 15 * S + 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_event_meets_every_awaited_thing),
		cmocka_unit_test(jitter_moves_the_answer_and_the_retransmission),
		cmocka_unit_test(series_of_attempts_ends_after_90_s),
		cmocka_unit_test(new_data_begins_the_series_anew),
		cmocka_unit_test(data_path_asks_for_a_timer_only_when_none_covers_it),
		cmocka_unit_test(persistent_keepalive_stops_while_down_and_when_off),
		cmocka_unit_test(time_zero_counts_as_a_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

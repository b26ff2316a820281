/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "node/name.h"

#define S WEFT_NS_PER_S
#define W NAME_STATE_WAITING
#define A NAME_STATE_ASKING
#define L NAME_STATE_LINGERING
#define K NAME_STATE_KNOWN
#define HALF_RANGE (UINT32_MAX / 2 + 1) /* no jitter */

static const struct ip_addr v4 = {IP_FAMILY_V4, {192, 0, 2, 1}};
static const struct ip_addr v6 = {IP_FAMILY_V6, {0x20, 1, 0xd, 0xb8}};

static struct mono
at(int64_t ns)
{
	return (struct mono){100 * S + ns};
}

/* A name in a state, as its diagram leads there; 0 s. */
static struct name
in_state(enum name_state s)
{
	struct name n;
	name_init(&n, at(0));
	if (s != NAME_STATE_WAITING) {
		name_step(&n, NAME_EVENT_TIMER, NULL, at(0), HALF_RANGE);
	}
	if (s == NAME_STATE_LINGERING || s == NAME_STATE_KNOWN) {
		name_step(&n, NAME_EVENT_FOUND, &v4, at(0), HALF_RANGE);
	}
	if (s == NAME_STATE_KNOWN) {
		name_step(&n, NAME_EVENT_TIMER, NULL, at(NAME_LINGER_NS), HALF_RANGE);
	}
	assert_int_equal(n.state, s);
	return n;
}

static void
every_pair_of_state_and_event_does_what_the_table_says(void **state)
{
	(void)state;
	static const struct {
		enum name_state next;
		unsigned todo;
	} table[NAME_STATE_COUNT][NAME_EVENT_COUNT] = {
		/* the answer is the other family's: IPv6 */
		[W] = {[NAME_EVENT_TIMER] = {A, NAME_DO_ASK},
			[NAME_EVENT_FOUND] = {W, 0},
			[NAME_EVENT_ABSENT] = {W, 0},
			[NAME_EVENT_FAILED] = {W, 0},
			[NAME_EVENT_UNANSWERED] = {W, 0},
			[NAME_EVENT_UP] = {W, 0}},
		[A] = {[NAME_EVENT_TIMER] = {A, 0},
			[NAME_EVENT_FOUND] = {L, 0},
			[NAME_EVENT_ABSENT] = {A, 0},
			[NAME_EVENT_FAILED] = {A, 0},
			[NAME_EVENT_UNANSWERED] = {A, 0},
			[NAME_EVENT_UP] = {A, 0}},
		[L] = {[NAME_EVENT_TIMER] = {K, NAME_DO_USE},
			[NAME_EVENT_FOUND] = {K, NAME_DO_USE},
			[NAME_EVENT_ABSENT] = {K, NAME_DO_USE},
			[NAME_EVENT_FAILED] = {K, NAME_DO_USE},
			[NAME_EVENT_UNANSWERED] = {L, 0},
			[NAME_EVENT_UP] = {L, 0}},
		[K] = {[NAME_EVENT_TIMER] = {K, 0},
			[NAME_EVENT_FOUND] = {K, NAME_DO_USE},
			[NAME_EVENT_ABSENT] = {K, 0},
			[NAME_EVENT_FAILED] = {K, 0},
			[NAME_EVENT_UNANSWERED] = {W, 0},
			[NAME_EVENT_UP] = {K, 0}},
	};
	for (unsigned s = 0; s < NAME_STATE_COUNT; s++) {
		for (unsigned e = 0; e < NAME_EVENT_COUNT; e++) {
			struct name n = in_state((enum name_state)s);
			unsigned todo = name_step(
				&n, (enum name_event)e, &v6, at(NAME_LINGER_NS), HALF_RANGE);
			if (n.state != table[s][e].next || todo != table[s][e].todo) {
				fail_msg("state %u event %u: state %d, does %u", s, e, n.state,
					todo);
			}
		}
	}
}

static void
waits_grow_to_a_minute_while_nothing_is_found(void **state)
{
	(void)state;
	static const int64_t waits_s[] = {5, 10, 20, 40, 60, 60};
	struct name n;
	int64_t now = 0;
	name_init(&n, at(0));
	for (unsigned i = 0; i < WEFT_ARRAY_LEN(waits_s); i++) {
		assert_int_equal(
			name_step(&n, NAME_EVENT_TIMER, NULL, at(now), HALF_RANGE), NAME_DO_ASK);
		assert_int_equal(name_step(&n, NAME_EVENT_FAILED, &v4, at(now), HALF_RANGE), 0);
		assert_int_equal(name_step(&n, NAME_EVENT_ABSENT, &v6, at(now), HALF_RANGE), 0);
		assert_int_equal(n.state, NAME_STATE_WAITING);
		assert_int_equal(n.due.ns, at(now + waits_s[i] * S).ns);
		assert_int_equal(name_step(&n, NAME_EVENT_TIMER, NULL, at(now), HALF_RANGE), 0);
		now += waits_s[i] * S;
	}
}

static void
jitter_spreads_waits_by_a_quarter_either_way(void **state)
{
	(void)state;
	static const struct {
		uint32_t random;
		int64_t wait_ms;
	} cases[] = {{0, 3750}, {HALF_RANGE, 5000}, {UINT32_MAX, 6249}};
	for (unsigned i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		struct name n;
		name_init(&n, at(0));
		name_step(&n, NAME_EVENT_TIMER, NULL, at(0), 0);
		name_step(&n, NAME_EVENT_FAILED, &v4, at(0), cases[i].random);
		name_step(&n, NAME_EVENT_FAILED, &v6, at(0), cases[i].random);
		assert_int_equal((n.due.ns - at(0).ns) / WEFT_NS_PER_MS, cases[i].wait_ms);
	}
}

static void
unanswered_handshakes_ask_at_once_after_a_good_while_and_ever_later_in_a_bad_one(void **state)
{
	(void)state;
	struct name n = in_state(NAME_STATE_KNOWN);
	name_step(&n, NAME_EVENT_UP, NULL, at(1 * S), HALF_RANGE);
	name_step(&n, NAME_EVENT_UNANSWERED, NULL, at(1000 * S), HALF_RANGE);
	assert_true(n.due.ns <= at(1000 * S).ns);
	assert_int_equal(
		name_step(&n, NAME_EVENT_TIMER, NULL, at(1000 * S), HALF_RANGE), NAME_DO_ASK);
	name_step(&n, NAME_EVENT_FOUND, &v4, at(1000 * S), HALF_RANGE);
	name_step(&n, NAME_EVENT_ABSENT, &v6, at(1000 * S), HALF_RANGE);
	name_step(&n, NAME_EVENT_UNANSWERED, NULL, at(1010 * S), HALF_RANGE);
	assert_int_equal(n.due.ns, at(1010 * S).ns); /* 10 s after the question */
}

static void
address_found_before_stays_without_an_answer_and_goes_when_it_is_absent(void **state)
{
	(void)state;
	struct name n = in_state(NAME_STATE_KNOWN);
	name_step(&n, NAME_EVENT_FAILED, &v6, at(1 * S), HALF_RANGE);
	name_step(&n, NAME_EVENT_UNANSWERED, NULL, at(100 * S), HALF_RANGE);
	name_step(&n, NAME_EVENT_TIMER, NULL, at(100 * S), HALF_RANGE);
	name_step(&n, NAME_EVENT_FAILED, &v4, at(100 * S), HALF_RANGE);
	name_step(&n, NAME_EVENT_FOUND, &v6, at(100 * S), HALF_RANGE);
	assert_int_equal(n.state, NAME_STATE_KNOWN);
	assert_true(ip_addr_is_equal(&n.found[0], &v4) && ip_addr_is_equal(&n.found[1], &v6));
	name_step(&n, NAME_EVENT_UNANSWERED, NULL, at(200 * S), HALF_RANGE);
	name_step(&n, NAME_EVENT_TIMER, NULL, at(200 * S), HALF_RANGE);
	name_step(&n, NAME_EVENT_ABSENT, &v4, at(200 * S), HALF_RANGE);
	assert_int_equal(
		name_step(&n, NAME_EVENT_FOUND, &v6, at(200 * S), HALF_RANGE), NAME_DO_USE);
	assert_int_equal(n.found[0].family, IP_FAMILY_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_of_state_and_event_does_what_the_table_says),
		cmocka_unit_test(waits_grow_to_a_minute_while_nothing_is_found),
		cmocka_unit_test(jitter_spreads_waits_by_a_quarter_either_way),
		cmocka_unit_test(
			unanswered_handshakes_ask_at_once_after_a_good_while_and_ever_later_in_a_bad_one),
		cmocka_unit_test(
			address_found_before_stays_without_an_answer_and_goes_when_it_is_absent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

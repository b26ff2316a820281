/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "base/timerwheel.h"

#define YEAR_NS (INT64_C(365) * 86400 * WEFT_NS_PER_S)

static struct mono
at(int64_t ns)
{
	return (struct mono){ns};
}

static void
timer_expires_at_its_due_time_and_not_before(void **state)
{
	(void)state;
	static const int64_t delays[] = {1, 2, 1000, WEFT_NS_PER_MS, WEFT_NS_PER_MS + 1,
		63 * WEFT_NS_PER_MS, 64 * WEFT_NS_PER_MS, 67108863, 67108864, 67108865,
		10 * WEFT_NS_PER_S, 180 * WEFT_NS_PER_S, 86400 * WEFT_NS_PER_S, YEAR_NS,
		200 * YEAR_NS};
	static const int64_t starts[] = {0, 1, 12345678901, 64 * (INT64_C(1) << 20) - 1, YEAR_NS};
	for (size_t s = 0; s < WEFT_ARRAY_LEN(starts); s++) {
		for (size_t i = 0; i < WEFT_ARRAY_LEN(delays); i++) {
			struct timerwheel w;
			struct timer t;
			int64_t due = starts[s] + delays[i];
			timerwheel_init(&w, at(starts[s]));
			timer_init(&t);
			timerwheel_arm(&w, &t, at(due));
			assert_true(timer_is_armed(&t));
			assert_true(timerwheel_next(&w).ns == due);
			assert_null(timerwheel_take_expired(&w, at(due - 1)));
			assert_true(timerwheel_next(&w).ns == due);
			assert_ptr_equal(timerwheel_take_expired(&w, at(due)), &t);
			assert_false(timer_is_armed(&t));
			assert_null(timerwheel_take_expired(&w, at(due)));
			assert_true(timerwheel_next(&w).ns == MONO_NEVER.ns);
		}
	}
}

static void
timer_can_be_rearmed_and_disarmed_in_every_state(void **state)
{
	(void)state;
	struct timerwheel w;
	struct timer t, u;
	timerwheel_init(&w, at(1000));
	timer_init(&t);
	timer_init(&u);
	timerwheel_disarm(&w, &t);
	timerwheel_arm(&w, &t, at(2000));
	timerwheel_arm(&w, &t, at(YEAR_NS));
	assert_true(timerwheel_next(&w).ns == YEAR_NS);
	assert_null(timerwheel_take_expired(&w, at(3000)));
	timerwheel_arm(&w, &t, MONO_NEVER);
	assert_false(timer_is_armed(&t));
	assert_true(timerwheel_next(&w).ns == MONO_NEVER.ns);

	/* Both expire in one advance; the second is disarmed while it waits to be taken. */
	timerwheel_arm(&w, &t, at(4000));
	timerwheel_arm(&w, &u, at(4000));
	struct timer *first = timerwheel_take_expired(&w, at(5000));
	assert_non_null(first);
	timerwheel_disarm(&w, first == &t ? &u : &t);
	assert_null(timerwheel_take_expired(&w, at(5000)));

	/* Past due times expire without a further advance. */
	timerwheel_arm(&w, &t, at(10));
	assert_true(timerwheel_next(&w).ns <= 5000);
	assert_ptr_equal(timerwheel_take_expired(&w, at(5000)), &t);
	timerwheel_arm(&w, &t, at(5000));
	timerwheel_arm(&w, &t, at(6000));
	assert_null(timerwheel_take_expired(&w, at(5000)));
	assert_ptr_equal(timerwheel_take_expired(&w, at(6000)), &t);
}

static void
time_that_steps_back_is_ignored(void **state)
{
	(void)state;
	struct timerwheel w;
	struct timer t;
	timerwheel_init(&w, at(WEFT_NS_PER_S));
	timer_init(&t);
	timerwheel_arm(&w, &t, at(2 * WEFT_NS_PER_S));
	assert_null(timerwheel_take_expired(&w, at(0)));
	assert_true(timerwheel_next(&w).ns == 2 * WEFT_NS_PER_S);
	assert_ptr_equal(timerwheel_take_expired(&w, at(2 * WEFT_NS_PER_S)), &t);
}

/* A naive model: an array of due times. */
#define TIMERS 200

struct model {
	struct timerwheel wheel;
	struct timer timers[TIMERS];
	int64_t due[TIMERS]; /* INT64_MAX = not armed */
	int64_t now;
};

static int64_t
model_earliest(const struct model *m)
{
	int64_t min = INT64_MAX;
	for (int i = 0; i < TIMERS; i++) {
		min = m->due[i] < min ? m->due[i] : min;
	}
	return min;
}

static int64_t
some_delay(struct rng *rng)
{
	static const int64_t scales[] = {1000, WEFT_NS_PER_MS, 100 * WEFT_NS_PER_MS,
		10 * WEFT_NS_PER_S, 200 * WEFT_NS_PER_S, 86400 * WEFT_NS_PER_S, YEAR_NS};
	return (int64_t)rng_below(rng, (uint64_t)scales[rng_below(rng, WEFT_ARRAY_LEN(scales))]);
}

static void
model_advance(struct model *m, uint64_t seed)
{
	struct timer *t;
	while ((t = timerwheel_take_expired(&m->wheel, at(m->now)))) {
		ptrdiff_t i = t - m->timers;
		if (m->due[i] > m->now) {
			fail_msg("seed %lu: timer %td expired early", seed, i);
		}
		m->due[i] = INT64_MAX;
	}
	int64_t earliest = model_earliest(m);
	if (earliest <= m->now) {
		fail_msg("seed %lu: a due timer was not taken", seed);
	}
	int64_t next = timerwheel_next(&m->wheel).ns;
	if (next > earliest || (earliest == INT64_MAX && next != INT64_MAX) || next <= m->now) {
		fail_msg("seed %lu: next %ld, earliest %ld, now %ld", seed, next, earliest, m->now);
	}
}

static void
wheel_equals_a_naive_model(void **state)
{
	(void)state;
	static struct model m;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct rng rng;
		rng_init(&rng, seed);
		m.now = some_delay(&rng);
		timerwheel_init(&m.wheel, at(m.now));
		for (int i = 0; i < TIMERS; i++) {
			timer_init(&m.timers[i]);
			m.due[i] = INT64_MAX;
		}
		for (int step = 0; step < 2000; step++) {
			uint64_t i = rng_below(&rng, TIMERS);
			switch (rng_below(&rng, 8)) {
			case 0:
				timerwheel_disarm(&m.wheel, &m.timers[i]);
				m.due[i] = INT64_MAX;
				break;
			case 1:
				m.now += some_delay(&rng) / 4;
				model_advance(&m, seed);
				break;
			case 2: /* sleep as a node would */
				if (timerwheel_next(&m.wheel).ns != INT64_MAX &&
					timerwheel_next(&m.wheel).ns > m.now) {
					m.now = timerwheel_next(&m.wheel).ns;
				}
				model_advance(&m, seed);
				break;
			default:
				m.due[i] = m.now + some_delay(&rng) - (int64_t)rng_below(&rng, 100);
				m.due[i] = m.due[i] < 0 ? 0 : m.due[i];
				timerwheel_arm(&m.wheel, &m.timers[i], at(m.due[i]));
			}
			if (timer_is_armed(&m.timers[i]) != (m.due[i] != INT64_MAX)) {
				fail_msg("seed %lu step %d: wrong armed state", seed, step);
			}
		}
	}
}

/* Sleeping until timerwheel_next() takes few turns that yield nothing, whatever the distance. */
static void
sleeping_until_next_wastes_few_turns(void **state)
{
	(void)state;
	static struct timerwheel w;
	static struct timer timers[1000];
	struct rng rng;
	rng_init(&rng, 3);
	timerwheel_init(&w, at(0));
	for (size_t i = 0; i < WEFT_ARRAY_LEN(timers); i++) {
		timer_init(&timers[i]);
		timerwheel_arm(&w, &timers[i], at(some_delay(&rng)));
	}
	int64_t now = 0;
	unsigned turns = 0, taken = 0;
	while (timerwheel_next(&w).ns != MONO_NEVER.ns) {
		now = timerwheel_next(&w).ns > now ? timerwheel_next(&w).ns : now;
		turns++;
		while (timerwheel_take_expired(&w, at(now))) {
			taken++;
		}
	}
	assert_int_equal(taken, WEFT_ARRAY_LEN(timers));
	assert_true(turns <= taken);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timer_expires_at_its_due_time_and_not_before),
		cmocka_unit_test(timer_can_be_rearmed_and_disarmed_in_every_state),
		cmocka_unit_test(time_that_steps_back_is_ignored),
		cmocka_unit_test(wheel_equals_a_naive_model),
		cmocka_unit_test(sleeping_until_next_wastes_few_turns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

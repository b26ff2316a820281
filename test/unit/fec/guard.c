/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "fec/guard.h"

#define MS 1000 /* microseconds */
#define LEAST 5000u

struct story {
	struct fec_guard g;
	struct mono now;
};

static void
story_begin(struct story *s)
{
	*s = (struct story){.now = {1000 * WEFT_NS_PER_S}};
	fec_guard_set_path(&s->g, s->now, 10 * WEFT_NS_PER_MS, 0);
}

static void
pass_ms(struct story *s, int64_t ms)
{
	s->now = mono_add_ns(s->now, ms * WEFT_NS_PER_MS);
}

/* A loss, the packet before which met such a queue, as did the one that shows it. */
static void
loss_at(struct story *s, uint32_t queue_us)
{
	struct fec_guard_sample sample = {.delay_us = LEAST + queue_us,
		.behind_ns = WEFT_NS_PER_MS,
		.has_edge = true,
		.edge_delay_us = LEAST + queue_us,
		.edge_lead_us = MS,
		.edge_gap_us = MS};
	fec_guard_sample(&s->g, s->now, &sample);
}

static void
a_first_loss_under_a_queue_is_the_queue_s(void **state)
{
	(void)state;
	struct story s;
	story_begin(&s);
	loss_at(&s, 45 * MS);
	assert_true(s.g.is_loaded);
	assert_int_equal(s.g.queue_us, 45 * MS);
	pass_ms(&s, 100);
	loss_at(&s, 0);
	assert_false(s.g.is_loaded || s.g.is_suspect);
}

static void
on_a_line_that_loses_by_itself_a_queue_is_believed_after_three_moments(void **state)
{
	(void)state;
	struct story s;
	story_begin(&s);
	loss_at(&s, 0);
	unsigned ms = 0;
	/* As many as can be reported. */
	for (; !s.g.is_loaded; ms += 2) {
		pass_ms(&s, 2);
		loss_at(&s, 45 * MS);
		assert_true(s.g.is_suspect);
		assert_in_range(ms, 0, 100);
	}
	assert_in_range(ms, 50, 60);
	/* Long after, the line is known no more. */
	loss_at(&s, 0);
	pass_ms(&s, 31000);
	loss_at(&s, 45 * MS);
	assert_true(s.g.is_loaded);
}

static void
moments_between_calm_losses_are_no_queue(void **state)
{
	(void)state;
	struct story s;
	struct rng rng;
	rng_init(&rng, 7);
	story_begin(&s);
	loss_at(&s, 0);
	unsigned loaded = 0;
	for (int i = 0; i < 10000; i++) {
		pass_ms(&s, 30);
		loss_at(&s, rng_is_hit(&rng, 0.2) ? 10 * MS : 0);
		loaded += s.g.is_loaded;
	}
	/* Three in a row by chance: 0.8 %. */
	assert_in_range(loaded, 1, 150);
}

/* What waited 10 ms arrived together with what was sent 10 ms later. */
static void
what_arrives_all_at_once_stood_in_no_queue(void **state)
{
	(void)state;
	struct story s;
	story_begin(&s);
	struct fec_guard_sample sample = {.delay_us = LEAST + 500,
		.has_edge = true,
		.edge_delay_us = LEAST + 10 * MS,
		.edge_lead_us = 11 * MS,
		.edge_gap_us = 1500};
	fec_guard_sample(&s.g, s.now, &sample);
	assert_false(s.g.is_loaded || s.g.is_suspect);
	/* The sender paused for 10 ms, in which the queue drained: nothing left meanwhile. */
	story_begin(&s);
	sample.edge_lead_us = MS;
	fec_guard_sample(&s.g, s.now, &sample);
	assert_true(s.g.is_loaded);
}

/* What left before the pause stood in the queue; what left behind it did not. */
static void
an_edge_that_is_not_believed_does_not_acquit(void **state)
{
	(void)state;
	struct story s;
	story_begin(&s);
	loss_at(&s, 45 * MS);
	assert_true(s.g.is_loaded);
	pass_ms(&s, 10);
	struct fec_guard_sample sample = {.delay_us = LEAST + 500,
		.behind_ns = 50 * WEFT_NS_PER_MS,
		.has_edge = true,
		.edge_delay_us = LEAST + 45 * MS,
		.edge_lead_us = 15 * MS,
		.edge_gap_us = 1100};
	fec_guard_sample(&s.g, s.now, &sample);
	assert_true(s.g.is_loaded);
}

/* What came while the machine stood still behind its look at the clock. */
static void
one_that_seems_faster_than_the_path_does_not_move_the_level(void **state)
{
	(void)state;
	struct story s;
	story_begin(&s);
	for (int i = 0; i < 50; i++) {
		pass_ms(&s, 100);
		loss_at(&s, (uint32_t)(i % 2 ? 300 : -5 * MS));
		assert_in_range(s.g.queue_us, 0, 500);
		assert_false(s.g.is_loaded || s.g.is_suspect);
	}
	/* A path that has become shorter: the higher of two, then the least of all. */
	loss_at(&s, (uint32_t)(-3 * MS));
	loss_at(&s, (uint32_t)(-2 * MS));
	assert_int_equal(s.g.least_us, LEAST - 2 * MS);
	loss_at(&s, (uint32_t)(-3 * MS));
	assert_int_equal(s.g.least_us, LEAST - 3 * MS);
}

static void
one_short_round_trip_is_not_the_least(void **state)
{
	(void)state;
	struct story s;
	story_begin(&s);
	fec_guard_rtt(&s.g, 4 * WEFT_NS_PER_MS);
	fec_guard_rtt(&s.g, 11 * WEFT_NS_PER_MS);
	fec_guard_rtt(&s.g, 5 * WEFT_NS_PER_MS);
	assert_int_equal(s.g.rtt_least_ns, 10 * WEFT_NS_PER_MS);
	fec_guard_rtt(&s.g, 6 * WEFT_NS_PER_MS);
	assert_int_equal(s.g.rtt_least_ns, 6 * WEFT_NS_PER_MS);
}

static void
slow_pings_acquit_after_a_few_losses(void **state)
{
	(void)state;
	struct story s;
	story_begin(&s);
	struct fec_guard_sample sample = {.delay_us = LEAST + 8 * MS, .behind_ns = -1};
	fec_guard_sample(&s.g, s.now, &sample);
	assert_true(s.g.is_loaded);
	/* Nothing is known of the moment of the loss. */
	sample.delay_us = LEAST;
	for (int i = 0; i < 4; i++) {
		pass_ms(&s, 500);
		fec_guard_sample(&s.g, s.now, &sample);
		assert_true(s.g.is_loaded);
	}
	pass_ms(&s, 500);
	fec_guard_sample(&s.g, s.now, &sample);
	assert_false(s.g.is_loaded);
	/* And one moment does not convict again. */
	sample.delay_us = LEAST + 8 * MS;
	pass_ms(&s, 500);
	fec_guard_sample(&s.g, s.now, &sample);
	assert_false(s.g.is_loaded);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_first_loss_under_a_queue_is_the_queue_s),
		cmocka_unit_test(
			on_a_line_that_loses_by_itself_a_queue_is_believed_after_three_moments),
		cmocka_unit_test(moments_between_calm_losses_are_no_queue),
		cmocka_unit_test(what_arrives_all_at_once_stood_in_no_queue),
		cmocka_unit_test(an_edge_that_is_not_believed_does_not_acquit),
		cmocka_unit_test(one_that_seems_faster_than_the_path_does_not_move_the_level),
		cmocka_unit_test(one_short_round_trip_is_not_the_least),
		cmocka_unit_test(slow_pings_acquit_after_a_few_losses),
	};
	return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}

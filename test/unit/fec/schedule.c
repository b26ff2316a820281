/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "fec/gf256.h"

#define LARGE WIRE_EXT_CLASS_LARGE
#define BATCH_MAX 192

static struct fec_plan
plan_of(double ahead, unsigned window)
{
	struct fec_plan p = {.why = FEC_WHY_AHEAD, .probe_share = 1, .probes = 1};
	p.classes[LARGE] =
		(struct fec_plan_class){.ahead = ahead, .window = window, .has_answers = true};
	return p;
}

/* Batches of n, some milliseconds apart, whose repairs leave behind each. How often the source that
 * was covered least was, but for those of the first batch and the last. */
static unsigned
least_covered(unsigned n, double ahead, unsigned window)
{
	enum { BATCHES = 20 };
	static unsigned covered[BATCHES * BATCH_MAX];
	struct fec_plan p = plan_of(ahead, window);
	struct fec_schedule s;
	struct fec_job job;
	unsigned sent = 0, alike = 0, was_window = 0, was_skip = 0;
	memset(covered, 0, sizeof(covered));
	fec_schedule_init(&s);
	for (int b = 0; b < BATCHES; b++) {
		struct mono now = {(1000 + 5 * (int64_t)b) * WEFT_NS_PER_MS};
		for (unsigned i = 0; i < n; i++) {
			fec_schedule_source(&s, now, LARGE, &p, 100 * WEFT_NS_PER_MS);
		}
		sent += n;
		now = mono_add_ns(now, WEFT_NS_PER_MS);
		while (fec_schedule_take(&s, now, &p, &job)) {
			assert_int_equal(job.why, WIRE_EXT_WHY_AHEAD);
			assert_in_range(job.window, 1, FEC_WINDOW_MAX);
			assert_in_range(job.alike, 1, GF256_ROWS_MAX);
			/* One that is computed with the one before reaches over the same. */
			if (alike > 1) {
				assert_int_equal(job.alike, alike - 1);
				assert_int_equal(job.window, was_window);
				assert_int_equal(job.skip, was_skip);
			}
			alike = job.alike;
			was_window = job.window;
			was_skip = job.skip;
			assert_true(job.skip < sent);
			unsigned end = sent - job.skip;
			for (unsigned i = end > job.window ? end - job.window : 0; i < end; i++) {
				covered[i]++;
			}
		}
		assert_int_equal(alike, 1);
		assert_int_equal(job.skip, 0); /* the last one reaches up to the newest */
	}
	unsigned least = UINT32_MAX;
	for (unsigned i = n; i < sent - n; i++) {
		least = covered[i] < least ? covered[i] : least;
	}
	return least;
}

static void
repairs_reach_over_all_of_a_batch_wider_than_a_window(void **state)
{
	(void)state;
	static const unsigned batches[] = {1, 4, 44, 64, 100, 128, 192};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(batches); i++) {
		for (unsigned percent = 5; percent <= 50; percent += 5) {
			unsigned n = batches[i];
			if (n * percent < 300) {
				continue; /* not always three repairs a batch */
			}
			unsigned least = least_covered(n, percent / 100.0, 64);
			if (least < 2) {
				fail_msg("batches of %u, %u %%: one is covered %u times", n,
					percent, least);
			}
		}
	}
}

/* 64 sources at 10 % have some six repairs over each in the mean. */
static void
repairs_are_spread_evenly_over_a_batch(void **state)
{
	(void)state;
	assert_true(least_covered(44, 0.1, 64) >= 4);
	assert_true(least_covered(192, 0.1, 64) >= 3);
	assert_true(least_covered(192, 0.2, 64) >= 6);
}

/* n sources at one instant; `spared`: what falls due of each is taken back. */
static void
give(struct fec_schedule *s, struct mono now, unsigned n, const struct fec_plan *p, bool is_spared)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned due = fec_schedule_source(s, now, LARGE, p, 100 * WEFT_NS_PER_MS);
		if (is_spared) {
			fec_schedule_cancel(s, LARGE, due);
		}
	}
}

/* Of the newest n sources, the one that all repairs due now cover least. */
static unsigned
least_of_newest(struct fec_schedule *s, struct mono now, unsigned n, const struct fec_plan *p)
{
	unsigned covered[BATCH_MAX] = {0}, least = UINT32_MAX;
	struct fec_job job = {.skip = 0};
	while (fec_schedule_take(s, now, p, &job)) {
		for (unsigned i = job.skip; i < job.skip + job.window && i < n; i++) {
			covered[i]++;
		}
	}
	for (unsigned i = 0; i < n; i++) {
		least = covered[i] < least ? covered[i] : least;
	}
	return least;
}

/* Of the 19 repairs for a batch, most are over that batch. */
static void
repairs_are_not_spent_on_what_was_left_to_answers(void **state)
{
	(void)state;
	struct fec_plan none = plan_of(0, 64), tenth = plan_of(0.1, 64);
	struct mono now = {WEFT_NS_PER_S}, later = {WEFT_NS_PER_S + 3 * WEFT_NS_PER_MS / 2};
	for (int is_spared = 0; is_spared <= 1; is_spared++) {
		struct fec_schedule s;
		fec_schedule_init(&s);
		give(&s, now, 100000, is_spared ? &tenth : &none, is_spared);
		assert_int_equal(fec_schedule_due(&s, later, &tenth), 0);
		give(&s, mono_add_ns(now, WEFT_NS_PER_MS), 192, &tenth, false);
		assert_true(least_of_newest(&s, later, 192, &tenth) >= 3);
	}
}

/* As in a session whose HELLO has not been answered: what has piled up is covered, the newest as
 * well as the oldest that so many repairs can reach. */
static void
repairs_that_waited_reach_over_all_that_came_meanwhile(void **state)
{
	(void)state;
	struct fec_plan tenth = plan_of(0.1, 64);
	struct mono now = {WEFT_NS_PER_S};
	struct fec_schedule s;
	struct fec_job job;
	unsigned end = 0, oldest = 0, n = 0;
	fec_schedule_init(&s);
	for (int i = 0; i < 100; i++) {
		now = mono_add_ns(now, WEFT_NS_PER_MS);
		give(&s, now, 100, &tenth, false);
	}
	while (fec_schedule_take(&s, now, &tenth, &job)) {
		assert_true(n == 0 || job.skip <= end);
		end = job.skip;
		oldest = n == 0 ? job.skip + job.window : oldest;
		n++;
	}
	assert_int_equal(n, 64);
	assert_int_equal(end, 0);
	assert_in_range(oldest, 4000, 64 * FEC_WINDOW_MAX);
}

/* A share of one, and probes that have covered all before the repairs fall due. */
static void
more_repairs_than_sources_reach_over_the_newest(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 12; n++) {
		struct fec_plan all = plan_of(1, 4);
		struct mono now = {WEFT_NS_PER_S};
		struct fec_schedule s;
		struct fec_job job = {.skip = 1};
		fec_schedule_init(&s);
		all.classes[LARGE].is_sparse = true;
		for (unsigned i = 0; i < 64; i++) {
			fec_schedule_announce(&s);
			give(&s, now, 1, &all, false);
		}
		/* As if a probe had covered all but n. */
		s.lanes[LARGE].uncovered = n - 1;
		now = mono_add_ns(now, 3 * WEFT_NS_PER_MS);
		unsigned taken = 0;
		while (fec_schedule_take(&s, now, &all, &job)) {
			assert_in_range(job.window, 4, FEC_WINDOW_MAX);
			assert_in_range(job.alike, 1, GF256_ROWS_MAX);
			assert_true(job.skip + 1 <= n);
			taken++;
		}
		assert_int_equal(taken, 64);
		assert_int_equal(job.skip, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repairs_reach_over_all_of_a_batch_wider_than_a_window),
		cmocka_unit_test(repairs_are_spread_evenly_over_a_batch),
		cmocka_unit_test(repairs_are_not_spent_on_what_was_left_to_answers),
		cmocka_unit_test(repairs_that_waited_reach_over_all_that_came_meanwhile),
		cmocka_unit_test(more_repairs_than_sources_reach_over_the_newest),
	};
	return cmocka_run_group_tests_name("fec/schedule", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "wg/replay.h"

static void
replay_accepts_each_counter_once(void **state)
{
	(void)state;
	struct wg_replay r;
	wg_replay_init(&r);
	for (uint64_t c = 0; c < 3 * WG_REPLAY_WINDOW; c++) {
		assert_true(wg_replay_take(&r, c));
		assert_false(wg_replay_take(&r, c));
	}
}

static void
replay_accepts_the_first_counter_at_any_value(void **state)
{
	(void)state;
	static const uint64_t firsts[] = {0, 1, 8191, 8192, 1u << 20, UINT64_MAX - 8193};
	for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
		struct wg_replay r;
		wg_replay_init(&r);
		assert_true(wg_replay_take(&r, firsts[i]));
		assert_false(wg_replay_take(&r, firsts[i]));
	}
}

static void
replay_window_is_8192_wide_and_not_one_more(void **state)
{
	(void)state;
	static const uint64_t tops[] = {8192, 8193, 10000, 16383, 16384, 1234567};
	for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
		struct wg_replay r;
		wg_replay_init(&r);
		assert_true(wg_replay_take(&r, tops[i]));
		assert_false(wg_replay_take(&r, tops[i] - 8192));
		assert_true(wg_replay_take(&r, tops[i] - 8191));
		assert_false(wg_replay_take(&r, tops[i] - 8191));
	}
}

static void
replay_jump_forgets_everything_below_the_window(void **state)
{
	(void)state;
	struct wg_replay r;
	wg_replay_init(&r);
	for (uint64_t c = 0; c < 8192; c++) {
		assert_true(wg_replay_take(&r, c));
	}
	assert_true(wg_replay_take(&r, 8191 + 8192));
	/* All that is in the window now is new; what was seen has left it. */
	assert_false(wg_replay_take(&r, 8191));
	for (uint64_t c = 8192; c < 8191 + 8192; c++) {
		assert_true(wg_replay_take(&r, c));
	}
}

/* The naive model: a list of everything seen. */
#define COUNTERS 60000

static void
replay_agrees_with_a_model_that_remembers_everything(void **state)
{
	(void)state;
	uint8_t *seen = malloc(COUNTERS);
	assert_non_null(seen);
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct rng rng;
		rng_init(&rng, seed);
		struct wg_replay r;
		wg_replay_init(&r);
		memset(seen, 0, COUNTERS);
		uint64_t at = 0, top = 0;
		bool has_top = false;
		while (at < COUNTERS - 20000) {
			/* Mostly forward, with reordering near the window's edge and far jumps. */
			uint64_t dice = rng_below(&rng, 1000);
			if (dice < 900) {
				at += rng_below(&rng, 4);
			} else if (dice < 902) {
				at += rng_below(&rng, 10000);
			}
			uint64_t back =
				dice < 500 ? rng_below(&rng, 70) : 8180 + rng_below(&rng, 24);
			uint64_t c = dice % 3 == 0 && back <= at ? at - back : at;
			bool want = !seen[c] && (!has_top || c > top || top - c < 8192);
			if (wg_replay_take(&r, c) != want) {
				fail_msg("seed %llu counter %llu top %llu",
					(unsigned long long)seed, (unsigned long long)c,
					(unsigned long long)top);
			}
			seen[c] |= want;
			if (want && (!has_top || c > top)) {
				top = c;
				has_top = true;
			}
		}
	}
	free(seen);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replay_accepts_each_counter_once),
		cmocka_unit_test(replay_accepts_the_first_counter_at_any_value),
		cmocka_unit_test(replay_window_is_8192_wide_and_not_one_more),
		cmocka_unit_test(replay_jump_forgets_everything_below_the_window),
		cmocka_unit_test(replay_agrees_with_a_model_that_remembers_everything),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

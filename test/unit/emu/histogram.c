/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/rng.h"
#include "emu/histogram.h"

#define N 5000

static int
compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void
quantile_is_at_most_an_eighth_above_the_sorted_one(void **state)
{
	(void)state;
	static const double shares[] = {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1};
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct rng rng;
		static int64_t v[N];
		static struct emu_histogram h;
		h = (struct emu_histogram){0};
		rng_init(&rng, seed);
		uint64_t bound = UINT64_C(1) << (1 + rng_below(&rng, 62));
		for (int i = 0; i < N; i++) {
			v[i] = (int64_t)rng_below(&rng, bound);
			emu_histogram_add(&h, v[i]);
		}
		qsort(v, N, sizeof(v[0]), compare);
		for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
			/* The least value with at least that share at or below it. */
			size_t k = 0;
			while ((double)(k + 1) < shares[i] * N) {
				k++;
			}
			int64_t got = emu_histogram_quantile(&h, shares[i]);
			if (got < v[k] || (double)got > (double)v[k] * 1.125 + 1) {
				fail_msg("seed %lu share %g: %ld for %ld", (unsigned long)seed,
					shares[i], (long)got, (long)v[k]);
			}
		}
		assert_true(h.max_ns == v[N - 1] && h.count == N);
	}
}

static void
histogram_takes_the_ends_of_the_range(void **state)
{
	(void)state;
	static struct emu_histogram h;
	assert_int_equal(emu_histogram_quantile(&h, 0.5), 0);
	emu_histogram_add(&h, -5);
	assert_int_equal(emu_histogram_quantile(&h, 1), 0);
	emu_histogram_add(&h, INT64_MAX);
	assert_true(emu_histogram_quantile(&h, 1) == INT64_MAX);
	assert_int_equal(emu_histogram_quantile(&h, 0.5), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantile_is_at_most_an_eighth_above_the_sorted_one),
		cmocka_unit_test(histogram_takes_the_ends_of_the_range),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

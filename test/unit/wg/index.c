/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "wg/index.h"

static void
fill(void *ctx, void *out, size_t len)
{
	rng_fill(ctx, out, len);
}

/* Few different indices, so that they collide. */
static void
fill_poorly(void *ctx, void *out, size_t len)
{
	uint32_t v = (uint32_t)rng_below(ctx, 4096) << 20 | 5;
	memset(out, 0, len);
	memcpy(out, &v, sizeof(v) < len ? sizeof(v) : len);
}

struct known {
	uint32_t index;
	bool is_in;
};

static void
check_all(uint64_t seed, const struct wg_index *t, struct known *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct wg_index_entry *e = wg_index_find(t, all[i].index);
		if (all[i].is_in && (!e || e->what != &all[i])) {
			fail_msg("seed %llu: lost %u", (unsigned long long)seed, all[i].index);
		}
		if (e && e->index != all[i].index) {
			fail_msg("seed %llu: wrong entry", (unsigned long long)seed);
		}
	}
}

static void
index_agrees_with_a_list_under_random_use(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct rng rng;
		rng_init(&rng, seed);
		struct entropy entropy = {seed % 2 ? fill : fill_poorly, &rng};
		struct wg_index t;
		struct known all[1000] = {0};
		uint32_t n_in = 0;
		assert_int_equal(wg_index_init(&t), WEFT_OK);
		for (size_t step = 0; step < 6000; step++) {
			struct known *k = &all[rng_below(&rng, 1000)];
			if (k->is_in) {
				wg_index_remove(&t, k->index);
				assert_null(wg_index_find(&t, k->index));
			} else {
				assert_int_equal(
					wg_index_add(&t, &entropy, WG_INDEX_PENDING, k, &k->index),
					WEFT_OK);
			}
			k->is_in = !k->is_in;
			n_in += k->is_in ? 1u : UINT32_MAX;
			assert_int_equal(t.used, n_in);
			if (step % 100 == 0) {
				check_all(seed, &t, all, 1000);
			}
		}
		check_all(seed, &t, all, 1000);
		wg_index_fini(&t);
	}
}

static void
index_change_keeps_the_index_and_replaces_what_it_means(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, 1);
	struct entropy entropy = {fill, &rng};
	struct wg_index t;
	int a, b;
	uint32_t index;
	assert_int_equal(wg_index_init(&t), WEFT_OK);
	assert_int_equal(wg_index_add(&t, &entropy, WG_INDEX_PENDING, &a, &index), WEFT_OK);
	wg_index_change(&t, index, WG_INDEX_SESSION, &b);
	assert_int_equal(wg_index_find(&t, index)->kind, WG_INDEX_SESSION);
	assert_ptr_equal(wg_index_find(&t, index)->what, &b);
	assert_int_equal(t.used, 1);
	wg_index_fini(&t);
}

static void
removing_an_unknown_index_changes_nothing(void **state)
{
	(void)state;
	struct wg_index t;
	assert_int_equal(wg_index_init(&t), WEFT_OK);
	wg_index_remove(&t, 77);
	assert_int_equal(t.used, 0);
	wg_index_fini(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(index_agrees_with_a_list_under_random_use),
		cmocka_unit_test(index_change_keeps_the_index_and_replaces_what_it_means),
		cmocka_unit_test(removing_an_unknown_index_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

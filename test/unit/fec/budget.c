/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/budget.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/rng.h"

static void
budget_gives_each_use_its_share_and_not_a_byte_more(void **state)
{
	(void)state;
	struct fec_budget b = {.bytes_max = 1000};
	assert_false(fec_budget_take(&b, 251, FEC_BUDGET_SPARE));
	assert_true(fec_budget_take(&b, 250, FEC_BUDGET_SPARE));
	assert_false(fec_budget_take(&b, 1, FEC_BUDGET_SPARE));
	assert_false(fec_budget_take(&b, 251, FEC_BUDGET_CALM));
	assert_true(fec_budget_take(&b, 250, FEC_BUDGET_CALM));
	assert_false(fec_budget_take(&b, 1, FEC_BUDGET_CALM));
	assert_true(fec_budget_take(&b, 250, FEC_BUDGET_GROWTH));
	assert_false(fec_budget_take(&b, 1, FEC_BUDGET_GROWTH));
	assert_false(fec_budget_take(&b, 251, FEC_BUDGET_NEED));
	assert_true(fec_budget_take(&b, 250, FEC_BUDGET_NEED));
	assert_false(fec_budget_take(&b, 1, FEC_BUDGET_NEED));
	assert_false(fec_budget_take(&b, UINT64_MAX, FEC_BUDGET_NEED));
	assert_int_equal(b.bytes, 1000);
	fec_budget_give(&b, 600);
	assert_true(fec_budget_take(&b, 100, FEC_BUDGET_CALM));
	fec_budget_give(&b, 500);
	assert_int_equal(b.bytes, 0);
}

static void
budget_is_no_bound_where_there_is_none(void **state)
{
	(void)state;
	assert_true(fec_budget_take(NULL, UINT64_MAX, FEC_BUDGET_CALM));
	fec_budget_give(NULL, 1);
}

#define THREADS 4
#define ROUNDS 50000
#define BYTES_MAX UINT64_C(1000)

struct taker {
	struct fec_budget *budget;
	_Atomic uint64_t *held; /* of all takers */
	uint64_t seed;
	unsigned excesses, taken, refused;
};

static void *
take_and_give(void *arg)
{
	struct taker *t = arg;
	struct rng r;
	rng_init(&r, t->seed);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t n = 1 + rng_below(&r, BYTES_MAX / 2);
		enum fec_budget_use use = (enum fec_budget_use)rng_below(&r, FEC_BUDGET_NEED + 1);
		if (!fec_budget_take(t->budget, n, use)) {
			t->refused++;
			continue;
		}
		t->taken++;
		t->excesses += atomic_fetch_add(t->held, n) + n > BYTES_MAX;
		atomic_fetch_sub(t->held, n);
		fec_budget_give(t->budget, n);
	}
	return NULL;
}

/* What is held is counted behind each taking and before each giving, so it is never more than the
 * budget has given out. */
static void
budget_is_kept_by_threads_that_take_and_give_at_once(void **state)
{
	(void)state;
	struct fec_budget b = {.bytes_max = BYTES_MAX};
	_Atomic uint64_t held = 0;
	struct taker takers[THREADS];
	pthread_t threads[THREADS];
	for (unsigned i = 0; i < THREADS; i++) {
		takers[i] = (struct taker){.budget = &b, .held = &held, .seed = i + 1};
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &takers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(takers[i].excesses, 0);
		assert_int_equal(takers[i].taken + takers[i].refused, ROUNDS);
		assert_true(takers[i].taken > 0);
	}
	assert_int_equal(b.bytes, 0);
	assert_true(fec_budget_take(&b, BYTES_MAX, FEC_BUDGET_NEED));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(budget_gives_each_use_its_share_and_not_a_byte_more),
		cmocka_unit_test(budget_is_no_bound_where_there_is_none),
		cmocka_unit_test(budget_is_kept_by_threads_that_take_and_give_at_once),
	};
	return cmocka_run_group_tests_name("fec/budget", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "fec/gf256.h"
#include "fec/solver.h"
#include "naive.h"

#define LEN_MAX 48
#define COLUMNS 400
#define ROWS 600

/* Unknown i has counter 1000 + i, and contents and length that follow from i. */
static uint16_t
value(size_t i, uint8_t *out)
{
	struct rng r;
	rng_init(&r, i);
	rng_fill(&r, out, LEN_MAX);
	uint16_t len = (uint16_t)(1 + rng_below(&r, LEN_MAX));
	memset(out + len, 0, (size_t)(LEN_MAX - len));
	return len;
}

struct play {
	struct fec_solver s;
	struct naive naive;
	bool is_known[COLUMNS];
	struct rng rng;
};

static void
begin(struct play *p, uint64_t seed, size_t columns)
{
	memset(p, 0, sizeof(*p));
	rng_init(&p->rng, seed);
	assert_true(fec_solver_init(&p->s, gf256_get(GF256_ISA_AUTO), LEN_MAX));
	naive_init(&p->naive, columns, ROWS);
}

static void
end(struct play *p)
{
	fec_solver_fini(&p->s);
	naive_fini(&p->naive);
}

/* An equation over those of the columns that are unknown. True: it was news. */
static bool
add(struct play *p, const size_t *columns, size_t n)
{
	uint64_t counters[COLUMNS];
	uint8_t cs[COLUMNS], row[COLUMNS] = {0}, sum[LEN_MAX] = {0}, bytes[LEN_MAX];
	size_t k = 0;
	uint16_t len = 0;
	for (size_t i = 0; i < n; i++) {
		if (p->is_known[columns[i]]) {
			continue;
		}
		counters[k] = 1000 + columns[i];
		cs[k] = (uint8_t)(1 + rng_below(&p->rng, 255));
		row[columns[i]] = cs[k];
		uint16_t l = value(columns[i], bytes);
		len = l > len ? l : len;
		for (size_t b = 0; b < LEN_MAX; b++) {
			sum[b] ^= gf256_mul(cs[k], bytes[b]);
		}
		k++;
	}
	naive_add(&p->naive, row);
	uint8_t *at = fec_solver_begin(&p->s, counters, cs, k);
	if (at) {
		memcpy(at, sum, len);
		fec_solver_finish(&p->s, len);
	}
	return at;
}

/* Takes all that is determined; each has to be right. */
static size_t
take(struct play *p)
{
	struct fec_solved s;
	size_t n = 0;
	while (fec_solver_take(&p->s, &s)) {
		uint8_t bytes[LEN_MAX];
		size_t i = (size_t)(s.counter - 1000);
		assert_true(i < COLUMNS && !p->is_known[i]);
		uint16_t len = value(i, bytes);
		assert_true(s.len >= len);
		assert_memory_equal(s.bytes, bytes, s.len);
		p->is_known[i] = true;
		n++;
	}
	return n;
}

static void
agree(struct play *p)
{
	bool is_solved[COLUMNS];
	naive_solve(&p->naive, is_solved);
	for (size_t i = 0; i < p->naive.columns; i++) {
		if (is_solved[i]) {
			assert_true(p->is_known[i]);
		}
	}
}

static void
solver_finds_what_gaussian_elimination_finds(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct play *p = malloc(sizeof(*p));
		assert_non_null(p);
		begin(p, seed, FEC_UNKNOWNS_MAX);
		/* Up to 64 unknowns, so that none is pushed out. */
		size_t unknowns = 1 + rng_below(&p->rng, FEC_UNKNOWNS_MAX);
		size_t solved = 0;
		for (size_t step = 0; step < 100 && solved < unknowns; step++) {
			size_t columns[COLUMNS], n = 0;
			size_t first = rng_below(&p->rng, unknowns);
			double density = rng_unit(&p->rng);
			for (size_t i = first; i < unknowns; i++) {
				if (rng_is_hit(&p->rng, density)) {
					columns[n++] = i;
				}
			}
			if (rng_below(&p->rng, 10) == 0) {
				/* One comes by itself. */
				size_t i = rng_below(&p->rng, unknowns);
				uint8_t bytes[LEN_MAX];
				uint16_t len = value(i, bytes);
				if (!p->is_known[i]) {
					fec_solver_known(&p->s, 1000 + i, bytes, len);
					p->is_known[i] = true;
					naive_known(&p->naive, i);
					solved++;
				}
			} else {
				bool is_news = add(p, columns, n);
				bool is_solved[COLUMNS];
				size_t rank = naive_solve(&p->naive, is_solved);
				p->naive.n--;
				size_t before = naive_solve(&p->naive, is_solved);
				p->naive.n++;
				if (is_news != (rank > before)) {
					fail_msg("seed %llu step %zu", (unsigned long long)seed,
						step);
				}
			}
			solved += take(p);
			agree(p);
			for (size_t i = 0; i < unknowns; i++) {
				if (p->is_known[i]) {
					assert_false(fec_solver_has(&p->s, 1000 + i));
					naive_known(&p->naive, i);
				}
			}
			bool is_solved[COLUMNS];
			assert_int_equal(fec_solver_rank(&p->s, 1000, 1000 + unknowns),
				naive_solve(&p->naive, is_solved));
		}
		end(p);
		free(p);
	}
}

static void
forgetting_an_unknown_costs_one_equation_at_most(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct play *p = malloc(sizeof(*p));
		assert_non_null(p);
		begin(p, seed, COLUMNS);
		/* 20 unknowns, 12 equations over all: none is determined. */
		size_t all[20];
		for (size_t i = 0; i < 20; i++) {
			all[i] = i;
		}
		for (size_t i = 0; i < 12; i++) {
			assert_true(add(p, all, 20));
		}
		assert_int_equal(take(p), 0);
		size_t k = rng_below(&p->rng, 12);
		fec_solver_forget_below(&p->s, 1000 + k);
		assert_int_equal(fec_solver_rank(&p->s, 0, UINT64_MAX), 12 - k);
		/* The rest is worth what it was: with as many more as are missing all is found. */
		size_t found = 0, news = 0;
		for (size_t i = 0; i < 12 && found < 20 - k; i++) {
			news += add(p, all + k, 20 - k);
			found += take(p);
		}
		assert_int_equal(found, 20 - k);
		assert_int_equal(news, 8);
		end(p);
		free(p);
	}
}

static void
oldest_unknowns_make_room_for_new_ones(void **state)
{
	(void)state;
	struct play *p = malloc(sizeof(*p));
	assert_non_null(p);
	begin(p, 1, COLUMNS);
	/* Pairs: 64 unknowns in 32 equations. */
	for (size_t i = 0; i < 64; i += 2) {
		size_t pair[2] = {i, i + 1};
		assert_true(add(p, pair, 2));
	}
	size_t next[2] = {64, 65};
	assert_true(add(p, next, 2));
	assert_false(fec_solver_has(&p->s, 1000));
	assert_true(fec_solver_has(&p->s, 1064) && fec_solver_has(&p->s, 1065));
	assert_int_equal(fec_solver_rank(&p->s, 1002, 2000), 32);
	/* The unknowns of the equation itself are not pushed out, old as they may be. */
	size_t many[64];
	many[0] = 2;
	for (size_t i = 1; i < 64; i++) {
		many[i] = 100 + i;
	}
	assert_true(add(p, many, 64));
	assert_true(fec_solver_has(&p->s, 1002));
	assert_true(fec_solver_has(&p->s, 1163));
	size_t too_many[65];
	for (size_t i = 0; i < 65; i++) {
		too_many[i] = 200 + i;
	}
	assert_false(add(p, too_many, 65));
	end(p);
	free(p);
}

/* Those that equations are about just now are likely to be determined, however old they are. */
static void
unknowns_lately_in_use_stay(void **state)
{
	(void)state;
	struct play *p = malloc(sizeof(*p));
	assert_non_null(p);
	begin(p, 1, COLUMNS);
	for (size_t i = 10; i < 70; i += 2) {
		size_t pair[2] = {i, i + 1};
		assert_true(add(p, pair, 2));
	}
	size_t answer[4] = {0, 1, 2, 3};
	assert_true(add(p, answer, 4));
	for (size_t i = 100; i < 110; i += 2) {
		size_t pair[2] = {i, i + 1};
		assert_true(add(p, pair, 2));
	}
	assert_true(add(p, answer, 4) && add(p, answer, 4) && add(p, answer, 4));
	assert_int_equal(take(p), 4);
	assert_int_equal(p->s.crowded, 10);
	end(p);
	free(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(solver_finds_what_gaussian_elimination_finds),
		cmocka_unit_test(forgetting_an_unknown_costs_one_equation_at_most),
		cmocka_unit_test(oldest_unknowns_make_room_for_new_ones),
		cmocka_unit_test(unknowns_lately_in_use_stay),
	};
	return cmocka_run_group_tests_name("fec/solver", tests, NULL, NULL);
}

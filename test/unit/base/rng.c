/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/rng.h"

/* splitmix64 from seed 1234567 is published with its outputs; the state that rng_init() leaves
 * is four of them. */
static void
seeding_gives_splitmix64s_published_outputs(void **state)
{
	(void)state;
	struct rng r;
	rng_init(&r, 1234567);
	assert_true(r.s[0] == UINT64_C(6457827717110365317));
	assert_true(r.s[1] == UINT64_C(3203168211198807973));
	assert_true(r.s[2] == UINT64_C(9817491932198370423));
	assert_true(r.s[3] == UINT64_C(4593380528125082431));
}

/* xoshiro256** from the state 1, 2, 3, 4. */
static void
generator_gives_xoshiros_published_outputs(void **state)
{
	(void)state;
	static const uint64_t outputs[] = {UINT64_C(11520), 0, UINT64_C(1509978240),
		UINT64_C(1215971899390074240), UINT64_C(1216172134540287360),
		UINT64_C(607988272756665600), UINT64_C(16172922978634559625),
		UINT64_C(8476171486693032832), UINT64_C(10595114339597558777),
		UINT64_C(2904607092377533576)};
	struct rng r = {{1, 2, 3, 4}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(outputs); i++) {
		assert_true(rng_u64(&r) == outputs[i]);
	}
}

static void
equal_seeds_give_equal_streams_and_others_do_not(void **state)
{
	(void)state;
	struct rng a, b, c;
	rng_init(&a, 5);
	rng_init(&b, 5);
	rng_init(&c, 6);
	unsigned same = 0;
	for (int i = 0; i < 1000; i++) {
		uint64_t x = rng_u64(&a);
		assert_true(x == rng_u64(&b));
		same += x == rng_u64(&c);
	}
	assert_int_equal(same, 0);
}

static void
below_reaches_every_value_about_equally_and_none_beyond(void **state)
{
	(void)state;
	static const uint64_t bounds[] = {1, 2, 3, 7, 10, 64};
	struct rng r;
	rng_init(&r, 9);
	for (size_t i = 0; i < WEFT_ARRAY_LEN(bounds); i++) {
		unsigned seen[64] = {0};
		for (unsigned k = 0; k < 1000 * bounds[i]; k++) {
			uint64_t x = rng_below(&r, bounds[i]);
			assert_true(x < bounds[i]);
			seen[x]++;
		}
		for (size_t v = 0; v < bounds[i]; v++) {
			/* 1000 expected; six standard deviations are 190. */
			assert_in_range(seen[v], 810, 1190);
		}
	}
	for (int i = 0; i < 100; i++) {
		assert_true(rng_below(&r, UINT64_MAX) < UINT64_MAX);
	}
}

static void
unit_and_hit_follow_their_probability(void **state)
{
	(void)state;
	struct rng r;
	rng_init(&r, 10);
	double sum = 0;
	unsigned hits = 0;
	for (int i = 0; i < 100000; i++) {
		double x = rng_unit(&r);
		assert_true(x >= 0 && x < 1);
		sum += x;
		hits += rng_is_hit(&r, 0.25);
		assert_false(rng_is_hit(&r, 0));
		assert_true(rng_is_hit(&r, 1));
	}
	assert_true(sum > 49400 && sum < 50600);
	assert_in_range(hits, 24180, 25820);
}

static void
fill_writes_exactly_the_bytes_asked_for(void **state)
{
	(void)state;
	for (size_t len = 0; len <= 40; len++) {
		struct rng r;
		uint8_t a[48], b[48];
		memset(a, 0xaa, sizeof(a));
		memset(b, 0x55, sizeof(b));
		rng_init(&r, len);
		rng_fill(&r, a, len);
		rng_init(&r, len);
		rng_fill(&r, b, len);
		assert_memory_equal(a, b, len);
		for (size_t i = len; i < sizeof(a); i++) {
			assert_int_equal(a[i], 0xaa);
			assert_int_equal(b[i], 0x55);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seeding_gives_splitmix64s_published_outputs),
		cmocka_unit_test(generator_gives_xoshiros_published_outputs),
		cmocka_unit_test(equal_seeds_give_equal_streams_and_others_do_not),
		cmocka_unit_test(below_reaches_every_value_about_equally_and_none_beyond),
		cmocka_unit_test(unit_and_hit_follow_their_probability),
		cmocka_unit_test(fill_writes_exactly_the_bytes_asked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "wg/limiter.h"
#include "wg/load.h"

static struct endpoint
source(uint32_t host, uint16_t port)
{
	struct endpoint e = {.addr = {.family = IP_FAMILY_V4}, .port = port};
	memcpy(e.addr.b, &host, 4);
	return e;
}

static struct mono
at_ms(int64_t ms)
{
	return (struct mono){ms * WEFT_NS_PER_MS};
}

static void
bucket_gives_its_burst_and_then_its_rate(void **state)
{
	(void)state;
	static const struct wg_rate rate = {.interval_ns = 10 * WEFT_NS_PER_MS, .burst = 5};
	struct wg_bucket b = {0};
	int taken = 0;
	for (int i = 0; i < 100; i++) {
		taken += wg_bucket_take(&b, &rate, at_ms(1000));
	}
	assert_int_equal(taken, 5);
	for (int ms = 1001; ms <= 2000; ms++) {
		taken += wg_bucket_take(&b, &rate, at_ms(ms));
	}
	assert_int_equal(taken, 105);
	/* Idle time refills it to the burst and no further. */
	taken = 0;
	for (int i = 0; i < 100; i++) {
		taken += wg_bucket_take(&b, &rate, at_ms(1000000));
	}
	assert_int_equal(taken, 5);
}

static struct wg_limiter *
new_limiter(uint64_t seed)
{
	struct rng rng;
	uint8_t key[SIPHASH_KEY_LEN];
	rng_init(&rng, seed);
	rng_fill(&rng, key, sizeof(key));
	struct wg_limiter *l = malloc(sizeof(*l));
	assert_non_null(l);
	wg_limiter_init(l, key);
	return l;
}

static void
one_port_that_floods_is_held_to_its_rate(void **state)
{
	(void)state;
	struct wg_limiter *l = new_limiter(1);
	struct endpoint bad = source(1, 1);
	int taken = 0;
	for (int i = 0; i < 50000; i++) {
		struct mono now = {WEFT_NS_PER_S + i * INT64_C(20000)};
		taken += wg_limiter_take(l, WG_LIMIT_PORT, &bad, now);
	}
	assert_in_range(taken, 290, 310); /* burst 200 and 100 a second */
	struct endpoint same_nat = source(1, 2);
	assert_true(wg_limiter_take(l, WG_LIMIT_PORT, &same_nat, at_ms(2000)));
	free(l);
}

static void
unknown_sources_pass_a_full_table(void **state)
{
	(void)state;
	struct wg_limiter *l = new_limiter(2);
	struct rng rng;
	rng_init(&rng, 2);
	/* Far more sources than the table has places, each of them new: all pass. */
	for (int i = 0; i < 100000; i++) {
		struct endpoint e = source((uint32_t)rng_u64(&rng), (uint16_t)rng_u64(&rng));
		assert_true(wg_limiter_take(l, WG_LIMIT_COOKIE_REPLY, &e, at_ms(1000 + i / 50)));
	}
	free(l);
}

static void
heavy_source_stays_limited_among_many_light_ones(void **state)
{
	(void)state;
	struct wg_limiter *l = new_limiter(3);
	struct endpoint bad = source(9, 9);
	int taken = 0;
	for (int i = 0; i < 20000; i++) {
		struct mono now = {WEFT_NS_PER_S + i * INT64_C(50000)};
		struct endpoint light = source(1000 + (uint32_t)i, 1);
		taken += wg_limiter_take(l, WG_LIMIT_COOKIE_REPLY, &bad, now);
		(void)wg_limiter_take(l, WG_LIMIT_COOKIE_REPLY, &light, now);
	}
	assert_in_range(taken, 38, 42); /* burst 20 and 20 a second */
	free(l);
}

static void
new_source_inherits_nothing_from_the_one_that_it_replaces(void **state)
{
	(void)state;
	struct wg_limiter *l = new_limiter(7);
	/* Every place belongs to a source that has used up its burst. */
	for (uint32_t i = 0; i < 30000; i++) {
		struct endpoint heavy = source(i, 1);
		while (wg_limiter_take(l, WG_LIMIT_COOKIE_REPLY, &heavy, at_ms(1000))) {
		}
	}
	for (uint32_t i = 0; i < 100; i++) {
		struct endpoint light = source(100000 + i, 1);
		for (int k = 0; k < 20; k++) {
			assert_true(wg_limiter_take(l, WG_LIMIT_COOKIE_REPLY, &light, at_ms(1000)));
		}
		assert_false(wg_limiter_take(l, WG_LIMIT_COOKIE_REPLY, &light, at_ms(1000)));
	}
	free(l);
}

static void
two_thousand_clients_behind_one_address_pass_at_once(void **state)
{
	(void)state;
	struct wg_limiter *l = new_limiter(4);
	for (uint16_t port = 1; port <= 2000; port++) {
		struct endpoint e = source(7, port);
		struct mono now = at_ms(1000 + port / 2);
		assert_true(wg_limiter_take(l, WG_LIMIT_PORT, &e, now));
		assert_true(wg_limiter_take(l, WG_LIMIT_ADDR, &e, now));
	}
	free(l);
}

static void
ipv6_addresses_of_one_64_share_a_bucket(void **state)
{
	(void)state;
	struct wg_limiter *l = new_limiter(5);
	int taken = 0, other = 0;
	for (uint32_t i = 0; i < 5000; i++) {
		struct endpoint e = {.addr = {.family = IP_FAMILY_V6, .b = {0x20, 1}}, .port = 1};
		memcpy(e.addr.b + 12, &i, 4);
		taken += wg_limiter_take(l, WG_LIMIT_ADDR, &e, at_ms(1000));
		e.addr.b[7] = 1;
		other += wg_limiter_take(l, WG_LIMIT_ADDR, &e, at_ms(1000));
	}
	assert_int_equal(taken, 2000);
	assert_int_equal(other, 2000);
	free(l);
}

static void
limits_of_one_source_do_not_touch_each_other(void **state)
{
	(void)state;
	struct wg_limiter *l = new_limiter(6);
	struct endpoint e = source(3, 3);
	while (wg_limiter_take(l, WG_LIMIT_COOKIE_REPLY, &e, at_ms(1000))) {
	}
	assert_true(wg_limiter_take(l, WG_LIMIT_PORT, &e, at_ms(1000)));
	assert_true(wg_limiter_take(l, WG_LIMIT_ADDR, &e, at_ms(1000)));
	free(l);
}

static void
load_rises_with_a_flood_and_falls_a_second_after_it(void **state)
{
	(void)state;
	struct wg_load l;
	wg_load_init(&l);
	assert_false(wg_load_is_high(&l, at_ms(0)));
	/* 500 a second for ten seconds is normal. */
	for (int ms = 0; ms < 10000; ms += 2) {
		assert_false(wg_load_note(&l, at_ms(ms)));
	}
	/* 50,000 a second is high after some 5 ms. */
	int passed = 0;
	for (int i = 0; i < 5000; i++) {
		struct mono now = {10 * WEFT_NS_PER_S + i * INT64_C(20000)};
		passed += !wg_load_note(&l, now);
	}
	assert_in_range(passed, 200, 300);
	assert_true(wg_load_is_high(&l, at_ms(10100)));
	assert_true(wg_load_is_high(&l, at_ms(11050)));
	assert_false(wg_load_is_high(&l, at_ms(11101)));
	/* And a single handshake then passes. */
	assert_false(wg_load_note(&l, at_ms(11200)));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bucket_gives_its_burst_and_then_its_rate),
		cmocka_unit_test(one_port_that_floods_is_held_to_its_rate),
		cmocka_unit_test(unknown_sources_pass_a_full_table),
		cmocka_unit_test(heavy_source_stays_limited_among_many_light_ones),
		cmocka_unit_test(new_source_inherits_nothing_from_the_one_that_it_replaces),
		cmocka_unit_test(two_thousand_clients_behind_one_address_pass_at_once),
		cmocka_unit_test(ipv6_addresses_of_one_64_share_a_bucket),
		cmocka_unit_test(limits_of_one_source_do_not_touch_each_other),
		cmocka_unit_test(load_rises_with_a_flood_and_falls_a_second_after_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

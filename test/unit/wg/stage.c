/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "wg/stage.h"

static uint8_t packet[70000];
static uint8_t out[70000];

static void
stage_gives_packets_back_in_order(void **state)
{
	(void)state;
	struct wg_stage_pool pool;
	struct wg_stage s;
	wg_stage_pool_init(&pool, 1u << 20);
	wg_stage_init(&s);
	for (uint8_t i = 0; i < 100; i++) {
		memset(packet, i, 100);
		assert_int_equal(wg_stage_push(&pool, &s, packet, 100u + i), 0);
	}
	size_t len;
	for (uint8_t i = 0; i < 100; i++) {
		assert_true(wg_stage_take(&pool, &s, out, sizeof(out), &len));
		assert_int_equal(len, 100 + i);
		assert_int_equal(out[0], i);
		assert_int_equal(out[99], i);
	}
	assert_false(wg_stage_take(&pool, &s, out, sizeof(out), &len));
	assert_int_equal(pool.bytes, 0);
}

static void
stage_loses_the_oldest_beyond_128_packets(void **state)
{
	(void)state;
	struct wg_stage_pool pool;
	struct wg_stage s;
	wg_stage_pool_init(&pool, 1u << 20);
	wg_stage_init(&s);
	for (unsigned i = 0; i < 130; i++) {
		packet[0] = (uint8_t)i;
		assert_int_equal(wg_stage_push(&pool, &s, packet, 20), i >= 128);
	}
	size_t len;
	assert_int_equal(s.n, 128);
	assert_true(wg_stage_take(&pool, &s, out, sizeof(out), &len));
	assert_int_equal(out[0], 2);
	assert_int_equal(wg_stage_clear(&pool, &s), 127);
	assert_int_equal(s.bytes, 0);
}

static void
stage_is_bounded_in_bytes_a_peer(void **state)
{
	(void)state;
	struct wg_stage_pool pool;
	struct wg_stage s;
	wg_stage_pool_init(&pool, 1u << 20);
	wg_stage_init(&s);
	assert_int_equal(wg_stage_push(&pool, &s, packet, 30000), 0);
	assert_int_equal(wg_stage_push(&pool, &s, packet, 30000), 0);
	assert_int_equal(wg_stage_push(&pool, &s, packet, 30000), 1);
	assert_int_equal(s.bytes, 60000);
	assert_int_equal(wg_stage_push(&pool, &s, packet, WG_STAGE_BYTES_MAX), 2);
	assert_int_equal(s.n, 1);
	/* What fits in no case is lost itself, and nothing for it. */
	assert_int_equal(wg_stage_push(&pool, &s, packet, WG_STAGE_BYTES_MAX + 1), 1);
	assert_int_equal(s.n, 1);
	assert_int_equal(wg_stage_clear(&pool, &s), 1);
}

static void
device_ceiling_takes_the_oldest_of_all_peers(void **state)
{
	(void)state;
	struct wg_stage_pool pool;
	struct wg_stage a, b;
	wg_stage_pool_init(&pool, 1000);
	wg_stage_init(&a);
	wg_stage_init(&b);
	assert_int_equal(wg_stage_push(&pool, &a, packet, 400), 0);
	assert_int_equal(wg_stage_push(&pool, &b, packet, 400), 0);
	assert_int_equal(wg_stage_push(&pool, &b, packet, 400), 1);
	assert_int_equal(a.n, 0);
	assert_int_equal(b.n, 2);
	assert_int_equal(pool.bytes, 800);
	assert_int_equal(wg_stage_push(&pool, &a, packet, 1000), 2);
	assert_int_equal(b.n, 0);
	assert_int_equal(wg_stage_push(&pool, &a, packet, 1001), 1);
	assert_int_equal(a.n, 1);
	assert_int_equal(wg_stage_clear(&pool, &a), 1);
	assert_int_equal(pool.bytes, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stage_gives_packets_back_in_order),
		cmocka_unit_test(stage_loses_the_oldest_beyond_128_packets),
		cmocka_unit_test(stage_is_bounded_in_bytes_a_peer),
		cmocka_unit_test(device_ceiling_takes_the_oldest_of_all_peers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mono.h"
#include "base/rng.h"
#include "wg/stamp.h"

#define EPOCH (UINT64_C(0x4000000000000000) + 10)
#define NOW_S INT64_C(1700000000)

static void
stamp_is_the_tai64n_of_the_clock_rounded_down(void **state)
{
	(void)state;
	struct wg_stamp s;
	uint8_t out[WIRE_WG_STAMP_LEN];
	wg_stamp_init(&s, 0);
	assert_true(wg_stamp_next(&s, NOW_S * WEFT_NS_PER_S + 123456789, out));
	/* 0x400000000000000a + 1700000000; 123456789 rounded down to a multiple of 2^24. */
	static const uint8_t want[] = {0x40, 0, 0, 0, 0x65, 0x53, 0xf1, 0x0a, 0x07, 0, 0, 0};
	assert_memory_equal(out, want, sizeof(want));
}

static void
stamps_only_grow_whatever_the_clock_does(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct rng rng;
		rng_init(&rng, seed);
		struct wg_stamp s;
		wg_stamp_init(&s, 0);
		uint8_t last[WIRE_WG_STAMP_LEN] = {0}, out[WIRE_WG_STAMP_LEN];
		int64_t wall = NOW_S * WEFT_NS_PER_S;
		uint64_t persisted = 0;
		for (int i = 0; i < 3000; i++) {
			wall += (int64_t)rng_below(&rng, 40 * WEFT_NS_PER_MS);
			if (rng_below(&rng, 300) == 0) {
				wall = (int64_t)rng_below(&rng, 2 * NOW_S) * WEFT_NS_PER_S;
			}
			if (rng_below(&rng, 200) == 0) {
				wg_stamp_init(&s, persisted); /* a restart */
			}
			if (wg_stamp_next(&s, wall, out)) {
				persisted = s.reserved_s;
			}
			if (memcmp(out, last, sizeof(out)) <= 0) {
				fail_msg("seed %llu step %d", (unsigned long long)seed, i);
			}
			memcpy(last, out, sizeof(last));
		}
	}
}

static void
one_reservation_serves_a_minute_of_handshakes(void **state)
{
	(void)state;
	struct wg_stamp s;
	uint8_t out[WIRE_WG_STAMP_LEN];
	int writes = 0;
	wg_stamp_init(&s, 0);
	for (int64_t ms = 0; ms < 600000; ms += 20) {
		writes += wg_stamp_next(&s, NOW_S * WEFT_NS_PER_S + ms * WEFT_NS_PER_MS, out);
	}
	assert_int_equal(writes, 10);
}

static void
quick_restarts_do_not_run_away_from_the_clock(void **state)
{
	(void)state;
	uint64_t persisted = 0;
	struct wg_stamp s;
	uint8_t out[WIRE_WG_STAMP_LEN];
	for (int i = 0; i < 20; i++) {
		wg_stamp_init(&s, persisted);
		assert_true(wg_stamp_next(&s, NOW_S * WEFT_NS_PER_S + i, out));
		persisted = s.reserved_s;
	}
	assert_true(persisted <= EPOCH + NOW_S + 60 + 20);
}

static void
stamp_before_1970_is_below_the_epoch(void **state)
{
	(void)state;
	struct wg_stamp s;
	uint8_t out[WIRE_WG_STAMP_LEN];
	wg_stamp_init(&s, 0);
	assert_true(wg_stamp_next(&s, -1, out));
	static const uint8_t want[] = {0x40, 0, 0, 0, 0, 0, 0, 9, 0x3b, 0, 0, 0};
	assert_memory_equal(out, want, sizeof(want));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stamp_is_the_tai64n_of_the_clock_rounded_down),
		cmocka_unit_test(stamps_only_grow_whatever_the_clock_does),
		cmocka_unit_test(one_reservation_serves_a_minute_of_handshakes),
		cmocka_unit_test(quick_restarts_do_not_run_away_from_the_clock),
		cmocka_unit_test(stamp_before_1970_is_below_the_epoch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

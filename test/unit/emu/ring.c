/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "emu/ring.h"

#define LIVE_MAX 64

struct live {
	size_t off;
	uint32_t len;
	uint8_t fill;
};

static void
check_fill(const struct emu_ring *r, const struct live *l, uint64_t seed)
{
	const uint8_t *p = emu_ring_at(r, l->off);
	for (uint32_t i = 0; i < l->len; i++) {
		if (p[i] != l->fill) {
			fail_msg("seed %lu: a block was overwritten", (unsigned long)seed);
		}
	}
}

/* Takes and frees at random, in any order, and looks at every byte before each free. */
static void
ring_never_gives_bytes_that_are_in_use(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct rng rng;
		struct emu_ring r;
		struct live live[LIVE_MAX];
		size_t n = 0, refused = 0;
		rng_init(&rng, seed);
		assert_int_equal(emu_ring_init(&r, 4096 + rng_below(&rng, 5000)), WEFT_OK);
		for (int step = 0; step < 5000; step++) {
			if (n < LIVE_MAX && rng_is_hit(&rng, 0.55)) {
				uint32_t len = (uint32_t)rng_below(&rng, 300);
				size_t off = emu_ring_take(&r, len);
				if (off == EMU_RING_NONE) {
					refused++;
					continue;
				}
				assert_true(off % 16 == 0 && off + len <= r.cap);
				live[n] = (struct live){off, len, (uint8_t)rng_u64(&rng)};
				memset(emu_ring_at(&r, off), live[n].fill, len);
				n++;
			} else if (n > 0) {
				size_t i = rng_below(&rng, n);
				check_fill(&r, &live[i], seed);
				emu_ring_free(&r, live[i].off);
				live[i] = live[--n];
			}
		}
		while (n > 0) {
			check_fill(&r, &live[--n], seed);
			emu_ring_free(&r, live[n].off);
		}
		/* All is free again: the whole of it fits. */
		assert_int_not_equal(emu_ring_take(&r, (uint32_t)r.cap - 16), EMU_RING_NONE);
		assert_int_not_equal(refused, 0);
		emu_ring_fini(&r);
	}
}

static void
ring_of_nothing_holds_nothing(void **state)
{
	(void)state;
	struct emu_ring r;
	assert_int_equal(emu_ring_init(&r, 0), WEFT_OK);
	assert_int_equal(emu_ring_take(&r, 0), EMU_RING_NONE);
	emu_ring_fini(&r);
}

static void
ring_holds_in_order_all_that_fits(void **state)
{
	(void)state;
	struct emu_ring r;
	size_t offs[8];
	assert_int_equal(emu_ring_init(&r, 8 * 64), WEFT_OK);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 8; i++) {
			offs[i] = emu_ring_take(&r, 48);
			assert_int_not_equal(offs[i], EMU_RING_NONE);
		}
		assert_int_equal(emu_ring_take(&r, 0), EMU_RING_NONE);
		for (int i = 0; i < 8; i++) {
			emu_ring_free(&r, offs[i]);
		}
	}
	emu_ring_fini(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring_never_gives_bytes_that_are_in_use),
		cmocka_unit_test(ring_of_nothing_holds_nothing),
		cmocka_unit_test(ring_holds_in_order_all_that_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

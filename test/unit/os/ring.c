/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <string.h>
#include <cmocka.h>

#include "base/endian.h"
#include "base/rng.h"
#include "os/ring.h"
#include "os/thread.h"

static bool
is_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, 0) == 1;
}

/* One thread writes and reads in random steps; a queue of lengths is the model. */
static void
ring_equals_a_queue(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct os_ring *r;
		struct rng rng;
		static size_t lens[1 << 16];
		size_t pushed = 0, taken = 0, released = 0, refused = 0;
		rng_init(&rng, seed);
		assert_int_equal(os_ring_new(4096, &r), WEFT_OK);
		for (int step = 0; step < 3000; step++) {
			size_t len = rng_below(&rng, rng_is_hit(&rng, 0.1) ? 2032 : 200);
			uint8_t *p;
			size_t got;
			switch (rng_below(&rng, 4)) {
			case 0:
			case 1:
				p = os_ring_reserve(r, len + rng_below(&rng, 16));
				if (!p) {
					refused++;
					break;
				}
				assert_int_equal((uintptr_t)p % 16, 0);
				memset(p, (int)(pushed & 255), len);
				lens[pushed++] = len;
				os_ring_push(r, len);
				break;
			case 2:
				p = os_ring_take(r, &got);
				if (!p) {
					assert_int_equal(taken, pushed);
					break;
				}
				assert_true(taken < pushed);
				if (got != lens[taken]) {
					fail_msg("seed %llu: record %zu has %zu bytes, not %zu",
						(unsigned long long)seed, taken, got, lens[taken]);
				}
				for (size_t i = 0; i < got; i++) {
					assert_int_equal(p[i], taken & 255);
				}
				taken++;
				break;
			default:
				os_ring_release(r);
				released = taken;
				break;
			}
		}
		assert_true(refused > 0 && released > 100);
		os_ring_free(r);
	}
}

static void
record_of_half_the_ring_fits_at_any_position(void **state)
{
	(void)state;
	struct os_ring *r;
	assert_int_equal(os_ring_new(4096, &r), WEFT_OK);
	for (int i = 0; i < 300; i++) {
		size_t len;
		assert_non_null(os_ring_reserve(r, 16));
		os_ring_push(r, 16);
		assert_non_null(os_ring_take(r, &len));
		os_ring_release(r);
		assert_non_null(os_ring_reserve(r, 2048 - 16));
		os_ring_push(r, 2048 - 16);
		assert_non_null(os_ring_take(r, &len));
		assert_int_equal(len, 2032);
		os_ring_release(r);
	}
	assert_null(os_ring_reserve(r, 4096));
	assert_null(os_ring_reserve(r, SIZE_MAX));
	os_ring_free(r);
}

static void
descriptor_tells_a_sleeping_reader_alone(void **state)
{
	(void)state;
	struct os_ring *r;
	size_t len;
	assert_int_equal(os_ring_new(4096, &r), WEFT_OK);
	assert_non_null(os_ring_reserve(r, 1));
	os_ring_push(r, 1);
	assert_false(is_readable(os_ring_fd(r))); /* nobody has slept yet */
	assert_non_null(os_ring_take(r, &len));
	for (int i = 0; i < 3; i++) {
		assert_null(os_ring_take(r, &len));
		assert_false(is_readable(os_ring_fd(r)));
		assert_non_null(os_ring_reserve(r, 1));
		os_ring_push(r, 1);
		assert_true(is_readable(os_ring_fd(r)));
		assert_non_null(os_ring_take(r, &len));
		os_ring_release(r);
	}
	assert_null(os_ring_take(r, &len));
	assert_false(is_readable(os_ring_fd(r)));
	os_ring_free(r);
}

static void
polled_ring_never_signals(void **state)
{
	(void)state;
	struct os_ring *r;
	size_t len;
	assert_int_equal(os_ring_new(4096, &r), WEFT_OK);
	os_ring_set_polled(r);
	for (int i = 0; i < 3; i++) {
		assert_null(os_ring_take(r, &len));
		assert_non_null(os_ring_reserve(r, 1));
		os_ring_push(r, 1);
		assert_false(is_readable(os_ring_fd(r)));
		assert_non_null(os_ring_take(r, &len));
		os_ring_release(r);
	}
	os_ring_free(r);
}

#define RECORDS 200000u

struct pipe {
	struct os_ring *ring;
	uint64_t seed;
};

static void
write_records(void *arg)
{
	struct pipe *p = arg;
	struct rng rng;
	rng_init(&rng, p->seed);
	for (uint32_t i = 0; i < RECORDS; i++) {
		size_t len = 4 + rng_below(&rng, 300);
		uint8_t *at;
		while (!(at = os_ring_reserve(p->ring, len))) {
			os_thread_yield();
		}
		memset(at, (int)(i & 255), len);
		store_le32(at, i);
		os_ring_push(p->ring, len);
	}
}

/* Two threads, the reader sleeping whenever it finds nothing: no record is lost, changed or
 * waited for in vain. */
static void
records_cross_threads_and_no_wake_is_lost(void **state)
{
	(void)state;
	struct pipe p = {.seed = 3};
	struct os_thread t;
	struct rng rng;
	rng_init(&rng, p.seed);
	assert_int_equal(os_ring_new(16384, &p.ring), WEFT_OK);
	assert_int_equal(os_thread_start(&t, "writer", 0, write_records, &p), WEFT_OK);
	for (uint32_t i = 0; i < RECORDS;) {
		size_t len;
		uint8_t *at = os_ring_take(p.ring, &len);
		if (!at) {
			os_ring_release(p.ring);
			struct pollfd f = {.fd = os_ring_fd(p.ring), .events = POLLIN};
			if (poll(&f, 1, 5000) != 1) {
				fail_msg("no wake for record %u", i);
			}
			continue;
		}
		assert_int_equal(load_le32(at), i);
		assert_int_equal(len, 4 + rng_below(&rng, 300));
		assert_true(len == 4 || at[len - 1] == (i & 255));
		i++;
		if (i % 16 == 0) {
			os_ring_release(p.ring);
		}
	}
	os_thread_join(&t);
	os_ring_free(p.ring);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring_equals_a_queue),
		cmocka_unit_test(record_of_half_the_ring_fits_at_any_position),
		cmocka_unit_test(descriptor_tells_a_sleeping_reader_alone),
		cmocka_unit_test(polled_ring_never_signals),
		cmocka_unit_test(records_cross_threads_and_no_wake_is_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

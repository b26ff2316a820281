/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "crypto/aead_cache.h"

static struct aead_key
key_of(uint8_t n)
{
	struct aead_key k = {{0}, AEAD_CIPHER_AES_256_GCM};
	k.bytes[AEAD_KEY_LEN - 1] = n;
	return k;
}

static void
the_key_of_zeros_is_not_there_at_first(void **state)
{
	(void)state;
	struct aead_cache c = {0};
	struct aead_key k = key_of(0);
	bool is_new = false;
	size_t slot = aead_cache_find(&c, &k, &is_new);
	assert_true(is_new);
	assert_true(aead_cache_is_used(&c, slot));
	assert_int_equal(aead_cache_find(&c, &k, &is_new), slot);
	assert_false(is_new);
}

static void
keys_that_differ_in_one_bit_are_two(void **state)
{
	(void)state;
	for (size_t bit = 0; bit < 8 * AEAD_KEY_LEN; bit++) {
		struct aead_cache c = {0};
		struct aead_key a = key_of(1), b = a;
		bool is_new;
		b.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		size_t slot = aead_cache_find(&c, &a, &is_new);
		assert_int_not_equal(aead_cache_find(&c, &b, &is_new), slot);
		assert_true(is_new);
	}
}

static void
clearing_leaves_nothing(void **state)
{
	(void)state;
	static const struct aead_cache zero;
	struct aead_cache c = {0};
	struct aead_key k = key_of(7);
	bool is_new;
	aead_cache_find(&c, &k, &is_new);
	aead_cache_clear(&c);
	assert_memory_equal(&c, &zero, sizeof(c));
}

/* The model: keys in the order of use, youngest first. */
static void
the_key_that_goes_was_used_longest_ago(void **state)
{
	(void)state;
	const uint64_t seed = 1;
	struct aead_cache c = {0};
	struct rng r;
	int keys[AEAD_CACHE_SLOTS];
	size_t slots[AEAD_CACHE_SLOTS], n = 0;
	rng_init(&r, seed);
	for (int step = 0; step < 100000; step++) {
		int key = (int)rng_below(&r, 2 * AEAD_CACHE_SLOTS - 1);
		struct aead_key k = key_of((uint8_t)key);
		bool is_new;
		size_t slot = aead_cache_find(&c, &k, &is_new);
		size_t at = 0;
		while (at < n && keys[at] != key) {
			at++;
		}
		if (is_new != (at == n) || (at < n && slots[at] != slot) ||
			(at == n && n == AEAD_CACHE_SLOTS && slots[n - 1] != slot)) {
			fail_msg("step %d, seed %llu", step, (unsigned long long)seed);
		}
		if (at == n) {
			n += n < AEAD_CACHE_SLOTS;
			at = n - 1;
		}
		memmove(keys + 1, keys, at * sizeof(keys[0]));
		memmove(slots + 1, slots, at * sizeof(slots[0]));
		keys[0] = key;
		slots[0] = slot;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_key_of_zeros_is_not_there_at_first),
		cmocka_unit_test(keys_that_differ_in_one_bit_are_two),
		cmocka_unit_test(clearing_leaves_nothing),
		cmocka_unit_test(the_key_that_goes_was_used_longest_ago),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

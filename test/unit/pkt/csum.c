/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "pkt/csum.h"

#define LEN_MAX 2100
#define ALIGN_MAX 16

/* RFC 1071 as it is written: big-endian words, one byte at a time. i: its place. */
static uint16_t
naive_add(uint16_t sum, uint8_t byte, size_t i)
{
	uint32_t s = sum + (i % 2 == 0 ? (uint32_t)byte << 8 : byte);
	return (uint16_t)((s & 0xffff) + (s >> 16));
}

/* 0 and 0xffff are the same sum. */
static uint16_t
host_value(uint64_t sum)
{
	uint8_t b[2];
	csum_store_partial(b, sum);
	return load_be16(b) == 0xffff ? 0 : load_be16(b);
}

static uint16_t
plain_value(uint16_t sum)
{
	return sum == 0xffff ? 0 : sum;
}

static uint16_t
naive_value(const uint8_t *p, size_t len)
{
	uint16_t sum = 0;
	for (size_t i = 0; i < len; i++) {
		sum = naive_add(sum, p[i], i);
	}
	return plain_value(sum);
}

static void
fill_random(uint8_t *p, size_t len)
{
	struct rng r;
	rng_init(&r, 7);
	rng_fill(&r, p, len);
}

static void
fill_ones(uint8_t *p, size_t len)
{
	memset(p, 0xff, len);
}

static void
fill_zeros(uint8_t *p, size_t len)
{
	memset(p, 0, len);
}

/* Words of 0x7fff at even and odd offsets: the largest that a signed kernel may meet. */
static void
fill_large(uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		p[i] = i % 2 == 0 ? 0xff : 0x7f;
	}
}

static void
check_one(const struct csum_kernel *k, const uint8_t *src, size_t len, size_t to, uint16_t want)
{
	static uint8_t dst[LEN_MAX + 2 * ALIGN_MAX];
	if (host_value(k->partial(src, len)) != want) {
		fail_msg("%s: sum of %zu bytes at %p", k->name, len, (const void *)src);
	}
	memset(dst + to - 1, 0xa5, len + 2);
	if (host_value(k->copy(dst + to, src, len)) != want) {
		fail_msg("%s: copied sum of %zu bytes at %p", k->name, len, (const void *)src);
	}
	if (memcmp(dst + to, src, len) != 0) {
		fail_msg("%s: copy of %zu bytes to alignment %zu", k->name, len, to);
	}
	if (dst[to + len] != 0xa5 || dst[to - 1] != 0xa5) {
		fail_msg("%s: wrote outside %zu bytes at alignment %zu", k->name, len, to);
	}
}

/* All lengths at all alignments of the source; that of the destination changes along. */
static void
check_all(void (*pattern)(uint8_t *p, size_t len))
{
	static WEFT_ALIGNED(64) uint8_t src[LEN_MAX + ALIGN_MAX + 1];
	pattern(src, sizeof(src));
	for (size_t align = 0; align < ALIGN_MAX; align++) {
		uint16_t sum = 0;
		for (size_t len = 0; len <= LEN_MAX; len++) {
			size_t to = 1 + (align * 7 + len) % ALIGN_MAX;
			const struct csum_kernel *k;
			for (size_t i = 0; (k = csum_kernel_at(i)) != NULL; i++) {
				check_one(k, src + align, len, to, plain_value(sum));
			}
			sum = naive_add(sum, src[align + len], len);
		}
	}
}

static void
csum_kernels_equal_the_naive_sum_of_random_bytes(void **state)
{
	(void)state;
	check_all(fill_random);
}

static void
csum_kernels_equal_the_naive_sum_of_extreme_bytes(void **state)
{
	(void)state;
	check_all(fill_ones);
	check_all(fill_zeros);
	check_all(fill_large);
}

static void
csum_kernels_do_not_overflow_at_the_longest_length(void **state)
{
	(void)state;
	static uint8_t src[CSUM_LEN_MAX];
	static void (*const patterns[])(uint8_t *, size_t) = {fill_ones, fill_zeros, fill_large};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(patterns); i++) {
		patterns[i](src, sizeof(src));
		uint16_t want = naive_value(src, sizeof(src));
		const struct csum_kernel *k;
		for (size_t j = 0; (k = csum_kernel_at(j)) != NULL; j++) {
			uint64_t sum = k->partial(src, sizeof(src));
			assert_true(sum < 1ull << 44);
			assert_int_equal(host_value(sum), want);
		}
	}
}

static void
csum_parts_add_up_at_even_offsets(void **state)
{
	(void)state;
	static uint8_t src[LEN_MAX];
	struct rng r;
	for (uint64_t seed = 0; seed < 2000; seed++) {
		rng_init(&r, seed);
		size_t len = rng_below(&r, sizeof(src) + 1);
		rng_fill(&r, src, len);
		uint64_t sum = 0;
		for (size_t at = 0; at < len;) {
			size_t n = 2 * rng_below(&r, 400);
			n = n < len - at ? n : len - at;
			sum += csum_partial(src + at, n);
			at += n;
		}
		if (host_value(sum) != naive_value(src, len)) {
			fail_msg("seed %llu", (unsigned long long)seed);
		}
	}
}

static void
csum_words_of_host_values_equal_bytes(void **state)
{
	(void)state;
	static const uint8_t bytes[] = {0x12, 0x34, 0xab, 0xcd, 0xef, 0x01};
	assert_int_equal(host_value(csum_word(0x1234) + csum_dword(0xabcdef01)),
		naive_value(bytes, sizeof(bytes)));
	assert_int_equal(host_value(csum_header(bytes, 4)), naive_value(bytes, 4));
	assert_int_equal(host_value(csum_word(5) + csum_negate(csum_fold(csum_word(3)))), 2);
}

static void
csum_store_writes_the_example_of_rfc_1071(void **state)
{
	(void)state;
	/* Section 3: 0001 f203 f4f5 f6f7 sum to ddf2. */
	static const uint8_t bytes[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
	uint8_t field[2];
	csum_store(field, csum_partial(bytes, sizeof(bytes)));
	assert_int_equal(load_be16(field), 0xffff - 0xddf2);
	csum_store(field, csum_word(0xffff));
	assert_int_equal(load_be16(field), 0);
	csum_store_nonzero(field, csum_word(0xffff));
	assert_int_equal(load_be16(field), 0xffff);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(csum_kernels_equal_the_naive_sum_of_random_bytes),
		cmocka_unit_test(csum_kernels_equal_the_naive_sum_of_extreme_bytes),
		cmocka_unit_test(csum_kernels_do_not_overflow_at_the_longest_length),
		cmocka_unit_test(csum_parts_add_up_at_even_offsets),
		cmocka_unit_test(csum_words_of_host_values_equal_bytes),
		cmocka_unit_test(csum_store_writes_the_example_of_rfc_1071),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

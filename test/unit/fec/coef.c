/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "fec/coef.h"
#include "fec/gf256.h"

static void
coefs_equal_known_answers(void **state)
{
	(void)state;
	/* From the formula of the header in another language's big integers. */
	static const struct {
		uint32_t key;
		uint8_t want[20];
	} known[] = {
		{0x00000000, {0xaf, 0xcd, 0x1d, 0x7b, 0x39, 0xa8, 0x20, 0xe2, 0xf4, 0x65, 0xb9,
				     0xa1, 0x6a, 0x9e, 0x78, 0x6e, 0x4f, 0x45, 0x09, 0x80}},
		{0x00000001, {0xe4, 0xc2, 0x1e, 0x86, 0xf9, 0x3c, 0x09, 0x46, 0x0b, 0xa4, 0x99,
				     0x1d, 0x4e, 0x81, 0xff, 0xe7, 0x15, 0x1a, 0xa2, 0xb4}},
		{0x00000016, {0x2b, 0xf1, 0x0b, 0x01, 0xb8, 0x35, 0xd7, 0xf1, 0x70, 0xfb, 0x23,
				     0xf4, 0x6a, 0xfe, 0xdc, 0x63, 0xe3, 0x6e, 0x38, 0x7d}},
		{0x12345678, {0x1e, 0x79, 0xef, 0xcf, 0x20, 0xe6, 0x6a, 0x45, 0xc7, 0xa6, 0x49,
				     0x73, 0x83, 0xa3, 0xe1, 0x83, 0xaf, 0xd0, 0x50, 0xb1}},
		{0xffffffff, {0x2d, 0x0f, 0x83, 0xdc, 0xc9, 0x38, 0xc4, 0xf6, 0x74, 0x36, 0x9e,
				     0xbc, 0xe1, 0x87, 0x04, 0xe3, 0x83, 0x9d, 0x19, 0x5b}},
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		uint8_t got[20];
		fec_coefs(known[i].key, got, sizeof(got));
		assert_memory_equal(got, known[i].want, sizeof(got));
	}
}

static void
coefs_of_a_shorter_row_start_a_longer_one(void **state)
{
	(void)state;
	uint8_t all[FEC_COEFS_MAX], some[FEC_COEFS_MAX + 1];
	fec_coefs(7, all, sizeof(all));
	for (size_t n = 0; n <= FEC_COEFS_MAX; n++) {
		memset(some, 0, sizeof(some));
		fec_coefs(7, some, n);
		assert_memory_equal(some, all, n);
		assert_int_equal(some[n], 0);
	}
}

static void
coefs_are_never_zero_and_spread_evenly(void **state)
{
	(void)state;
	enum { KEYS = 20000 };
	uint32_t counts[256] = {0};
	uint8_t row[FEC_COEFS_MAX];
	for (uint32_t key = 0; key < KEYS; key++) {
		fec_coefs(key, row, sizeof(row));
		for (size_t i = 0; i < sizeof(row); i++) {
			counts[row[i]]++;
		}
	}
	/* 10,000 of each value and twice as many ones; the deviation of a count is 100. */
	assert_int_equal(counts[0], 0);
	assert_in_range(counts[1], 19300, 20700);
	for (int v = 2; v < 256; v++) {
		assert_in_range(counts[v], 9500, 10500);
	}
}

#define N 8

static bool
is_singular(uint8_t m[N][N])
{
	for (size_t col = 0; col < N; col++) {
		size_t pivot = col;
		while (pivot < N && m[pivot][col] == 0) {
			pivot++;
		}
		if (pivot == N) {
			return true;
		}
		uint8_t row[N];
		memcpy(row, m[pivot], N);
		memcpy(m[pivot], m[col], N);
		uint8_t inverse = gf256_inv(row[col]);
		for (size_t r = col + 1; r < N; r++) {
			uint8_t c = gf256_mul(m[r][col], inverse);
			for (size_t i = col; i < N; i++) {
				m[r][i] ^= gf256_mul(c, row[i]);
			}
		}
	}
	return false;
}

/* A random square matrix without zeros is singular once in about 255 times, whatever its size.
 * Keys are neighbours and differ in one bit, as a sender that counts makes them. */
static void
coefs_of_neighbouring_keys_are_as_independent_as_random_ones(void **state)
{
	(void)state;
	enum { MATRICES = 51000 };
	unsigned singular = 0;
	for (uint32_t i = 0; i < MATRICES; i++) {
		uint8_t m[N][N], row[FEC_COEFS_MAX];
		for (uint32_t r = 0; r < N; r++) {
			fec_coefs(i * N + r, row, sizeof(row));
			/* Losses at places of their own in the span. */
			for (uint32_t c = 0; c < N; c++) {
				m[r][c] = row[c * 16 + i % 16];
			}
		}
		singular += is_singular(m);
	}
	/* 200 expected; the deviation is 14. */
	assert_in_range(singular, 130, 270);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(coefs_equal_known_answers),
		cmocka_unit_test(coefs_of_a_shorter_row_start_a_longer_one),
		cmocka_unit_test(coefs_are_never_zero_and_spread_evenly),
		cmocka_unit_test(coefs_of_neighbouring_keys_are_as_independent_as_random_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

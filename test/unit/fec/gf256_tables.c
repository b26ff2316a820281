/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fec/gf256_tables.h"

/* Schoolbook: shift, and subtract the polynomial when x^8 appears. */
static unsigned
naive_mul(unsigned a, unsigned b)
{
	unsigned product = 0;
	for (; b > 0; b >>= 1) {
		product ^= b & 1 ? a : 0;
		a <<= 1;
		a ^= a & 0x100 ? 0x11d : 0;
	}
	return product;
}

static void
tables_nibbles_hold_products_of_either_half(void **state)
{
	(void)state;
	for (unsigned c = 0; c < 256; c++) {
		for (unsigned x = 0; x < 16; x++) {
			assert_int_equal(gf256_nibbles[c][x], naive_mul(c, x));
			assert_int_equal(gf256_nibbles[c][16 + x], naive_mul(c, x << 4));
		}
	}
}

/* GF2P8AFFINEQB as Intel's manual has it: bit i of the result is the parity of byte 7 - i of
 * the matrix and the operand. */
static unsigned
affine(uint64_t matrix, unsigned x)
{
	unsigned y = 0;
	for (unsigned i = 0; i < 8; i++) {
		unsigned row = (unsigned)(matrix >> (8 * (7 - i))) & x, parity = 0;
		for (; row > 0; row >>= 1) {
			parity ^= row & 1;
		}
		y |= parity << i;
	}
	return y;
}

static void
tables_matrices_multiply_as_gf2p8affineqb_applies_them(void **state)
{
	(void)state;
	for (unsigned c = 0; c < 256; c++) {
		for (unsigned x = 0; x < 256; x++) {
			assert_int_equal(affine(gf256_matrices[c], x), naive_mul(c, x));
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_nibbles_hold_products_of_either_half),
		cmocka_unit_test(tables_matrices_multiply_as_gf2p8affineqb_applies_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

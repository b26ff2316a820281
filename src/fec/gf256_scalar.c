/* SPDX-License-Identifier: Apache-2.0 */
/* Portable kernel: eight bytes in a 64-bit word, without tables.
 *
 * The product is the sum over bits j of the factor of c * x^j. Bit j of all eight bytes stands
 * at the foot of its byte after a shift and a mask; times c * x^j, an integer below 256, each
 * set bit becomes that byte, and nothing is carried from one byte into the next. */
#include "fec/gf256_isa.h"

#include <string.h>

#include "fec/gf256_tables.h"

#define FEET UINT64_C(0x0101010101010101)

struct factor {
	uint64_t shifts[8]; /* c * x^j */
};

static struct factor
factor_of(uint8_t c)
{
	struct factor f;
	for (int j = 0; j < 4; j++) {
		f.shifts[j] = gf256_nibbles[c][1 << j];
		f.shifts[4 + j] = gf256_nibbles[c][16 + (1 << j)];
	}
	return f;
}

static uint64_t
product(const struct factor *f, uint64_t x)
{
	uint64_t y = 0;
	for (int j = 0; j < 8; j++) {
		y ^= (x >> j & FEET) * f->shifts[j];
	}
	return y;
}

static uint64_t
load(const uint8_t *p, size_t n)
{
	uint64_t x = 0;
	memcpy(&x, p, n);
	return x;
}

static void
add(uint8_t *dst, const uint8_t *src, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		dst[i] ^= src[i];
	}
}

static void
mul_add(uint8_t *dst, const uint8_t *src, uint8_t c, size_t n)
{
	const struct factor f = factor_of(c);
	size_t i = 0;
	for (; i + 8 <= n; i += 8) {
		uint64_t y = load(dst + i, 8) ^ product(&f, load(src + i, 8));
		memcpy(dst + i, &y, 8);
	}
	uint64_t y = load(dst + i, n - i) ^ product(&f, load(src + i, n - i));
	memcpy(dst + i, &y, n - i);
}

static void
scale(uint8_t *dst, uint8_t c, size_t n)
{
	const struct factor f = factor_of(c);
	size_t i = 0;
	for (; i + 8 <= n; i += 8) {
		uint64_t y = product(&f, load(dst + i, 8));
		memcpy(dst + i, &y, 8);
	}
	uint64_t y = product(&f, load(dst + i, n - i));
	memcpy(dst + i, &y, n - i);
}

static void
dot(uint8_t *dst, const uint8_t *const *srcs, const uint16_t *lens, const uint8_t *cs, size_t k,
	size_t n)
{
	(void)n;
	for (size_t i = 0; i < k; i++) {
		mul_add(dst, srcs[i], cs[i], lens[i]);
	}
}

static void
dot_multi(
	uint8_t *const *dsts, size_t r, const struct gf256_sources *s, const uint8_t *cs, size_t n)
{
	for (size_t row = 0; row < r; row++) {
		dot(dsts[row], s->data, s->lens, cs + row * s->k, s->k, n);
	}
}

const struct gf256 gf256_scalar = {
	.name = "scalar",
	.add = add,
	.mul_add = mul_add,
	.scale = scale,
	.dot = dot,
	.dot_multi = dot_multi,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of instruction sets that look 16 bytes up in a table of 16 bytes.
 *
 * A product is the sum of what the two halves of a byte give, and each half has 16 values. One
 * text for all of them: the file that includes this has defined
 *
 *	ISA, KERNEL, KERNEL_NAME
 *	VEC, VECTOR_BYTES			a vector, and how many bytes it has. A bare type:
 *						gcc 12 loses half of one in a struct that a
 *						function returns
 *	VECTORS(rows)				of each row in one walk
 *	vec_load(p), vec_store(p, x), vec_xor(x, y), vec_zero()
 *	vec_load_some(p, n, before)		n < VECTOR_BYTES bytes, then zeros; as many
 *						bytes before p are there to be read
 *	struct vec_factor, vec_factor(c)	c as two tables
 *	struct vec_halves, vec_halves(x)	the indices into them
 *	vec_product(&factor, &halves) */
#ifndef WEFT_FEC_GF256_NIBBLE_H
#define WEFT_FEC_GF256_NIBBLE_H

#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "fec/gf256_isa.h"

ISA static WEFT_ALWAYS_INLINE void
vec_store_some(uint8_t *p, VEC x, size_t n)
{
	uint8_t bytes[VECTOR_BYTES];
	vec_store(bytes, x);
	memcpy(p, bytes, n);
}

ISA static void
add(uint8_t *dst, const uint8_t *src, size_t n)
{
	size_t rest = n % VECTOR_BYTES, whole = n - rest;
	VEC x = vec_load_some(src + whole, rest, whole);
	VEC y = vec_load_some(dst + whole, rest, whole);
	for (size_t i = 0; i < whole; i += VECTOR_BYTES) {
		vec_store(dst + i, vec_xor(vec_load(dst + i), vec_load(src + i)));
	}
	vec_store_some(dst + whole, vec_xor(x, y), rest);
}

ISA static WEFT_ALWAYS_INLINE VEC
times(VEC x, const struct vec_factor *f)
{
	struct vec_halves h = vec_halves(x);
	return vec_product(f, &h);
}

ISA static void
mul_add(uint8_t *dst, const uint8_t *src, uint8_t c, size_t n)
{
	const struct vec_factor f = vec_factor(c);
	/* The rest is loaded first: later it would overlap what has just been stored, and wait. */
	size_t rest = n % VECTOR_BYTES, whole = n - rest;
	VEC x = vec_load_some(src + whole, rest, whole);
	VEC y = vec_load_some(dst + whole, rest, whole);
	for (size_t i = 0; i < whole; i += VECTOR_BYTES) {
		VEC product = times(vec_load(src + i), &f);
		vec_store(dst + i, vec_xor(vec_load(dst + i), product));
	}
	vec_store_some(dst + whole, vec_xor(y, times(x, &f)), rest);
}

ISA static void
scale(uint8_t *dst, uint8_t c, size_t n)
{
	const struct vec_factor f = vec_factor(c);
	size_t rest = n % VECTOR_BYTES, whole = n - rest;
	VEC x = vec_load_some(dst + whole, rest, whole);
	for (size_t i = 0; i < whole; i += VECTOR_BYTES) {
		vec_store(dst + i, times(vec_load(dst + i), &f));
	}
	vec_store_some(dst + whole, times(x, &f), rest);
}

/* Vector j of what follows p, of which `left` bytes exist and `before` bytes precede it. */
ISA static WEFT_ALWAYS_INLINE VEC
load_at(const uint8_t *p, size_t j, size_t left, size_t before)
{
	size_t skip = j * VECTOR_BYTES;
	if (left >= skip + VECTOR_BYTES) {
		return vec_load(p + skip);
	}
	if (left <= skip) {
		return vec_zero();
	}
	return vec_load_some(p + skip, left - skip, before + skip);
}

/* Columns [at, at + width) of all rows, which registers hold while the sources pass by. A helper
 * that took `sums` by address would put it into memory. */
ISA static WEFT_ALWAYS_INLINE void
walk(uint8_t *const *dsts, const size_t rows, const struct gf256_sources *s, const uint8_t *cs,
	size_t at, size_t width)
{
	const size_t vectors = VECTORS(rows);
	VEC sums[GF256_ROWS_MAX * VECTORS(1)];
	struct vec_factor f[GF256_ROWS_MAX];
	struct vec_halves h[VECTORS(1)];
	WEFT_UNROLL
	for (size_t a = 0; a < rows * vectors; a++) {
		sums[a] = load_at(dsts[a / vectors] + at, a % vectors, width, at);
	}
	for (size_t i = 0; i < s->k; i++) {
		if (s->lens[i] <= at) {
			continue;
		}
		const uint8_t *p = s->data[i] + at;
		size_t left = s->lens[i] - at;
		/* Of 16 registers, the tables of two rows leave room for sums; those of four do
		 * not, and there the halves of few vectors stay while the tables pass by. */
		if (rows <= 2) {
			WEFT_UNROLL
			for (size_t row = 0; row < rows; row++) {
				f[row] = vec_factor(cs[row * s->k + i]);
			}
			WEFT_UNROLL
			for (size_t a = 0; a < rows * vectors; a++) {
				size_t j = a / rows, row = a % rows, to = row * vectors + j;
				if (row == 0) {
					h[j] = vec_halves(load_at(p, j, left, at));
				}
				sums[to] = vec_xor(sums[to], vec_product(&f[row], &h[j]));
			}
		} else {
			WEFT_UNROLL
			for (size_t j = 0; j < vectors; j++) {
				h[j] = vec_halves(load_at(p, j, left, at));
			}
			WEFT_UNROLL
			for (size_t a = 0; a < rows * vectors; a++) {
				size_t row = a / vectors;
				if (a % vectors == 0) {
					f[row] = vec_factor(cs[row * s->k + i]);
				}
				sums[a] = vec_xor(sums[a], vec_product(&f[row], &h[a % vectors]));
			}
		}
	}
	WEFT_UNROLL
	for (size_t a = 0; a < rows * vectors; a++) {
		size_t skip = a % vectors * VECTOR_BYTES;
		uint8_t *p = dsts[a / vectors] + at + skip;
		if (width >= skip + VECTOR_BYTES) {
			vec_store(p, sums[a]);
		} else if (width > skip) {
			vec_store_some(p, sums[a], width - skip);
		}
	}
}

/* An instance of the walk for a number of rows that the compiler knows. */
ISA static WEFT_ALWAYS_INLINE void
walk_all(uint8_t *const *dsts, const size_t rows, const struct gf256_sources *s, const uint8_t *cs,
	size_t n)
{
	const size_t stride = VECTORS(rows) * VECTOR_BYTES;
	for (size_t at = 0; at < n; at += stride) {
		walk(dsts, rows, s, cs, at, n - at < stride ? n - at : stride);
	}
}

ISA static void
dot(uint8_t *dst, const uint8_t *const *srcs, const uint16_t *lens, const uint8_t *cs, size_t k,
	size_t n)
{
	const struct gf256_sources s = {srcs, lens, k};
	walk_all(&dst, 1, &s, cs, n);
}

ISA static void
dot_multi(
	uint8_t *const *dsts, size_t r, const struct gf256_sources *s, const uint8_t *cs, size_t n)
{
	switch (r) {
	case 1:
		walk_all(dsts, 1, s, cs, n);
		break;
	case 2:
		walk_all(dsts, 2, s, cs, n);
		break;
	case 3:
		walk_all(dsts, 3, s, cs, n);
		break;
	default:
		weft_dassert(r == 4);
		walk_all(dsts, 4, s, cs, n);
		break;
	}
}

const struct gf256 KERNEL = {
	.name = KERNEL_NAME,
	.add = add,
	.mul_add = mul_add,
	.scale = scale,
	.dot = dot,
	.dot_multi = dot_multi,
};

#endif

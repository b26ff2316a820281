/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel for GFNI with AVX-512: 64 bytes times a constant are one instruction.
 *
 * That instruction's own field has another polynomial, but it also applies any 8 x 8 matrix of
 * bits, and multiplication by a constant is one. What a vector leaves over is loaded and stored
 * under a mask, whose dead bytes are not touched. */
#include "fec/gf256_isa.h"

#if GF256_HAVE_X86
#include <immintrin.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "fec/gf256_tables.h"

#define ISA WEFT_TARGET("gfni,avx512f,avx512bw") WEFT_MASKED_UNCHECKED
#define VECTOR_BYTES 64u
/* Of 32 registers, for all rows together: beside them stand a source, four matrices, one spare.
 * A packet of up to 1536 bytes is one walk for one row. */
#define ACCUMULATORS 24u

/* The first n bytes of a vector; n may be larger. */
ISA static WEFT_ALWAYS_INLINE __mmask64
first(size_t n)
{
	return n < VECTOR_BYTES ? ((uint64_t)1 << n) - 1 : ~(uint64_t)0;
}

ISA static WEFT_ALWAYS_INLINE __m512i
matrix(uint8_t c)
{
	return _mm512_set1_epi64((long long)gf256_matrices[c]);
}

ISA static WEFT_ALWAYS_INLINE __m512i
times(__m512i x, __m512i m)
{
	return _mm512_gf2p8affine_epi64_epi8(x, m, 0);
}

ISA static void
add(uint8_t *dst, const uint8_t *src, size_t n)
{
	size_t i = 0;
	for (; i + VECTOR_BYTES <= n; i += VECTOR_BYTES) {
		__m512i x = _mm512_loadu_si512(src + i);
		_mm512_storeu_si512(dst + i, _mm512_xor_si512(_mm512_loadu_si512(dst + i), x));
	}
	__mmask64 rest = first(n - i);
	__m512i x = _mm512_maskz_loadu_epi8(rest, src + i);
	__m512i y = _mm512_maskz_loadu_epi8(rest, dst + i);
	_mm512_mask_storeu_epi8(dst + i, rest, _mm512_xor_si512(y, x));
}

ISA static void
mul_add(uint8_t *dst, const uint8_t *src, uint8_t c, size_t n)
{
	const __m512i m = matrix(c);
	size_t i = 0;
	for (; i + VECTOR_BYTES <= n; i += VECTOR_BYTES) {
		__m512i x = times(_mm512_loadu_si512(src + i), m);
		_mm512_storeu_si512(dst + i, _mm512_xor_si512(_mm512_loadu_si512(dst + i), x));
	}
	__mmask64 rest = first(n - i);
	__m512i x = times(_mm512_maskz_loadu_epi8(rest, src + i), m);
	__m512i y = _mm512_maskz_loadu_epi8(rest, dst + i);
	_mm512_mask_storeu_epi8(dst + i, rest, _mm512_xor_si512(y, x));
}

ISA static void
scale(uint8_t *dst, uint8_t c, size_t n)
{
	const __m512i m = matrix(c);
	size_t i = 0;
	for (; i + VECTOR_BYTES <= n; i += VECTOR_BYTES) {
		_mm512_storeu_si512(dst + i, times(_mm512_loadu_si512(dst + i), m));
	}
	__mmask64 rest = first(n - i);
	_mm512_mask_storeu_epi8(dst + i, rest, times(_mm512_maskz_loadu_epi8(rest, dst + i), m));
}

/* Columns [at, at + width) of all rows, which accumulators hold while the sources pass by. */
ISA static WEFT_ALWAYS_INLINE void
walk(uint8_t *const *dsts, const size_t rows, const struct gf256_sources *s, const uint8_t *cs,
	size_t at, size_t width)
{
	const size_t vectors = ACCUMULATORS / rows;
	__m512i sums[ACCUMULATORS], m[GF256_ROWS_MAX];
	WEFT_UNROLL
	for (size_t a = 0; a < rows * vectors; a++) {
		size_t j = a % vectors * VECTOR_BYTES;
		sums[a] = _mm512_maskz_loadu_epi8(
			first(width > j ? width - j : 0), dsts[a / vectors] + at + j);
	}
	for (size_t i = 0; i < s->k; i++) {
		if (s->lens[i] <= at) {
			continue;
		}
		const uint8_t *p = s->data[i] + at;
		size_t left = s->lens[i] - at;
		WEFT_UNROLL
		for (size_t row = 0; row < rows; row++) {
			m[row] = matrix(cs[row * s->k + i]);
		}
		WEFT_UNROLL
		for (size_t j = 0; j < vectors; j++) {
			size_t skip = j * VECTOR_BYTES;
			if (WEFT_UNLIKELY(left <= skip)) {
				continue; /* clang does not unroll a loop that breaks off */
			}
			/* volatile: gcc would repeat the load for every row. */
			__m512i x = WEFT_UNLIKELY(left < skip + VECTOR_BYTES)
					    ? _mm512_maskz_loadu_epi8(first(left - skip), p + skip)
					    : *(const volatile __m512i_u *)(p + skip);
			WEFT_UNROLL
			for (size_t row = 0; row < rows; row++) {
				size_t a = row * vectors + j;
				sums[a] = _mm512_xor_si512(sums[a], times(x, m[row]));
			}
		}
	}
	WEFT_UNROLL
	for (size_t a = 0; a < rows * vectors; a++) {
		size_t j = a % vectors * VECTOR_BYTES;
		_mm512_mask_storeu_epi8(
			dsts[a / vectors] + at + j, first(width > j ? width - j : 0), sums[a]);
	}
}

/* An instance of the walk for a number of rows that the compiler knows. */
ISA static WEFT_ALWAYS_INLINE void
walk_all(uint8_t *const *dsts, const size_t rows, const struct gf256_sources *s, const uint8_t *cs,
	size_t n)
{
	const size_t stride = ACCUMULATORS / rows * VECTOR_BYTES;
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

const struct gf256 gf256_gfni = {
	.name = "gfni-avx512",
	.add = add,
	.mul_add = mul_add,
	.scale = scale,
	.dot = dot,
	.dot_multi = dot_multi,
};
#endif

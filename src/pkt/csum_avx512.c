/* SPDX-License-Identifier: Apache-2.0 */
/* Checksum kernel for AVX-512BW: the arithmetic of csum_avx2.c on 64 bytes, and masked loads
 * and stores for the rest, which a byte loop would make the longest part of a short packet. */
#include "pkt/csum_isa.h"

#if CSUM_HAVE_X86
#include <immintrin.h>

#include "base/compiler.h"
#include "pkt/csum.h"

#define VECTOR_BYTES 64u
#define BIAS_PER_VECTOR (VECTOR_BYTES / 2 * 32768u)

_Static_assert(
	(CSUM_LEN_MAX / VECTOR_BYTES / 2 + 1) * 65536ull <= 1ull << 31, "a lane may overflow");

WEFT_TARGET("avx512bw")
static __m512i
add_words(__m512i sum, __m512i words)
{
	const __m512i flip = _mm512_set1_epi16((short)0x8000);
	const __m512i ones = _mm512_set1_epi16(1);
	return _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_xor_si512(words, flip), ones));
}

WEFT_TARGET("avx512bw")
static uint64_t
finish(__m512i a, __m512i b, size_t vectors)
{
	__m512i wide = _mm512_add_epi64(_mm512_cvtepi32_epi64(_mm512_castsi512_si256(a)),
		_mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(a, 1)));
	wide = _mm512_add_epi64(wide, _mm512_cvtepi32_epi64(_mm512_castsi512_si256(b)));
	wide = _mm512_add_epi64(wide, _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(b, 1)));
	return (uint64_t)(_mm512_reduce_add_epi64(wide) + (int64_t)(vectors * BIAS_PER_VECTOR));
}

static uint64_t
tail_mask(size_t len)
{
	return ((uint64_t)1 << len) - 1;
}

WEFT_TARGET("avx512bw")
uint64_t
csum_partial_avx512(const void *p, size_t len)
{
	const uint8_t *s = p;
	size_t vectors = len / VECTOR_BYTES;
	__m512i a = _mm512_setzero_si512(), b = a;
	size_t i = 0;
	for (; i + 2 <= vectors; i += 2, s += 2 * VECTOR_BYTES) {
		a = add_words(a, _mm512_loadu_si512(s));
		b = add_words(b, _mm512_loadu_si512(s + VECTOR_BYTES));
	}
	if (i < vectors) {
		a = add_words(a, _mm512_loadu_si512(s));
		s += VECTOR_BYTES;
	}
	b = add_words(b, _mm512_maskz_loadu_epi8(tail_mask(len % VECTOR_BYTES), s));
	return finish(a, b, vectors + 1);
}

WEFT_TARGET("avx512bw")
uint64_t
csum_copy_avx512(void *dst, const void *src, size_t len)
{
	const uint8_t *s = src;
	uint8_t *d = dst;
	size_t vectors = len / VECTOR_BYTES;
	__m512i a = _mm512_setzero_si512(), b = a;
	size_t i = 0;
	for (; i + 2 <= vectors; i += 2, s += 2 * VECTOR_BYTES, d += 2 * VECTOR_BYTES) {
		__m512i v = _mm512_loadu_si512(s);
		__m512i w = _mm512_loadu_si512(s + VECTOR_BYTES);
		_mm512_storeu_si512(d, v);
		_mm512_storeu_si512(d + VECTOR_BYTES, w);
		a = add_words(a, v);
		b = add_words(b, w);
	}
	if (i < vectors) {
		__m512i v = _mm512_loadu_si512(s);
		_mm512_storeu_si512(d, v);
		a = add_words(a, v);
		s += VECTOR_BYTES;
		d += VECTOR_BYTES;
	}
	uint64_t mask = tail_mask(len % VECTOR_BYTES);
	__m512i v = _mm512_maskz_loadu_epi8(mask, s);
	_mm512_mask_storeu_epi8(d, mask, v);
	b = add_words(b, v);
	return finish(a, b, vectors + 1);
}
#endif

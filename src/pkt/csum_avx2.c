/* SPDX-License-Identifier: Apache-2.0 */
/* Checksum kernel for AVX2.
 *
 * vpmaddwd adds pairs of 16-bit words into 32-bit lanes, but takes them as signed. Flipping the
 * top bit turns a word w into w - 32,768, and as the number of words is known, their sum is put
 * right once at the end. A lane takes 2 words of 32,768 at most a vector: CSUM_LEN_MAX / 32
 * vectors stay within its 31 bits, all the more as there are two accumulators. */
#include "pkt/csum_isa.h"

#if CSUM_HAVE_X86
#include <immintrin.h>

#include "base/compiler.h"
#include "pkt/csum.h"

#define VECTOR_BYTES 32u
#define BIAS_PER_VECTOR (VECTOR_BYTES / 2 * 32768u)

_Static_assert(CSUM_LEN_MAX / VECTOR_BYTES / 2 * 65536ull <= 1ull << 31, "a lane may overflow");

WEFT_TARGET("avx2")
static __m256i
add_words(__m256i sum, __m256i words)
{
	const __m256i flip = _mm256_set1_epi16((short)0x8000);
	const __m256i ones = _mm256_set1_epi16(1);
	return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_xor_si256(words, flip), ones));
}

/* Sum of all lanes of both, and the bias of the vectors that went in. */
WEFT_TARGET("avx2")
static uint64_t
finish(__m256i a, __m256i b, size_t vectors)
{
	/* Widened before the two meet: their sum may need the 32nd bit. */
	__m256i wide = _mm256_add_epi64(_mm256_cvtepi32_epi64(_mm256_castsi256_si128(a)),
		_mm256_cvtepi32_epi64(_mm256_extracti128_si256(a, 1)));
	wide = _mm256_add_epi64(wide, _mm256_cvtepi32_epi64(_mm256_castsi256_si128(b)));
	wide = _mm256_add_epi64(wide, _mm256_cvtepi32_epi64(_mm256_extracti128_si256(b, 1)));
	__m128i half =
		_mm_add_epi64(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
	int64_t sum = _mm_extract_epi64(half, 0) + _mm_extract_epi64(half, 1);
	return (uint64_t)(sum + (int64_t)(vectors * BIAS_PER_VECTOR));
}

WEFT_TARGET("avx2")
uint64_t
csum_partial_avx2(const void *p, size_t len)
{
	const uint8_t *s = p;
	size_t vectors = len / VECTOR_BYTES;
	__m256i a = _mm256_setzero_si256(), b = a;
	size_t i = 0;
	for (; i + 2 <= vectors; i += 2, s += 2 * VECTOR_BYTES) {
		a = add_words(a, _mm256_loadu_si256((const __m256i *)s));
		b = add_words(b, _mm256_loadu_si256((const __m256i *)(s + VECTOR_BYTES)));
	}
	if (i < vectors) {
		a = add_words(a, _mm256_loadu_si256((const __m256i *)s));
		s += VECTOR_BYTES;
	}
	return finish(a, b, vectors) + csum_partial_portable(s, len % VECTOR_BYTES);
}

WEFT_TARGET("avx2")
uint64_t
csum_copy_avx2(void *dst, const void *src, size_t len)
{
	const uint8_t *s = src;
	uint8_t *d = dst;
	size_t vectors = len / VECTOR_BYTES;
	__m256i a = _mm256_setzero_si256(), b = a;
	size_t i = 0;
	for (; i + 2 <= vectors; i += 2, s += 2 * VECTOR_BYTES, d += 2 * VECTOR_BYTES) {
		__m256i v = _mm256_loadu_si256((const __m256i *)s);
		__m256i w = _mm256_loadu_si256((const __m256i *)(s + VECTOR_BYTES));
		_mm256_storeu_si256((__m256i *)d, v);
		_mm256_storeu_si256((__m256i *)(d + VECTOR_BYTES), w);
		a = add_words(a, v);
		b = add_words(b, w);
	}
	if (i < vectors) {
		__m256i v = _mm256_loadu_si256((const __m256i *)s);
		_mm256_storeu_si256((__m256i *)d, v);
		a = add_words(a, v);
		s += VECTOR_BYTES;
		d += VECTOR_BYTES;
	}
	return finish(a, b, vectors) + csum_copy_portable(d, s, len % VECTOR_BYTES);
}
#endif

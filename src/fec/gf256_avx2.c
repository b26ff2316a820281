/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel for AVX2: the text of gf256_nibble.h on 32 bytes. */
#include "fec/gf256_isa.h"

#if GF256_HAVE_X86
#include <immintrin.h>
#include <string.h>

#include "base/compiler.h"
#include "fec/gf256_tables.h"

#define ISA WEFT_TARGET("avx2")
#define VEC __m256i
#define VECTOR_BYTES 32u
#define KERNEL gf256_avx2
#define KERNEL_NAME "avx2"
#define VECTORS(rows) ((rows) == 1 ? 6u : (rows) == 2 ? 4u : 3u)

struct vec_factor {
	__m256i low, high;
};

struct vec_halves {
	__m256i low, high;
};

ISA static WEFT_ALWAYS_INLINE VEC
vec_load(const uint8_t *p)
{
	return _mm256_loadu_si256((const __m256i *)p);
}

ISA static WEFT_ALWAYS_INLINE void
vec_store(uint8_t *p, VEC x)
{
	_mm256_storeu_si256((__m256i *)p, x);
}

ISA static WEFT_ALWAYS_INLINE VEC
vec_xor(VEC x, VEC y)
{
	return _mm256_xor_si256(x, y);
}

ISA static WEFT_ALWAYS_INLINE VEC
vec_zero(void)
{
	return _mm256_setzero_si256();
}

/* n <= 16 bytes: the 16 that end with them, moved down. */
ISA static WEFT_ALWAYS_INLINE __m128i
load_half(const uint8_t *p, size_t n)
{
	/* Read from byte 16 - n on: indices 16 - n .. 15, then "zero". */
	__m128i move = _mm_loadu_si128((const __m128i *)(gf256_moves + 16 - n));
	return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + n - 16)), move);
}

ISA static VEC
vec_load_some(const uint8_t *p, size_t n, size_t before)
{
	if (n >= 16) {
		__m256i low = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)p));
		return _mm256_inserti128_si256(low, load_half(p + 16, n - 16), 1);
	}
	if (before + n >= 16) {
		return _mm256_zextsi128_si256(load_half(p, n));
	}
	uint8_t bytes[VECTOR_BYTES] = {0};
	memcpy(bytes, p, n);
	return vec_load(bytes);
}

ISA static WEFT_ALWAYS_INLINE struct vec_factor
vec_factor(uint8_t c)
{
	const __m128i *t = (const __m128i *)gf256_nibbles[c];
	return (struct vec_factor){_mm256_broadcastsi128_si256(_mm_load_si128(t)),
		_mm256_broadcastsi128_si256(_mm_load_si128(t + 1))};
}

ISA static WEFT_ALWAYS_INLINE struct vec_halves
vec_halves(VEC x)
{
	const __m256i low = _mm256_set1_epi8(15);
	return (struct vec_halves){
		_mm256_and_si256(x, low), _mm256_and_si256(_mm256_srli_epi64(x, 4), low)};
}

ISA static WEFT_ALWAYS_INLINE VEC
vec_product(const struct vec_factor *f, const struct vec_halves *h)
{
	return _mm256_xor_si256(
		_mm256_shuffle_epi8(f->low, h->low), _mm256_shuffle_epi8(f->high, h->high));
}

#include "fec/gf256_nibble.h"
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel for SSSE3: the text of gf256_nibble.h on 16 bytes. */
#include "fec/gf256_isa.h"

#if GF256_HAVE_X86
#include <string.h>
#include <tmmintrin.h>

#include "base/compiler.h"
#include "fec/gf256_tables.h"

#define ISA WEFT_TARGET("ssse3")
#define VEC __m128i
#define VECTOR_BYTES 16u
#define KERNEL gf256_ssse3
#define KERNEL_NAME "ssse3"
#define VECTORS(rows) ((rows) == 1 ? 6u : (rows) == 2 ? 4u : 2u)

struct vec_factor {
	__m128i low, high;
};

struct vec_halves {
	__m128i low, high;
};

ISA static WEFT_ALWAYS_INLINE VEC
vec_load(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)p);
}

ISA static WEFT_ALWAYS_INLINE void
vec_store(uint8_t *p, VEC x)
{
	_mm_storeu_si128((__m128i *)p, x);
}

ISA static WEFT_ALWAYS_INLINE VEC
vec_xor(VEC x, VEC y)
{
	return _mm_xor_si128(x, y);
}

ISA static WEFT_ALWAYS_INLINE VEC
vec_zero(void)
{
	return _mm_setzero_si128();
}

ISA static VEC
vec_load_some(const uint8_t *p, size_t n, size_t before)
{
	if (before + n >= 16) {
		/* The 16 bytes that end with them, moved down. */
		__m128i move = _mm_loadu_si128((const __m128i *)(gf256_moves + 16 - n));
		return _mm_shuffle_epi8(vec_load(p + n - 16), move);
	}
	uint8_t bytes[VECTOR_BYTES] = {0};
	memcpy(bytes, p, n);
	return vec_load(bytes);
}

ISA static WEFT_ALWAYS_INLINE struct vec_factor
vec_factor(uint8_t c)
{
	const __m128i *t = (const __m128i *)gf256_nibbles[c];
	return (struct vec_factor){_mm_load_si128(t), _mm_load_si128(t + 1)};
}

ISA static WEFT_ALWAYS_INLINE struct vec_halves
vec_halves(VEC x)
{
	const __m128i low = _mm_set1_epi8(15);
	return (struct vec_halves){_mm_and_si128(x, low), _mm_and_si128(_mm_srli_epi64(x, 4), low)};
}

ISA static WEFT_ALWAYS_INLINE VEC
vec_product(const struct vec_factor *f, const struct vec_halves *h)
{
	return _mm_xor_si128(_mm_shuffle_epi8(f->low, h->low), _mm_shuffle_epi8(f->high, h->high));
}

#include "fec/gf256_nibble.h"
#endif

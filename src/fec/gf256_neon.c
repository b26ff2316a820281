/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel for AArch64: the text of gf256_nibble.h on 16 bytes. */
#include "fec/gf256_isa.h"

#if GF256_HAVE_NEON
#include <arm_neon.h>
#include <string.h>

#include "base/compiler.h"
#include "fec/gf256_tables.h"

#define ISA
#define VEC uint8x16_t
#define VECTOR_BYTES 16u
#define KERNEL gf256_neon
#define KERNEL_NAME "neon"
#define VECTORS(rows) ((rows) == 1 ? 8u : (rows) == 2 ? 6u : 4u) /* of 32 registers */

struct vec_factor {
	uint8x16_t low, high;
};

struct vec_halves {
	uint8x16_t low, high;
};

static WEFT_ALWAYS_INLINE VEC
vec_load(const uint8_t *p)
{
	return vld1q_u8(p);
}

static WEFT_ALWAYS_INLINE void
vec_store(uint8_t *p, VEC x)
{
	vst1q_u8(p, x);
}

static WEFT_ALWAYS_INLINE VEC
vec_xor(VEC x, VEC y)
{
	return veorq_u8(x, y);
}

static WEFT_ALWAYS_INLINE VEC
vec_zero(void)
{
	return vdupq_n_u8(0);
}

static VEC
vec_load_some(const uint8_t *p, size_t n, size_t before)
{
	if (before + n >= 16) {
		/* The 16 bytes that end with them, moved down. */
		uint8x16_t move = vld1q_u8(gf256_moves + 16 - n);
		return vqtbl1q_u8(vld1q_u8(p + n - 16), move);
	}
	uint8_t bytes[VECTOR_BYTES] = {0};
	memcpy(bytes, p, n);
	return vec_load(bytes);
}

static WEFT_ALWAYS_INLINE struct vec_factor
vec_factor(uint8_t c)
{
	return (struct vec_factor){vld1q_u8(gf256_nibbles[c]), vld1q_u8(gf256_nibbles[c] + 16)};
}

static WEFT_ALWAYS_INLINE struct vec_halves
vec_halves(VEC x)
{
	return (struct vec_halves){vandq_u8(x, vdupq_n_u8(15)), vshrq_n_u8(x, 4)};
}

static WEFT_ALWAYS_INLINE VEC
vec_product(const struct vec_factor *f, const struct vec_halves *h)
{
	return veorq_u8(vqtbl1q_u8(f->low, h->low), vqtbl1q_u8(f->high, h->high));
}

#include "fec/gf256_nibble.h"
#endif

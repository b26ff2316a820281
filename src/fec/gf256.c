/* SPDX-License-Identifier: Apache-2.0 */
/* Single bytes, and the choice among kernels. */
#include "fec/gf256.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "fec/gf256_isa.h"
#include "fec/gf256_tables.h"

const struct gf256 *
gf256_get(enum gf256_isa isa)
{
	const struct gf256 *g = NULL;
	switch (isa) {
	case GF256_ISA_AUTO:
		/* From the fastest to the one that is always there. */
		for (int i = GF256_ISA_COUNT - 1; i > GF256_ISA_AUTO && !g; i--) {
			g = gf256_get((enum gf256_isa)i);
		}
		break;
	case GF256_ISA_SCALAR:
		g = &gf256_scalar;
		break;
#if GF256_HAVE_X86
	case GF256_ISA_SSSE3:
		g = WEFT_CPU_HAS("ssse3") ? &gf256_ssse3 : NULL;
		break;
	case GF256_ISA_AVX2:
		g = WEFT_CPU_HAS("avx2") ? &gf256_avx2 : NULL;
		break;
	case GF256_ISA_GFNI:
		g = WEFT_CPU_HAS("gfni") && WEFT_CPU_HAS("avx512bw") ? &gf256_gfni : NULL;
		break;
#endif
#if GF256_HAVE_NEON
	case GF256_ISA_NEON:
		g = &gf256_neon; /* of every processor of that architecture */
		break;
#endif
	default:
		break;
	}
	return g;
}

const char *
gf256_name(const struct gf256 *g)
{
	return g->name;
}

uint8_t
gf256_mul(uint8_t a, uint8_t b)
{
	return gf256_nibbles[a][b & 15] ^ gf256_nibbles[a][16 + (b >> 4)];
}

/* a^254, since a^255 = 1: squares a^2, a^4, ... a^128 multiplied together. A pivot takes one of
 * these and hundreds of bytes of other work, so that a table would not pay. */
uint8_t
gf256_inv(uint8_t a)
{
	weft_dassert(a != 0);
	uint8_t square = a, product = 1;
	for (int i = 0; i < 7; i++) {
		square = gf256_mul(square, square);
		product = gf256_mul(product, square);
	}
	return product;
}

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
	switch (isa) {
	case GF256_ISA_AUTO:
	case GF256_ISA_SCALAR:
		return &gf256_scalar;
	case GF256_ISA_SSSE3:
	case GF256_ISA_AVX2:
	case GF256_ISA_GFNI:
	case GF256_ISA_NEON:
	case GF256_ISA_COUNT:
		break;
	}
	return NULL;
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

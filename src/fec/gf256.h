/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic over GF(256), modulo x^8 + x^4 + x^3 + x^2 + 1 (0x11d), on whole packets.
 *
 * A kernel is one instruction set's way to do it: a constant table of functions, free of state,
 * for any thread. All kernels give the same bytes. Every function takes any length, 0 included,
 * at any alignment, and reads and writes nothing beyond it. Destinations and sources do not
 * overlap. Coefficients of 0 and 1 are as good as any other. Sources at multiples of 64 bytes take
 * 10 to 20 % less time than others. */
#ifndef WEFT_FEC_GF256_H
#define WEFT_FEC_GF256_H

#include <stddef.h>
#include <stdint.h>

#define GF256_SOURCES_MAX 128 /* of one dot or dot_multi */
#define GF256_ROWS_MAX 4      /* of one dot_multi */

/* From the slowest to the fastest. */
enum gf256_isa {
	GF256_ISA_AUTO, /* the fastest that this processor runs */
	GF256_ISA_SCALAR,
	GF256_ISA_SSSE3,
	GF256_ISA_AVX2,
	GF256_ISA_GFNI, /* with AVX-512 */
	GF256_ISA_NEON,
	GF256_ISA_COUNT
};

/* Sources that are combined: source i has lens[i] bytes and counts as followed by zeros. */
struct gf256_sources {
	const uint8_t *const *data;
	const uint16_t *lens;
	size_t k; /* 0..GF256_SOURCES_MAX */
};

struct gf256 {
	const char *name;
	/* dst ^= src */
	void (*add)(uint8_t *dst, const uint8_t *src, size_t n);
	/* dst ^= c * src */
	void (*mul_add)(uint8_t *dst, const uint8_t *src, uint8_t c, size_t n);
	/* dst = c * dst */
	void (*scale)(uint8_t *dst, uint8_t c, size_t n);
	/* dst[0..n) ^= sum over i < k of cs[i] * srcs[i], where lens[i] <= n and a source counts as
	 * followed by zeros. */
	void (*dot)(uint8_t *dst, const uint8_t *const *srcs, const uint16_t *lens,
		const uint8_t *cs, size_t k, size_t n);
	/* The same for r = 1..GF256_ROWS_MAX rows at once over the same sources, each of which is
	 * loaded once: four rows take two thirds of the time of four dots, or less.
	 * dsts[row][0..n) ^= sum over i < k of cs[row * k + i] * s->data[i]. */
	void (*dot_multi)(uint8_t *const *dsts, size_t r, const struct gf256_sources *s,
		const uint8_t *cs, size_t n);
};

/* NULL where this processor, or this build, does not have it. AUTO and SCALAR always exist. */
const struct gf256 *gf256_get(enum gf256_isa isa);
const char *gf256_name(const struct gf256 *g);

uint8_t gf256_mul(uint8_t a, uint8_t b);
/* 1 / a; a != 0. */
uint8_t gf256_inv(uint8_t a);

#endif

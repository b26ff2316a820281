/* SPDX-License-Identifier: Apache-2.0 */
/* Coefficients of a repair, from a key of 32 bits that travels with it.
 *
 * They come eight at a time, for source positions 8i to 8i + 7. All arithmetic is on unsigned
 * integers of 64 bits and wraps; >> shifts in zeros:
 *
 *	z = (key * 2^32 + i + 1) * 0x9e3779b97f4a7c15
 *	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
 *	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
 *	z = z ^ (z >> 31)
 *
 * (each step is a bijection, so no two keys share a word; the last three are the finaliser of
 * splitmix64). Position 8i + j has byte j of z, counted from the least significant, and 1 where
 * that byte is 0. So a 1 is twice as frequent as any other value, which makes two coefficients
 * equal with probability 1/254 in place of 1/255. */
#ifndef WEFT_FEC_COEF_H
#define WEFT_FEC_COEF_H

#include <stddef.h>
#include <stdint.h>

#define FEC_COEFS_MAX 128

/* Writes the coefficients, 1..255, of positions 0..n-1; n <= FEC_COEFS_MAX. A shorter row is
 * the start of a longer one. */
void fec_coefs(uint32_t key, uint8_t *out, size_t n);

#endif

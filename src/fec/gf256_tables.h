/* SPDX-License-Identifier: Apache-2.0 */
/* Multiplication by each of the 256 constants, as kernels want it. Kernels alone include this. */
#ifndef WEFT_FEC_GF256_TABLES_H
#define WEFT_FEC_GF256_TABLES_H

#include <stdint.h>

/* gf256_nibbles[c][x] = c * x and gf256_nibbles[c][16 + x] = c * 16x, x = 0..15. A row lies in
 * one cache line. */
extern const uint8_t gf256_nibbles[256][32];
/* c as an 8 x 8 matrix over GF(2), in the layout of GF2P8AFFINEQB: byte 7 - i is the row that
 * makes bit i of the product, and bit j of a row takes in bit j of the factor. */
extern const uint64_t gf256_matrices[256];
/* From byte 16 - n on: how a byte shuffle moves the last n bytes of a vector to its start and
 * puts zeros behind them. */
extern const uint8_t gf256_moves[32];

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The tables, worked out by the compiler: constants in read-only memory, with nothing to
 * initialise and no generator to run. */
#include "fec/gf256_tables.h"

#include "base/compiler.h"

/* F(c) for every constant c, written as a token of two hexadecimal digits. */
#define EACH_LOW(F, h)                                                                             \
	F(0x##h##0)                                                                                \
	F(0x##h##1)                                                                                \
	F(0x##h##2)                                                                                \
	F(0x##h##3)                                                                                \
	F(0x##h##4)                                                                                \
	F(0x##h##5)                                                                                \
	F(0x##h##6)                                                                                \
	F(0x##h##7)                                                                                \
	F(0x##h##8)                                                                                \
	F(0x##h##9)                                                                                \
	F(0x##h##a)                                                                                \
	F(0x##h##b)                                                                                \
	F(0x##h##c)                                                                                \
	F(0x##h##d)                                                                                \
	F(0x##h##e)                                                                                \
	F(0x##h##f)
#define EACH(F)                                                                                    \
	EACH_LOW(F, 0)                                                                             \
	EACH_LOW(F, 1)                                                                             \
	EACH_LOW(F, 2)                                                                             \
	EACH_LOW(F, 3)                                                                             \
	EACH_LOW(F, 4)                                                                             \
	EACH_LOW(F, 5)                                                                             \
	EACH_LOW(F, 6)                                                                             \
	EACH_LOW(F, 7)                                                                             \
	EACH_LOW(F, 8)                                                                             \
	EACH_LOW(F, 9)                                                                             \
	EACH_LOW(F, a)                                                                             \
	EACH_LOW(F, b)                                                                             \
	EACH_LOW(F, c)                                                                             \
	EACH_LOW(F, d)                                                                             \
	EACH_LOW(F, e)                                                                             \
	EACH_LOW(F, f)

#define BIT(v, i) ((v) >> (i)&1)

/* c times x^j, j = 0..7: bits that leave at the top come back as x^8, x^9, ... x^14 modulo the
 * polynomial. */
#define SHIFT(c, j)                                                                                \
	(((c) << (j)&0xff) ^ (BIT(c, 8 - (j)) * 0x1d) ^ (BIT(c, 9 - (j)) * 0x3a) ^                 \
		(BIT(c, 10 - (j)) * 0x74) ^ (BIT(c, 11 - (j)) * 0xe8) ^                            \
		(BIT(c, 12 - (j)) * 0xcd) ^ (BIT(c, 13 - (j)) * 0x87) ^ (BIT(c, 14 - (j)) * 0x13))

/* Enumerators hold these, since the text of macros within macros would grow without end. */
#define SHIFTS(c)                                                                                  \
	enum {                                                                                     \
		SHIFT_##c##_0 = SHIFT(c, 0),                                                       \
		SHIFT_##c##_1 = SHIFT(c, 1),                                                       \
		SHIFT_##c##_2 = SHIFT(c, 2),                                                       \
		SHIFT_##c##_3 = SHIFT(c, 3),                                                       \
		SHIFT_##c##_4 = SHIFT(c, 4),                                                       \
		SHIFT_##c##_5 = SHIFT(c, 5),                                                       \
		SHIFT_##c##_6 = SHIFT(c, 6),                                                       \
		SHIFT_##c##_7 = SHIFT(c, 7),                                                       \
	};
EACH(SHIFTS)

#define LOW(c, v)                                                                                  \
	((BIT(v, 0) * SHIFT_##c##_0) ^ (BIT(v, 1) * SHIFT_##c##_1) ^ (BIT(v, 2) * SHIFT_##c##_2) ^ \
		(BIT(v, 3) * SHIFT_##c##_3))
#define HIGH(c, v)                                                                                 \
	((BIT(v, 0) * SHIFT_##c##_4) ^ (BIT(v, 1) * SHIFT_##c##_5) ^ (BIT(v, 2) * SHIFT_##c##_6) ^ \
		(BIT(v, 3) * SHIFT_##c##_7))
#define NIBBLES(c)                                                                                 \
	{LOW(c, 0), LOW(c, 1), LOW(c, 2), LOW(c, 3), LOW(c, 4), LOW(c, 5), LOW(c, 6), LOW(c, 7),   \
		LOW(c, 8), LOW(c, 9), LOW(c, 10), LOW(c, 11), LOW(c, 12), LOW(c, 13), LOW(c, 14),  \
		LOW(c, 15), HIGH(c, 0), HIGH(c, 1), HIGH(c, 2), HIGH(c, 3), HIGH(c, 4),            \
		HIGH(c, 5), HIGH(c, 6), HIGH(c, 7), HIGH(c, 8), HIGH(c, 9), HIGH(c, 10),           \
		HIGH(c, 11), HIGH(c, 12), HIGH(c, 13), HIGH(c, 14), HIGH(c, 15)},

/* Column j of the matrix is c * x^j: this takes bit i out of all eight columns. */
#define MATRIX_ROW(c, i)                                                                           \
	((uint64_t)(BIT(SHIFT_##c##_0, i) | BIT(SHIFT_##c##_1, i) << 1 |                           \
		    BIT(SHIFT_##c##_2, i) << 2 | BIT(SHIFT_##c##_3, i) << 3 |                      \
		    BIT(SHIFT_##c##_4, i) << 4 | BIT(SHIFT_##c##_5, i) << 5 |                      \
		    BIT(SHIFT_##c##_6, i) << 6 | BIT(SHIFT_##c##_7, i) << 7)                       \
		<< 8 * (7 - (i)))
#define MATRIX(c)                                                                                  \
	MATRIX_ROW(c, 0) | MATRIX_ROW(c, 1) | MATRIX_ROW(c, 2) | MATRIX_ROW(c, 3) |                \
		MATRIX_ROW(c, 4) | MATRIX_ROW(c, 5) | MATRIX_ROW(c, 6) | MATRIX_ROW(c, 7),

WEFT_ALIGNED(64) const uint8_t gf256_nibbles[256][32] = {EACH(NIBBLES)};
WEFT_ALIGNED(64) const uint64_t gf256_matrices[256] = {EACH(MATRIX)};
const uint8_t gf256_moves[32] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0x80, 0x80,
	0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};

/* SPDX-License-Identifier: Apache-2.0 */
/* A source packet as encoder and decoder combine it: [length, 16 bit, little-endian | packet],
 * followed by zeros as far as the longest of the combination; and what both derive alike. */
#ifndef WEFT_FEC_SYMBOL_H
#define WEFT_FEC_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/ext.h"

#define FEC_LEN_BYTES 2
#define FEC_PACKET_MIN 20 /* an IPv4 header */
/* Lengths of symbols are 16 bit numbers too. */
#define FEC_PACKET_MAX (UINT16_MAX - FEC_LEN_BYTES)

static inline enum wire_ext_class
fec_class(uint32_t packet_len)
{
	return packet_len <= WIRE_EXT_SMALL_MAX ? WIRE_EXT_CLASS_SMALL : WIRE_EXT_CLASS_LARGE;
}

/* Bitmaps over a span are those of the frames. */
static inline bool
fec_has_bit(const uint8_t *bits, size_t i)
{
	return bits[i / 8] >> (i % 8) & 1;
}

/* Key of a repair's coefficients. `own` is its counter, which no other frame of the session has, so
 * within 2^32 counters no key comes twice. */
static inline uint32_t
fec_key(uint64_t own)
{
	return (uint32_t)own ^ (uint32_t)(own >> 32) * 0x9e3779b1u;
}

#endif

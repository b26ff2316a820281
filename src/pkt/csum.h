/* SPDX-License-Identifier: Apache-2.0 */
/* The Internet checksum (RFC 1071) as partial sums.
 *
 * A partial sum is an integer congruent, modulo 65,535, to the sum of the 16-bit words as the
 * machine loads them. The one's complement sum does not depend on the byte order as long as all
 * its parts share one, so that a folded sum is stored with the order it was loaded in and
 * nothing is swapped. Each function returns less than 2^44: a million of them can be added.
 *
 * A part that is added to others must start at an even offset from the start of what is summed;
 * only the last may have an odd length. */
#ifndef WEFT_PKT_CSUM_H
#define WEFT_PKT_CSUM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/endian.h"

/* The kernels' accumulators hold the sum of so many bytes. Packets have at most 65,535. */
#define CSUM_LEN_MAX (1u << 20)

/* Sum of len <= CSUM_LEN_MAX bytes at any alignment. */
uint64_t csum_partial(const void *p, size_t len);
/* The same, and copies them. The two do not overlap. */
uint64_t csum_copy(void *dst, const void *src, size_t len);

/* Kernels by instruction set, for tests and benches: NULL past the last one that this processor
 * runs. Number 0 is the portable one; the functions above use the last. */
struct csum_kernel {
	const char *name;
	uint64_t (*partial)(const void *p, size_t len);
	uint64_t (*copy)(void *dst, const void *src, size_t len);
};
const struct csum_kernel *csum_kernel_at(size_t i);

/* A field of the given value in host order. */
static inline uint64_t
csum_word(uint16_t value)
{
	uint8_t b[2];
	uint16_t w;
	store_be16(b, value);
	memcpy(&w, b, 2);
	return w;
}

static inline uint64_t
csum_dword(uint32_t value)
{
	uint8_t b[4];
	uint32_t w;
	store_be32(b, value);
	memcpy(&w, b, 4);
	return w;
}

/* Sum of a header of a multiple of 4 bytes: short, so without a call. */
static inline uint64_t
csum_header(const void *p, size_t len)
{
	uint64_t sum = 0;
	for (size_t i = 0; i + 4 <= len; i += 4) {
		uint32_t w;
		memcpy(&w, (const uint8_t *)p + i, 4);
		sum += w;
	}
	return sum;
}

/* The 16-bit sum; its complement is the checksum. 0 only for sums of nothing but zeros. */
static inline uint16_t
csum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	uint32_t s = (uint32_t)sum;
	s = (s & 0xffff) + (s >> 16);
	s = (s & 0xffff) + (s >> 16);
	return (uint16_t)s;
}

/* Stores the checksum: the complement of the sum. */
static inline void
csum_store(void *field, uint64_t sum)
{
	uint16_t v = (uint16_t)~csum_fold(sum);
	memcpy(field, &v, 2);
}

/* The same for UDP, where a field of zero would mean that there is no checksum. */
static inline void
csum_store_nonzero(void *field, uint64_t sum)
{
	uint16_t v = (uint16_t)~csum_fold(sum);
	if (v == 0) {
		v = 0xffff;
	}
	memcpy(field, &v, 2);
}

/* Stores the sum itself: what a checksum field holds while the rest is left to an offload. */
static inline void
csum_store_partial(void *field, uint64_t sum)
{
	uint16_t v = csum_fold(sum);
	memcpy(field, &v, 2);
}

/* A 16-bit field as it adds to a sum. */
static inline uint64_t
csum_load(const void *field)
{
	uint16_t v;
	memcpy(&v, field, 2);
	return v;
}

/* What must be added to take a field out of a sum. */
static inline uint64_t
csum_negate(uint64_t folded)
{
	return 0xffff - folded;
}

/* The pseudo-header of TCP and UDP (RFC 793, 3.1; RFC 8200, 8.1) without the length, which is
 * added by csum_dword(). addrs: source and destination one behind the other, as in the packet. */
static inline uint64_t
csum_pseudo4(const void *addrs, uint8_t proto)
{
	return csum_header(addrs, 8) + csum_word(proto);
}

static inline uint64_t
csum_pseudo6(const void *addrs, uint8_t proto)
{
	return csum_header(addrs, 32) + csum_word(proto);
}

#endif

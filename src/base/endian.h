/* SPDX-License-Identifier: Apache-2.0 */
/* Wire integers as types of their own, so that mixing one with a host integer does not
 * compile, and loads and stores at any alignment. */
#ifndef WEFT_BASE_ENDIAN_H
#define WEFT_BASE_ENDIAN_H

#include <stdint.h>
#include <string.h>

struct be16 {
	uint8_t b[2];
};
struct be32 {
	uint8_t b[4];
};
struct le32 {
	uint8_t b[4];
};
struct le64 {
	uint8_t b[8];
};

static inline uint16_t
load_be16(const void *p)
{
	const uint8_t *b = p;
	return (uint16_t)((b[0] << 8) | b[1]);
}

static inline uint32_t
load_be32(const void *p)
{
	const uint8_t *b = p;
	return ((uint32_t)b[0] << 24) | ((uint32_t)b[1] << 16) | ((uint32_t)b[2] << 8) | b[3];
}

static inline uint64_t
load_be64(const void *p)
{
	const uint8_t *b = p;
	return ((uint64_t)load_be32(b) << 32) | load_be32(b + 4);
}

static inline uint16_t
load_le16(const void *p)
{
	const uint8_t *b = p;
	return (uint16_t)((b[1] << 8) | b[0]);
}

static inline uint32_t
load_le32(const void *p)
{
	const uint8_t *b = p;
	return ((uint32_t)b[3] << 24) | ((uint32_t)b[2] << 16) | ((uint32_t)b[1] << 8) | b[0];
}

static inline uint64_t
load_le64(const void *p)
{
	const uint8_t *b = p;
	return ((uint64_t)load_le32(b + 4) << 32) | load_le32(b);
}

static inline void
store_be16(void *p, uint16_t v)
{
	uint8_t *b = p;
	b[0] = (uint8_t)(v >> 8);
	b[1] = (uint8_t)v;
}

static inline void
store_be32(void *p, uint32_t v)
{
	uint8_t *b = p;
	store_be16(b, (uint16_t)(v >> 16));
	store_be16(b + 2, (uint16_t)v);
}

static inline void
store_be64(void *p, uint64_t v)
{
	uint8_t *b = p;
	store_be32(b, (uint32_t)(v >> 32));
	store_be32(b + 4, (uint32_t)v);
}

static inline void
store_le16(void *p, uint16_t v)
{
	uint8_t *b = p;
	b[0] = (uint8_t)v;
	b[1] = (uint8_t)(v >> 8);
}

static inline void
store_le32(void *p, uint32_t v)
{
	uint8_t *b = p;
	b[0] = (uint8_t)v;
	b[1] = (uint8_t)(v >> 8);
	b[2] = (uint8_t)(v >> 16);
	b[3] = (uint8_t)(v >> 24);
}

static inline void
store_le64(void *p, uint64_t v)
{
	uint8_t *b = p;
	store_le32(b, (uint32_t)v);
	store_le32(b + 4, (uint32_t)(v >> 32));
}

#endif

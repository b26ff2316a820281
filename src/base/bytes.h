/* SPDX-License-Identifier: Apache-2.0 */
/* Cursors over bytes with a sticky failure: read (or write) everything, check once. */
#ifndef WEFT_BASE_BYTES_H
#define WEFT_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/endian.h"

struct reader {
	const uint8_t *p;
	const uint8_t *end;
	bool failed; /* once true, every further read yields zeros */
};

struct writer {
	uint8_t *p;
	uint8_t *end;
	bool failed; /* once true, every further write is ignored */
};

static inline void
reader_init(struct reader *r, const void *data, size_t len)
{
	*r = (struct reader){.p = data, .end = (const uint8_t *)data + len};
}

static inline size_t
reader_left(const struct reader *r)
{
	return (size_t)(r->end - r->p);
}

/* Returns the next n bytes, or NULL (and fails) when fewer are left. */
static inline const uint8_t *
reader_take(struct reader *r, size_t n)
{
	if (r->failed || reader_left(r) < n) {
		r->failed = true;
		return NULL;
	}
	const uint8_t *p = r->p;
	r->p += n;
	return p;
}

static inline void
reader_copy(struct reader *r, void *dst, size_t n)
{
	const uint8_t *p = reader_take(r, n);
	if (p) {
		memcpy(dst, p, n);
	} else {
		memset(dst, 0, n);
	}
}

static inline uint8_t
reader_u8(struct reader *r)
{
	const uint8_t *p = reader_take(r, 1);
	return p ? *p : 0;
}

static inline uint16_t
reader_be16(struct reader *r)
{
	const uint8_t *p = reader_take(r, 2);
	return p ? load_be16(p) : 0;
}

static inline uint32_t
reader_be32(struct reader *r)
{
	const uint8_t *p = reader_take(r, 4);
	return p ? load_be32(p) : 0;
}

static inline uint16_t
reader_le16(struct reader *r)
{
	const uint8_t *p = reader_take(r, 2);
	return p ? load_le16(p) : 0;
}

static inline uint32_t
reader_le32(struct reader *r)
{
	const uint8_t *p = reader_take(r, 4);
	return p ? load_le32(p) : 0;
}

static inline uint64_t
reader_le64(struct reader *r)
{
	const uint8_t *p = reader_take(r, 8);
	return p ? load_le64(p) : 0;
}

static inline void
writer_init(struct writer *w, void *data, size_t len)
{
	*w = (struct writer){.p = data, .end = (uint8_t *)data + len};
}

static inline uint8_t *
writer_take(struct writer *w, size_t n)
{
	if (w->failed || (size_t)(w->end - w->p) < n) {
		w->failed = true;
		return NULL;
	}
	uint8_t *p = w->p;
	w->p += n;
	return p;
}

static inline void
writer_copy(struct writer *w, const void *src, size_t n)
{
	uint8_t *p = writer_take(w, n);
	if (p) {
		memcpy(p, src, n);
	}
}

static inline void
writer_u8(struct writer *w, uint8_t v)
{
	writer_copy(w, &v, 1);
}

static inline void
writer_le16(struct writer *w, uint16_t v)
{
	uint8_t *p = writer_take(w, 2);
	if (p) {
		store_le16(p, v);
	}
}

static inline void
writer_le32(struct writer *w, uint32_t v)
{
	uint8_t *p = writer_take(w, 4);
	if (p) {
		store_le32(p, v);
	}
}

static inline void
writer_le64(struct writer *w, uint64_t v)
{
	uint8_t *p = writer_take(w, 8);
	if (p) {
		store_le64(p, v);
	}
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Ring of bytes that holds the last symbols (symbol.h), each in one piece. Its places are numbers
 * that only grow, so a place tells by itself whether it has been written over. */
#ifndef WEFT_FEC_STORE_H
#define WEFT_FEC_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FEC_STORE_MIN (UINT32_C(64) << 10)
#define FEC_STORE_MAX (UINT32_C(64) << 20)
#define FEC_STORE_FREE UINT64_MAX /* as `keep`: everything may be written over */

struct fec_store {
	uint8_t *bytes;
	uint64_t cap;  /* a power of two */
	uint64_t head; /* the next place */
};

/* What a store of that cap takes. */
uint64_t fec_store_size(uint32_t cap);
/* cap: rounded down to a power of two. False: no memory. */
bool fec_store_init(struct fec_store *s, uint32_t cap);
void fec_store_fini(struct fec_store *s);

/* As with a larger cap from the start: what it has stays. False: no memory, and nothing changed. */
bool fec_store_grow(struct fec_store *s, uint32_t cap);

/* Copies a packet in and gives its place. False: something at or above the place `keep` would be
 * written over. */
bool fec_store_put(
	struct fec_store *s, const uint8_t *packet, uint16_t len, uint64_t keep, uint64_t *place);

/* Not written over yet? */
static inline bool
fec_store_has(const struct fec_store *s, uint64_t place)
{
	return s->head - place <= s->cap;
}

/* The symbol; the packet follows behind FEC_LEN_BYTES. */
static inline const uint8_t *
fec_store_at(const struct fec_store *s, uint64_t place)
{
	return s->bytes + (place & (s->cap - 1));
}

#endif

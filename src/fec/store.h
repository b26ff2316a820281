/* SPDX-License-Identifier: Apache-2.0 */
/* Ring of bytes that holds the last symbols (symbol.h), each in one piece. Its places are numbers
 * that only grow, so a place tells by itself whether it has been written over.
 *
 * The ring is made of blocks, each of which has bytes of its own: it becomes larger and smaller
 * without copying. The places of block k are k * FEC_STORE_BLOCK and up. */
#ifndef WEFT_FEC_STORE_H
#define WEFT_FEC_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FEC_STORE_BLOCK (UINT32_C(64) << 10)
#define FEC_STORE_MIN FEC_STORE_BLOCK
#define FEC_STORE_MAX (UINT32_C(16) << 20)
#define FEC_STORE_FREE UINT64_MAX /* as `keep`: everything may be written over */
#define FEC_STORE_BLOCKS_MAX (FEC_STORE_MAX / FEC_STORE_BLOCK)

struct fec_store {
	/* By block & the size less 1. One whose bytes went to a newer one keeps them in here, until
	 * that has written over all of them: so there are more entries than blocks. */
	uint8_t *blocks[2 * FEC_STORE_BLOCKS_MAX];
	uint8_t *spares[FEC_STORE_BLOCKS_MAX];
	unsigned spares_n;
	uint64_t first, newest; /* blocks; bytes of the first are taken when no spare is left */
	uint64_t lag; /* the newest block writes over what lies so far back, if has_over */
	bool has_over;
	uint8_t *bytes; /* of the newest */
	uint64_t cap;   /* with spares */
	uint64_t low;   /* places below have been written over */
	uint64_t head;  /* the next place */
};

/* What a store of that cap takes. */
uint64_t fec_store_size(uint32_t cap);
/* cap: rounded down to whole blocks. False: no memory. */
bool fec_store_init(struct fec_store *s, uint32_t cap);
void fec_store_fini(struct fec_store *s);

/* What it has stays, and what is in use of it does not move. False: no memory, and nothing changed
 * but for some blocks more. */
bool fec_store_grow(struct fec_store *s, uint32_t cap);
/* One block less: a spare, or the oldest with what is in it. False: it has one alone. */
bool fec_store_shrink(struct fec_store *s);

/* Copies a packet in and gives its place. False: something at or above the place `keep` would be
 * written over. */
bool fec_store_put(
	struct fec_store *s, const uint8_t *packet, uint16_t len, uint64_t keep, uint64_t *place);

/* Not written over yet? */
static inline bool
fec_store_has(const struct fec_store *s, uint64_t place)
{
	return place >= s->low;
}

static inline uint64_t
fec_store_block(uint64_t place)
{
	return place / FEC_STORE_BLOCK;
}

/* The symbol; the packet follows behind FEC_LEN_BYTES. */
static inline const uint8_t *
fec_store_at(const struct fec_store *s, uint64_t place)
{
	return s->blocks[fec_store_block(place) % (2 * FEC_STORE_BLOCKS_MAX)] +
	       place % FEC_STORE_BLOCK;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/endian.h"
#include "fec/symbol.h"

#define ENTRIES (2 * FEC_STORE_BLOCKS_MAX)
/* Kernels read aligned sources in a tenth less time. Small symbols are not worth the room. */
#define ALIGN 64u
#define ALIGN_FROM 512u

uint64_t
fec_store_size(uint32_t cap)
{
	return cap - cap % FEC_STORE_BLOCK;
}

bool
fec_store_init(struct fec_store *s, uint32_t cap)
{
	weft_assert(cap >= FEC_STORE_MIN && cap <= FEC_STORE_MAX);
	*s = (struct fec_store){0};
	if (!fec_store_grow(s, cap)) {
		fec_store_fini(s);
		return false;
	}
	s->bytes = s->blocks[0] = s->spares[--s->spares_n];
	return true;
}

bool
fec_store_grow(struct fec_store *s, uint32_t cap)
{
	weft_assert(cap <= FEC_STORE_MAX);
	while (s->cap + FEC_STORE_BLOCK <= cap) {
		/* Not zeroed: pages that are never written take no memory. */
		uint8_t *bytes = aligned_alloc(ALIGN, FEC_STORE_BLOCK);
		if (!bytes) {
			return false;
		}
		s->spares[s->spares_n++] = bytes;
		s->cap += FEC_STORE_BLOCK;
	}
	return true;
}

bool
fec_store_shrink(struct fec_store *s)
{
	if (s->cap <= FEC_STORE_BLOCK) {
		return false;
	}
	if (s->spares_n > 0) {
		free(s->spares[--s->spares_n]);
	} else {
		free(s->blocks[s->first % ENTRIES]);
		s->first++;
		uint64_t low = s->first * FEC_STORE_BLOCK;
		s->low = s->low > low ? s->low : low;
	}
	s->cap -= FEC_STORE_BLOCK;
	return true;
}

void
fec_store_fini(struct fec_store *s)
{
	for (unsigned i = 0; i < s->spares_n; i++) {
		free(s->spares[i]);
	}
	for (uint64_t b = s->first; b <= s->newest; b++) {
		free(s->blocks[b % ENTRIES]);
	}
	*s = (struct fec_store){0};
}

static void
begin_block(struct fec_store *s)
{
	s->newest++;
	s->has_over = s->spares_n == 0;
	if (s->has_over) {
		s->blocks[s->newest % ENTRIES] = s->blocks[s->first % ENTRIES];
		s->lag = (s->newest - s->first) * FEC_STORE_BLOCK;
		s->first++;
	} else {
		s->blocks[s->newest % ENTRIES] = s->spares[--s->spares_n];
	}
	s->bytes = s->blocks[s->newest % ENTRIES];
}

bool
fec_store_put(
	struct fec_store *s, const uint8_t *packet, uint16_t len, uint64_t keep, uint64_t *place)
{
	uint64_t need = (uint64_t)len + FEC_LEN_BYTES;
	uint64_t at = need < ALIGN_FROM ? s->head : (s->head + ALIGN - 1) & -(uint64_t)ALIGN;
	uint64_t end = (s->newest + 1) * FEC_STORE_BLOCK;
	bool is_next = WEFT_UNLIKELY(at + need > end);
	uint64_t low = s->has_over ? (is_next ? end : at + need) - s->lag : 0;
	if (is_next) {
		low = s->spares_n > 0 ? low : s->first * FEC_STORE_BLOCK + need;
		at = end;
	}
	low = low > s->low ? low : s->low;
	if (low > keep) {
		return false;
	}
	if (is_next) {
		begin_block(s);
	}
	uint8_t *p = s->bytes + at % FEC_STORE_BLOCK;
	s->low = low;
	s->head = at + need;
	*place = at;
	store_le16(p, len);
	memcpy(p + FEC_LEN_BYTES, packet, len);
	return true;
}

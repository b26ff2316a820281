/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/endian.h"
#include "fec/symbol.h"

uint64_t
fec_store_size(uint32_t cap)
{
	return UINT64_C(1) << WEFT_TOP_BIT64(cap);
}

bool
fec_store_init(struct fec_store *s, uint32_t cap)
{
	weft_assert(cap >= FEC_STORE_MIN && cap <= FEC_STORE_MAX);
	uint64_t power = fec_store_size(cap);
	/* Not zeroed: pages that are never written take no memory. */
	uint8_t *bytes = malloc(power);
	if (!bytes) {
		return false;
	}
	*s = (struct fec_store){.bytes = bytes, .cap = power};
	return true;
}

bool
fec_store_grow(struct fec_store *s, uint32_t cap)
{
	struct fec_store to;
	if (!fec_store_init(&to, cap)) {
		return false;
	}
	if (to.cap > s->cap) {
		/* Blocks of the old ring; no symbol crosses from one to the next. */
		uint64_t begin = s->head > s->cap ? s->head - s->cap : 0;
		for (uint64_t at = begin; at < s->head;) {
			uint64_t end = (at | (s->cap - 1)) + 1;
			end = end < s->head ? end : s->head;
			memcpy(to.bytes + (at & (to.cap - 1)), s->bytes + (at & (s->cap - 1)),
				end - at);
			at = end;
		}
		to.head = s->head;
		fec_store_fini(s);
		*s = to;
	} else {
		fec_store_fini(&to);
	}
	return true;
}

void
fec_store_fini(struct fec_store *s)
{
	free(s->bytes);
	*s = (struct fec_store){0};
}

bool
fec_store_put(
	struct fec_store *s, const uint8_t *packet, uint16_t len, uint64_t keep, uint64_t *place)
{
	uint64_t need = (uint64_t)len + FEC_LEN_BYTES;
	uint64_t at = s->head, to_end = s->cap - (at & (s->cap - 1));
	if (need > to_end) {
		at += to_end;
	}
	/* Places at or below the new head less the capacity are gone. */
	if (keep != FEC_STORE_FREE && at + need - keep > s->cap) {
		return false;
	}
	uint8_t *p = s->bytes + (at & (s->cap - 1));
	store_le16(p, len);
	memcpy(p + FEC_LEN_BYTES, packet, len);
	s->head = at + need;
	*place = at;
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "emu/ring.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/assert.h"

#define ALIGNMENT 16u

/* Before each block. Its size keeps the blocks aligned. */
struct block {
	uint64_t bytes; /* with this header, a multiple of ALIGNMENT */
	uint32_t is_free;
	uint32_t unused;
};
_Static_assert(sizeof(struct block) == ALIGNMENT, "a header is one unit of alignment");

static struct block *
block_at(const struct emu_ring *r, size_t off)
{
	return (struct block *)(void *)(r->buf + off);
}

enum weft_err
emu_ring_init(struct emu_ring *r, size_t cap)
{
	*r = (struct emu_ring){.cap = (cap + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT};
	if (r->cap > 0) {
		r->buf = aligned_alloc(ALIGNMENT, r->cap);
		if (!r->buf) {
			return WEFT_ENOMEM;
		}
	}
	return WEFT_OK;
}

void
emu_ring_fini(struct emu_ring *r)
{
	free(r->buf);
	*r = (struct emu_ring){0};
}

static void
advance(struct emu_ring *r, size_t bytes)
{
	r->head += bytes;
	r->used -= bytes;
	if (r->head == r->cap) {
		r->head = 0;
	}
}

static void
reclaim(struct emu_ring *r)
{
	while (r->used > 0 && block_at(r, r->head)->is_free) {
		advance(r, block_at(r, r->head)->bytes);
	}
	if (r->used == 0) {
		/* Starting over keeps a lightly loaded ring in few pages. */
		r->head = r->tail = 0;
	}
}

static size_t
put_block(struct emu_ring *r, size_t bytes, bool is_free)
{
	size_t off = r->tail;
	*block_at(r, off) = (struct block){.bytes = bytes, .is_free = is_free};
	r->tail += bytes;
	r->used += bytes;
	if (r->tail == r->cap) {
		r->tail = 0;
	}
	return off + sizeof(struct block);
}

size_t
emu_ring_take(struct emu_ring *r, uint32_t len)
{
	size_t bytes = sizeof(struct block) + ((size_t)len + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	reclaim(r);
	if (bytes > r->cap - r->used) {
		return EMU_RING_NONE;
	}
	/* Free room is in one piece when the used part goes around the end, else behind the
	 * tail and before the head. */
	bool is_around = r->used > 0 && r->tail <= r->head;
	if (!is_around && bytes > r->cap - r->tail) {
		if (bytes > r->head) {
			return EMU_RING_NONE;
		}
		put_block(r, r->cap - r->tail, true);
	}
	return put_block(r, bytes, false);
}

void
emu_ring_free(struct emu_ring *r, size_t off)
{
	struct block *b = block_at(r, off - sizeof(struct block));
	weft_dassert(!b->is_free);
	b->is_free = 1;
}

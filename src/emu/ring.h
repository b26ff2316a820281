/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of packets on their way, in one ring of fixed size.
 *
 * Blocks are taken in order and may be freed in any; the room of a freed block comes back when
 * every older one is free too. A block stays readable after it was freed, until the next take. */
#ifndef WEFT_EMU_RING_H
#define WEFT_EMU_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define EMU_RING_NONE SIZE_MAX

struct emu_ring {
	uint8_t *buf;
	size_t cap;
	size_t head, tail; /* oldest block, next free byte */
	size_t used;       /* bytes from head to tail around the end, headers included */
};

/* cap is rounded up to the block alignment; 0 makes a ring in which nothing fits. */
WEFT_MUST_CHECK enum weft_err emu_ring_init(struct emu_ring *r, size_t cap);
void emu_ring_fini(struct emu_ring *r);
/* Offset of len bytes, or EMU_RING_NONE when there is no room. */
size_t emu_ring_take(struct emu_ring *r, uint32_t len);
void emu_ring_free(struct emu_ring *r, size_t off);

static inline uint8_t *
emu_ring_at(const struct emu_ring *r, size_t off)
{
	return r->buf + off;
}

#endif

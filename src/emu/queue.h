/* SPDX-License-Identifier: Apache-2.0 */
/* Packets on their way, ordered by the time at which they are due; equal times keep the order
 * in which they were added. A binary heap over a fixed table. */
#ifndef WEFT_EMU_QUEUE_H
#define WEFT_EMU_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mono.h"

#define EMU_SLOT_NONE UINT32_MAX

struct emu_slot {
	uint64_t order;   /* of arrival, among the packets that were not lost */
	uint64_t tag;     /* the caller's */
	size_t off;       /* in the ring; EMU_RING_NONE: the caller holds the bytes */
	uint32_t len;     /* bytes */
	uint32_t heap_at; /* in heap; in a free slot, the next free one */
	bool is_copy, is_corrupt, is_held;
};

struct emu_heap_node {
	struct mono due;
	uint64_t rank; /* breaks ties */
	uint32_t slot;
};

struct emu_queue {
	struct emu_slot *slots;
	struct emu_heap_node *heap;
	uint32_t cap, n;
	uint32_t free; /* first free slot */
	uint64_t rank_next;
};

WEFT_MUST_CHECK enum weft_err emu_queue_init(struct emu_queue *q, uint32_t cap);
void emu_queue_fini(struct emu_queue *q);
/* EMU_SLOT_NONE when full. The slot's own fields are the caller's to fill. */
uint32_t emu_queue_add(struct emu_queue *q, struct mono due);
/* MONO_NEVER when empty. */
struct mono emu_queue_first_due(const struct emu_queue *q);
/* Slot of the first packet; the queue is not empty. */
uint32_t emu_queue_first(const struct emu_queue *q);
/* Frees the first one's slot; its fields stay readable until the next add. */
void emu_queue_remove_first(struct emu_queue *q);
/* Brings a packet forward to due, behind all others of that time. */
void emu_queue_advance(struct emu_queue *q, uint32_t slot, struct mono due);

#endif

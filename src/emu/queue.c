/* SPDX-License-Identifier: Apache-2.0 */
#include "emu/queue.h"

#include <stdlib.h>

#include "base/assert.h"

enum weft_err
emu_queue_init(struct emu_queue *q, uint32_t cap)
{
	*q = (struct emu_queue){.cap = cap};
	q->slots = calloc(cap, sizeof(*q->slots));
	q->heap = calloc(cap, sizeof(*q->heap));
	if (!q->slots || !q->heap) {
		emu_queue_fini(q);
		return WEFT_ENOMEM;
	}
	for (uint32_t i = 0; i < cap; i++) {
		q->slots[i].heap_at = i + 1 < cap ? i + 1 : EMU_SLOT_NONE;
	}
	return WEFT_OK;
}

void
emu_queue_fini(struct emu_queue *q)
{
	free(q->slots);
	free(q->heap);
	*q = (struct emu_queue){0};
}

static bool
is_before(const struct emu_heap_node *a, const struct emu_heap_node *b)
{
	return a->due.ns != b->due.ns ? a->due.ns < b->due.ns : a->rank < b->rank;
}

static void
place(struct emu_queue *q, uint32_t at, const struct emu_heap_node *node)
{
	q->heap[at] = *node;
	q->slots[node->slot].heap_at = at;
}

static void
sift_up(struct emu_queue *q, uint32_t at, struct emu_heap_node node)
{
	while (at > 0 && is_before(&node, &q->heap[(at - 1) / 2])) {
		place(q, at, &q->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	place(q, at, &node);
}

static void
sift_down(struct emu_queue *q, uint32_t at, struct emu_heap_node node)
{
	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= q->n) {
			break;
		}
		if (child + 1 < q->n && is_before(&q->heap[child + 1], &q->heap[child])) {
			child++;
		}
		if (!is_before(&q->heap[child], &node)) {
			break;
		}
		place(q, at, &q->heap[child]);
		at = child;
	}
	place(q, at, &node);
}

uint32_t
emu_queue_add(struct emu_queue *q, struct mono due)
{
	if (q->n == q->cap) {
		return EMU_SLOT_NONE;
	}
	uint32_t slot = q->free;
	q->free = q->slots[slot].heap_at;
	sift_up(q, q->n++,
		(struct emu_heap_node){.due = due, .rank = q->rank_next++, .slot = slot});
	return slot;
}

struct mono
emu_queue_first_due(const struct emu_queue *q)
{
	return q->n > 0 ? q->heap[0].due : MONO_NEVER;
}

uint32_t
emu_queue_first(const struct emu_queue *q)
{
	weft_dassert(q->n > 0);
	return q->heap[0].slot;
}

void
emu_queue_remove_first(struct emu_queue *q)
{
	weft_dassert(q->n > 0);
	uint32_t slot = q->heap[0].slot;
	q->n--;
	if (q->n > 0) {
		sift_down(q, 0, q->heap[q->n]);
	}
	q->slots[slot].heap_at = q->free;
	q->free = slot;
}

void
emu_queue_advance(struct emu_queue *q, uint32_t slot, struct mono due)
{
	uint32_t at = q->slots[slot].heap_at;
	weft_dassert(at < q->n && q->heap[at].slot == slot);
	struct emu_heap_node node = {.due = due, .rank = q->rank_next++, .slot = slot};
	if (is_before(&node, &q->heap[at])) {
		sift_up(q, at, node);
	} else {
		sift_down(q, at, node);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The ring: positions only grow; the place in memory is position modulo size.
 *
 * Each record is a 16-byte head with its length and the bytes behind it. A record that would
 * cross the end of the memory is put at its start, behind a head that says "skip".
 *
 * Sleeping: the reader sets is_asleep, then looks at head once more; the writer moves head, then
 * looks at is_asleep. Both in sequential consistency, so at least one of them sees the other. */
#include "os/ring.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/assert.h"
#include "os/thread.h"

#define HEAD_LEN 16u
#define SKIP UINT64_MAX
#define CACHE_LINE 64

struct os_ring {
	uint8_t *mem;
	size_t size; /* a power of two */
	struct os_wake wake;

	/* writer */
	WEFT_ALIGNED(CACHE_LINE) _Atomic uint64_t head; /* published up to here */
	uint64_t reserved_at; /* head of the record that os_ring_reserve() gave out */
	uint64_t tail_seen;
	_Atomic uint64_t signals_sent;

	/* reader */
	WEFT_ALIGNED(CACHE_LINE) _Atomic uint64_t tail; /* released up to here */
	uint64_t next;                                  /* taken up to here */
	uint64_t signals_seen;
	atomic_bool is_asleep; /* set by the reader, cleared by either */
	bool is_polled;        /* is_asleep is never set */
};

enum weft_err
os_ring_new(size_t bytes, struct os_ring **out)
{
	size_t size = 4096;
	while (size < bytes) {
		if (size > SIZE_MAX / 2) {
			return WEFT_EINVAL;
		}
		size *= 2;
	}
	struct os_ring *r = aligned_alloc(CACHE_LINE, sizeof(*r));
	if (!r) {
		return WEFT_ENOMEM;
	}
	*r = (struct os_ring){.size = size};
	r->mem = aligned_alloc(4096, size);
	if (!r->mem) {
		free(r);
		return WEFT_ENOMEM;
	}
	enum weft_err err = os_wake_init(&r->wake);
	if (err) {
		free(r->mem);
		free(r);
		return err;
	}
	*out = r;
	return WEFT_OK;
}

void
os_ring_free(struct os_ring *r)
{
	if (r) {
		os_wake_fini(&r->wake);
		free(r->mem);
		free(r);
	}
}

static uint64_t *
head_at(const struct os_ring *r, uint64_t pos)
{
	return (uint64_t *)(void *)(r->mem + (pos & (r->size - 1)));
}

static uint64_t
record_bytes(uint64_t len)
{
	return HEAD_LEN + ((len + HEAD_LEN - 1) & ~(uint64_t)(HEAD_LEN - 1));
}

void *
os_ring_reserve(struct os_ring *r, size_t len)
{
	if (len > r->size) {
		return NULL;
	}
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	uint64_t need = record_bytes(len);
	uint64_t to_end = r->size - (head & (r->size - 1));
	uint64_t skip = need > to_end ? to_end : 0;
	if (head + skip + need - r->tail_seen > r->size) {
		r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
		if (head + skip + need - r->tail_seen > r->size) {
			return NULL;
		}
	}
	if (skip) {
		*head_at(r, head) = SKIP;
	}
	r->reserved_at = head + skip;
	*head_at(r, r->reserved_at) = len;
	return (uint8_t *)head_at(r, r->reserved_at) + HEAD_LEN;
}

void
os_ring_push(struct os_ring *r, size_t len)
{
	uint64_t *head = head_at(r, r->reserved_at);
	weft_assert(len <= *head);
	*head = len;
	atomic_store(&r->head, r->reserved_at + record_bytes(len));
	if (atomic_load(&r->is_asleep) && atomic_exchange(&r->is_asleep, false)) {
		os_wake_signal(&r->wake);
		atomic_fetch_add(&r->signals_sent, 1);
	}
}

/* Says whether a record is there; when not, the writer will signal. */
static bool
wait_for_record(struct os_ring *r)
{
	if (atomic_load_explicit(&r->head, memory_order_acquire) != r->next) {
		return true;
	}
	if (r->is_polled) {
		return false;
	}
	/* A signal under way that is not counted yet keeps the descriptor readable for one more
	 * idle round. */
	uint64_t sent = atomic_load(&r->signals_sent);
	if (sent != r->signals_seen) {
		r->signals_seen = sent;
		os_wake_clear(&r->wake);
	}
	atomic_store(&r->is_asleep, true);
	if (atomic_load(&r->head) == r->next) {
		return false;
	}
	atomic_store(&r->is_asleep, false);
	return true;
}

void *
os_ring_take(struct os_ring *r, size_t *len)
{
	if (!wait_for_record(r)) {
		return NULL;
	}
	uint64_t *head = head_at(r, r->next);
	if (*head == SKIP) {
		/* A skip is published together with the record behind it. */
		r->next += r->size - (r->next & (r->size - 1));
		head = head_at(r, r->next);
	}
	*len = (size_t)*head;
	r->next += record_bytes(*head);
	return (uint8_t *)head + HEAD_LEN;
}

void
os_ring_release(struct os_ring *r)
{
	atomic_store_explicit(&r->tail, r->next, memory_order_release);
}

void
os_ring_set_polled(struct os_ring *r)
{
	r->is_polled = true;
}

int
os_ring_fd(const struct os_ring *r)
{
	return r->wake.fd;
}

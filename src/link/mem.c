/* SPDX-License-Identifier: Apache-2.0 */
#include "link/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "os/ring.h"

/* What stands before the bytes of a run in the ring. */
struct mem_record {
	struct endpoint from;
	uint32_t len;
	uint16_t seg;
	uint8_t ecn;
};

#define RECORD_LEN ((sizeof(struct mem_record) + 15) & ~(size_t)15)

struct mem_end {
	struct link base;
	struct mem_pair *pair;
	struct endpoint at;
	struct os_ring *in;  /* this end reads */
	struct os_ring *out; /* this end writes */
};

struct mem_pair {
	struct mem_end ends[2];
	struct os_ring *rings[2]; /* rings[i] is read by end i */
	_Atomic unsigned open;
};

static struct mem_end *
self_of(struct link *l)
{
	return WEFT_CONTAINER_OF(l, struct mem_end, base);
}

static uint32_t
datagrams_of(uint32_t len, uint16_t seg)
{
	return (len + seg - 1) / seg;
}

static enum weft_err
receive(struct link *base, struct link_rx *rx, size_t cap, size_t *n)
{
	struct mem_end *e = self_of(base);
	size_t got = 0, len;
	os_ring_release(e->in);
	base->stats.rx_calls++;
	while (got < cap) {
		uint8_t *p = os_ring_take(e->in, &len);
		if (!p) {
			break;
		}
		const struct mem_record *r = (const struct mem_record *)(const void *)p;
		rx[got++] = (struct link_rx){.data = p + RECORD_LEN,
			.len = r->len,
			.seg = r->seg,
			.ecn = r->ecn,
			.from = r->from};
		base->stats.rx_bytes += r->len;
		base->stats.rx_datagrams += datagrams_of(r->len, r->seg);
	}
	if (got == 0) {
		return WEFT_EAGAIN;
	}
	*n = got;
	return WEFT_OK;
}

static void
send_runs(struct link *base, struct link_run *runs, size_t n)
{
	struct mem_end *e = self_of(base);
	base->stats.tx_calls++;
	for (size_t i = 0; i < n; i++) {
		struct link_run *run = &runs[i];
		uint32_t datagrams = datagrams_of(run->len, run->seg);
		run->src_cleared = false;
		uint8_t *p = os_ring_reserve(e->out, RECORD_LEN + run->len);
		if (!p) {
			base->stats.drops.n[DROP_LINK_NOBUFS] += datagrams;
			continue;
		}
		/* To the reader, the address that this went to is its own. */
		struct mem_record r = {
			.from = e->at, .len = run->len, .seg = run->seg, .ecn = run->ecn};
		r.from.src = run->to->addr;
		memcpy(p, &r, sizeof(r));
		memcpy(p + RECORD_LEN, run->data, run->len);
		os_ring_push(e->out, RECORD_LEN + run->len);
		base->stats.tx_bytes += run->len;
		base->stats.tx_datagrams += datagrams;
	}
}

static void
pair_free(struct mem_pair *p)
{
	os_ring_free(p->rings[0]);
	os_ring_free(p->rings[1]);
	free(p);
}

static void
close_end(struct link *base)
{
	struct mem_pair *p = self_of(base)->pair;
	if (atomic_fetch_sub(&p->open, 1) == 1) {
		pair_free(p);
	}
}

static const struct link_ops ops = {.receive = receive, .send = send_runs, .close = close_end};

enum weft_err
link_mem_pair(size_t bytes, const struct endpoint at[2], struct link *out[2])
{
	struct mem_pair *p = calloc(1, sizeof(*p));
	if (!p) {
		return WEFT_ENOMEM;
	}
	for (int i = 0; i < 2; i++) {
		enum weft_err err = os_ring_new(bytes, &p->rings[i]);
		if (err) {
			pair_free(p);
			return err;
		}
	}
	atomic_init(&p->open, 2);
	for (int i = 0; i < 2; i++) {
		p->ends[i] = (struct mem_end){.base = {.ops = &ops},
			.pair = p,
			.at = at[i],
			.in = p->rings[i],
			.out = p->rings[1 - i]};
		out[i] = &p->ends[i].base;
	}
	return WEFT_OK;
}

void
link_mem_set_polled(struct link *l)
{
	os_ring_set_polled(self_of(l)->in);
}

int
link_mem_fd(const struct link *l)
{
	return os_ring_fd(WEFT_CONTAINER_OF(l, const struct mem_end, base)->in);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/hold.h"

#include <stdlib.h>

#include "base/assert.h"
#include "fec/store.h"
#include "pkt/ip.h"
#include "pkt/l4.h"

bool
fec_hold_init(struct fec_hold *h, uint32_t n)
{
	weft_assert(n > 0 && (n & (n - 1)) == 0);
	*h = (struct fec_hold){
		.held = malloc(n * sizeof(*h->held)),
		.ready = malloc(n * sizeof(*h->ready)),
		.mask = n - 1,
	};
	if (!h->held || !h->ready) {
		fec_hold_fini(h);
		return false;
	}
	return true;
}

bool
fec_hold_grow(struct fec_hold *h, uint32_t n)
{
	weft_assert(n > h->mask && (n & (n - 1)) == 0);
	struct fec_hold to;
	if (!fec_hold_init(&to, n)) {
		return false;
	}
	for (uint64_t i = h->first; i != h->last; i++) {
		to.held[i & to.mask] = h->held[i & h->mask];
	}
	for (uint64_t i = h->ready_first; i != h->ready_last; i++) {
		to.ready[i & to.mask] = h->ready[i & h->mask];
	}
	free(h->held);
	free(h->ready);
	h->held = to.held;
	h->ready = to.ready;
	h->mask = to.mask;
	return true;
}

void
fec_hold_fini(struct fec_hold *h)
{
	free(h->held);
	free(h->ready);
	*h = (struct fec_hold){0};
}

void
fec_hold_start(struct fec_hold *h, uint64_t counter)
{
	weft_assert(h->waiting_n[0] == 0 && h->waiting_n[1] == 0);
	h->turn[0] = h->turn[1] = counter;
}

bool
fec_hold_is_ordered(const uint8_t *packet, size_t len)
{
	struct ip_view v;
	if (ip_parse(packet, len, &v) || v.proto != IP_PROTO_TCP || v.is_fragment || !v.has_l4 ||
		v.len - v.l4_off < TCP_HEADER_LEN) {
		return false;
	}
	const uint8_t *tcp = packet + v.l4_off;
	if (tcp[TCP_FLAGS] & TCP_SYN) {
		return false;
	}
	uint32_t header = (uint32_t)(tcp[TCP_DATA_OFFSET] >> 4) * 4;
	return tcp[TCP_FLAGS] & TCP_FIN || v.len - v.l4_off > header;
}

static struct fec_held *
add(struct fec_hold *h, const struct fec_held *p)
{
	if (h->last - h->first > h->mask) {
		return NULL;
	}
	struct fec_held *at = &h->held[h->last & h->mask];
	*at = *p;
	at->is_ready = at->is_done = false;
	h->last++;
	return at;
}

/* At most as many are ready as are held, so there is room. */
static void
make_ready(struct fec_hold *h, uint32_t number)
{
	h->held[number & h->mask].is_ready = true;
	h->ready[h->ready_last & h->mask] = number;
	h->ready_last++;
}

bool
fec_hold_add(struct fec_hold *h, const struct fec_held *p, struct fec_record *r)
{
	struct fec_held *at = add(h, p);
	if (!at) {
		return false;
	}
	r->held = (uint32_t)(h->last - 1);
	r->is_held = true;
	h->waiting_n[p->class]++;
	return true;
}

bool
fec_hold_add_ready(struct fec_hold *h, const struct fec_held *p)
{
	struct fec_held *at = add(h, p);
	if (at) {
		make_ready(h, (uint32_t)(h->last - 1));
	}
	return at != NULL;
}

bool
fec_hold_confirm(struct fec_hold *h, const struct fec_record *r, uint64_t counter, uint8_t ecn)
{
	struct fec_held *p = &h->held[r->held & h->mask];
	/* The record does not say whether it was ever held; others may have its number by now. */
	bool is_here = ((r->held - h->first) & h->mask) < h->last - h->first;
	if (!is_here || p->counter != counter || p->is_done) {
		return false;
	}
	p->is_recovered = false;
	p->ecn = ecn;
	return true;
}

void
fec_hold_release(struct fec_hold *h, struct fec_record *r)
{
	struct fec_held *p = &h->held[r->held & h->mask];
	weft_dassert(r->is_held && !p->is_ready && !p->is_done);
	r->is_held = false;
	h->waiting_n[p->class]--;
	make_ready(h, r->held);
}

static bool
is_in_the_way(const struct fec_record *r, uint8_t maybe)
{
	return r->state == FEC_STATE_MISSING && r->is_waited && r->maybe & maybe;
}

bool
fec_hold_advance(struct fec_hold *h, const struct fec_gaps *g, enum wire_ext_class class,
	uint64_t limit, struct mono now, int64_t hold_ns)
{
	uint64_t turn = h->turn[class];
	uint8_t maybe = FEC_MAYBE(class);
	if (turn >= limit) {
		return false;
	}
	if (g->missing_n == 0 && h->waiting_n[0] == 0 && h->waiting_n[1] == 0) {
		h->turn[class] = limit;
		return true;
	}
	for (turn = turn > g->low ? turn : g->low; turn < limit; turn++) {
		struct fec_record *r = &g->records[turn & g->mask];
		if (is_in_the_way(r, maybe) && now.ns - r->detected_ns < hold_ns) {
			break;
		}
		if (r->is_held && r->maybe != maybe) {
			break; /* of the same flow, perhaps: nothing that came may overtake it */
		}
		if (r->is_held) {
			fec_hold_release(h, r);
		}
	}
	bool has_moved = turn > h->turn[class];
	h->turn[class] = turn;
	return has_moved;
}

struct mono
fec_hold_until(const struct fec_hold *h, const struct fec_gaps *g, int64_t hold_ns)
{
	struct mono until = MONO_NEVER;
	for (size_t k = 0; k < WIRE_EXT_CLASS_COUNT; k++) {
		const struct fec_record *r = fec_gaps_at(g, h->turn[k]);
		/* At one of the other class, it waits for that turn. */
		if (h->waiting_n[k] > 0 && r && r->state == FEC_STATE_MISSING) {
			until = mono_min(until, (struct mono){r->detected_ns + hold_ns});
		}
	}
	return until;
}

const struct fec_held *
fec_hold_peek(const struct fec_hold *h)
{
	return fec_hold_has_ready(h) ? &h->held[h->ready[h->ready_first & h->mask] & h->mask]
				     : NULL;
}

void
fec_hold_pop(struct fec_hold *h)
{
	weft_dassert(fec_hold_has_ready(h));
	h->held[h->ready[h->ready_first & h->mask] & h->mask].is_done = true;
	h->ready_first++;
	while (h->first != h->last && h->held[h->first & h->mask].is_done) {
		h->first++;
	}
}

uint64_t
fec_hold_floor(const struct fec_hold *h)
{
	return fec_hold_is_empty(h) ? FEC_STORE_FREE : h->held[h->first & h->mask].place;
}

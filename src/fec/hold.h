/* SPDX-License-Identifier: Apache-2.0 */
/* In-order hold: packets that wait for missing ones before them, and those that are on their way
 * out.
 *
 * Owns the order of delivery; the bytes stay in the store, which is told by fec_hold_floor() what
 * it must keep. A class has a turn, the counter up to which its packets may go. It moves up past
 * what is here and stops at a missing counter that may be of the class, until that is resolved or
 * its wait is over; and at a packet of the other class that waits, since both may be of one flow.
 * So what has arrived goes out in the order of counters. Turns touch each record once. */
#ifndef WEFT_FEC_HOLD_H
#define WEFT_FEC_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mono.h"
#include "fec/gap.h"
#include "wire/ext.h"

struct fec_held {
	uint64_t counter;
	uint64_t place; /* in the store */
	int64_t since_ns;
	uint16_t len;
	uint8_t class;
	uint8_t ecn;
	bool is_recovered;
	bool is_ready; /* goes out next; else it waits for its turn */
	bool is_done;
};

struct fec_hold {
	struct fec_held *held; /* in order of arrival, by number & mask */
	uint64_t first, last;
	uint32_t *ready; /* numbers, in order of delivery */
	uint64_t ready_first, ready_last;
	uint64_t mask;
	uint64_t turn[WIRE_EXT_CLASS_COUNT];
	uint32_t waiting_n[WIRE_EXT_CLASS_COUNT];
};

/* n: a power of two, how many may wait. False: no memory. */
bool fec_hold_init(struct fec_hold *h, uint32_t n);
/* As with that many from the start; what it has stays. False: no memory, and nothing changed. */
bool fec_hold_grow(struct fec_hold *h, uint32_t n);
void fec_hold_fini(struct fec_hold *h);
/* Turns begin at `counter`. Nothing may be waiting. */
void fec_hold_start(struct fec_hold *h, uint64_t counter);

/* Is TCP with payload or FIN, whole: what a receiver takes for loss when it comes out of order. */
bool fec_hold_is_ordered(const uint8_t *packet, size_t len);

/* Adds one that waits: is_ready and is_done are cleared, r becomes held. False: full. */
bool fec_hold_add(struct fec_hold *h, const struct fec_held *p, struct fec_record *r);
/* Adds one that goes out at once, behind those that do already. */
bool fec_hold_add_ready(struct fec_hold *h, const struct fec_held *p);
/* r, which was recovered, has come by itself. True: the recovered one is here still, and goes out
 * in its turn as if it had come. */
bool fec_hold_confirm(
	struct fec_hold *h, const struct fec_record *r, uint64_t counter, uint8_t ecn);
/* r, which is held, goes out. */
void fec_hold_release(struct fec_hold *h, struct fec_record *r);
/* Moves a class's turn up to `limit` at most; what waited and has its turn is released. True: it
 * moved, which may have made way for the other class. */
bool fec_hold_advance(struct fec_hold *h, const struct fec_gaps *g, enum wire_ext_class class,
	uint64_t limit, struct mono now, int64_t hold_ns);
/* When the wait of what waits ends; MONO_NEVER: nothing waits. */
struct mono fec_hold_until(const struct fec_hold *h, const struct fec_gaps *g, int64_t hold_ns);

/* The next to go out; NULL: none. */
const struct fec_held *fec_hold_peek(const struct fec_hold *h);
void fec_hold_pop(struct fec_hold *h);

static inline bool
fec_hold_is_empty(const struct fec_hold *h)
{
	return h->first == h->last;
}

static inline bool
fec_hold_has_ready(const struct fec_hold *h)
{
	return h->ready_first != h->ready_last;
}

/* The lowest place in the store that is still needed; FEC_STORE_FREE: none. */
uint64_t fec_hold_floor(const struct fec_hold *h);

#endif

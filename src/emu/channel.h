/* SPDX-License-Identifier: Apache-2.0 */
/* One direction of an emulated link: packets go in, and come out late, twice, damaged, or not
 * at all. No I/O, no clock: time is passed in and all chance comes from a seed, so the same
 * calls give the same result.
 *
 * What happens to a packet, in this order:
 *   mtu       longer ones vanish
 *   rate      it waits for the line; what the queue cannot hold is dropped
 *   loss      on the line, so a lost packet has used it
 *   corrupt   bits are flipped
 *   duplicate a copy follows, with a delay of its own
 *   delay     fixed, plus jitter; without being asked to, no packet overtakes another
 *   reorder   some are held back so that later ones overtake
 *
 * With ring_bytes > 0 the channel copies the bytes. With 0 it carries lengths and tags alone:
 * the caller keeps the bytes, and the tag says where. */
#ifndef WEFT_EMU_CHANNEL_H
#define WEFT_EMU_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mono.h"
#include "base/rng.h"
#include "emu/queue.h"
#include "emu/ring.h"
#include "emu/settings.h"

struct emu_channel_params {
	uint64_t seed;
	size_t ring_bytes;       /* bound on bytes on their way; 0: lengths and tags alone */
	uint32_t packets_max;    /* bound on packets on their way, at least 1 */
	int32_t overhead_bytes;  /* added to each length for rate, queue and mtu */
	uint32_t corrupt_offset; /* bytes at the front of a packet that are never flipped */
};

/* in + duplicated = out + lost + queue_dropped + mtu_dropped + emu_channel_pending() */
struct emu_counters {
	uint64_t in, in_bytes;
	uint64_t out, out_bytes;
	uint64_t lost;
	uint64_t queue_dropped; /* did not fit into the queue, or into the ring */
	uint64_t ring_full;     /* part of queue_dropped: for want of memory of the channel */
	uint64_t mtu_dropped;
	uint64_t duplicated;
	uint64_t corrupted;
	uint64_t reordered; /* came out after one that had gone in later; copies not counted */
};

/* A packet coming out. */
struct emu_packet {
	uint8_t *data; /* writable; NULL without ring. Valid until the next push */
	uint32_t len;
	uint64_t tag;
	struct mono due;
	bool is_copy;    /* the second of a duplicated one: its tag came out, or will, once more */
	bool is_corrupt; /* without ring the caller flips what it likes */
};

/* A packet that waits for later ones to overtake it. */
struct emu_held {
	uint64_t until; /* order of the packet that releases it */
	uint64_t order; /* its own */
	uint32_t slot;
};

/* One stream of chance for each effect: the pattern of loss does not change with jitter. */
enum emu_chance {
	EMU_CHANCE_LOSS,
	EMU_CHANCE_CORRUPT,
	EMU_CHANCE_FLIP, /* which bits */
	EMU_CHANCE_DUPLICATE,
	EMU_CHANCE_JITTER,
	EMU_CHANCE_REORDER,
	EMU_CHANCE_COUNT
};

/* Fields are the channel's own; counters may be read. */
struct emu_channel {
	struct emu_channel_params params;
	struct emu_settings set;
	struct emu_counters counters;
	struct rng chance[EMU_CHANCE_COUNT];
	struct emu_queue queue;
	struct emu_ring ring;
	struct emu_held *held; /* heap by until */
	uint32_t held_n, held_cap;
	bool is_bad;            /* state of the loss model */
	struct mono line_free;  /* when the line has sent all it was given */
	uint64_t line_rest;     /* of the last division by the rate: bits x 1e9 mod rate */
	struct mono last_due;   /* of the packets that keep their order */
	uint64_t order_next;    /* numbers packets that are not lost, from 1 */
	uint64_t order_out_max; /* highest number that came out */
};

WEFT_MUST_CHECK enum weft_err emu_channel_init(struct emu_channel *c,
	const struct emu_channel_params *params, const struct emu_settings *settings);
void emu_channel_fini(struct emu_channel *c);

/* Changes what happens to packets from now on; those on their way keep their time. The bytes
 * that wait for the line stay as many when the rate changes. */
void emu_channel_set(struct emu_channel *c, struct mono now, const struct emu_settings *settings);

/* Takes a packet. data may be NULL only without ring. Returns how often it will come out: 0, 1
 * or 2. now never goes back. */
unsigned emu_channel_push(
	struct emu_channel *c, struct mono now, const void *data, uint32_t len, uint64_t tag);

/* When the next packet is due; MONO_NEVER when none is on its way. */
struct mono emu_channel_next(const struct emu_channel *c);

/* Gives the next packet that is due by now. */
bool emu_channel_pop(struct emu_channel *c, struct mono now, struct emu_packet *out);

/* Packets on their way. */
uint32_t emu_channel_pending(const struct emu_channel *c);
/* How long a packet that comes now would wait for the line. */
int64_t emu_channel_wait_ns(const struct emu_channel *c, struct mono now);

#endif

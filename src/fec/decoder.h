/* SPDX-License-Identifier: Apache-2.0 */
/* Decoder: the receiving direction of one session. Sees gaps among counters, solves REPAIR
 * frames for what is missing, holds TCP back for a moment so that recovery keeps its order, and
 * tells what a FEEDBACK should say.
 *
 * Everything that comes in has passed the AEAD and the replay window. Idle until the first gap
 * or REPAIR: then it copies nothing and costs a comparison a run of packets; again so after 10,000
 * packets without either. Bounds: span 128, 64 unknowns, a ring of bytes; a jump of counters
 * beyond the records starts afresh. Memory is taken when it wakes, since what comes from then on is
 * what repairs are about; more of it by fec_decoder_grow() alone. It is given back when nothing was
 * missing for long. */
#ifndef WEFT_FEC_DECODER_H
#define WEFT_FEC_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mono.h"
#include "fec/budget.h"
#include "wire/ext.h"

struct gf256;
struct fec_decoder;

struct fec_decoder_config {
	const struct gf256 *gf;
	uint32_t records; /* a power of two, 256..65536 */
	uint32_t bytes;   /* of packets, 64 KiB..16 MiB; rounded down to that of 64 KiB */
	uint32_t records_max, bytes_max; /* likewise, how far they grow; 0: not at all */
	uint16_t packet_max; /* longest packet that can be stored or recovered; at least what the
			      * other side protects, or repairs with longer ones are useless */
	struct fec_budget *budget; /* outlives it; NULL: none */
};

/* One that came, and was authenticated. */
struct fec_arrival {
	uint64_t counter;
	uint8_t *data;
	size_t len;     /* 0 for a keepalive; may count padding */
	uint8_t ecn;    /* of the outer header */
	bool is_source; /* false: a frame of ours, which takes a counter and is no packet */
};

/* One packet that may go on now. */
struct fec_packet {
	uint8_t *data; /* the caller's bytes, or in fec_out's arena */
	uint32_t len;
	uint8_t ecn;       /* of the outer header; 0 for a recovered one */
	bool is_recovered; /* never authenticated as itself: mark the counter in the window, or drop
			    */
	uint64_t counter;
};

/* Filled by the decoder in the order of delivery. Recovered and formerly held packets are copied
 * into the arena, which is the caller's to reuse once it has taken them. For fec_decoder_take() it
 * has room for packet_max bytes at least. */
struct fec_out {
	struct fec_packet *packets;
	size_t cap, n;
	uint8_t *arena;
	size_t arena_cap, arena_used;
};

WEFT_MUST_CHECK enum weft_err fec_decoder_new(
	const struct fec_decoder_config *c, struct fec_decoder **out);
void fec_decoder_free(struct fec_decoder *d);

/* Round-trip time for the reordering grace and the hold; 0 = unknown (10 ms is assumed). */
void fec_decoder_set_rtt(struct fec_decoder *d, int64_t rtt_ns);

/* Whether the receive socket has dropped datagrams just before those that come now. Gaps found
 * while it has are no loss of the path: whoever is too slow to take packets is not helped by more
 * of them, so none is asked for and none awaited. */
void fec_decoder_set_overflow(struct fec_decoder *d, bool has_overflowed);

/* Off: nothing waits for what is missing, and what waits is ready. On at first. */
void fec_decoder_set_hold(struct fec_decoder *d, bool is_on);
/* n packets with consecutive counters, none of them a frame. True: nothing is missing, nothing
 * waits, the decoder is idle and the run continues where the last ended: noted, the caller
 * delivers them itself. False: nothing happened; give them one by one. */
bool fec_decoder_skip(struct fec_decoder *d, struct mono now, uint64_t first, size_t n);
/* One packet, in order of arrival. out needs room for one packet more than it holds; more that
 * became free waits for fec_decoder_take(). A source is delivered into out, or held. */
void fec_decoder_packet(
	struct fec_decoder *d, struct mono now, const struct fec_arrival *p, struct fec_out *out);
/* A REPAIR whose counter has been given to fec_decoder_packet(). False: it contradicts itself or
 * what is known, and was dropped. Only useless ones are no contradiction. */
bool fec_decoder_repair(
	struct fec_decoder *d, struct mono now, uint64_t counter, const struct wire_ext_repair *r);
/* Moves recovered packets, and held ones whose wait is over, into out as far as it has room. True:
 * more is ready. Due after packets and repairs, and at fec_decoder_deadline(). */
bool fec_decoder_take(struct fec_decoder *d, struct mono now, struct fec_out *out);
/* When a hold ends, a grace ends or a FEEDBACK is due: call fec_decoder_take() and
 * fec_decoder_feedback() then. MONO_NEVER when nothing waits. */
struct mono fec_decoder_deadline(const struct fec_decoder *d);
/* True: a FEEDBACK is due, and all of *f is filled. At most one in 2 ms. With blocks when
 * something is missing that has not been asked for within the last round trip; without within
 * 20 ms after totals have changed and nothing is missing; then none. */
bool fec_decoder_feedback(struct fec_decoder *d, struct mono now, struct wire_ext_feedback *f);

/* The part of *f that tells of the newest packet: highest, received, clock and delay. False: none
 * has come. */
bool fec_decoder_newest(const struct fec_decoder *d, struct mono now, struct wire_ext_feedback *f);

/* Grows if it was short of records or of bytes: every step twice as large. Also called without need
 * it costs a comparison. False: it was, and there is no memory or no budget; what it has stays. */
bool fec_decoder_grow(struct fec_decoder *d);
/* Bytes taken now. */
uint64_t fec_decoder_size(const struct fec_decoder *d);
/* Gives the memory back when nothing waits, and no new packet has come for `quiet_ns`, or it has
 * slept for so long. */
void fec_decoder_rest(struct fec_decoder *d, struct mono now, int64_t quiet_ns);
/* When that is due; MONO_NEVER while something waits, or when there is none. */
struct mono fec_decoder_rest_at(const struct fec_decoder *d, int64_t quiet_ns);

struct fec_decoder_stats {
	uint64_t received, lost, runs;              /* packets of any kind; before recovery */
	uint64_t recovered_ahead, recovered_answer; /* by the REPAIR that was the last needed */
	uint64_t given_up; /* not asked for any more; a late recovery does not count, and is not
			    * delivered */
	uint64_t repairs, repairs_useless,
		repairs_refused;                 /* arrived; nothing new in them; dropped */
	uint64_t held, hold_ns_sum, hold_ns_max; /* received, had to wait, went out; how long */
	uint64_t overflowed; /* missing after an overflow of our own socket; not counted as lost */
	uint64_t late;       /* missing ones that came by themselves after the grace */
	uint64_t unawake;    /* it could not wake for want of memory or budget */
	uint64_t jumps;      /* counters skipped too many to look for: begun afresh */
};
void fec_decoder_stats(const struct fec_decoder *d, struct fec_decoder_stats *out);

#endif

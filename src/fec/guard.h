/* SPDX-License-Identifier: Apache-2.0 */
/* Congestion guard: is a loss that was reported one of a full queue, or one of the line?
 *
 * Owns the least one-way delay seen, in the two ends' clocks, and says by how much a packet
 * exceeded it. Clocks that drift apart are followed by forgetting slowly; a packet sent after a
 * pause found no queue of our own making and sets the level anew. Why: a router whose queue is
 * full drops what comes while the delay is at its highest, a bad line drops at any delay.
 *
 * A machine that did not run for some milliseconds delays packets, too, on its side of the path or
 * in between. Two things tell that from a queue. What waited for it comes all at once, so that the
 * delay falls as fast as packets were sent, and no queue empties so fast while they are. And
 * it knows nothing of losses: some fall in such a moment, most do not. So a line that was acquitted
 * lately is found guilty by several losses only, further apart than a moment lasts, and none
 * of them calm; until then it is suspect. */
#ifndef WEFT_FEC_GUARD_H
#define WEFT_FEC_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mono.h"

struct fec_guard {
	uint32_t least_us; /* receiver's clock less ours, of a packet that met no queue; mod 2^32 */
	bool has_least;
	uint32_t lower_us; /* has_lower: the last sample fell below the least, by itself so far */
	bool has_lower;
	int64_t creep_ns;         /* time not yet turned into forgetting */
	struct mono at;           /* of the last sample */
	int64_t queue_us;         /* of the last sample; >= 0 */
	struct mono loaded_at;    /* when a standing queue was last seen; 0 = never */
	int64_t rtt_least_ns;     /* 0 = unknown */
	int64_t rtt_lower_ns;     /* the last, if below the least; 0 = it was not */
	bool is_loaded;           /* losses come with a standing queue */
	bool is_suspect;          /* the last one did, or may have */
	unsigned votes;           /* guilty ones without a calm one among them */
	struct mono vote_at;      /* of the last of these */
	unsigned drained;         /* that tell little, likewise */
	struct mono acquitted_at; /* the last calm one; 0 = never */
};

void fec_guard_reset(struct fec_guard *g);
/* From the HELLO exchange: the peer's clock less ours at the same instant. An exchange that met
 * a queue itself does not raise the level. */
void fec_guard_set_path(
	struct fec_guard *g, struct mono now, int64_t rtt_ns, int64_t clock_diff_us);
/* A round trip that was measured. */
void fec_guard_rtt(struct fec_guard *g, int64_t rtt_ns);
/* A packet that arrived behind a loss. */
struct fec_guard_sample {
	uint32_t delay_us; /* arrival (receiver's clock) less departure (ours), modulo 2^32 */
	bool after_pause;  /* nothing was sent for long before it */
	int64_t behind_ns; /* how long after the lost one it left; < 0: not known */
	/* The last that arrived before the loss, if it left just before what was lost. */
	bool has_edge;
	uint32_t edge_delay_us;
	/* How long before this one it left, less the longest silence since, and arrived. */
	int64_t edge_lead_us, edge_gap_us;
};
/* Says whether losses are those of a standing queue: is_loaded, is_suspect. */
void fec_guard_sample(struct fec_guard *g, struct mono now, const struct fec_guard_sample *sample);
/* Above what delay a queue is said to stand. */
int64_t fec_guard_threshold_us(const struct fec_guard *g);

#endif

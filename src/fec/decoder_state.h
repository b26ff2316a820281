/* SPDX-License-Identifier: Apache-2.0 */
/* What a decoder is made of, for the files that implement decoder.h: decoder.c (packets in, packets
 * out), decoder_memory.c (what it takes and gives back), repair.c (REPAIR frames and what follows
 * from them), report.c (what a FEEDBACK says). */
#ifndef WEFT_FEC_DECODER_STATE_H
#define WEFT_FEC_DECODER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fec/decoder.h"
#include "fec/gap.h"
#include "fec/hold.h"
#include "fec/solver.h"
#include "fec/store.h"

#define FEC_NEVER_NS INT64_MIN /* a moment that has not been */

/* What has to be said to the other side. */
struct fec_reporting {
	int64_t last_ns;   /* last FEEDBACK */
	int64_t due_ns;    /* missing counters are to be listed; INT64_MAX: none */
	int64_t settle_ns; /* totals have changed: to be said by then; INT64_MAX: all said */
	int64_t look_ns;   /* missing counters are not looked through before */
};

struct fec_decoder {
	const struct gf256 *gf;
	uint32_t records, bytes; /* now, or when it wakes */
	uint32_t records_min, bytes_min, records_max, bytes_max;
	bool is_short_of_records, is_short_of_bytes;
	uint16_t packet_max;
	struct fec_budget *budget;
	uint64_t size; /* taken from it */
	struct mono asleep_at;

	bool is_begun; /* a counter has been seen */
	bool is_awake;
	bool is_hold_off;   /* nothing waits */
	bool has_memory;    /* taken with a wake, until it has rested */
	bool is_overflowed; /* gaps found now are our own socket's doing */
	bool is_trusted;    /* the other side repairs: no loss went by without a REPAIR lately */
	uint64_t next;      /* not awake: the counter that continues */
	uint32_t quiet_n;   /* packets since the last gap or REPAIR */
	uint32_t skips;     /* counters that may be skipped: SKIPS_A_PACKET each, SKIPS_MAX */
	struct mono now;    /* of the last call */
	struct mono highest_at;
	uint64_t edge;       /* the last that came before the newest gap; edge_at 0: none */
	struct mono edge_at; /* when; until it has been said */
	uint64_t tail_end; /* behind the newest source that the last REPAIR of that kind was over */
	int64_t last_repair_ns;
	int64_t crowded_ns;        /* the solver forgot something for want of room */
	int64_t refused_ns;        /* large packets will not be answered for; none was since */
	int64_t last_ahead_ns;     /* a REPAIR that was sent ahead */
	int64_t ahead_interval_ns; /* between these, smoothed */
	int64_t rtt_ns, grace_ns;
	/* From the moment that a packet is missed until an answer brings it: smoothed, and how far
	 * off single ones are. 0: none has come. */
	int64_t answer_ns, answer_dev_ns;

	struct fec_gaps gaps;
	struct fec_hold hold;
	struct fec_store store;
	struct fec_solver solver;
	struct fec_reporting report;
	/* Of these the decoder's files fill all but lost, runs, given_up and late. */
	struct fec_decoder_stats stats;
};

/* Awake from here on, with nothing known below `counter`. False: no memory. */
bool fec_decoder_wake(struct fec_decoder *d, uint64_t counter);
/* Idle from here on. */
void fec_decoder_sleep(struct fec_decoder *d);
/* Gives all memory back but the decoder itself. */
void fec_decoder_release(struct fec_decoder *d);
/* Time has passed or something has changed: judges gaps, moves turns. */
void fec_decoder_settle(struct fec_decoder *d);

/* Takes what the solver has determined. False: something of it was impossible. */
bool fec_repair_collect(struct fec_decoder *d, enum wire_ext_repair_why why);

/* How long after a packet was missed its answer is expected, by those that came; 0: none did. */
int64_t fec_report_answer_ns(const struct fec_decoder *d);
/* An answer brings a packet that was asked for. */
void fec_report_answered(struct fec_decoder *d, const struct fec_record *r);
/* How long a missing counter waits for repairs that come unasked before it is asked for. */
int64_t fec_report_patience_ns(const struct fec_decoder *d);
/* Totals have changed, and are to be said soon. */
void fec_report_changed(struct fec_decoder *d);
/* A probe came that another went before: the sender waits for a word. */
void fec_report_soon(struct fec_decoder *d);
struct mono fec_report_at(const struct fec_decoder *d);

#endif

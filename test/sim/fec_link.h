/* SPDX-License-Identifier: Apache-2.0 */
/* Two recoveries joined by an emulated link, under virtual time: what a node does around them,
 * without the node. Each end has its session, its counters, its replay window; what it sends
 * carries a number and bytes that follow from it, so that each packet that comes out is known,
 * checked bit by bit, and timed. */
#ifndef WEFT_TEST_SIM_FEC_LINK_H
#define WEFT_TEST_SIM_FEC_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mono.h"
#include "base/rng.h"
#include "emu/channel.h"
#include "emu/histogram.h"
#include "fec/recovery.h"

#define FEC_LINK_MTU 1400
#define FEC_LINK_HEADER 16 /* session, counter */
#define FEC_LINK_FRAME_MAX 1440
/* UDP, IP, and what a data message adds to its plaintext. */
#define FEC_LINK_WIRE_BYTES (28 + 32)

enum fec_link_kind {
	FEC_LINK_UDP,
	FEC_LINK_TCP, /* may be held back */
};

struct fec_link_flow {
	double pps;
	uint32_t len;   /* of the inner packet, 40..MTU */
	unsigned batch; /* packets that leave at once */
	enum fec_link_kind kind;
};

/* Moments in which an end does not run: what came meanwhile it finds afterwards, all at once. */
struct fec_link_stalls {
	int64_t every_ns; /* mean time between two; 0: none */
	int64_t min_ns, max_ns;
};

/* A policer: drops what exceeds a rate, and delays nothing. */
struct fec_link_police {
	double bps; /* 0: none */
	double burst_bytes;
};

/* Of the packets that one end sent. */
struct fec_link_counts {
	uint64_t sent, delivered, twice, wrong; /* wrong: other bytes than sent */
	uint64_t sent_armed, delivered_armed;   /* of those sent since it first armed */
	uint64_t late;                          /* delivered, but later than late_ns */
	uint64_t recovered, out_of_order;
	uint64_t wire_bytes, inner_bytes, frames; /* frames: REPAIR and FEEDBACK sent */
	struct emu_histogram repair_ns;           /* recovered ones: beyond the one-way delay */
	struct emu_histogram hold_ns;             /* the others, likewise */
};

struct fec_link_end {
	struct fec_recovery *recovery;
	uint64_t session, session_min;       /* keys of older ones are gone */
	uint64_t counters[FEC_SESSIONS + 1]; /* the next, by session modulo */
	struct emu_channel out;              /* towards the other end */
	struct fec_link_flow flow;           /* pps 0: silent */
	struct mono next;
	uint64_t number; /* of the next packet */
	uint64_t highest_delivered;
	struct mono *sent_at;         /* by number */
	uint8_t *is_delivered;        /* likewise */
	bool *is_marked;              /* likewise: left CE */
	bool *seen[FEC_SESSIONS + 1]; /* counters that arrived here, by session modulo; */
	uint64_t seen_session[FEC_SESSIONS + 1];
	struct mono armed_at, first_loss_at;
	struct fec_link_counts counts; /* of what it sent */
	struct fec_link_stalls stalls;
	struct mono stall_begins, stall_ends; /* the one that it is in, or the next */
	struct fec_link_police police;        /* of what it sends */
	double tokens;
	struct mono tokens_at;
	bool is_ecn; /* its packets are ECN-capable */
	uint64_t refused;
};

struct fec_link {
	struct mono now, start;
	struct rng rng; /* of stalls */
	struct fec_link_end ends[2];
	int64_t delay_ns; /* of the emulated line, one way */
	int64_t late_ns;
	uint64_t numbers_max;
	uint64_t clock_diff_us; /* of the second end's clock, which runs ahead */
	bool is_off;
	bool is_wrong; /* a promise was broken; text says which */
	char text[200];
	/* Told of each packet delivered, if set. */
	void (*on_delivery)(void *user, unsigned from, uint64_t number);
	void *user;
};

struct fec_link_config {
	uint64_t seed;
	struct emu_settings settings[2];
	struct fec_policy policy[2];
	struct fec_link_flow flow[2];
	struct fec_link_stalls stalls;
	struct fec_link_police police; /* of what the first end sends */
	bool is_ecn;                   /* likewise */
	uint64_t numbers_max;          /* packets that an end may send in all */
	bool is_off;                   /* as if there were no recovery */
};

/* False: no memory. */
bool fec_link_init(struct fec_link *l, const struct fec_link_config *c);
void fec_link_fini(struct fec_link *l);
void fec_link_run(struct fec_link *l, int64_t ns);
/* No new packets for so long, while what is on its way settles. */
void fec_link_drain(struct fec_link *l, int64_t ns);
void fec_link_set(struct fec_link *l, unsigned end, const struct emu_settings *s);
/* A new session of both ends, as after a rekey. */
void fec_link_rekey(struct fec_link *l);
/* One end loses all it knew, and a new session begins. */
bool fec_link_restart(struct fec_link *l, unsigned end, const struct fec_policy *policy);
/* One packet from an end, now, outside of its flow. Returns its number. */
uint64_t fec_link_send(struct fec_link *l, unsigned end, uint32_t len, enum fec_link_kind kind);

/* Losses as an emulated link makes them. */
struct emu_loss fec_link_loss(double share, double burst);

#endif

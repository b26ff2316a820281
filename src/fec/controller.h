/* SPDX-License-Identifier: Apache-2.0 */
/* Controller: from what the other side reports, how much to send ahead, over what window, how
 * to answer, and when to stop. One a peer, for the sending direction; it outlives sessions.
 *
 * Evidence is counted in packets, not in time: a sparse flow does not forget by being silent.
 * Raised at once, lowered by the rule of three: to believe in a loss below q takes 3 / q packets
 * without one. Rising one-way delay together with loss is congestion, which more packets make
 * worse: then what is sent ahead stays at what the line lost without a queue (most often
 * nothing), and all repairs together within a small share. */
#ifndef WEFT_FEC_CONTROLLER_H
#define WEFT_FEC_CONTROLLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mono.h"
#include "fec/estimate.h"
#include "fec/guard.h"
#include "wire/ext.h"

enum fec_mode {
	FEC_MODE_OFF,
	FEC_MODE_AUTO,
	FEC_MODE_FIXED,
};

#define FEC_BUDGET_US_DEFAULT 20000

struct fec_policy {
	enum fec_mode mode;
	uint16_t percent;   /* FIXED: repairs a hundred sources, 1..100 */
	uint32_t budget_us; /* FecDelay: what recovery may take; 0 = default */
};

enum fec_why {
	FEC_WHY_OFF,        /* configured */
	FEC_WHY_NOT_AGREED, /* the other side has no loss recovery, or has it off */
	FEC_WHY_CLEAN,      /* no loss seen lately */
	FEC_WHY_ANSWERS,    /* loss is rare, the round trip short: repairs on request */
	FEC_WHY_AHEAD,      /* repairs are sent ahead */
	FEC_WHY_CONGESTED, /* loss comes with rising delay: congestion, not answered by more packets
			    */
	FEC_WHY_FIXED,
	FEC_WHY_MEMORY, /* the budget for all peers is spent: nothing is remembered */
};
#define FEC_WHY_COUNT 8
const char *fec_why_name(enum fec_why w); /* "clean": the key in JSON */
const char *fec_why_text(enum fec_why w); /* one sentence for people */

/* What one class gets. */
struct fec_plan_class {
	double ahead;    /* repairs a source, 0..1 */
	unsigned window; /* sources that one of them covers, 4..FEC_WINDOW_MAX */
	bool is_sparse;  /* few packets within the budget: repairs wait a little, for diversity */
	bool has_answers;
};
#define FEC_WINDOW_MAX 96
#define FEC_PROBES_MAX 5

struct fec_plan {
	enum fec_why why;
	struct fec_plan_class classes[WIRE_EXT_CLASS_COUNT];
	double probe_share;  /* tail probes a source that are worth it at any rate of bursts */
	unsigned probes;     /* over one last source, at most; 1..FEC_PROBES_MAX */
	bool has_byte_limit; /* repairs within FEC_CONGESTED_SHARE of source bytes */
	double queue_share;  /* of the losses: those that a queue is to blame for, 0..1 */
};
#define FEC_CONGESTED_SHARE 0.10

/* What one FEEDBACK adds to the one before it. */
struct fec_report {
	uint32_t received, lost, runs;
	bool has_times;                 /* the rest is known */
	int64_t rtt_ns;                 /* of the highest counter that it has seen */
	struct fec_guard_sample sample; /* likewise */
};

/* Fields are the controller's own; the plan may be read. */
struct fec_controller {
	struct fec_policy policy;
	bool is_armed;
	struct fec_plan plan;
	struct fec_estimate all, calm; /* every report; those that came without a standing queue */
	uint64_t reported_sent;        /* of these, sent when the last report of loss came */
	struct fec_guard guard;
	int64_t rtt_ns;                     /* smoothed; 0 = unknown */
	bool has_rtt_sample;                /* from traffic, not from the HELLO alone */
	double dense[WIRE_EXT_CLASS_COUNT]; /* sources within about the last budget */
	struct mono dense_at[WIRE_EXT_CLASS_COUNT];
	uint64_t sent;          /* sources, ever */
	uint32_t unlost;        /* received, as of reports since then that told of no loss */
	uint64_t judged_report; /* of these, known of by the last report of loss */
	/* When how many had been sent: a packet can be called clean only once a FEEDBACK about it
	 * could have come. */
	struct {
		struct mono at;
		uint64_t sent;
	} marks[16];
	unsigned mark; /* the newest */
	struct mono planned_at;
	uint64_t planned_sent;
};

void fec_controller_init(struct fec_controller *c, const struct fec_policy *p);
void fec_controller_set_policy(struct fec_controller *c, const struct fec_policy *p);
/* The path as the HELLO exchange saw it. clock_diff_us: the peer's clock less ours. */
void fec_controller_set_path(
	struct fec_controller *c, struct mono now, int64_t rtt_ns, int64_t clock_diff_us);
/* n sources of a class leave. May end what was armed. */
void fec_controller_sent(
	struct fec_controller *c, struct mono now, enum wire_ext_class class, size_t n);
/* A FEEDBACK came. One that tells of no loss changes the round trip alone. */
void fec_controller_report(struct fec_controller *c, struct mono now, const struct fec_report *r);
/* Sources that leave within a round trip, at the rate of lately. */
double fec_controller_flight(const struct fec_controller *c);
/* The share of packets lost, as believed now. */
double fec_controller_loss(const struct fec_controller *c, struct mono now);

#endif

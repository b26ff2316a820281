/* SPDX-License-Identifier: Apache-2.0 */
/* Schedule of one session's repairs: which are due, of what class and over what. Decides when,
 * by the controller's plan; makes no frame.
 *
 * Ahead: each class has its credit, which grows by its share with every source; a whole one is a
 * repair. It waits until it covers a source that did not leave in the same instant, or 0.5 ms:
 * what hits a batch would hit its repair, too. In a sparse flow it waits longer, since a burst
 * of losses lasts longer than 0.5 ms, and there is time. Those of a batch longer than a window are
 * spread over it, some to each part.
 *
 * Tail: a short while behind the last source, a repair, unless one has covered it; and more, each
 * three times as long behind the source as the one before, until the other side is known to know of
 * that source: as many as it takes that all of them are lost once in some thousand times, by what
 * the path loses. */
#ifndef WEFT_FEC_SCHEDULE_H
#define WEFT_FEC_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mono.h"
#include "fec/controller.h"
#include "wire/ext.h"

/* A block of FEEDBACK, for one class. */
struct fec_answer {
	enum wire_ext_class class;
	uint64_t base;
	uint8_t span, n; /* n: repairs still to be made */
	bool is_refusal; /* one frame, which says that large packets are not answered for */
	uint8_t missing[WIRE_EXT_BITMAP_MAX];
};
#define FEC_ANSWERS_MAX (WIRE_EXT_BLOCKS_MAX * WIRE_EXT_CLASS_COUNT)

struct fec_lane {
	double credit;
	unsigned due;          /* repairs ahead */
	struct mono due_at;    /* of the first of them, at the latest */
	struct mono due_since; /* when it became due */
	struct mono hand_at;   /* when the last sources came, and how many at once */
	unsigned in_hand;
	bool has_earlier;   /* sources came before these */
	unsigned uncovered; /* sources since the last repair, as many as later ones may still cover
			     */
	/* Of the uncovered ones, how many the repairs that have left already do not reach; repairs
	 * that are left of those over the same sources, and what these are. */
	unsigned left, alike, window, skip;
};

struct fec_schedule {
	struct fec_lane lanes[WIRE_EXT_CLASS_COUNT];
	struct fec_answer answers[FEC_ANSWERS_MAX];
	unsigned answer, answers_n; /* the first, and how many; a ring */
	struct mono answered_at;    /* the current turn of answers, and how many went out in it */
	unsigned answered_n;
	struct mono tail_at; /* the next probe; MONO_NEVER: nothing to probe */
	enum wire_ext_class tail_class;
	unsigned tail_n;       /* repairs over the last source since it left */
	int64_t tail_ns;       /* the next probe behind the last source */
	struct mono source_at; /* the last source */
	int64_t pace_ns;       /* between sources, smoothed; bounded */
	double probes;         /* that may be sent */
	struct mono probes_at;
};

/* A repair to be made now. */
struct fec_job {
	enum wire_ext_class class;
	enum wire_ext_repair_why why;
	unsigned window, skip;    /* AHEAD, TAIL: so many sources, before so many of the newest */
	unsigned alike;           /* AHEAD: repairs over the same sources, with this one */
	struct fec_answer answer; /* ANSWER */
};

void fec_schedule_init(struct fec_schedule *s);
/* A source left. tail_ns: how long until its probe. Returns how many repairs ahead fell due. */
unsigned fec_schedule_source(struct fec_schedule *s, struct mono now, enum wire_ext_class class,
	const struct fec_plan *plan, int64_t tail_ns);
/* The other side knows of the last source: no probe. */
void fec_schedule_end_tail(struct fec_schedule *s);
/* Takes back repairs that fell due. */
void fec_schedule_cancel(struct fec_schedule *s, enum wire_ext_class class, unsigned n);
/* One repair ahead with the next occasion, whatever the credit. */
void fec_schedule_announce(struct fec_schedule *s);
/* False: there are too many already. */
bool fec_schedule_answer(struct fec_schedule *s, const struct fec_answer *a);
/* Repairs that should leave now. */
unsigned fec_schedule_due(
	const struct fec_schedule *s, struct mono now, const struct fec_plan *plan);
/* The next of them. */
bool fec_schedule_take(
	struct fec_schedule *s, struct mono now, const struct fec_plan *plan, struct fec_job *out);
struct mono fec_schedule_deadline(const struct fec_schedule *s, const struct fec_plan *plan);

#endif

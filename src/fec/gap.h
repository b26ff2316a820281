/* SPDX-License-Identifier: Apache-2.0 */
/* Gaps among counters: a record for each of the last counters, which of them are missing, since
 * when, and which of those count as lost.
 *
 * A counter is missing from the moment that a higher one comes before it. After a grace for
 * reordering it is judged lost, in the order of counters, whether or not it was recovered in the
 * meantime: `lost` and `runs` tell what the path did, not what was repaired.
 *
 * It is not judged before it is shown that a source left behind it: by one that comes, or by a
 * REPAIR over one. Else two idle sides on a path that loses or reorders would go on telling each
 * other of lost FEEDBACKs, with FEEDBACKs, and of lost answers, with answers. */
#ifndef WEFT_FEC_GAP_H
#define WEFT_FEC_GAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mono.h"
#include "wire/ext.h"

enum fec_state {
	FEC_STATE_HERE,    /* received, or known to carry no source; no bytes of it */
	FEC_STATE_STORED,  /* a source whose bytes are in the store, received or recovered */
	FEC_STATE_MISSING, /* and wanted */
	FEC_STATE_GONE,    /* missing and given up */
};

/* The classes that a missing counter may belong to, as far as is known. */
#define FEC_MAYBE(class) ((uint8_t)(1u << (class)))
#define FEC_MAYBE_ANY ((uint8_t)(FEC_MAYBE(WIRE_EXT_CLASS_SMALL) | FEC_MAYBE(WIRE_EXT_CLASS_LARGE)))

struct fec_record {
	uint64_t place;      /* STORED: in the store, as long as that has it */
	int64_t detected_ns; /* was missing: since when */
	int64_t reported_ns; /* rounds > 0: when a FEEDBACK last listed it */
	uint32_t held;       /* is_held: its number in fec_hold */
	uint16_t len;        /* STORED: of the packet */
	uint8_t state;       /* enum fec_state */
	uint8_t maybe;       /* STORED: its class */
	uint8_t rounds;      /* FEEDBACKs that listed it */
	bool is_source;      /* known to be one: received, or said by a REPAIR */
	bool is_gap;         /* was missing, and has not come by itself within the grace */
	bool is_lost;        /* ... and counts as lost */
	bool is_waited;      /* missing: TCP behind it waits for it */
	bool is_held;        /* STORED: waits in fec_hold */
};

struct fec_gaps {
	struct fec_record *records; /* by counter & mask */
	uint64_t mask;
	uint64_t low, high;                  /* records are there for low <= counter < high */
	uint64_t oldest;                     /* none below is MISSING */
	uint64_t ripe;                       /* all below are judged */
	uint64_t shown;                      /* none from here on is judged yet */
	uint64_t last_lost;                  /* counter + 1 of the last judged lost */
	uint32_t missing_n;                  /* MISSING */
	uint32_t unripe_n;                   /* gaps not judged yet */
	uint32_t lost_missing_n;             /* MISSING and judged lost: wanted now */
	uint64_t lost, runs, given_up, late; /* since the start */
	uint64_t made_n; /* records, since the start: the work that counters have caused */
};

/* g is all zeros, or has only counted. n: a power of two. False: no memory. */
bool fec_gaps_init(struct fec_gaps *g, uint32_t n);
/* As with that many from the start; what it has stays. False: no memory, and nothing changed. */
bool fec_gaps_grow(struct fec_gaps *g, uint32_t n);
void fec_gaps_fini(struct fec_gaps *g);
/* No records; the next counter is `counter`. Totals stay. */
void fec_gaps_start(struct fec_gaps *g, uint64_t counter);

static inline uint64_t
fec_gaps_cap(const struct fec_gaps *g)
{
	return g->mask + 1;
}

/* NULL when there is no record of it. */
static inline struct fec_record *
fec_gaps_at(const struct fec_gaps *g, uint64_t counter)
{
	return counter >= g->low && counter < g->high ? &g->records[counter & g->mask] : NULL;
}

/* Why counters were skipped. */
enum fec_skip {
	FEC_SKIP_LOSS,        /* on the path, it seems */
	FEC_SKIP_WAITED_LOSS, /* likewise, and TCP behind it waits */
	FEC_SKIP_OVERFLOW,    /* our own socket was full: nobody's loss to repair */
};
/* A record, HERE, for `counter` >= high, and for those skipped MISSING ones, or GONE after an
 * overflow. There must be room. */
struct fec_record *fec_gaps_extend(
	struct fec_gaps *g, uint64_t counter, struct mono now, enum fec_skip why);
/* The oldest record leaves. One that is MISSING is given up. */
void fec_gaps_drop(struct fec_gaps *g);
/* n counters beyond all records were lost at once, and for good. */
void fec_gaps_skip(struct fec_gaps *g, uint64_t n);

/* A source with this counter has come, or one before it is known of: what is missing before it is
 * so since now. */
void fec_gaps_show(struct fec_gaps *g, uint64_t counter, struct mono now);
/* A gap's own packet came after all. */
void fec_gaps_arrived(struct fec_gaps *g, struct fec_record *r);
/* MISSING no more: recovered, or known to carry no source. */
void fec_gaps_resolve(struct fec_gaps *g, struct fec_record *r, enum fec_state state);
void fec_gaps_give_up(struct fec_gaps *g, struct fec_record *r);

/* What is missing is of no source that anybody knows of. After fec_gaps_ripen(). */
static inline bool
fec_gaps_is_idle(const struct fec_gaps *g)
{
	return g->lost_missing_n == 0 && (g->unripe_n == 0 || g->ripe >= g->shown);
}

/* Judges gaps older than the grace. How many of them are MISSING. */
unsigned fec_gaps_ripen(struct fec_gaps *g, struct mono now, int64_t grace_ns);
/* When the next gap will be judged; MONO_NEVER: there is none. After fec_gaps_ripen(). */
struct mono fec_gaps_ripe_at(const struct fec_gaps *g, int64_t grace_ns);

#endif

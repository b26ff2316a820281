/* SPDX-License-Identifier: Apache-2.0 */
/* FEEDBACK: which counters are asked for, when again, and when they are given up. */
#include "fec/decoder_state.h"

#include <string.h>

#include "base/assert.h"

#define APART_NS (2 * WEFT_NS_PER_MS) /* two FEEDBACKs */
/* Totals that changed while nothing is wanted are said this much later, many together. */
#define SETTLE_NS (20 * WEFT_NS_PER_MS)
#define PATIENCE_AHEAD 4
#define PATIENCE_MAX_NS (4 * WEFT_NS_PER_MS)
#define AHEAD_LATELY_NS (50 * WEFT_NS_PER_MS)
/* What an answer may take beyond the round trip, before it is asked for again. */
#define ROUND_MARGIN_NS (2 * WEFT_NS_PER_MS)
#define ROUNDS_MAX 40
#define ROUNDS_A_PACE 4         /* so many at one distance, then so many at twice that, ... */
#define ROUNDS_UNANSWERED_MAX 3 /* no REPAIR at all since the loss was seen */
#define WAIT_MIN_NS (200 * WEFT_NS_PER_MS)
#define WAIT_ROUNDS 3
/* Nearly what the solver holds: answers to one block come together, before those to the next.
 * `want` says up to 64. */
#define BLOCK_COUNTERS_MAX 60
/* How long 1024 records that were looked through keep the next look away: 65,536 take some 0.25 ms,
 * and a peer that lets packets come late can make something seem due with each. Less than APART_NS
 * for all of them, so that nothing is said later for it. */
#define LOOK_A_1024_NS (30 * WEFT_NS_PER_US)

/* A block that is being written. Those listed behind the last due one are cut off in the end. */
struct listing {
	struct wire_ext_feedback *f;
	int64_t next_ns; /* when the next of those not due will be */
	bool is_open;
	uint64_t base, last; /* last due one */
	unsigned listed_n, due_n, rounds;
	unsigned tail_n; /* listed behind the last due one */
	uint8_t missing[WIRE_EXT_BITMAP_MAX];
};

void
fec_report_changed(struct fec_decoder *d)
{
	if (d->report.settle_ns == INT64_MAX) {
		d->report.settle_ns = d->now.ns + SETTLE_NS;
	}
}

void
fec_report_soon(struct fec_decoder *d)
{
	d->report.settle_ns = d->now.ns;
}

struct mono
fec_report_at(const struct fec_decoder *d)
{
	const struct fec_reporting *r = &d->report;
	int64_t at = r->settle_ns;
	int64_t due = r->due_ns > r->look_ns ? r->due_ns : r->look_ns;
	if (d->gaps.lost_missing_n > 0 && due < at) {
		at = due;
	}
	if (at == INT64_MAX) {
		return MONO_NEVER;
	}
	if (r->last_ns != FEC_NEVER_NS && at < r->last_ns + APART_NS) {
		at = r->last_ns + APART_NS;
	}
	return (struct mono){at};
}

/* Where repairs are sent ahead they bring most of what is missing, and an answer asked for at once
 * comes for nothing: at 5 % and 4000 packets/s nine of ten did. After the time of four of them, or
 * 4 ms, the rest is asked for. */
int64_t
fec_report_patience_ns(const struct fec_decoder *d)
{
	if (d->last_ahead_ns == FEC_NEVER_NS || d->now.ns - d->last_ahead_ns > AHEAD_LATELY_NS) {
		return 0;
	}
	int64_t ns = PATIENCE_AHEAD * d->ahead_interval_ns;
	return ns < PATIENCE_MAX_NS ? ns : PATIENCE_MAX_NS;
}

int64_t
fec_report_answer_ns(const struct fec_decoder *d)
{
	return d->answer_ns + 2 * d->answer_dev_ns;
}

/* As RFC 6298, section 2. The round trip that the other half of recovery measures is too old where
 * TCP fills a queue: reports about what we send are rare while that are acknowledgments. After the
 * second round it may be the answer to the first, or to itself. */
void
fec_report_answered(struct fec_decoder *d, const struct fec_record *r)
{
	int64_t ns = d->now.ns - r->detected_ns;
	if (r->rounds == 0 || r->rounds > 2) {
		return;
	}
	if (d->answer_ns == 0) {
		d->answer_ns = ns;
		d->answer_dev_ns = ns / 8;
	}
	int64_t off = ns - d->answer_ns;
	d->answer_ns += off / 8;
	d->answer_dev_ns += ((off < 0 ? -off : off) - d->answer_dev_ns) / 4;
}

static int64_t
due_again_ns(const struct fec_decoder *d, const struct fec_record *r)
{
	return r->rounds == 0 ? r->detected_ns + fec_report_patience_ns(d)
			      : r->reported_ns + (d->rtt_ns + ROUND_MARGIN_NS) *
							 (1 + r->rounds / ROUNDS_A_PACE);
}

static bool
is_overdue(const struct fec_decoder *d, const struct fec_record *r)
{
	int64_t wait_ns =
		WAIT_ROUNDS * d->rtt_ns > WAIT_MIN_NS ? WAIT_ROUNDS * d->rtt_ns : WAIT_MIN_NS;
	unsigned rounds = d->last_repair_ns >= r->detected_ns ? ROUNDS_MAX : ROUNDS_UNANSWERED_MAX;
	return d->now.ns - r->detected_ns >= wait_ns || r->rounds >= rounds;
}

/* Equations about these that will be there when the answer comes. Where more is lost within a round
 * trip than the solver holds, none. */
static unsigned
rank_then(const struct fec_decoder *d, uint64_t first, uint64_t last)
{
	bool is_crowded = d->crowded_ns != FEC_NEVER_NS && d->now.ns - d->crowded_ns < d->rtt_ns;
	return is_crowded ? 0 : fec_solver_rank(&d->solver, first, last);
}

static void
close_block(struct fec_decoder *d, struct listing *l)
{
	if (!l->is_open) {
		return;
	}
	l->is_open = false;
	uint8_t span = (uint8_t)(l->last - l->base + 1);
	struct wire_ext_block *b = &l->f->blocks[l->f->blocks_n++];
	memset(b, 0, sizeof(*b));
	b->back = (uint16_t)(d->gaps.high - 1 - l->base);
	b->span = span;
	memcpy(b->missing, l->missing, (span + 7u) / 8);
	b->missing[(span - 1u) / 8] &= (uint8_t)(0xffu >> (-span & 7));
	/* Answers to those not due are under way, and equations at hand count. */
	unsigned listed_n = l->listed_n - l->tail_n;
	unsigned rank = rank_then(d, l->base, l->last);
	unsigned deficit = listed_n > rank ? listed_n - rank : 1;
	deficit = deficit < l->due_n ? deficit : l->due_n;
	b->want = (uint8_t)(deficit + (l->rounds > 1 ? 2 : 1));
}

static void
list(struct listing *l, uint64_t counter)
{
	uint64_t i = counter - l->base;
	l->missing[i / 8] |= (uint8_t)(1u << (i % 8));
	l->listed_n++;
	l->tail_n++;
}

/* A missing counter, in ascending order. False: no room for it. */
static bool
add_missing(struct fec_decoder *d, struct listing *l, struct fec_record *r, uint64_t counter)
{
	bool is_due = due_again_ns(d, r) <= d->now.ns;
	if (l->is_open &&
		(counter - l->base >= WIRE_EXT_SPAN_MAX || l->listed_n == BLOCK_COUNTERS_MAX)) {
		close_block(d, l);
	}
	if (!l->is_open) {
		if (!is_due) {
			return true;
		}
		if (l->f->blocks_n == WIRE_EXT_BLOCKS_MAX) {
			return false;
		}
		*l = (struct listing){
			.f = l->f, .next_ns = l->next_ns, .is_open = true, .base = counter};
	}
	list(l, counter);
	if (is_due) {
		l->last = counter;
		l->tail_n = 0;
		l->due_n++;
		r->rounds++;
		r->reported_ns = d->now.ns;
		l->rounds = r->rounds > l->rounds ? r->rounds : l->rounds;
	}
	return true;
}

/* Writes the blocks, gives up what is hopeless, and finds out when to look again. */
static void
list_missing(struct fec_decoder *d, struct wire_ext_feedback *f)
{
	struct fec_gaps *g = &d->gaps;
	struct listing l = {.f = f, .next_ns = INT64_MAX};
	bool is_first = true;
	uint64_t begin = g->oldest, counter;
	for (counter = begin; counter < g->ripe; counter++) {
		struct fec_record *r = &g->records[counter & g->mask];
		if (r->state != FEC_STATE_MISSING) {
			continue;
		}
		if (due_again_ns(d, r) <= d->now.ns && is_overdue(d, r)) {
			d->is_trusted = d->is_trusted && d->last_repair_ns >= r->detected_ns;
			fec_gaps_give_up(g, r);
			fec_report_changed(d);
			continue;
		}
		if (is_first) {
			g->oldest = counter;
			is_first = false;
		}
		if (!add_missing(d, &l, r, counter)) {
			l.next_ns = d->now.ns;
			break;
		}
		int64_t again_ns = due_again_ns(d, r);
		l.next_ns = again_ns < l.next_ns ? again_ns : l.next_ns;
	}
	close_block(d, &l);
	if (is_first) {
		g->oldest = g->ripe;
	}
	d->report.due_ns = l.next_ns;
	d->report.look_ns = d->now.ns + (int64_t)((counter - begin) / 1024) * LOOK_A_1024_NS;
}

bool
fec_decoder_newest(const struct fec_decoder *d, struct mono now, struct wire_ext_feedback *f)
{
	if (!d->is_begun) {
		return false;
	}
	f->highest = (uint32_t)((d->is_awake ? d->gaps.high : d->next) - 1);
	f->received = (uint32_t)d->stats.received;
	f->clock_us = (uint32_t)(d->highest_at.ns / WEFT_NS_PER_US);
	f->delay_us = (uint32_t)((now.ns - d->highest_at.ns) / WEFT_NS_PER_US);
	return true;
}

bool
fec_decoder_feedback(struct fec_decoder *d, struct mono now, struct wire_ext_feedback *f)
{
	d->now = now;
	if (!d->is_awake) {
		return false;
	}
	fec_decoder_settle(d);
	if (mono_is_before(now, fec_report_at(d))) {
		return false;
	}
	f->blocks_n = 0;
	list_missing(d, f);
	if (f->blocks_n == 0 && d->report.settle_ns > now.ns) {
		fec_decoder_settle(d);
		return false;
	}
	(void)fec_decoder_newest(d, now, f);
	f->lost = (uint32_t)d->gaps.lost;
	f->runs = (uint32_t)d->gaps.runs;
	f->recovered_ahead = (uint32_t)d->stats.recovered_ahead;
	f->recovered_answer = (uint32_t)d->stats.recovered_answer;
	f->given_up = (uint32_t)d->gaps.given_up;
	uint64_t back = d->gaps.high - 1 - d->edge;
	f->edge_back = d->edge_at.ns != 0 && back <= UINT16_MAX ? (uint16_t)back : 0;
	f->edge_us = (uint32_t)((d->highest_at.ns - d->edge_at.ns) / WEFT_NS_PER_US);
	d->edge_at.ns = 0;
	d->report.last_ns = now.ns;
	d->report.settle_ns = INT64_MAX;
	fec_decoder_settle(d);
	return true;
}

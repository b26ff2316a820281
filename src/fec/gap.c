/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/gap.h"

#include <stdlib.h>

#include "base/assert.h"

bool
fec_gaps_init(struct fec_gaps *g, uint32_t n)
{
	weft_assert(n > 0 && (n & (n - 1)) == 0);
	struct fec_record *records = malloc(n * sizeof(*records));
	if (!records) {
		return false;
	}
	g->records = records;
	g->mask = n - 1;
	return true;
}

bool
fec_gaps_grow(struct fec_gaps *g, uint32_t n)
{
	weft_assert(n > g->mask && (n & (n - 1)) == 0);
	struct fec_record *to = malloc(n * sizeof(*to));
	if (!to) {
		return false;
	}
	for (uint64_t c = g->low; c < g->high; c++) {
		to[c & (n - 1)] = g->records[c & g->mask];
	}
	free(g->records);
	g->records = to;
	g->mask = n - 1;
	return true;
}

void
fec_gaps_fini(struct fec_gaps *g)
{
	free(g->records);
	g->records = NULL;
}

void
fec_gaps_start(struct fec_gaps *g, uint64_t counter)
{
	g->low = g->high = g->oldest = g->ripe = g->shown = counter;
	g->missing_n = g->unripe_n = g->lost_missing_n = 0;
}

struct fec_record *
fec_gaps_extend(struct fec_gaps *g, uint64_t counter, struct mono now, enum fec_skip why)
{
	weft_dassert(counter >= g->high && counter - g->low <= g->mask);
	g->made_n += counter - g->high + 1;
	for (; g->high < counter; g->high++) {
		if (why == FEC_SKIP_OVERFLOW) {
			g->records[g->high & g->mask] = (struct fec_record){
				.state = FEC_STATE_GONE, .maybe = FEC_MAYBE_ANY};
			continue;
		}
		g->records[g->high & g->mask] = (struct fec_record){
			.detected_ns = now.ns,
			.state = FEC_STATE_MISSING,
			.maybe = FEC_MAYBE_ANY,
			.is_gap = true,
			.is_waited = why == FEC_SKIP_WAITED_LOSS,
		};
		g->missing_n++;
		g->unripe_n++;
	}
	struct fec_record *r = &g->records[counter & g->mask];
	*r = (struct fec_record){.state = FEC_STATE_HERE};
	g->high = counter + 1;
	return r;
}

static void
judge(struct fec_gaps *g, struct fec_record *r, uint64_t counter)
{
	r->is_lost = true;
	g->unripe_n--;
	g->lost++;
	g->runs += g->last_lost != counter;
	g->last_lost = counter + 1;
	g->lost_missing_n += r->state == FEC_STATE_MISSING;
}

static void
leave_missing(struct fec_gaps *g, struct fec_record *r, enum fec_state state)
{
	weft_dassert(r->state == FEC_STATE_MISSING && g->missing_n > 0);
	r->state = (uint8_t)state;
	g->missing_n--;
	g->lost_missing_n -= r->is_lost;
}

void
fec_gaps_drop(struct fec_gaps *g)
{
	weft_dassert(g->low < g->high);
	uint64_t counter = g->low;
	struct fec_record *r = &g->records[counter & g->mask];
	if (r->is_gap && !r->is_lost) {
		judge(g, r, counter);
	}
	if (r->state == FEC_STATE_MISSING) {
		fec_gaps_give_up(g, r);
	}
	g->low++;
	g->oldest = g->oldest > g->low ? g->oldest : g->low;
	g->ripe = g->ripe > g->low ? g->ripe : g->low;
}

void
fec_gaps_skip(struct fec_gaps *g, uint64_t n)
{
	g->lost += n;
	g->given_up += n;
	g->runs++;
}

void
fec_gaps_show(struct fec_gaps *g, uint64_t counter, struct mono now)
{
	for (g->shown = g->shown > g->low ? g->shown : g->low; g->shown < counter; g->shown++) {
		struct fec_record *r = &g->records[g->shown & g->mask];
		if (r->state == FEC_STATE_MISSING && !r->is_lost) {
			r->detected_ns = now.ns;
		}
	}
}

void
fec_gaps_arrived(struct fec_gaps *g, struct fec_record *r)
{
	if (r->state == FEC_STATE_MISSING) {
		leave_missing(g, r, FEC_STATE_HERE);
	} else if (r->state == FEC_STATE_GONE) {
		r->state = FEC_STATE_HERE;
	}
	if (!r->is_gap) {
		return;
	}
	if (r->is_lost) {
		g->late++;
	} else {
		g->unripe_n--;
	}
	r->is_gap = false;
}

void
fec_gaps_resolve(struct fec_gaps *g, struct fec_record *r, enum fec_state state)
{
	leave_missing(g, r, state);
}

void
fec_gaps_give_up(struct fec_gaps *g, struct fec_record *r)
{
	leave_missing(g, r, FEC_STATE_GONE);
	g->given_up++;
}

unsigned
fec_gaps_ripen(struct fec_gaps *g, struct mono now, int64_t grace_ns)
{
	if (g->unripe_n == 0) {
		g->ripe = g->high;
		return 0;
	}
	uint32_t before = g->lost_missing_n;
	for (; g->ripe < g->shown; g->ripe++) {
		struct fec_record *r = &g->records[g->ripe & g->mask];
		if (r->is_gap && !r->is_lost) {
			if (now.ns - r->detected_ns < grace_ns) {
				break;
			}
			judge(g, r, g->ripe);
		}
	}
	return g->lost_missing_n - before;
}

struct mono
fec_gaps_ripe_at(const struct fec_gaps *g, int64_t grace_ns)
{
	if (g->unripe_n == 0 || g->ripe >= g->shown) {
		return MONO_NEVER;
	}
	return (struct mono){g->records[g->ripe & g->mask].detected_ns + grace_ns};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/guard.h"

/* An eighth of the least round trip: what a queue of 3 ms at 10 ms drops must still be seen, or
 * repairs push out what they repair. On long paths jitter is larger, but not without bound. */
#define THRESHOLD_MIN_US 1000
#define THRESHOLD_MAX_US 10000
/* A queue drains by a millisecond in each: what left so much later says nothing of it. */
#define BEHIND_NS (8 * WEFT_NS_PER_MS)
#define RECENT_NS (30 * WEFT_NS_PER_MS)
/* So long a path is known for its queue. */
#define LOADED_LATELY_NS (30 * WEFT_NS_PER_S)
/* And so long a line is known as one that loses without a queue. */
#define ACQUITTED_NS (30 * WEFT_NS_PER_S)
/* Longer than most moments in which a machine does not run; two losses in one are one vote. */
#define STALL_NS (25 * WEFT_NS_PER_MS)
#define VOTES 3
/* Losses at whose edge nothing is known of a queue, all followed by a calm packet. */
#define DRAINED_MAX 5
#define STALL_LEAD_US 1000
/* Two unsynchronised crystals differ by up to about 40 ppm. */
#define CREEP_PPM 40

void
fec_guard_reset(struct fec_guard *g)
{
	*g = (struct fec_guard){0};
}

static int64_t
above(const struct fec_guard *g, uint32_t delay_us)
{
	return (int32_t)(delay_us - g->least_us);
}

static void
creep(struct fec_guard *g, struct mono now)
{
	if (g->has_least && mono_is_before(g->at, now)) {
		g->creep_ns += mono_diff_ns(now, g->at) / 1000000 * CREEP_PPM;
		g->least_us += (uint32_t)(g->creep_ns / WEFT_NS_PER_US);
		g->creep_ns %= WEFT_NS_PER_US;
	}
	g->at = now;
}

void
fec_guard_set_path(struct fec_guard *g, struct mono now, int64_t rtt_ns, int64_t clock_diff_us)
{
	if (rtt_ns <= 0) {
		return;
	}
	uint32_t level = (uint32_t)(clock_diff_us + rtt_ns / 2 / WEFT_NS_PER_US);
	creep(g, now);
	bool is_unloaded = g->rtt_least_ns == 0 || rtt_ns < g->rtt_least_ns + g->rtt_least_ns / 4;
	if (!g->has_least || is_unloaded || above(g, level) < 0) {
		g->least_us = level;
		g->has_least = true;
	}
	if (g->rtt_least_ns == 0 || rtt_ns < g->rtt_least_ns) {
		g->rtt_least_ns = rtt_ns;
	}
}

int64_t
fec_guard_threshold_us(const struct fec_guard *g)
{
	int64_t t = g->rtt_least_ns / 8 / WEFT_NS_PER_US;
	return t < THRESHOLD_MIN_US   ? THRESHOLD_MIN_US
	       : t > THRESHOLD_MAX_US ? THRESHOLD_MAX_US
				      : t;
}

/* A queue that dropped the last packets of a burst has drained when the next one comes and shows
 * the loss. Where queues have stood lately, a calm packet acquits the line only if the sample
 * before was calm, too, and it left soon after the lost one, as far as is known. */
static bool
is_calm(const struct fec_guard *g, struct mono now, const struct fec_guard_sample *sample,
	bool has_edge, bool was_calm_lately)
{
	if (g->queue_us >= fec_guard_threshold_us(g) / 2) {
		return false;
	}
	if (g->loaded_at.ns == 0 || mono_diff_ns(now, g->loaded_at) > LOADED_LATELY_NS) {
		return true;
	}
	if (has_edge) {
		return true; /* it is the edge that was calm */
	}
	return was_calm_lately && sample->behind_ns <= BEHIND_NS;
}

/* Clocks are read once a turn. A machine that stands still between that and its look at the socket
 * takes what comes then for as much older, and the path for faster than it is: a level that is too
 * low by milliseconds would find a queue for ever. So one alone is not believed, but two in a row,
 * and of these the higher. */
static void
note_level(struct fec_guard *g, uint32_t delay_us, bool after_pause)
{
	int64_t over = above(g, delay_us);
	if (!g->has_least || (after_pause && over > 0)) {
		g->least_us = delay_us;
		g->has_least = true;
		g->has_lower = false;
	} else if (over >= 0) {
		g->has_lower = false;
	} else if (!g->has_lower) {
		g->lower_us = delay_us;
		g->has_lower = true;
	} else {
		bool is_higher = over > above(g, g->lower_us);
		uint32_t other = is_higher ? g->lower_us : delay_us;
		g->least_us = is_higher ? delay_us : g->lower_us;
		g->lower_us = other;
	}
}

/* Likewise. */
void
fec_guard_rtt(struct fec_guard *g, int64_t rtt_ns)
{
	if (g->rtt_least_ns == 0) {
		g->rtt_least_ns = rtt_ns;
	} else if (rtt_ns >= g->rtt_least_ns) {
		g->rtt_lower_ns = 0;
	} else {
		int64_t lower = g->rtt_lower_ns;
		bool is_second = lower != 0;
		g->rtt_lower_ns = is_second && lower < rtt_ns ? lower : rtt_ns;
		if (is_second) {
			g->rtt_least_ns = lower > rtt_ns ? lower : rtt_ns;
		}
	}
}

/* Did what came at the edge wait for a machine, not in a queue? Then it arrived together with what
 * was sent long after it. */
static bool
is_stall(const struct fec_guard_sample *sample)
{
	return sample->edge_lead_us >= STALL_LEAD_US &&
	       sample->edge_gap_us < sample->edge_lead_us / 2;
}

static void
blame(struct fec_guard *g, struct mono now)
{
	bool is_new = g->votes == 0 || mono_diff_ns(now, g->vote_at) >= STALL_NS;
	if (is_new) {
		g->votes++;
		g->vote_at = now;
	}
	bool is_known =
		g->acquitted_at.ns != 0 && mono_diff_ns(now, g->acquitted_at) < ACQUITTED_NS;
	g->drained = 0;
	g->is_suspect = true;
	g->is_loaded = g->is_loaded || g->votes >= (is_known ? VOTES : 1);
	if (g->is_loaded) {
		g->loaded_at = now;
	}
}

static void
acquit(struct fec_guard *g, struct mono now)
{
	g->is_loaded = g->is_suspect = false;
	g->votes = g->drained = 0;
	g->acquitted_at = now;
}

void
fec_guard_sample(struct fec_guard *g, struct mono now, const struct fec_guard_sample *sample)
{
	bool was_calm_lately = g->has_least && mono_diff_ns(now, g->at) < RECENT_NS &&
			       g->queue_us < fec_guard_threshold_us(g) / 2;
	creep(g, now);
	/* Both may have come in one moment: they are one sample. */
	bool is_edge_lower = sample->has_edge && !sample->after_pause &&
			     (int32_t)(sample->edge_delay_us - sample->delay_us) < 0;
	note_level(
		g, is_edge_lower ? sample->edge_delay_us : sample->delay_us, sample->after_pause);
	bool has_edge = sample->has_edge && !is_stall(sample);
	int64_t queue_us = above(g, has_edge ? sample->edge_delay_us : sample->delay_us);
	g->queue_us = queue_us > 0 ? queue_us : 0;
	if (g->queue_us > fec_guard_threshold_us(g)) {
		blame(g, now);
	} else if (is_calm(g, now, sample, has_edge, was_calm_lately)) {
		acquit(g, now);
	} else if (g->queue_us < fec_guard_threshold_us(g) / 2 && ++g->drained >= DRAINED_MAX) {
		acquit(g, now);
	}
}

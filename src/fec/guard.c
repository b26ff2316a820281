/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/guard.h"

/* A quarter of what CoDel lets stand would be noise on radio links; what a shallow queue of 5 ms
 * drops must still be seen. On long paths jitter is larger, but not without bound. */
#define THRESHOLD_MIN_US 4000
#define THRESHOLD_MAX_US 10000
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
	int64_t t = g->rtt_least_ns / 4 / WEFT_NS_PER_US;
	return t < THRESHOLD_MIN_US   ? THRESHOLD_MIN_US
	       : t > THRESHOLD_MAX_US ? THRESHOLD_MAX_US
				      : t;
}

void
fec_guard_sample(struct fec_guard *g, struct mono now, uint32_t delay_us, bool after_pause)
{
	creep(g, now);
	if (!g->has_least || after_pause || above(g, delay_us) < 0) {
		g->least_us = delay_us;
		g->has_least = true;
	}
	g->queue_us = above(g, delay_us);
	int64_t threshold = fec_guard_threshold_us(g);
	if (g->queue_us > threshold) {
		g->is_loaded = true;
	} else if (g->queue_us < threshold / 2) {
		g->is_loaded = false;
	}
}

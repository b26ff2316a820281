/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/policer.h"

#include <math.h>

#define WINDOW_NS (50 * WEFT_NS_PER_MS)
/* A longer one holds silences, and says little of a rate. */
#define WINDOW_MAX_NS (500 * WEFT_NS_PER_MS)
#define WINDOW_SOURCES 32
#define WINDOWS 32.0
#define WINDOWS_MIN 16.0
/* What must be seen: rates that differ, losses that grow with them by more than chance. */
#define RATE_DEVIATION 0.05
#define SLOPE 0.3
#define EXPLAINED 0.5
#define KNOWN_NS (30 * WEFT_NS_PER_S)

static void
add_window(struct fec_policer *p, double x, double y)
{
	p->n = p->n < WINDOWS ? p->n + 1 : WINDOWS;
	double part = 1 / p->n, dx = x - p->mean_x, dy = y - p->mean_y;
	p->mean_x += part * dx;
	p->mean_y += part * dy;
	p->xx = (1 - part) * (p->xx + part * dx * dx);
	p->xy = (1 - part) * (p->xy + part * dx * dy);
	p->yy = (1 - part) * (p->yy + part * dy * dy);
}

static bool
is_evident(const struct fec_policer *p)
{
	return p->n >= WINDOWS_MIN && p->xx > RATE_DEVIATION * RATE_DEVIATION &&
	       p->xy > SLOPE * p->xx && p->xy * p->xy > EXPLAINED * p->xx * p->yy;
}

void
fec_policer_report(struct fec_policer *p, struct mono now, struct mono until, uint64_t sent,
	uint32_t lost, uint32_t received)
{
	int64_t ns = mono_diff_ns(until, p->from);
	p->lost += lost;
	p->all += (double)lost + received;
	if (p->from.ns != 0 && (ns < WINDOW_NS || sent < p->from_sent + WINDOW_SOURCES) &&
		ns < WINDOW_MAX_NS) {
		return;
	}
	if (p->from.ns != 0 && ns < WINDOW_MAX_NS) {
		add_window(p, log((double)(sent - p->from_sent) / (double)ns), p->lost / p->all);
		if (is_evident(p)) {
			p->convicted_at = now;
		}
	}
	p->from = until;
	p->from_sent = sent;
	p->lost = p->all = 0;
}

bool
fec_policer_is_there(const struct fec_policer *p, struct mono now)
{
	return p->convicted_at.ns != 0 && mono_diff_ns(now, p->convicted_at) < KNOWN_NS;
}

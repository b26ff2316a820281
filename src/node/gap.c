/* SPDX-License-Identifier: Apache-2.0 */
#include "node/gap.h"

void
gap_init(struct gap *g, int64_t suspended_ns)
{
	g->due = MONO_NEVER;
	g->suspended_ns = suspended_ns;
}

void
gap_expect(struct gap *g, struct mono now, struct mono next)
{
	g->due = mono_is_before(next, now) ? now : next;
}

bool
gap_check(struct gap *g, struct mono now, int64_t suspended_ns, struct mono *since)
{
	int64_t late_ns = mono_diff_ns(now, g->due);
	int64_t slept_ns = suspended_ns - g->suspended_ns;
	if (late_ns <= GAP_MIN_NS && slept_ns <= GAP_MIN_NS) {
		/* Short sleeps add up to nothing, and so does the jitter between two clocks. */
		g->suspended_ns = suspended_ns;
		return false;
	}
	*since = mono_add_ns(now, late_ns > slept_ns ? -late_ns : -slept_ns);
	gap_init(g, suspended_ns);
	return true;
}

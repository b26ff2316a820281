/* SPDX-License-Identifier: Apache-2.0 */
#include "wiretap.h"

#include <string.h>

#define REJECT_AFTER_TIME_NS (180 * WEFT_NS_PER_S)

static struct sim_tapped *
find(struct sim_wiretap *t, struct sim_report *report, unsigned to, uint32_t index)
{
	for (unsigned i = 0; i < SIM_TAPPED_SESSIONS; i++) {
		struct sim_tapped *s = &t->sessions[i];
		if (s->end > 0 && s->index == index && s->to == to) {
			return s;
		}
	}
	struct sim_tapped *s = &t->sessions[t->next++ % SIM_TAPPED_SESSIONS];
	memset(s, 0, sizeof(*s));
	s->index = index;
	s->to = to;
	s->first_ns = report->now.ns;
	return s;
}

static void
forget(struct sim_tapped *s, uint64_t counter)
{
	s->bits[counter % SIM_TAPPED_COUNTERS / 64] &= ~(UINT64_C(1) << counter % 64);
}

void
sim_wiretap_see(struct sim_wiretap *t, struct sim_report *report, unsigned to, uint32_t index,
	uint64_t counter)
{
	struct sim_tapped *s = find(t, report, to, index);
	uint64_t *word = &s->bits[counter % SIM_TAPPED_COUNTERS / 64];
	uint64_t bit = UINT64_C(1) << counter % 64;
	sim_check(report, report->now.ns - s->first_ns < REJECT_AFTER_TIME_NS,
		"session %08x is used after %lld s", index,
		(long long)((report->now.ns - s->first_ns) / WEFT_NS_PER_S));
	for (; counter >= s->end; s->end++) {
		forget(s, s->end);
	}
	sim_check(report, s->end - counter <= SIM_TAPPED_COUNTERS && !(*word & bit),
		"counter %llu of session %08x was used twice", (unsigned long long)counter, index);
	*word |= bit;
}

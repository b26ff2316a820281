/* SPDX-License-Identifier: Apache-2.0 */
#include "pkt/drop_times.h"

void
drop_times_look(struct drop_times *t, const struct drop_counts *c, struct mono at)
{
	for (size_t i = 0; i < DROP_COUNT; i++) {
		struct drop_time *of = &t->of[i];
		if (c->n[i] == t->seen.n[i]) {
			continue;
		}
		if (of->n == 0 || mono_diff_ns(at, of->latest) > DROP_SPELL_NS) {
			*of = (struct drop_time){.first = at};
		}
		of->n += c->n[i] - t->seen.n[i];
		of->latest = at;
	}
	t->seen = *c;
}

void
drop_times_merge(struct drop_times *t, const struct drop_times *other)
{
	for (size_t i = 0; i < DROP_COUNT; i++) {
		struct drop_time *to = &t->of[i];
		const struct drop_time *from = &other->of[i];
		t->seen.n[i] += other->seen.n[i];
		if (from->n == 0) {
			continue;
		}
		if (to->n == 0 || mono_diff_ns(from->first, to->latest) > DROP_SPELL_NS) {
			*to = *from;
		} else if (mono_diff_ns(to->first, from->latest) <= DROP_SPELL_NS) {
			to->n += from->n;
			to->first = mono_min(to->first, from->first);
			to->latest = mono_is_before(to->latest, from->latest) ? from->latest
									      : to->latest;
		}
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/trail.h"

#include "base/assert.h"

void
fec_trail_add(struct fec_trail *t, struct mono now, uint64_t first, uint32_t n, int64_t grain_ns,
	bool after_pause)
{
	struct fec_trail_stamp *s = &t->stamps[t->newest];
	if (s->n > 0) {
		if (first < s->first + s->n) {
			return; /* told twice, or late: the first word holds */
		}
		if (first == s->first + s->n && mono_diff_ns(now, s->at) < grain_ns &&
			s->n <= UINT32_MAX - n) {
			s->n += n;
			return;
		}
		t->newest = (t->newest + 1) % FEC_TRAIL_STAMPS;
		s = &t->stamps[t->newest];
	}
	*s = (struct fec_trail_stamp){
		.first = first, .n = n, .at = now, .after_pause = after_pause};
}

void
fec_trail_note_source(struct fec_trail *t)
{
	t->stamps[t->newest].has_source = true;
}

/* Stamps are in the order of their counters, from the one behind the newest around the ring. */
const struct fec_trail_stamp *
fec_trail_find(const struct fec_trail *t, uint64_t counter)
{
	size_t low = 0, high = FEC_TRAIL_STAMPS; /* first stamp above counter: in low..high */
	while (low < high) {
		size_t mid = (low + high) / 2;
		const struct fec_trail_stamp *s =
			&t->stamps[(t->newest + 1 + mid) % FEC_TRAIL_STAMPS];
		if (s->n == 0 || s->first <= counter) {
			low = mid + 1;
		} else {
			high = mid;
		}
	}
	if (low == 0) {
		return NULL;
	}
	const struct fec_trail_stamp *s = &t->stamps[(t->newest + low) % FEC_TRAIL_STAMPS];
	return s->n > 0 && counter - s->first < s->n ? s : NULL;
}

uint64_t
fec_trail_highest(const struct fec_trail *t)
{
	const struct fec_trail_stamp *s = &t->stamps[t->newest];
	return s->n > 0 ? s->first + s->n - 1 : 0;
}

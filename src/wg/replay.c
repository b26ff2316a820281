/* SPDX-License-Identifier: Apache-2.0 */
#include "wg/replay.h"

#include <string.h>

void
wg_replay_init(struct wg_replay *r)
{
	memset(r, 0, sizeof(*r));
}

/* Forgets counters first .. first + n - 1, n <= WG_REPLAY_WINDOW. */
static void
clear_run(struct wg_replay *r, uint64_t first, uint64_t n)
{
	uint64_t at = first % WG_REPLAY_WINDOW;
	while (n > 0) {
		uint64_t bit = at % 64;
		uint64_t run = 64 - bit < n ? 64 - bit : n;
		uint64_t mask = (run == 64 ? UINT64_MAX : (UINT64_C(1) << run) - 1) << bit;
		r->bits[at / 64] &= ~mask;
		at = (at + run) % WG_REPLAY_WINDOW;
		n -= run;
	}
}

bool
wg_replay_take(struct wg_replay *r, uint64_t counter)
{
	uint64_t *word = &r->bits[counter % WG_REPLAY_WINDOW / 64];
	uint64_t mask = UINT64_C(1) << counter % 64;
	if (counter >= r->end) {
		uint64_t skipped = counter - r->end;
		clear_run(r, r->end, skipped < WG_REPLAY_WINDOW ? skipped : WG_REPLAY_WINDOW);
		r->end = counter + 1;
		/* Set already when it belongs to the counter that has just left the window. */
		*word |= mask;
		return true;
	}
	if (r->end - counter > WG_REPLAY_WINDOW || (*word & mask)) {
		return false;
	}
	*word |= mask;
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Replay window: decides whether a data counter has been seen before.
 *
 * Owns one bitmap a receiving key. Knows nothing of packets or peers; the caller has already
 * checked the authentication tag, since a forged counter would otherwise move the window and
 * shut honest packets out. Not safe for several threads: wg/session.c takes a flag a batch. */
#ifndef WEFT_WG_REPLAY_H
#define WEFT_WG_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#define WG_REPLAY_WINDOW 8192 /* counters, the greatest one seen included */

struct wg_replay {
	uint64_t end; /* greatest counter seen + 1; 0: none yet */
	/* Counter c has bit c mod WG_REPLAY_WINDOW. Bits of counters in the window are exact,
	 * there are no others. */
	uint64_t bits[WG_REPLAY_WINDOW / 64];
};

void wg_replay_init(struct wg_replay *r);
/* True, and remembered, when counter is in or above the window and was not seen. counter is
 * below 2^64 - 1. */
bool wg_replay_take(struct wg_replay *r, uint64_t counter);

#endif

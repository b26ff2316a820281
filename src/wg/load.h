/* SPDX-License-Identifier: Apache-2.0 */
/* Load: are there more handshakes than this node should compute for strangers?
 *
 * Counts the handshake messages that would cost curve arithmetic, by the times of the calls
 * alone. Once high, it stays high for a second after the last excess, so that it does not
 * flicker between two datagrams of a flood. */
#ifndef WEFT_WG_LOAD_H
#define WEFT_WG_LOAD_H

#include <stdbool.h>

#include "base/mono.h"
#include "wg/limiter.h"

struct wg_load {
	struct wg_bucket bucket;
	struct mono high_until;
};

void wg_load_init(struct wg_load *l);
/* Counts one message, and says whether load is high with it. */
bool wg_load_note(struct wg_load *l, struct mono now);
bool wg_load_is_high(const struct wg_load *l, struct mono now);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "wg/load.h"

/* A handshake costs about 0.2 ms of a core, so 1000 a second are a fifth of one; 10,000 peers
 * that renew their sessions need 83. */
static const struct wg_rate rate = {.interval_ns = WEFT_NS_PER_MS, .burst = 250};
#define HIGH_NS WEFT_NS_PER_S

void
wg_load_init(struct wg_load *l)
{
	*l = (struct wg_load){.high_until = {INT64_MIN}};
}

bool
wg_load_note(struct wg_load *l, struct mono now)
{
	if (!wg_bucket_take(&l->bucket, &rate, now)) {
		l->high_until = mono_add_ns(now, HIGH_NS);
	}
	return wg_load_is_high(l, now);
}

bool
wg_load_is_high(const struct wg_load *l, struct mono now)
{
	return mono_is_before(now, l->high_until);
}

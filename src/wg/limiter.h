/* SPDX-License-Identifier: Apache-2.0 */
/* Rates: one bucket, and a table of buckets a source.
 *
 * The table has a fixed size and takes no memory under attack. A source that it does not know
 * is always let through with a fresh bucket, at the cost of the fullest bucket in its set: so a
 * full table makes limits weaker, and never locks anybody out. */
#ifndef WEFT_WG_LIMITER_H
#define WEFT_WG_LIMITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/mono.h"
#include "base/siphash.h"

/* burst events at once, then one an interval. */
struct wg_rate {
	int64_t interval_ns;
	int64_t burst;
};

/* A bucket, held as the time at which it will be full again (GCRA). */
struct wg_bucket {
	int64_t full_ns;
};

/* False, and nothing changes, when the bucket is empty. */
bool wg_bucket_take(struct wg_bucket *b, const struct wg_rate *rate, struct mono now);

enum wg_limit {
	WG_LIMIT_COOKIE_REPLY, /* replies to one address and port */
	WG_LIMIT_PORT,         /* initiations of one proven address and port */
	WG_LIMIT_ADDR,         /* initiations of one proven address (IPv6: of one /64) */
};

#define WG_LIMITER_WAYS 4
#define WG_LIMITER_SETS 1024

struct wg_limiter {
	struct siphash_key key;
	struct {
		uint64_t tag; /* hash of limit and source; 0 = unused */
		struct wg_bucket bucket;
	} slots[WG_LIMITER_SETS][WG_LIMITER_WAYS];
};

void wg_limiter_init(struct wg_limiter *l, const uint8_t key[SIPHASH_KEY_LEN]);
bool wg_limiter_take(
	struct wg_limiter *l, enum wg_limit limit, const struct endpoint *from, struct mono now);

#endif

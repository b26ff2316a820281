/* SPDX-License-Identifier: Apache-2.0 */
#include "wg/limiter.h"

#include <string.h>

#include "base/endian.h"

/* A lone client sends one initiation in five seconds. Behind one address there may be a whole
 * network that restarts in the same second, behind one port a relay with all its clients; both
 * have proven their address by a cookie when these count, so the limits only bound what one
 * source can cost: 1000 failing initiations are 5 % of a core. */
static const struct wg_rate rates[] = {
	[WG_LIMIT_COOKIE_REPLY] = {.interval_ns = 50 * WEFT_NS_PER_MS, .burst = 20},
	[WG_LIMIT_PORT] = {.interval_ns = 10 * WEFT_NS_PER_MS, .burst = 200},
	[WG_LIMIT_ADDR] = {.interval_ns = WEFT_NS_PER_MS, .burst = 2000},
};

bool
wg_bucket_take(struct wg_bucket *b, const struct wg_rate *rate, struct mono now)
{
	int64_t full = b->full_ns > now.ns ? b->full_ns : now.ns;
	if (full + rate->interval_ns - now.ns > rate->interval_ns * rate->burst) {
		return false;
	}
	b->full_ns = full + rate->interval_ns;
	return true;
}

void
wg_limiter_init(struct wg_limiter *l, const uint8_t key[SIPHASH_KEY_LEN])
{
	siphash_key_init(&l->key, key);
	memset(l->slots, 0, sizeof(l->slots));
}

static uint64_t
tag_of(const struct wg_limiter *l, enum wg_limit limit, const struct endpoint *from)
{
	uint8_t text[20] = {0};
	text[0] = (uint8_t)limit;
	text[1] = (uint8_t)from->addr.family;
	memcpy(text + 2, from->addr.b, 16);
	if (limit == WG_LIMIT_ADDR) {
		if (from->addr.family == IP_FAMILY_V6) {
			memset(text + 2 + 8, 0, 8);
		}
	} else {
		store_be16(text + 18, from->port);
	}
	uint64_t tag = siphash(&l->key, text, sizeof(text));
	return tag ? tag : 1;
}

bool
wg_limiter_take(
	struct wg_limiter *l, enum wg_limit limit, const struct endpoint *from, struct mono now)
{
	uint64_t tag = tag_of(l, limit, from);
	uint64_t set = tag % WG_LIMITER_SETS;
	uint32_t fullest = 0;
	for (uint32_t i = 0; i < WG_LIMITER_WAYS; i++) {
		if (l->slots[set][i].tag == tag) {
			return wg_bucket_take(&l->slots[set][i].bucket, &rates[limit], now);
		}
		if (l->slots[set][i].bucket.full_ns < l->slots[set][fullest].bucket.full_ns) {
			fullest = i;
		}
	}
	l->slots[set][fullest].tag = tag;
	l->slots[set][fullest].bucket.full_ns = 0;
	return wg_bucket_take(&l->slots[set][fullest].bucket, &rates[limit], now);
}

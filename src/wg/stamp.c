/* SPDX-License-Identifier: Apache-2.0 */
#include "wg/stamp.h"

#include "base/endian.h"
#include "base/mono.h"

/* TAI64 label of 1970-01-01 00:00:00 UTC, when TAI was 10 s ahead. */
#define TAI64_EPOCH (UINT64_C(0x4000000000000000) + 10)
#define RESERVE_S 60
/* Nanoseconds are rounded down to 2^24 (16.8 ms): the stamp shall not tell a stranger our clock
 * precisely enough to find the node behind it again. */
#define GRAIN_NS (UINT32_C(1) << 24)

void
wg_stamp_init(struct wg_stamp *s, uint64_t persisted_s)
{
	*s = (struct wg_stamp){.last_s = persisted_s, .reserved_s = persisted_s};
}

bool
wg_stamp_next(struct wg_stamp *s, int64_t wall_ns, uint8_t out[WIRE_WG_STAMP_LEN])
{
	/* Floored division, for clocks before 1970. */
	int64_t wall_s = wall_ns / WEFT_NS_PER_S - (wall_ns % WEFT_NS_PER_S < 0);
	uint32_t now_ns = (uint32_t)(wall_ns - wall_s * WEFT_NS_PER_S) / GRAIN_NS * GRAIN_NS;
	uint64_t now_s = TAI64_EPOCH + (uint64_t)wall_s;
	bool is_ahead = now_s < s->last_s || (now_s == s->last_s && now_ns <= s->last_ns);
	if (!is_ahead) {
		s->last_s = now_s;
		s->last_ns = now_ns;
	} else if (++s->last_ns == WEFT_NS_PER_S) {
		s->last_ns = 0;
		s->last_s++;
	}
	store_be64(out, s->last_s);
	store_be32(out + 8, s->last_ns);
	if (s->last_s < s->reserved_s) {
		return false;
	}
	/* While the clock is behind, stamps grow by nanoseconds, and a second lasts for long; to
	 * reserve more would push the stamps further ahead of the clock with each restart. */
	s->reserved_s = s->last_s + (now_s < s->last_s ? 1 : RESERVE_S);
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* When packets of each drop reason went, as far as it can be known from counters alone.
 *
 * Whoever drops counts and does no more. The owner of the counters looks at them now and then:
 * what has grown since the last look went between then and now. Drops that follow each other
 * without a pause of DROP_SPELL_NS are one spell. */
#ifndef WEFT_PKT_DROP_TIMES_H
#define WEFT_PKT_DROP_TIMES_H

#include <stddef.h>

#include "base/mono.h"
#include "pkt/drop.h"

#define DROP_SPELL_NS (60 * WEFT_NS_PER_S)

struct drop_time {
	uint64_t n;         /* of the latest spell */
	struct mono first;  /* when that was seen to begin; 0 with n == 0 */
	struct mono latest; /* the last of it, no later than this */
};

struct drop_times {
	struct drop_counts seen; /* at the last look */
	struct drop_time of[DROP_COUNT];
};

/* Counters are c now. What is new in them was dropped at `at` or shortly before. */
void drop_times_look(struct drop_times *t, const struct drop_counts *c, struct mono at);
/* Adds what another owner saw of the same reasons. */
void drop_times_merge(struct drop_times *t, const struct drop_times *other);

#endif

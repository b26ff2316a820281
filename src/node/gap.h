/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out that a loop did not run when it should have: its process was stopped, or the
 * machine slept.
 *
 * A loop that waits for its next deadline is not late before that: what a stop of an idle loop
 * misses is packets, and each of them looks at its key itself. Suspend shows in the distance of
 * two clocks, so it is seen also when nothing was due. */
#ifndef WEFT_NODE_GAP_H
#define WEFT_NODE_GAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mono.h"

#define GAP_MIN_NS (5 * WEFT_NS_PER_S)

struct gap {
	struct mono due;      /* the next turn at the latest; MONO_NEVER at the start */
	int64_t suspended_ns; /* as os_clock_suspended_ns() had it */
};

void gap_init(struct gap *g, int64_t suspended_ns);
/* A turn at `now` ends, and the next one is due then, or when something comes. A time that has
 * passed means at once. */
void gap_expect(struct gap *g, struct mono now, struct mono next);
/* A turn begins. True after a gap of more than GAP_MIN_NS, which began at *since; told once. */
bool gap_check(struct gap *g, struct mono now, int64_t suspended_ns, struct mono *since);

#endif

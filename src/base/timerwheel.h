/* SPDX-License-Identifier: Apache-2.0 */
/* Timers of one owner, any number of them: a hierarchical wheel.
 *
 * A tick is 2^20 ns (1.05 ms). A timer lies at the level of the highest base-64 digit in which
 * its tick differs from the current one, in the slot of its own digit there. So everything at
 * a level is due after everything at the levels below, eight levels span all of struct mono,
 * and arming is constant work. When time advances, the slots passed at each level (at most 64)
 * are emptied and what is not due yet is placed anew, lower down; a jump of years costs no
 * more than one of hours.
 *
 * Ticks only bound the search: a timer is taken at its due time to the nanosecond, never
 * before it. Slots remember a lower bound of their due times, so that the owner's sleep ends
 * when the earliest timer is due and not at a tick before it.
 *
 * Owned by one thread. Allocates nothing. */
#ifndef WEFT_BASE_TIMERWHEEL_H
#define WEFT_BASE_TIMERWHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/mono.h"

#define TIMERWHEEL_LEVELS 8 /* 8 x 6 bits cover the 43 bits of a tick */
#define TIMERWHEEL_SLOTS 64

/* Embedded in its owner; timer_init() first. */
struct timer {
	struct list link;
	struct mono due;
	uint32_t slot; /* level x 64 + digit, or TIMERWHEEL_SLOT_* of timerwheel.c */
};

struct timerwheel {
	struct mono now; /* latest time seen; all timers due up to it are in expired */
	struct list expired;
	uint64_t pending[TIMERWHEEL_LEVELS]; /* bit set: slot holds a timer */
	struct {
		struct list timers;
		int64_t due_min_ns; /* no timer of the slot is due earlier; INT64_MAX when empty */
	} slots[TIMERWHEEL_LEVELS * TIMERWHEEL_SLOTS];
};

void timer_init(struct timer *t);
bool timer_is_armed(const struct timer *t);

/* now >= 0. */
void timerwheel_init(struct timerwheel *w, struct mono now);
/* Arms t, or moves it when it is armed already. A due time that is past expires at once;
 * MONO_NEVER disarms. */
void timerwheel_arm(struct timerwheel *w, struct timer *t, struct mono due);
/* Harmless when t is not armed. */
void timerwheel_disarm(struct timerwheel *w, struct timer *t);
/* Gives one timer with due <= now, no longer armed, or NULL when none is left. Timers of one
 * advance come in the order of their slots, not strictly by due time. A time before one seen
 * already counts as that one. */
struct timer *timerwheel_take_expired(struct timerwheel *w, struct mono now);
/* When to call timerwheel_take_expired() next: never later than the earliest due timer, and
 * seldom earlier (long timers and disarmed ones may cost a few turns that yield nothing).
 * MONO_NEVER when nothing is armed. */
struct mono timerwheel_next(const struct timerwheel *w);

#endif

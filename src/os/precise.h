/* SPDX-License-Identifier: Apache-2.0 */
/* Waking up on time, for programs that measure or emulate. */
#ifndef WEFT_OS_PRECISE_H
#define WEFT_OS_PRECISE_H

#include "base/err.h"

/* Timers of this thread end when they are due, instead of up to 50 us later (PR_SET_TIMERSLACK). */
void os_precise_timers(void);
/* This thread runs before all that are not real-time, whenever it can (SCHED_RR, lowest
 * priority). WEFT_EPERM without CAP_SYS_NICE. */
WEFT_MUST_CHECK enum weft_err os_precise_schedule(void);

#endif

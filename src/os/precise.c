/* SPDX-License-Identifier: Apache-2.0 */
#include "os/precise.h"

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>

#include "os/error.h"

void
os_precise_timers(void)
{
	/* 1 ns is the least; 0 would mean the default. It cannot fail. */
	(void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

enum weft_err
os_precise_schedule(void)
{
	struct sched_param p = {.sched_priority = sched_get_priority_min(SCHED_RR)};
	if (sched_setscheduler(0, SCHED_RR, &p)) {
		return os_error(errno);
	}
	return WEFT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_OS_CLOCK_H
#define WEFT_OS_CLOCK_H

#include <stdint.h>

#include "base/mono.h"

/* CLOCK_BOOTTIME: counts through suspend, never jumps. */
struct mono os_clock_mono(void);
/* How long the machine has been suspended since it started, to some microseconds. */
int64_t os_clock_suspended_ns(void);
/* CLOCK_REALTIME since 1970. */
int64_t os_clock_wall_ns(void);
/* Sleeps at least so long. For the command line and tests, never for a worker. */
void os_clock_sleep_ns(int64_t ns);

#endif

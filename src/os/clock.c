/* SPDX-License-Identifier: Apache-2.0 */
#include "os/clock.h"

#include <errno.h>
#include <time.h>

#include "base/assert.h"

static int64_t
read_ns(clockid_t id)
{
	struct timespec ts;
	weft_assert(clock_gettime(id, &ts) == 0);
	return (int64_t)ts.tv_sec * WEFT_NS_PER_S + ts.tv_nsec;
}

struct mono
os_clock_mono(void)
{
	return (struct mono){read_ns(CLOCK_BOOTTIME)};
}

int64_t
os_clock_suspended_ns(void)
{
	int64_t awake_ns = read_ns(CLOCK_MONOTONIC);
	return read_ns(CLOCK_BOOTTIME) - awake_ns;
}

int64_t
os_clock_wall_ns(void)
{
	return read_ns(CLOCK_REALTIME);
}

void
os_clock_sleep_ns(int64_t ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(ns / WEFT_NS_PER_S), .tv_nsec = (long)(ns % WEFT_NS_PER_S)};
	while (clock_nanosleep(CLOCK_BOOTTIME, 0, &ts, &ts) == EINTR) {
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "netns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
netns_fresh(void)
{
	if (unshare(CLONE_NEWNET)) {
		fail_msg("this test makes network devices in a namespace of its own and must run "
			 "as root: unshare: %s",
			strerror(errno));
	}
	netns_run("ip link set lo up");
}

int
netns_here(void)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

void
netns_enter(int fd)
{
	assert_int_equal(setns(fd, CLONE_NEWNET), 0);
}

void
netns_run(const char *fmt, ...)
{
	char cmd[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	int status = system(cmd);
	if (status) {
		fail_msg("status %d from: %s", status, cmd);
	}
}

void
netns_wait(const char *fmt, ...)
{
	char cmd[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	for (int i = 0; i < 500; i++) {
		if (system(cmd) == 0) {
			return;
		}
		usleep(10000);
	}
	fail_msg("not within 5 s: %s", cmd);
}

char *
netns_output(const char *fmt, ...)
{
	char cmd[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	FILE *p = popen(cmd, "r");
	assert_non_null(p);
	size_t cap = 1 << 20;
	char *out = calloc(1, cap);
	assert_non_null(out);
	size_t n = fread(out, 1, cap - 1, p);
	out[n] = 0;
	int status = pclose(p);
	if (status) {
		fail_msg("status %d from: %s", status, cmd);
	}
	return out;
}

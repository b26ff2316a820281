/* SPDX-License-Identifier: Apache-2.0 */
/* This process: going to the background, what it has used, how many processors it may use. */
#ifndef WEFT_OS_PROCESS_H
#define WEFT_OS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define OS_DAEMON_TEXT_MAX 512

/* Between fork and report. */
struct os_daemon {
	bool is_child;
	int report_fd;                 /* child: its end of the pipe */
	int null_fd;                   /* child: opened early, since later none may be left */
	int result;                    /* parent: what the child reported, 0..255 */
	char text[OS_DAEMON_TEXT_MAX]; /* parent: the child's words, maybe empty */
};

/* Forks. The child returns at once, in a session of its own, with standard error still the
 * caller's. The parent returns when the child has reported or died; a child that died first
 * gives result 1 and a text that says how. */
WEFT_MUST_CHECK enum weft_err os_daemon_fork(struct os_daemon *d);
/* In the child, once: tells the parent, and on result 0 lets go of the terminal (standard
 * files become /dev/null) and of the working folder. */
void os_daemon_report(struct os_daemon *d, int result, const char *text);

/* What result 0 does beside telling, in a further process of the child's. */
void os_daemon_detach(struct os_daemon *d);

/* In the child, before the report: is nobody waiting for it any more? */
bool os_daemon_is_abandoned(const struct os_daemon *d);

struct os_process_stats {
	int64_t user_ns, system_ns;
	uint64_t rss_bytes, rss_peak_bytes;
};
/* pid 0: this process. */
WEFT_MUST_CHECK enum weft_err os_process_stats(int pid, struct os_process_stats *out);
/* Forks, before there are threads: *pid is 0 in the new process, which is called name. */
WEFT_MUST_CHECK enum weft_err os_process_split(const char *name, int *pid);
/* Waits for the end of a child. */
void os_process_wait(int pid);
int os_process_id(void);
bool os_process_is_root(void);
/* Lets this process open as many descriptors as it may; returns how many. */
size_t os_process_raise_files(void);
/* The machine's name, cut to len - 1 characters. */
void os_process_host_name(char *out, size_t len);
/* Processors that this process may run on, at least 1. */
unsigned os_process_cpus(void);

#endif

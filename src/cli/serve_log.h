/* SPDX-License-Identifier: Apache-2.0 */
/* Where the lines of a daemon go: standard error in the foreground, with priorities where the
 * journal reads it; else the system's log. */
#ifndef WEFT_CLI_SERVE_LOG_H
#define WEFT_CLI_SERVE_LOG_H

#include <stdbool.h>

#include "base/log.h"
#include "os/process.h"
#include "os/thread.h"

struct serve_log {
	bool is_foreground;
	bool is_journal; /* standard error is */
	/* Still attached to the terminal of the caller. Workers log, too. */
	_Atomic bool is_starting;
	/* Somebody waits for the outcome of a reload. */
	_Atomic bool is_reloading;
	/* The mutex guards the rest. With it two lines never mix. */
	struct os_mutex mutex;
	char last_error[OS_DAEMON_TEXT_MAX]; /* for the process that started us, or the reload */
	struct log_limit limit;
};

void serve_log_init(struct serve_log *s, bool is_foreground);
void serve_log_fini(struct serve_log *s);
void serve_log_begin_reload(struct serve_log *s);
/* why: the last error since its begin; empty without. */
void serve_log_end_reload(struct serve_log *s, char *why, size_t cap);
/* A log_sink; ctx is the serve_log. Lines above the rate are counted, and the next that passes says
 * how many; debug lines are what somebody wants to see, and are all written. */
void serve_log_line(void *ctx, enum log_level level, const char *text);

#endif

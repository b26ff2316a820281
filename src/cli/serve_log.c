/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "os/clock.h"
#include "os/manager.h"

/* Start and reload of a file with many faults stay below; a peer that sends nonsense for hours
 * does not fill a disk: 20 lines a second at most. */
#define LIMIT_LINES 200
#define LIMIT_PERIOD_NS (10 * WEFT_NS_PER_S)

#define STDERR_FD 2

static const int priorities[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};

void
serve_log_init(struct serve_log *s, bool is_foreground)
{
	const char *stream = getenv("JOURNAL_STREAM");
	*s = (struct serve_log){.is_foreground = is_foreground,
		.is_starting = true,
		.limit = {.period_ns = LIMIT_PERIOD_NS, .burst = LIMIT_LINES}};
	s->is_journal = is_foreground && stream && os_manager_is_journal(STDERR_FD, stream);
	os_mutex_init(&s->mutex);
	openlog("weft", LOG_PID | LOG_NDELAY, LOG_DAEMON); /* while there is a way to it */
}

void
serve_log_fini(struct serve_log *s)
{
	os_mutex_fini(&s->mutex);
}

void
serve_log_begin_reload(struct serve_log *s)
{
	os_mutex_lock(&s->mutex);
	s->last_error[0] = 0;
	s->is_reloading = true;
	os_mutex_unlock(&s->mutex);
}

void
serve_log_end_reload(struct serve_log *s, char *why, size_t cap)
{
	os_mutex_lock(&s->mutex);
	s->is_reloading = false;
	snprintf(why, cap, "%s", s->last_error);
	os_mutex_unlock(&s->mutex);
}

static void
put(const struct serve_log *s, enum log_level level, const char *text)
{
	static const char *const names[] = {"error", "warning", "info", "debug"};
	if (s->is_journal) {
		fprintf(stderr, "<%d>%s\n", priorities[level], text);
	} else if (s->is_foreground || (s->is_starting && level == LOG_LEVEL_WARN)) {
		fprintf(stderr, "weft: %s: %s\n", names[level], text);
	} else if (!s->is_starting || level != LOG_LEVEL_ERROR) {
		syslog(priorities[level], "%s", text);
	}
}

void
serve_log_line(void *ctx, enum log_level level, const char *text)
{
	struct serve_log *s = ctx;
	os_mutex_lock(&s->mutex);
	if (level == LOG_LEVEL_ERROR && (s->is_starting || s->is_reloading)) {
		snprintf(s->last_error, sizeof(s->last_error), "%s", text);
	}
	uint32_t held = s->limit.suppressed;
	if (level == LOG_LEVEL_DEBUG || log_limit_take(&s->limit, os_clock_mono())) {
		if (level != LOG_LEVEL_DEBUG && held > 0) {
			char said[64];
			snprintf(said, sizeof(said), "%u lines were left out here", held);
			put(s, LOG_LEVEL_WARN, said);
		}
		put(s, level, text);
	}
	os_mutex_unlock(&s->mutex);
}

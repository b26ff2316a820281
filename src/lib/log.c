/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines to the program, one at a time, and the last error for whoever must say why. */
#include <stdio.h>

#include "lib/node.h"

static void
write_line(void *ctx, enum log_level level, const char *text)
{
	struct lib_log *l = ctx;
	os_mutex_lock(&l->mutex);
	if (level == LOG_LEVEL_ERROR) {
		snprintf(l->last_error, sizeof(l->last_error), "%s", text);
	}
	if (l->write) {
		l->write(l->ctx, (enum weft_log_level)level, text);
	}
	os_mutex_unlock(&l->mutex);
}

void
lib_log_init(struct weft_node *n, const struct weft_config *c)
{
	n->sink = (struct lib_log){.write = c->log, .ctx = c->log_ctx};
	os_mutex_init(&n->sink.mutex);
	n->log = (struct log){.sink = write_line,
		.ctx = &n->sink,
		.level = c->log ? (enum log_level)c->log_level : LOG_LEVEL_ERROR};
}

void
lib_log_fini(struct weft_node *n)
{
	os_mutex_fini(&n->sink.mutex);
}

void
lib_log_clear(struct weft_node *n)
{
	os_mutex_lock(&n->sink.mutex);
	n->sink.last_error[0] = 0;
	os_mutex_unlock(&n->sink.mutex);
}

void
lib_log_last(struct weft_node *n, const char *other, char *out, size_t cap)
{
	os_mutex_lock(&n->sink.mutex);
	snprintf(out, cap, "%s", n->sink.last_error[0] ? n->sink.last_error : other);
	os_mutex_unlock(&n->sink.mutex);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/reply.h"
#include "ctl/path.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/loop.h"
#include "os/unixsock.h"

#define CONNECT_NS (2 * WEFT_NS_PER_S)
#define ROOM_MIN (16u << 10)
#define LINE_MAX (4u << 20)
/* Reads before others get their turn. */
#define READS_A_TURN 16

static enum weft_err
make_room(struct stream *s)
{
	if (s->cap - s->len >= ROOM_MIN) {
		return WEFT_OK;
	}
	if (s->len > LINE_MAX) {
		return WEFT_EMSGSIZE;
	}
	size_t cap = s->cap ? s->cap * 2 : 4 * ROOM_MIN;
	char *text = realloc(s->text, cap);
	if (!text) {
		return WEFT_ENOMEM;
	}
	s->text = text;
	s->cap = cap;
	return WEFT_OK;
}

/* The first line answers the request. */
static enum weft_err
take_answer(struct stream *s, const json_t *o)
{
	const json_t *error = json_object_get(o, "error");
	if (error) {
		const char *code = reply_text(error, "code", "");
		return strcmp(code, "unknown_op") == 0 ? WEFT_ENOTSUP : WEFT_EIO;
	}
	s->has_begun = true;
	return WEFT_OK;
}

static enum weft_err
take_line(struct stream *s, const char *text, size_t len)
{
	json_t *o = json_loadb(text, len, 0, NULL);
	enum weft_err e = WEFT_OK;
	if (!json_is_object(o)) {
		e = WEFT_EPARSE;
	} else if (!s->has_begun) {
		e = take_answer(s, o);
	} else {
		s->sink.line(s->sink.ctx, o, text);
	}
	json_decref(o);
	return e;
}

static enum weft_err
take_lines(struct stream *s)
{
	size_t at = 0;
	char *end;
	enum weft_err e = WEFT_OK;
	while (!e && (end = memchr(s->text + at, '\n', s->len - at))) {
		*end = 0;
		e = take_line(s, s->text + at, (size_t)(end - s->text) - at);
		at = (size_t)(end - s->text) + 1;
	}
	memmove(s->text, s->text + at, s->len - at);
	s->len -= at;
	return e;
}

static void
on_readable(void *ctx, uint32_t events)
{
	struct stream *s = ctx;
	enum weft_err e = WEFT_OK;
	(void)events;
	for (unsigned i = 0; i < READS_A_TURN && !e; i++) {
		size_t n;
		e = make_room(s);
		if (!e) {
			e = os_fd_read(s->fd, s->text + s->len, s->cap - s->len, &n);
		}
		if (!e) {
			s->len += n;
			e = take_lines(s);
		}
	}
	if (e && e != WEFT_EAGAIN) {
		stream_close(s);
		s->sink.ended(s->sink.ctx, e);
	}
}

enum weft_err
stream_open(struct stream *s, const char *device, unsigned every_ms, struct os_loop *loop,
	const struct stream_sink *sink)
{
	char path[CTL_PATH_MAX], request[64] = "{\"op\":\"watch\"}\n";
	struct mono deadline = mono_add_ns(os_clock_mono(), CONNECT_NS);
	*s = (struct stream){.fd = -1, .loop = loop, .sink = *sink};
	if (ctl_path_make(CTL_CONTROL_DIR, device, path)) {
		return WEFT_ENOENT;
	}
	if (every_ms) {
		snprintf(
			request, sizeof(request), "{\"op\":\"watch\",\"every_ms\":%u}\n", every_ms);
	}
	enum weft_err e = os_unixsock_connect(path, deadline, &s->fd);
	if (e) {
		s->fd = -1;
		return e;
	}
	e = os_fd_write_all(s->fd, request, strlen(request), deadline);
	if (!e) {
		e = os_loop_add(loop, s->fd, OS_READABLE, on_readable, s);
	}
	if (e) {
		os_fd_close(&s->fd);
	}
	return e;
}

bool
stream_is_open(const struct stream *s)
{
	return s->fd >= 0;
}

void
stream_close(struct stream *s)
{
	if (s->fd >= 0) {
		os_loop_del(s->loop, s->fd);
		os_fd_close(&s->fd);
	}
	free(s->text);
	s->text = NULL;
	s->len = s->cap = 0;
}

int
stream_fail(const char *device, enum weft_err e)
{
	return e == WEFT_ENOTSUP ? cli_fail("%s: the device runs an older weft, which cannot be "
					    "watched; start it again",
					   device)
				 : cli_device_fail(device, e);
}

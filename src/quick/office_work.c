/* SPDX-License-Identifier: Apache-2.0 */
/* A steward in a process of its own. It does one thing at a time; while a program runs it hears
 * only that it shall stop, and saves. When the other process is gone it ends at once and leaves
 * everything as it is: the next start finds what is known to be there (quick/around.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "os/fd.h"
#include "os/loop.h"
#include "os/memory.h"
#include "os/pair.h"
#include "quick/office.h"
#include "wire/conf.h"

#define LOOP_WATCHES 8

struct desk {
	struct office *office;
	int fd;
	struct os_loop *loop;
	struct log log;
	struct conf *conf;  /* in force; NULL = none */
	struct conf *fresh; /* read */
	bool is_busy, is_over, has_ended;
};

static void
reply(struct desk *d, const struct wire_steward_reply *r, int passed)
{
	uint8_t bytes[WIRE_STEWARD_REPLY_MAX];
	size_t n = wire_steward_reply_encode(r, bytes);
	if (os_pair_send(d->fd, bytes, n, passed)) {
		d->has_ended = true;
	}
}

static void
log_line(void *ctx, enum log_level level, const char *text)
{
	struct wire_steward_reply r = {.kind = WIRE_STEWARD_LINE, .level = level};
	snprintf(r.text, sizeof(r.text), "%s", text);
	reply(ctx, &r, -1);
}

static enum weft_err
read_conf(struct desk *d, const struct wire_steward_request *r, int *passed, char *why, size_t cap)
{
	char *text = NULL;
	size_t len = 0;
	struct conf *fresh;
	conf_free(d->fresh);
	d->fresh = NULL;
	enum weft_err e = office_read(
		d->office, r->path[0] ? r->path : NULL, true, &fresh, &text, &len, why, cap);
	if (e) {
		return e;
	}
	d->fresh = fresh;
	e = os_pair_file_make(text, len, passed);
	conf_text_free(text, len);
	return e;
}

static enum weft_err
adopt(struct desk *d, uint32_t mark)
{
	struct conf *before = d->conf;
	if (!d->fresh || !d->office->has_fresh) {
		return WEFT_EINVAL;
	}
	d->conf = d->fresh;
	d->fresh = NULL;
	d->office->around.host.path = d->office->path;
	enum weft_err e = office_adopt(d->office, d->conf, mark);
	conf_free(before);
	return e;
}

static enum weft_err
save(struct desk *d, int with, char *why, size_t cap)
{
	char *bytes;
	size_t len;
	struct conf_state state;
	enum weft_err e = with < 0 ? WEFT_EINVAL
				   : os_pair_file_read(with, WIRE_STEWARD_STATE_MAX, &bytes, &len);
	if (e) {
		return e;
	}
	e = wire_steward_state_decode(bytes, len, &state);
	conf_text_free(bytes, len);
	if (!e) {
		e = office_save(d->office, &state, why, cap);
		wire_steward_state_fini(&state);
	}
	return e;
}

static bool
is_over(void *ctx)
{
	const struct desk *d = ctx;
	return d->is_over || d->has_ended;
}

static void
turn(void *ctx, struct mono until)
{
	struct desk *d = ctx;
	os_loop_wait(d->loop, until);
}

static enum weft_err
begin(struct desk *d)
{
	const struct office_config *c = &d->office->config;
	const struct quick_host host = {.loop = d->loop,
		.log = &d->log,
		.name = c->name,
		.path = d->office->path,
		.turn = turn,
		.is_over = is_over,
		.ctx = d,
		.is_attached = true,
		.is_at_terminal = c->is_foreground};
	return office_begin(d->office, &host, d->conf);
}

static void
detach(struct desk *d)
{
	const struct office_config *c = &d->office->config;
	d->office->around.host.is_attached = false;
	c->detach(c->ctx);
	os_memory_trim();
}

static enum weft_err
act(struct desk *d, const struct wire_steward_request *r, int with, int *passed, char *why,
	size_t cap)
{
	struct office *o = d->office;
	switch (r->op) {
	case WIRE_STEWARD_BEGIN:
		return begin(d);
	case WIRE_STEWARD_BRING_UP:
		return office_bring_up(o, d->conf, r->value);
	case WIRE_STEWARD_READ:
		return read_conf(d, r, passed, why, cap);
	case WIRE_STEWARD_ADOPT:
		return adopt(d, r->value);
	case WIRE_STEWARD_REFUSE:
		office_refuse(o);
		return WEFT_OK;
	case WIRE_STEWARD_SAVE:
		return save(d, with, why, cap);
	case WIRE_STEWARD_LEFT_BEGIN:
		return office_left_begin(o, r->value, r->has_v4);
	case WIRE_STEWARD_LEFT_END:
		office_left_end(o);
		return WEFT_OK;
	case WIRE_STEWARD_PRE_DOWN:
		office_pre_down(o, d->conf);
		return WEFT_OK;
	case WIRE_STEWARD_TAKE_DOWN:
		office_take_down(o, r->value);
		return WEFT_OK;
	case WIRE_STEWARD_END:
		office_end(o, d->conf, r->value);
		d->has_ended = true;
		return WEFT_OK;
	case WIRE_STEWARD_DETACH:
		detach(d);
		return WEFT_OK;
	case WIRE_STEWARD_CANCEL:
	case WIRE_STEWARD_OP_COUNT:
		break;
	}
	return WEFT_EINVAL;
}

static void
handle(struct desk *d, const struct wire_steward_request *r, int with)
{
	struct wire_steward_reply a = {.kind = WIRE_STEWARD_ANSWER, .number = r->number};
	int passed = -1;
	bool was_busy = d->is_busy;
	if (r->op == WIRE_STEWARD_CANCEL) {
		d->is_over = d->is_busy;
		return;
	}
	if (was_busy && r->op != WIRE_STEWARD_SAVE) {
		a.result = WEFT_EAGAIN;
	} else {
		d->is_busy = true;
		a.result = act(d, r, with, &passed, a.text, sizeof(a.text));
		d->is_busy = was_busy;
	}
	if (!was_busy) {
		d->is_over = false;
	}
	reply(d, &a, passed);
	os_fd_close(&passed);
}

/* One message, if there is one. */
static bool
take(struct desk *d)
{
	uint8_t bytes[WIRE_STEWARD_REQUEST_MAX];
	struct wire_steward_request r;
	size_t n;
	int with = -1;
	enum weft_err e = os_pair_receive(d->fd, bytes, sizeof(bytes), &n, &with);
	if (e == WEFT_EAGAIN) {
		return false;
	}
	if (e || wire_steward_request_decode(bytes, n, &r)) {
		d->has_ended = true; /* gone, or not what it was any more */
	} else {
		handle(d, &r, with);
	}
	os_fd_close(&with);
	return true;
}

static void
on_message(void *ctx, uint32_t events)
{
	struct desk *d = ctx;
	(void)events;
	/* What is not for now is answered in office_work(), outside of the loop. */
	while (d->is_busy && !d->has_ended && take(d)) {
	}
}

void
office_work(struct office *o, int fd)
{
	struct desk d = {.office = o, .fd = fd, .conf = o->config.conf};
	d.log = (struct log){.sink = log_line, .ctx = &d, .level = o->config.log->level};
	o->config.log = &d.log;
	if (os_loop_new(LOOP_WATCHES, &d.loop)) {
		return;
	}
	if (os_loop_add(d.loop, fd, OS_READABLE, on_message, &d) == WEFT_OK) {
		while (!d.has_ended) {
			if (!take(&d)) {
				os_loop_wait(d.loop, MONO_NEVER);
			}
		}
	}
	os_loop_free(d.loop);
	conf_free(d.conf);
	conf_free(d.fresh);
}

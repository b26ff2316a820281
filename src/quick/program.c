/* SPDX-License-Identifier: Apache-2.0 */
#include "quick/program.h"

#include <string.h>

#include "os/child.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/loop.h"
#include "quick/host.h"

/* How often it is looked whether we shall stop, and where there is no descriptor for the end of a
 * process, for that. */
#define LOOK_NS (100 * WEFT_NS_PER_MS)
#define LINE_MAX_BYTES 400
#define READS_A_TURN 64 /* a program that never stops talking must not stop us */

struct runner {
	const struct quick_host *host;
	struct os_child child;
	char line[LINE_MAX_BYTES]; /* not yet logged */
	size_t len;
};

static void
flush(struct runner *r)
{
	if (r->len > 0) {
		log_info(r->host->log, "%s: %.*s", r->host->name, (int)r->len, r->line);
		r->len = 0;
	}
}

static void
take_output(struct runner *r)
{
	char text[1024];
	size_t n;
	enum weft_err e = WEFT_OK;
	for (int reads = 0; reads < READS_A_TURN && !e; reads++) {
		e = os_fd_read(r->child.output_fd, text, sizeof(text), &n);
		for (size_t i = 0; !e && i < n; i++) {
			if (text[i] == '\n' || r->len == sizeof(r->line)) {
				flush(r);
			}
			if (text[i] != '\n') {
				r->line[r->len++] = text[i];
			}
		}
	}
	if (e && e != WEFT_EAGAIN) {
		os_loop_del(r->host->loop, r->child.output_fd);
		os_fd_close(&r->child.output_fd);
	}
}

static void
on_output(void *ctx, uint32_t events)
{
	(void)events;
	take_output(ctx);
}

/* The loop has woken up: that is all. */
static void
on_end(void *ctx, uint32_t events)
{
	struct runner *r = ctx;
	(void)events;
	os_loop_del(r->host->loop, r->child.pid_fd);
}

static enum weft_err
wait_for_end(struct runner *r, struct mono limit, int *status)
{
	const struct quick_host *h = r->host;
	enum weft_err e;
	while ((e = os_child_reap(&r->child, status)) == WEFT_EAGAIN) {
		struct mono now = os_clock_mono();
		if (h->is_over && h->is_over(h->ctx)) {
			return WEFT_ECANCELED;
		}
		if (!mono_is_before(now, limit)) {
			return WEFT_ETIMEDOUT;
		}
		h->turn(h->ctx, mono_min(limit, mono_add_ns(now, LOOK_NS)));
	}
	return e;
}

enum weft_err
program_run(const struct quick_host *h, const struct program *p, int *status)
{
	struct runner r = {.host = h};
	const struct os_child_config c = {.path = p->path,
		.argv = p->argv,
		.envp = p->envp,
		.input = p->input,
		.input_len = p->input ? strlen(p->input) : 0,
		.is_attached = h->is_attached,
		.is_bound = p->is_bound,
		.is_alone = !h->is_at_terminal};
	struct mono limit = p->limit_ns == PROGRAM_ENDLESS
				    ? MONO_NEVER
				    : mono_add_ns(os_clock_mono(), p->limit_ns);
	if (h->is_over && h->is_over(h->ctx)) {
		return WEFT_ECANCELED;
	}
	enum weft_err e = os_child_start(&c, &r.child);
	if (e) {
		return e;
	}
	if (r.child.pid_fd >= 0) {
		e = os_loop_add(h->loop, r.child.pid_fd, OS_READABLE, on_end, &r);
	}
	if (!e && r.child.output_fd >= 0) {
		e = os_loop_add(h->loop, r.child.output_fd, OS_READABLE, on_output, &r);
	}
	if (!e) {
		e = wait_for_end(&r, limit, status);
	}
	if (r.child.output_fd >= 0) {
		take_output(&r); /* what it has started may go on, unheard */
		flush(&r);
	}
	if (r.child.output_fd >= 0) {
		os_loop_del(h->loop, r.child.output_fd);
	}
	if (r.child.pid_fd >= 0) {
		os_loop_del(h->loop, r.child.pid_fd);
	}
	os_child_fini(&r.child);
	return e;
}

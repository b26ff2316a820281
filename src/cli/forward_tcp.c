/* SPDX-License-Identifier: Apache-2.0 */
/* TCP connections of `weft forward`: accepted, then connected to the target without waiting, then
 * handed to a pump. What cannot be connected is reset, so that its other end does not take it for
 * an empty answer.
 *
 *   accepted -> RESOLVING -> CONNECTING (each address in turn) -> PUMPING -> gone */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/forward.h"
#include "cli/pump.h"
#include "os/clock.h"
#include "os/error.h"
#include "os/fd.h"
#include "os/inet.h"
#include "os/loop.h"
#include "os/stream.h"
#include "weft/dial.h"

#define ACCEPTS_A_TURN 64
/* Without descriptors: how long nothing is accepted. */
#define WANT_NS (100 * WEFT_NS_PER_MS)
#define WHY_MAX 256

struct connection {
	struct list link; /* among the forwarder's */
	struct forward_route *route;
	struct forward_wait wait;
	struct forward_timer patience; /* for the address that is tried */
	struct mono start;
	int in, out; /* the accepted one; on its way to the target. -1: none, or the pump's */
	struct pump *pump;
	struct ip_addr addrs[FORWARD_ADDRS_MAX];
	size_t addrs_n, tried_n;
	struct endpoint from;
	char why[WHY_MAX]; /* of the last address that failed */
};

static void front_ready(void *ctx, uint32_t events);

static void
watch_fronts(struct forward_route *r)
{
	for (size_t i = 0; i < FORWARD_FRONTS_MAX; i++) {
		struct forward_front *front = &r->front[i];
		if (front->fd >= 0 && !front->is_watched) {
			front->is_watched = os_loop_add(r->f->loop, front->fd, OS_READABLE,
						    front_ready, front) == WEFT_OK;
		}
	}
}

/* Those who want to connect wait in the kernel meanwhile. */
static void
pause_accepting(struct forward *f)
{
	f->is_full = true;
	for (size_t i = 0; i < f->routes_n; i++) {
		for (size_t k = 0; k < FORWARD_FRONTS_MAX && !f->routes[i].rule.is_udp; k++) {
			struct forward_front *front = &f->routes[i].front[k];
			if (front->is_watched) {
				os_loop_del(f->loop, front->fd);
				front->is_watched = false;
			}
		}
	}
}

void
forward_tcp_resume(struct forward *f)
{
	if (f->connections_n >= f->connections_max) {
		return;
	}
	f->is_full = false;
	for (size_t i = 0; i < f->routes_n; i++) {
		if (!f->routes[i].rule.is_udp) {
			watch_fronts(&f->routes[i]);
		}
	}
}

static void
forget(struct connection *c)
{
	struct forward *f = c->route->f;
	list_remove(&c->wait.link);
	timerwheel_disarm(&f->timers, &c->patience.timer);
	if (c->out >= 0) {
		os_loop_del(f->loop, c->out);
	}
	os_stream_reset(&c->in);
	os_stream_reset(&c->out);
	list_remove(&c->link);
	free(c);
	f->connections_n--;
	if (f->is_full && !f->is_stopping && !timer_is_armed(&f->resume.timer)) {
		forward_tcp_resume(f);
	}
}

static void
give_up(struct connection *c)
{
	char who[FORWARD_WHO_MAX];
	c->route->count.failed++;
	forward_warn(
		c->route, "%s: not connected: %s", forward_who(c->route, &c->from, who), c->why);
	forget(c);
}

static void
account(struct connection *c, const struct pump_result *r, const char *how)
{
	char who[FORWARD_WHO_MAX];
	c->route->count.bytes[0] += r->bytes[PUMP_A];
	c->route->count.bytes[1] += r->bytes[PUMP_B];
	forward_access(c->route,
		"%s: %s after %.3f s, %" PRIu64 " bytes to the target, %" PRIu64 " from it",
		forward_who(c->route, &c->from, who), how,
		(double)mono_diff_ns(os_clock_mono(), c->start) / (double)WEFT_NS_PER_S,
		r->bytes[PUMP_A], r->bytes[PUMP_B]);
}

static void
pump_ended(void *ctx, const struct pump_result *r)
{
	struct connection *c = ctx;
	char text[OS_ERROR_TEXT_MAX], how[WHY_MAX] = "closed";
	if (r->err) {
		c->route->count.cut++;
		snprintf(how, sizeof(how), "cut off by the %s (%s)",
			r->end == PUMP_A ? "client" : "target",
			r->os_errno ? os_error_text(r->os_errno, text, sizeof(text))
				    : weft_err_text(r->err));
	}
	account(c, r, how);
	forget(c);
}

static void
begin_pumping(struct connection *c)
{
	char who[FORWARD_WHO_MAX];
	struct forward *f = c->route->f;
	struct pump_config p = {
		.end = {{c->in, c->in}, {c->out, c->out}}, .done = pump_ended, .ctx = c};
	timerwheel_disarm(&f->timers, &c->patience.timer);
	os_loop_del(f->loop, c->out);
	os_stream_tune(c->in);
	os_stream_tune(c->out);
	enum weft_err e = pump_new(f->pumps, &p, &c->pump);
	if (e) {
		snprintf(c->why, sizeof(c->why), "%s", weft_err_text(e));
		give_up(c);
		return;
	}
	c->in = c->out = -1;
	forward_access(c->route, "%s: connected", forward_who(c->route, &c->from, who));
}

static void try_next(struct connection *c);

static void
connect_ended(void *ctx, uint32_t events)
{
	struct connection *c = ctx;
	int errnum = 0;
	(void)events;
	enum weft_err e = os_inet_result(c->out, &errnum);
	if (!e) {
		begin_pumping(c);
		return;
	}
	os_error_text(errnum, c->why, sizeof(c->why));
	os_loop_del(c->route->f->loop, c->out);
	os_fd_close(&c->out);
	try_next(c);
}

static void
patience_ended(struct forward_timer *t)
{
	struct connection *c = WEFT_CONTAINER_OF(t, struct connection, patience);
	snprintf(c->why, sizeof(c->why), "no answer in time");
	os_loop_del(c->route->f->loop, c->out);
	os_fd_close(&c->out);
	try_next(c);
}

/* The addresses that are left share what is left of the time. */
static void
try_next(struct connection *c)
{
	struct forward *f = c->route->f;
	int64_t left_ns =
		FORWARD_CONNECT_S * WEFT_NS_PER_S - mono_diff_ns(os_clock_mono(), c->start);
	while (c->tried_n < c->addrs_n && left_ns > 0) {
		size_t left_n = c->addrs_n - c->tried_n;
		const struct ip_addr *to = &c->addrs[c->tried_n++];
		enum weft_err e = forward_dial(c->route, to, &c->out, c->why, sizeof(c->why));
		if (!e) {
			e = os_loop_add(f->loop, c->out, OS_WRITABLE, connect_ended, c);
		}
		if (!e) {
			timerwheel_arm(&f->timers, &c->patience.timer,
				mono_add_ns(os_clock_mono(), left_ns / (int64_t)left_n));
			return;
		}
		os_fd_close(&c->out);
	}
	give_up(c);
}

static void
try_first(struct connection *c)
{
	c->addrs_n = c->route->addrs_n;
	memcpy(c->addrs, c->route->addrs, sizeof(c->addrs));
	snprintf(c->why, sizeof(c->why), "the name %.200s has no address", c->route->rule.host);
	try_next(c);
}

static void
resolved(struct forward_wait *w)
{
	try_first(WEFT_CONTAINER_OF(w, struct connection, wait));
}

/* Takes fd over. */
static void
begin(struct forward_route *r, int fd, const struct endpoint *from)
{
	struct forward *f = r->f;
	struct connection *c = calloc(1, sizeof(*c));
	r->count.opened++;
	if (!c) {
		r->count.failed++;
		os_stream_reset(&fd);
		return;
	}
	c->route = r;
	c->in = fd;
	c->out = -1;
	c->start = os_clock_mono();
	c->from = *from;
	c->wait.ready = resolved;
	c->patience.due = patience_ended;
	timer_init(&c->patience.timer);
	list_init(&c->wait.link);
	list_push_back(&f->connections, &c->link);
	f->connections_n++;
	if (f->connections_n >= f->connections_max) {
		forward_warn(r, "%zu connections: no more are accepted until one ends",
			f->connections_n);
		pause_accepting(f);
	}
	if (forward_resolve(r, &c->wait)) {
		try_first(c);
	}
}

static enum weft_err
accept_one(struct forward_front *front, int *fd)
{
	struct forward_route *r = front->route;
	int errnum;
	if (r->rule.side == FORWARD_LOCAL) {
		return os_inet_accept(front->fd, true, fd, &errnum);
	}
	struct weft_dial_options o = {.size = sizeof(o), .flags = WEFT_NONBLOCK};
	return weft_accept(r->f->overlay.node, front->fd, &o, fd, NULL);
}

static void
front_ready(void *ctx, uint32_t events)
{
	struct forward_front *front = ctx;
	struct forward_route *r = front->route;
	struct forward *f = r->f;
	(void)events;
	for (int i = 0; i < ACCEPTS_A_TURN && !f->is_full; i++) {
		struct endpoint from = {0};
		int fd;
		enum weft_err e = accept_one(front, &fd);
		if (e == WEFT_EAGAIN) {
			return;
		}
		if (e == WEFT_ENOMEM) {
			forward_warn(r, "nothing is accepted for now: memory or descriptors are "
					"used up; ulimit -n raises their number");
			pause_accepting(f);
			timerwheel_arm(&f->timers, &f->resume.timer,
				mono_add_ns(os_clock_mono(), WANT_NS));
			return;
		}
		if (e) {
			continue; /* reset before it was accepted */
		}
		if (os_inet_peer(fd, &from.addr, &from.port)) {
			os_fd_close(&fd);
			continue;
		}
		begin(r, fd, &from);
	}
}

bool
forward_tcp_open(struct forward_route *r)
{
	if (!forward_front_open(r)) {
		return false;
	}
	watch_fronts(r);
	return true;
}

void
forward_tcp_close(struct forward *f)
{
	pause_accepting(f);
	LIST_FOR_EACH_SAFE(it, tmp, &f->connections)
	{
		struct connection *c = WEFT_CONTAINER_OF(it, struct connection, link);
		if (c->pump) {
			struct pump_result r = {.bytes = {pump_bytes(c->pump, PUMP_A),
							pump_bytes(c->pump, PUMP_B)}};
			pump_free(c->pump);
			account(c, &r, "ended");
		}
		forget(c);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* From a target to a connection: its name, then each address in turn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/proxy.h"
#include "os/clock.h"
#include "os/error.h"
#include "os/fd.h"
#include "os/inet.h"
#include "os/loop.h"
#include "os/stream.h"
#include "weft/dial.h"

static void try_next(struct proxy_client *c);

static void
give_up(struct proxy_client *c)
{
	char from[ENDPOINT_TEXT_MAX], to[PROXY_TARGET_TEXT_MAX];
	proxy_log(c->proxy, WEFT_LOG_DEBUG, "%s to %s: %s", endpoint_format(&c->from, from),
		proxy_target_text(&c->to, to), c->why);
	c->protocol->failed(c, c->err, c->why);
}

static void
drop_out(struct proxy_client *c)
{
	if (c->out >= 0) {
		os_loop_del(c->proxy->loop, c->out);
		os_stream_reset(&c->out);
	}
}

static void
say_why(struct proxy_client *c, enum weft_err e, int errnum)
{
	char to[ENDPOINT_TEXT_MAX], text[OS_ERROR_TEXT_MAX];
	struct endpoint at = {.addr = c->addrs[c->tried_n - 1], .port = c->to.port};
	c->err = e;
	snprintf(c->why, sizeof(c->why), "%s: %s", endpoint_format(&at, to),
		errnum ? os_error_text(errnum, text, sizeof(text)) : weft_err_text(e));
}

static void
address_expired(struct proxy_timer *t)
{
	struct proxy_client *c = WEFT_CONTAINER_OF(t, struct proxy_client, timer);
	say_why(c, WEFT_ETIMEDOUT, 0);
	drop_out(c);
	try_next(c);
}

static void
out_ready(void *ctx, uint32_t events)
{
	struct proxy_client *c = ctx;
	int errnum = 0;
	(void)events;
	enum weft_err e = os_inet_result(c->out, &errnum);
	if (e == WEFT_EAGAIN) {
		return;
	}
	if (e) {
		say_why(c, e, errnum);
		drop_out(c);
		try_next(c);
		return;
	}
	timerwheel_disarm(&c->proxy->timers, &c->timer.timer);
	os_loop_del(c->proxy->loop, c->out);
	os_stream_tune(c->out);
	c->protocol->connected(c);
}

static void
try_next(struct proxy_client *c)
{
	struct weft_dial_options o = {.size = sizeof(o), .flags = WEFT_NONBLOCK};
	while (c->tried_n < c->addrs_n) {
		struct weft_detail why = {.size = sizeof(why)};
		char text[ENDPOINT_TEXT_MAX];
		int64_t left = (int64_t)(c->addrs_n - c->tried_n);
		struct endpoint to = {.addr = c->addrs[c->tried_n++], .port = c->to.port};
		enum weft_err e = weft_dial(c->proxy->overlay.node, "tcp",
			endpoint_format(&to, text), &o, &c->out, &why);
		if (!e) {
			e = os_loop_add(
				c->proxy->loop, c->out, OS_WRITABLE | OS_EDGE, out_ready, c);
			snprintf(why.text, sizeof(why.text), "%s", weft_err_text(e));
		}
		if (!e) {
			int64_t patience = mono_diff_ns(c->patience, c->proxy->now) / left;
			proxy_client_arm(c, mono_add_ns(c->proxy->now, patience), address_expired);
			return;
		}
		os_fd_close(&c->out);
		c->err = e;
		snprintf(c->why, sizeof(c->why), "%.390s", why.text);
	}
	give_up(c);
}

static void
begin(struct proxy_client *c, const struct ip_addr *addrs, size_t n)
{
	memcpy(c->addrs, addrs, n * sizeof(*addrs));
	c->addrs_n = n;
	c->tried_n = 0;
	try_next(c);
}

char *
proxy_no_name(const struct proxy *p, const char *host, enum weft_err e, char out[PROXY_WHY_MAX])
{
	if (e == WEFT_ENOENT && !proxy_names_has_servers(p->names)) {
		snprintf(out, PROXY_WHY_MAX,
			"%s: no peer has this name, and the configuration has no DNS to ask", host);
	} else if (e == WEFT_ENOENT) {
		snprintf(out, PROXY_WHY_MAX, "%s: there is no such name", host);
	} else if (e == WEFT_EAGAIN || e == WEFT_ETIMEDOUT) {
		snprintf(out, PROXY_WHY_MAX, "%s: the DNS servers of the overlay do not answer",
			host);
	} else {
		snprintf(out, PROXY_WHY_MAX, "%s: %s", host, weft_err_text(e));
	}
	return out;
}

static void
answered(struct proxy_ask *a)
{
	struct proxy_client *c = a->ctx;
	timerwheel_disarm(&c->proxy->timers, &c->timer.timer);
	if (!a->err) {
		begin(c, a->addrs, a->addrs_n);
		return;
	}
	proxy_no_name(c->proxy, c->to.host, a->err, c->why);
	for (char *s = c->why; *s; s++) {
		/* Into a log; it is the client's text. */
		*s = (unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s;
	}
	c->err = a->err == WEFT_EAGAIN ? WEFT_ETIMEDOUT : a->err;
	give_up(c);
}

static void
name_expired(struct proxy_timer *t)
{
	struct proxy_client *c = WEFT_CONTAINER_OF(t, struct proxy_client, timer);
	proxy_names_forget(&c->ask);
	c->ask.err = WEFT_ETIMEDOUT;
	answered(&c->ask);
}

void
proxy_dial(struct proxy_client *c)
{
	c->state = PROXY_DIALING;
	proxy_client_drop_in(c);
	c->patience = mono_add_ns(c->proxy->now, PROXY_CONNECT_NS);
	if (c->to.addr.family != IP_FAMILY_NONE) {
		begin(c, &c->to.addr, 1);
		return;
	}
	c->ask.done = answered;
	c->ask.ctx = c;
	if (proxy_names_ask(c->proxy->names, &c->ask, c->to.host) != WEFT_EAGAIN) {
		answered(&c->ask);
		return;
	}
	/* A third of the time is left for connecting. */
	proxy_client_arm(c, mono_add_ns(c->proxy->now, PROXY_CONNECT_NS * 2 / 3), name_expired);
}

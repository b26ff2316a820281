/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/proxy.h"
#include "cli/pump.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/inet.h"
#include "os/loop.h"
#include "os/stream.h"

#define ACCEPTS_A_TURN 64
#define PAUSE_NS (100 * WEFT_NS_PER_MS)
#define LINGER_BYTES_MAX (1u << 20) /* that a client may still send after a refusal */

/* Those who want to connect wait in the kernel meanwhile. */
static void
pause_accepting(struct proxy *p)
{
	p->is_paused = true;
	for (size_t i = 0; i < p->listens_n; i++) {
		if (p->listens[i].is_watched) {
			os_loop_del(p->loop, p->listens[i].fd);
			p->listens[i].is_watched = false;
		}
	}
}

void
proxy_resume(struct proxy *p)
{
	p->is_paused = false;
	for (size_t i = 0; i < p->listens_n; i++) {
		struct proxy_listen *l = &p->listens[i];
		if (!l->is_watched) {
			l->is_watched = os_loop_add(p->loop, l->fd, OS_READABLE, proxy_accept, l) ==
					WEFT_OK;
		}
	}
}

void
proxy_client_drop_in(struct proxy_client *c)
{
	if (c->in) {
		explicit_bzero(c->in, c->protocol->in_max);
	}
	free(c->in);
	c->in = NULL;
}

void
proxy_client_free(struct proxy_client *c)
{
	struct proxy *p = c->proxy;
	timerwheel_disarm(&p->timers, &c->timer.timer);
	proxy_names_forget(&c->ask);
	proxy_relay_free(c->relay);
	if (c->pump) {
		pump_free(c->pump);
	}
	if (c->fd >= 0) {
		os_loop_del(p->loop, c->fd);
		os_fd_close(&c->fd);
	}
	if (c->out >= 0) {
		os_loop_del(p->loop, c->out);
		os_stream_reset(&c->out);
	}
	proxy_client_drop_in(c);
	free(c->head);
	list_remove(&c->link);
	free(c);
	p->clients_n--;
	if (p->is_paused && !p->is_stopping && !timer_is_armed(&p->resume)) {
		proxy_resume(p);
	}
}

/* What a client sends after a refusal, and the end of one whose datagrams are relayed. */
static void
discard(struct proxy_client *c)
{
	uint8_t bytes[4096];
	size_t n;
	int errnum;
	enum weft_err e;
	while ((e = os_stream_read(c->fd, bytes, sizeof(bytes), &n, &errnum)) == WEFT_OK && n > 0) {
		c->in_len += n;
		if (c->in_len > LINGER_BYTES_MAX) {
			break;
		}
	}
	if (e != WEFT_EAGAIN) {
		proxy_client_free(c);
	}
}

static void
client_ready(void *ctx, uint32_t events)
{
	struct proxy_client *c = ctx;
	switch (c->state) {
	case PROXY_TALKING:
		c->protocol->readable(c);
		break;
	case PROXY_LINGERING:
	case PROXY_ASSOCIATED:
		discard(c);
		break;
	case PROXY_DIALING:
	case PROXY_SENDING:
		/* What it sends is for the target. */
		if (events & OS_HANGUP) {
			proxy_client_free(c);
		}
		break;
	case PROXY_PUMPING:
		break;
	}
}

bool
proxy_client_read(struct proxy_client *c)
{
	while (c->in_len < c->need) {
		size_t n;
		int errnum;
		enum weft_err e =
			os_stream_read(c->fd, c->in + c->in_len, c->need - c->in_len, &n, &errnum);
		if (e == WEFT_EAGAIN) {
			return false;
		}
		if (e || n == 0) {
			proxy_client_free(c);
			return false;
		}
		c->in_len += n;
	}
	return true;
}

bool
proxy_client_write(struct proxy_client *c, const void *data, size_t len)
{
	size_t n;
	int errnum;
	/* Its buffer is empty, or it does not read answers to what it asks. */
	if (os_stream_write(c->fd, data, len, &n, &errnum) || n != len) {
		proxy_client_free(c);
		return false;
	}
	return true;
}

static void
linger_expired(struct proxy_timer *t)
{
	proxy_client_free(WEFT_CONTAINER_OF(t, struct proxy_client, timer));
}

void
proxy_client_arm(struct proxy_client *c, struct mono due, void (*expired)(struct proxy_timer *t))
{
	c->timer.expired = expired;
	timerwheel_arm(&c->proxy->timers, &c->timer.timer, due);
}

void
proxy_client_linger(struct proxy_client *c)
{
	/* Closing with unread bytes would reset the connection, and the client might lose the
	 * message. */
	c->state = PROXY_LINGERING;
	if (c->out >= 0) {
		os_loop_del(c->proxy->loop, c->out);
		os_stream_reset(&c->out);
	}
	c->in_len = 0;
	os_stream_finish(c->fd);
	proxy_client_arm(c, mono_add_ns(c->proxy->now, PROXY_LINGER_NS), linger_expired);
	discard(c);
}

char *
proxy_target_text(const struct socks_target *to, char out[PROXY_TARGET_TEXT_MAX])
{
	struct endpoint e = {.addr = to->addr, .port = to->port};
	if (to->addr.family == IP_FAMILY_NONE) {
		snprintf(out, PROXY_TARGET_TEXT_MAX, "%s:%u", to->host, to->port);
		for (char *s = out; *s; s++) {
			/* Into a log; it is the client's text. */
			*s = (unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s;
		}
		return out;
	}
	return endpoint_format(&e, out);
}

static void
pump_ended(void *ctx, const struct pump_result *r)
{
	struct proxy_client *c = ctx;
	char from[ENDPOINT_TEXT_MAX], to[PROXY_TARGET_TEXT_MAX];
	proxy_log(c->proxy, WEFT_LOG_DEBUG, "%s to %s: %" PRIu64 " bytes out, %" PRIu64 " back: %s",
		endpoint_format(&c->from, from), proxy_target_text(&c->to, to), r->bytes[PUMP_A],
		r->bytes[PUMP_B], r->err ? weft_err_text(r->err) : "closed");
	c->pump = NULL;
	proxy_client_free(c);
}

void
proxy_client_pump(struct proxy_client *c)
{
	struct pump_config config = {
		.end = {{c->fd, c->fd}, {c->out, c->out}}, .done = pump_ended, .ctx = c};
	os_loop_del(c->proxy->loop, c->fd);
	os_loop_del(c->proxy->loop, c->out);
	timerwheel_disarm(&c->proxy->timers, &c->timer.timer);
	if (pump_new(c->proxy->pumps, &config, &c->pump)) {
		proxy_client_free(c);
		return;
	}
	c->state = PROXY_PUMPING;
	c->fd = -1;
	c->out = -1;
}

static void
request_expired(struct proxy_timer *t)
{
	proxy_client_free(WEFT_CONTAINER_OF(t, struct proxy_client, timer));
}

/* Takes fd over. */
static void
client_new(struct proxy_listen *l, int fd)
{
	struct proxy *p = l->proxy;
	struct proxy_client *c = calloc(1, sizeof(*c));
	if (!c) {
		os_fd_close(&fd);
		return;
	}
	c->proxy = p;
	c->fd = fd;
	c->out = -1;
	c->protocol = l->is_http ? &proxy_http : &proxy_socks;
	timer_init(&c->timer.timer);
	list_push_back(&p->clients, &c->link);
	p->clients_n++;
	os_stream_tune(fd);
	c->in = malloc(c->protocol->in_max);
	if (!c->in || os_inet_peer(fd, &c->from.addr, &c->from.port) ||
		os_loop_add(p->loop, fd, OS_READABLE | OS_EDGE, client_ready, c)) {
		proxy_client_free(c);
		return;
	}
	proxy_client_arm(c, mono_add_ns(p->now, PROXY_REQUEST_NS), request_expired);
}

void
proxy_accept(void *ctx, uint32_t events)
{
	struct proxy_listen *l = ctx;
	struct proxy *p = l->proxy;
	(void)events;
	for (unsigned i = 0; i < ACCEPTS_A_TURN; i++) {
		int fd, errnum;
		if (p->clients_n >= p->clients_max) {
			pause_accepting(p);
			return;
		}
		enum weft_err e = os_inet_accept(l->fd, true, &fd, &errnum);
		if (e == WEFT_ENOMEM) {
			pause_accepting(p);
			timerwheel_arm(&p->timers, &p->resume, mono_add_ns(p->now, PAUSE_NS));
			return;
		}
		if (e) {
			return; /* none; or one that is gone again, and the loop tells of others */
		}
		client_new(l, fd);
	}
}

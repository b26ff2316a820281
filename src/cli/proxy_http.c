/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that speak HTTP/1. The head of a request is looked at where it lies in the kernel, until
 * it is whole, and then taken off: what follows is the body, or the tunnel's. */
#include <stdlib.h>
#include <string.h>

#include "cli/proxy.h"
#include "os/loop.h"
#include "os/stream.h"

static void
reply_and_end(struct proxy_client *c, unsigned status, const char *why)
{
	char out[HTTP_REPLY_MAX];
	if (proxy_client_write(c, out, http_reply_encode(status, why, out))) {
		proxy_client_linger(c);
	}
}

static void
failed(struct proxy_client *c, enum weft_err e, const char *why)
{
	reply_and_end(c,
		e == WEFT_ETIMEDOUT ? 504
		: e == WEFT_EPERM   ? 403
		: e == WEFT_ENOMEM  ? 503
				    : 502,
		why);
}

/* The head that is owed to the target. */
static void
send_head(void *ctx, uint32_t events)
{
	struct proxy_client *c = ctx;
	(void)events;
	while (c->head_at < c->head_len) {
		size_t n;
		int errnum;
		enum weft_err e = os_stream_write(
			c->out, c->head + c->head_at, c->head_len - c->head_at, &n, &errnum);
		if (e == WEFT_EAGAIN) {
			return;
		}
		if (e) {
			reply_and_end(c, 502, "The server ended the connection.");
			return;
		}
		c->head_at += n;
	}
	free(c->head);
	c->head = NULL;
	proxy_client_pump(c);
}

static void
send_expired(struct proxy_timer *t)
{
	struct proxy_client *c = WEFT_CONTAINER_OF(t, struct proxy_client, timer);
	reply_and_end(c, 504, "The server does not take the request.");
}

static void
connected(struct proxy_client *c)
{
	char out[HTTP_REPLY_MAX];
	if (c->is_connect) {
		if (proxy_client_write(c, out, http_reply_encode(200, "", out))) {
			proxy_client_pump(c);
		}
		return;
	}
	c->state = PROXY_SENDING;
	proxy_client_arm(c, mono_add_ns(c->proxy->now, PROXY_CONNECT_NS), send_expired);
	if (os_loop_add(c->proxy->loop, c->out, OS_WRITABLE | OS_EDGE, send_head, c)) {
		reply_and_end(c, 503, "Too many connections.");
		return;
	}
	send_head(c, 0);
}

static bool
may_pass(const struct proxy_client *c, const struct http_request *r)
{
	struct http_login l;
	if (!c->proxy->has_users) {
		return true;
	}
	if (!r->login || http_login_decode(r->login, r->login_len, &l)) {
		return false;
	}
	bool is_right =
		proxy_users_has(&c->proxy->users, l.user, l.user_len, l.password, l.password_len);
	explicit_bzero(&l, sizeof(l));
	return is_right;
}

static void
request(struct proxy_client *c, const struct http_request *r)
{
	const char *p = (const char *)c->in;
	if (!may_pass(c, r)) {
		reply_and_end(c, 407, "This proxy wants a user and a password.");
		return;
	}
	c->is_connect = r->is_connect;
	c->to = (struct socks_target){.port = r->port};
	memcpy(c->to.host, r->host, sizeof(r->host));
	if (!r->is_connect) {
		size_t cap = r->head_len + HTTP_REWRITE_MORE;
		c->head = malloc(cap);
		if (!c->head || http_head_rewrite(p, r, c->head, cap, &c->head_len)) {
			reply_and_end(c, 503, "No memory.");
			return;
		}
	}
	proxy_dial(c);
}

static void
readable(struct proxy_client *c)
{
	struct http_request r;
	struct http_fault fault;
	size_t n;
	int errnum;
	enum weft_err e = os_stream_peek(c->fd, c->in, HTTP_HEAD_MAX, &n, &errnum);
	if (e == WEFT_EAGAIN) {
		return;
	}
	/* An end behind half a head is not seen by looking: the time for a request ends that. */
	if (e || n == 0) {
		proxy_client_free(c);
		return;
	}
	e = http_head_decode((const char *)c->in, n, &r, &fault);
	if (e == WEFT_EAGAIN) {
		return;
	}
	if (e) {
		reply_and_end(c, fault.status, fault.why);
		return;
	}
	c->in_len = 0;
	c->need = r.head_len;
	if (proxy_client_read(c)) {
		request(c, &r);
	}
}

const struct proxy_protocol proxy_http = {
	.in_max = HTTP_HEAD_MAX,
	.readable = readable,
	.connected = connected,
	.failed = failed,
};

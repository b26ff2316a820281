/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that speak SOCKS 5. */
#include <string.h>

#include "cli/proxy.h"
#include "os/inet.h"

enum step {
	STEP_GREETING, /* of a new client */
	STEP_LOGIN,
	STEP_REQUEST,
};

static void
reply_and_end(struct proxy_client *c, enum socks_reply code)
{
	static const struct ip_addr none;
	uint8_t out[SOCKS_REPLY_MAX];
	if (proxy_client_write(c, out, socks_reply_encode(code, &none, 0, out))) {
		proxy_client_linger(c);
	}
}

static void
failed(struct proxy_client *c, enum weft_err e, const char *why)
{
	(void)why; /* the protocol has no place for it */
	reply_and_end(c, e == WEFT_EREFUSED    ? SOCKS_REPLY_REFUSED
			 : e == WEFT_EUNREACH  ? SOCKS_REPLY_NET_UNREACHABLE
			 : e == WEFT_ENOENT    ? SOCKS_REPLY_HOST_UNREACHABLE
			 : e == WEFT_ETIMEDOUT ? SOCKS_REPLY_TTL_EXPIRED
			 : e == WEFT_EPERM     ? SOCKS_REPLY_FORBIDDEN
					       : SOCKS_REPLY_FAILED);
}

static void
connected(struct proxy_client *c)
{
	uint8_t out[SOCKS_REPLY_MAX];
	struct ip_addr local = {0};
	uint16_t port = 0;
	/* Without it the reply says 0.0.0.0:0; nothing depends on it. */
	if (os_inet_local(c->out, &local, &port)) {
		local.family = IP_FAMILY_NONE;
	}
	if (proxy_client_write(c, out, socks_reply_encode(SOCKS_REPLY_DONE, &local, port, out))) {
		proxy_client_pump(c);
	}
}

static void
associate(struct proxy_client *c, const struct socks_request *q)
{
	uint8_t out[SOCKS_REPLY_MAX];
	struct endpoint bound;
	if (proxy_relay_new(c, q->to.port, &bound)) {
		reply_and_end(c, SOCKS_REPLY_FAILED);
		return;
	}
	c->state = PROXY_ASSOCIATED;
	c->in_len = 0;
	(void)proxy_client_write(
		c, out, socks_reply_encode(SOCKS_REPLY_DONE, &bound.addr, bound.port, out));
}

static void
request(struct proxy_client *c, const struct socks_request *q)
{
	switch (q->command) {
	case SOCKS_COMMAND_CONNECT:
		c->to = q->to;
		proxy_dial(c);
		break;
	case SOCKS_COMMAND_ASSOCIATE:
		associate(c, q);
		break;
	default:
		reply_and_end(c, SOCKS_REPLY_NO_COMMAND);
	}
}

/* Each of these takes a whole message. True: the next one may be there. */
static bool
take_greeting(struct proxy_client *c, const struct socks_greeting *g)
{
	uint8_t out[2];
	bool is_login = c->proxy->has_users;
	bool is_offered = is_login ? g->has_login : g->has_none;
	socks_method_encode(!is_offered ? SOCKS_METHOD_REFUSED
			    : is_login  ? SOCKS_METHOD_LOGIN
					: SOCKS_METHOD_NONE,
		out);
	if (!proxy_client_write(c, out, sizeof(out))) {
		return false;
	}
	if (!is_offered) {
		proxy_client_linger(c);
		return false;
	}
	c->step = is_login ? STEP_LOGIN : STEP_REQUEST;
	return true;
}

static bool
take_login(struct proxy_client *c, const struct socks_login *l)
{
	uint8_t out[2];
	bool is_right = proxy_users_has(
		&c->proxy->users, l->user, l->user_len, l->password, l->password_len);
	explicit_bzero(c->in, c->in_len);
	socks_login_reply_encode(is_right, out);
	if (!proxy_client_write(c, out, sizeof(out))) {
		return false;
	}
	if (!is_right) {
		proxy_client_linger(c);
		return false;
	}
	c->step = STEP_REQUEST;
	return true;
}

/* One step with the bytes that are there. True: go on reading. */
static bool
step(struct proxy_client *c)
{
	struct socks_greeting g;
	struct socks_login l;
	struct socks_request q;
	size_t need = 0;
	enum weft_err e =
		c->step == STEP_GREETING ? socks_greeting_decode(c->in, c->in_len, &g, &need)
		: c->step == STEP_LOGIN  ? socks_login_decode(c->in, c->in_len, &l, &need)
					 : socks_request_decode(c->in, c->in_len, &q, &need);
	if (e == WEFT_EAGAIN) {
		c->need = need;
		return true;
	}
	if (e == WEFT_ENOTSUP) {
		reply_and_end(c, SOCKS_REPLY_NO_ADDRESS_TYPE);
		return false;
	}
	if (e) {
		proxy_client_free(c); /* who knows what it speaks */
		return false;
	}
	if (c->step == STEP_REQUEST) {
		request(c, &q);
		return false;
	}
	bool is_going_on = c->step == STEP_GREETING ? take_greeting(c, &g) : take_login(c, &l);
	if (is_going_on) {
		c->in_len = 0;
		c->need = 0;
	}
	return is_going_on;
}

static void
readable(struct proxy_client *c)
{
	while (proxy_client_read(c) && step(c)) {
	}
}

const struct proxy_protocol proxy_socks = {
	.in_max = SOCKS_MESSAGE_MAX,
	.readable = readable,
	.connected = connected,
	.failed = failed,
};

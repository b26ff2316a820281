/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams of a SOCKS client: UDP ASSOCIATE.
 *
 * Each association has a socket of its own on the client's side, and one a family in the overlay,
 * made when they are needed. Datagrams are taken from the address that the association's
 * connection comes from, and from one port of it; all others are passed over. What comes back may
 * come from anywhere in the overlay, as at an ordinary UDP socket. Fragments of SOCKS are refused,
 * as RFC 1928 allows. */
#include <stdlib.h>
#include <string.h>

#include "cli/proxy.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/inet.h"
#include "os/loop.h"
#include "os/netns.h"
#include "weft/dial.h"

#define TURN_DATAGRAMS 64u
#define NAMES_MAX 8u
#define NAME_NS (60 * WEFT_NS_PER_S)
#define FAMILIES 2

/* A name that datagrams go to. */
struct relay_name {
	struct proxy_relay *relay;
	char host[SOCKS_HOST_MAX + 1]; /* empty: free */
	struct proxy_ask ask;
	bool is_asked;
	struct mono until; /* the answer counts; while is_asked: not yet */
	uint8_t *held;     /* the last datagram that came meanwhile; NULL: none */
	size_t held_len;
	uint16_t held_port;
};

struct proxy_relay {
	struct proxy_client *client;
	int in;
	int out[FAMILIES]; /* IPv4, IPv6; -1: not needed yet */
	uint16_t port;     /* of the client; 0: not known yet */
	struct mono last;  /* a datagram passed */
	uint64_t sent, received, refused;
	unsigned next_name;
	struct relay_name names[NAMES_MAX];
};

static void
idle_expired(struct proxy_timer *t)
{
	struct proxy_client *c = WEFT_CONTAINER_OF(t, struct proxy_client, timer);
	struct mono due = mono_add_ns(c->relay->last, PROXY_IDLE_NS);
	if (mono_is_before(c->proxy->now, due)) {
		proxy_client_arm(c, due, idle_expired);
		return;
	}
	proxy_client_free(c);
}

/* From the overlay to the client. */
static void
out_ready(struct proxy_relay *r, int fd)
{
	struct proxy *p = r->client->proxy;
	uint8_t *payload = p->datagram + SOCKS_ANSWER_HEADER_MAX;
	for (unsigned i = 0; i < TURN_DATAGRAMS; i++) {
		struct ip_addr from;
		uint16_t port;
		size_t n;
		enum weft_err e = os_dgram_receive(fd, payload, OS_DGRAM_MAX, &n, &from, &port);
		if (e == WEFT_EAGAIN) {
			return;
		}
		if (e || r->port == 0) {
			continue;
		}
		uint8_t header[SOCKS_ANSWER_HEADER_MAX];
		size_t len = socks_header_encode(&from, port, header);
		memcpy(payload - len, header, len);
		e = os_dgram_send(r->in, payload - len, len + n, &r->client->from.addr, r->port);
		r->received += !e;
		r->refused += e != WEFT_OK;
		r->last = p->now;
	}
}

static void
out4_ready(void *ctx, uint32_t events)
{
	struct proxy_relay *r = ctx;
	(void)events;
	out_ready(r, r->out[0]);
}

static void
out6_ready(void *ctx, uint32_t events)
{
	struct proxy_relay *r = ctx;
	(void)events;
	out_ready(r, r->out[1]);
}

static bool
open_out(struct proxy_relay *r, bool is_v6)
{
	struct weft_dial_options o = {.size = sizeof(o), .flags = WEFT_NONBLOCK | WEFT_V6ONLY};
	struct proxy *p = r->client->proxy;
	int *fd = &r->out[is_v6];
	if (*fd >= 0) {
		return true;
	}
	if (weft_packet(p->overlay.node, is_v6 ? "udp6" : "udp4", is_v6 ? "[::]:0" : "0.0.0.0:0",
		    &o, fd, NULL)) {
		*fd = -1;
		return false;
	}
	if (os_loop_add(p->loop, *fd, OS_READABLE, is_v6 ? out6_ready : out4_ready, r)) {
		os_fd_close(fd);
		return false;
	}
	return true;
}

static bool
send_to(struct proxy_relay *r, const struct ip_addr *to, uint16_t port, const uint8_t *data,
	size_t len)
{
	bool is_v6 = to->family == IP_FAMILY_V6;
	bool is_sent =
		open_out(r, is_v6) && os_dgram_send(r->out[is_v6], data, len, to, port) == WEFT_OK;
	r->sent += is_sent;
	return is_sent;
}

/* The first of its addresses that has a way. */
static void
send_to_name(struct proxy_relay *r, const struct relay_name *n, uint16_t port, const uint8_t *data,
	size_t len)
{
	bool is_sent = false;
	for (size_t i = 0; !is_sent && i < n->ask.addrs_n; i++) {
		is_sent = send_to(r, &n->ask.addrs[i], port, data, len);
	}
	r->refused += !is_sent;
}

static void
answered(struct proxy_ask *a)
{
	struct relay_name *n = a->ctx;
	n->is_asked = false;
	/* No address is an answer, too: it is not asked again with each datagram. */
	n->until = mono_add_ns(n->relay->client->proxy->now, NAME_NS);
	if (n->held) {
		send_to_name(n->relay, n, n->held_port, n->held, n->held_len);
		free(n->held);
		n->held = NULL;
	}
}

static void
name_fini(struct relay_name *n)
{
	proxy_names_forget(&n->ask);
	n->relay->refused += n->held != NULL;
	free(n->held);
	*n = (struct relay_name){.relay = n->relay};
}

static struct relay_name *
find_name(struct proxy_relay *r, const char *host)
{
	struct proxy *p = r->client->proxy;
	struct relay_name *n = NULL;
	for (unsigned i = 0; !n && i < NAMES_MAX; i++) {
		n = strcmp(r->names[i].host, host) == 0 ? &r->names[i] : NULL;
	}
	if (n && (n->is_asked || mono_is_before(p->now, n->until))) {
		return n;
	}
	if (!n) {
		n = &r->names[r->next_name++ % NAMES_MAX];
	}
	name_fini(n);
	memcpy(n->host, host, strlen(host) + 1);
	n->ask.done = answered;
	n->ask.ctx = n;
	n->is_asked = true;
	if (proxy_names_ask(p->names, &n->ask, host) != WEFT_EAGAIN) {
		answered(&n->ask);
	}
	return n;
}

static void
hold(struct relay_name *n, uint16_t port, const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	if (!copy) {
		n->relay->refused++;
		return;
	}
	memcpy(copy, data, len);
	n->relay->refused += n->held != NULL;
	free(n->held);
	n->held = copy;
	n->held_len = len;
	n->held_port = port;
}

static void
pass_on(struct proxy_relay *r, const uint8_t *data, size_t len)
{
	struct socks_datagram d;
	if (socks_datagram_decode(data, len, &d) || d.fragment != 0 || d.to.port == 0) {
		r->refused++;
		return;
	}
	data += d.header_len;
	len -= d.header_len;
	if (d.to.addr.family != IP_FAMILY_NONE) {
		r->refused += !send_to(r, &d.to.addr, d.to.port, data, len);
		return;
	}
	struct relay_name *n = find_name(r, d.to.host);
	if (n->is_asked) {
		hold(n, d.to.port, data, len);
	} else {
		send_to_name(r, n, d.to.port, data, len);
	}
}

/* From the client to the overlay. */
static void
in_ready(void *ctx, uint32_t events)
{
	struct proxy_relay *r = ctx;
	struct proxy *p = r->client->proxy;
	(void)events;
	for (unsigned i = 0; i < TURN_DATAGRAMS; i++) {
		struct ip_addr from;
		uint16_t port;
		size_t n;
		enum weft_err e =
			os_dgram_receive(r->in, p->datagram, sizeof(p->datagram), &n, &from, &port);
		if (e == WEFT_EAGAIN) {
			return;
		}
		if (e || !ip_addr_is_equal(&from, &r->client->from.addr) ||
			(r->port != 0 && port != r->port)) {
			r->refused += !e;
			continue;
		}
		r->port = port;
		r->last = p->now;
		pass_on(r, p->datagram, n);
	}
}

/* Where the client's connection came in: there it can reach us. */
static enum weft_err
open_in(struct proxy_relay *r, struct endpoint *bound)
{
	struct os_inet_name at;
	int errnum;
	*bound = (struct endpoint){0};
	enum weft_err e = os_inet_local(r->client->fd, &bound->addr, &bound->port);
	if (e) {
		return e;
	}
	bool is_v6 = bound->addr.family == IP_FAMILY_V6;
	e = os_netns_socket(NULL, is_v6 ? AF_INET6 : AF_INET,
		SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, &r->in);
	if (e) {
		r->in = -1;
		return e;
	}
	os_inet_name(&bound->addr, 0, 0, &at);
	e = os_inet_bind(r->in, &at, OS_INET_V6ONLY, &errnum);
	if (!e) {
		e = os_inet_local(r->in, &bound->addr, &bound->port);
	}
	return e ? e : os_loop_add(r->client->proxy->loop, r->in, OS_READABLE, in_ready, r);
}

enum weft_err
proxy_relay_new(struct proxy_client *c, uint16_t port, struct endpoint *bound)
{
	struct proxy_relay *r = calloc(1, sizeof(*r));
	if (!r) {
		return WEFT_ENOMEM;
	}
	r->client = c;
	r->in = r->out[0] = r->out[1] = -1;
	r->port = port;
	r->last = c->proxy->now;
	for (unsigned i = 0; i < NAMES_MAX; i++) {
		r->names[i].relay = r;
	}
	enum weft_err e = open_in(r, bound);
	if (e) {
		proxy_relay_free(r);
		return e;
	}
	c->relay = r;
	proxy_client_arm(c, mono_add_ns(r->last, PROXY_IDLE_NS), idle_expired);
	return WEFT_OK;
}

void
proxy_relay_free(struct proxy_relay *r)
{
	if (!r) {
		return;
	}
	struct proxy *p = r->client->proxy;
	char from[ENDPOINT_TEXT_MAX];
	proxy_log(p, WEFT_LOG_DEBUG, "%s: datagrams: %llu out, %llu back, %llu refused",
		endpoint_format(&r->client->from, from), (unsigned long long)r->sent,
		(unsigned long long)r->received, (unsigned long long)r->refused);
	os_loop_del(p->loop, r->in);
	os_fd_close(&r->in);
	for (unsigned i = 0; i < FAMILIES; i++) {
		os_loop_del(p->loop, r->out[i]);
		os_fd_close(&r->out[i]);
	}
	for (unsigned i = 0; i < NAMES_MAX; i++) {
		name_fini(&r->names[i]);
	}
	free(r);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/resolve.h"

#include <ares.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/clock.h"
#include "os/loop.h"

/* A server that says nothing is asked so often, the first time for so long, then each time for
 * twice as long: 14 s altogether. */
#define TRIES 3
#define TIMEOUT_MS 2000
#define EDNS_BYTES 1232 /* fits the smallest MTU of IPv6; of an answer */

struct watch {
	struct os_resolver *resolver;
	int fd; /* -1: free */
};

/* Of a question under way. */
struct question {
	struct os_resolver *resolver;
	uint64_t tag;
	enum ip_family family;
};

struct os_resolver {
	struct os_loop *loop;
	os_resolved *done;
	void *ctx;
	uint32_t mark;
	const struct os_resolver_servers *servers; /* NULL: the system's */
	ares_channel channel;                      /* while something is asked; NULL: none */
	size_t asked;                              /* questions under way */
	bool is_ending;
	struct watch watches[OS_RESOLVER_WATCHES_MAX];
};

enum weft_err
os_resolver_new(struct os_loop *loop, os_resolved *done, void *ctx, struct os_resolver **out)
{
	struct os_resolver *r = calloc(1, sizeof(*r));
	if (!r) {
		return WEFT_ENOMEM;
	}
	r->loop = loop;
	r->done = done;
	r->ctx = ctx;
	for (size_t i = 0; i < OS_RESOLVER_WATCHES_MAX; i++) {
		r->watches[i] = (struct watch){r, -1};
	}
	*out = r;
	return WEFT_OK;
}

/* Its sockets, and with them their watches, go too. */
static void
close_channel(struct os_resolver *r)
{
	if (r->channel) {
		ares_destroy(r->channel);
		r->channel = NULL;
	}
}

void
os_resolver_free(struct os_resolver *r)
{
	if (r) {
		r->is_ending = true;
		close_channel(r);
		free(r);
	}
}

void
os_resolver_set_mark(struct os_resolver *r, uint32_t mark)
{
	r->mark = mark;
}

void
os_resolver_set_servers(struct os_resolver *r, const struct os_resolver_servers *s)
{
	r->servers = s;
}

static void
on_ready(void *ctx, uint32_t events)
{
	struct watch *w = ctx;
	ares_process_fd(w->resolver->channel, events & OS_READABLE ? w->fd : ARES_SOCKET_BAD,
		events & OS_WRITABLE ? w->fd : ARES_SOCKET_BAD);
}

static struct watch *
find_watch(struct os_resolver *r, int fd)
{
	for (size_t i = 0; i < OS_RESOLVER_WATCHES_MAX; i++) {
		if (r->watches[i].fd == fd) {
			return &r->watches[i];
		}
	}
	return NULL;
}

/* A socket that finds no place is not watched: its question times out. */
static void
on_socket(void *ctx, ares_socket_t fd, int is_readable, int is_writable)
{
	struct os_resolver *r = ctx;
	uint32_t events = (is_readable ? OS_READABLE : 0u) | (is_writable ? OS_WRITABLE : 0u);
	struct watch *w = find_watch(r, fd);
	enum weft_err e = WEFT_OK;
	if (w && events) {
		e = os_loop_mod(r->loop, fd, events);
	} else if (w) {
		os_loop_del(r->loop, fd);
		w->fd = -1;
	} else if (events && (w = find_watch(r, -1)) != NULL) {
		w->fd = fd;
		e = os_loop_add(r->loop, fd, events, on_ready, w);
	}
	if (e && w) {
		w->fd = -1;
	}
}

/* 0: go on. Without the privilege for a mark, no tunnel of ours has a mark either. */
static int
on_configure(ares_socket_t fd, int type, void *ctx)
{
	const struct os_resolver *r = ctx;
	(void)type;
	if (r->mark) {
		(void)setsockopt(fd, SOL_SOCKET, SO_MARK, &r->mark, sizeof(r->mark));
	}
	return 0;
}

/* Sockets of our own, for servers of our own: the rest of the calls are the plain ones. */
static ares_socket_t
own_socket(int domain, int type, int protocol, void *ctx)
{
	const struct os_resolver *r = ctx;
	int fd;
	(void)protocol;
	if (type != SOCK_DGRAM || r->servers->socket(r->servers->ctx,
					  domain == AF_INET ? IP_FAMILY_V4 : IP_FAMILY_V6, &fd)) {
		errno = EAFNOSUPPORT;
		return ARES_SOCKET_BAD;
	}
	return fd;
}

static int
own_close(ares_socket_t fd, void *ctx)
{
	(void)ctx;
	return close(fd);
}

static int
own_connect(ares_socket_t fd, const struct sockaddr *to, ares_socklen_t len, void *ctx)
{
	(void)ctx;
	return connect(fd, to, len);
}

static ares_ssize_t
own_receive(ares_socket_t fd, void *buf, size_t cap, int flags, struct sockaddr *from,
	ares_socklen_t *len, void *ctx)
{
	(void)ctx;
	return recvfrom(fd, buf, cap, flags, from, len);
}

static ares_ssize_t
own_send(ares_socket_t fd, const struct iovec *v, int n, void *ctx)
{
	(void)ctx;
	return writev(fd, v, n);
}

static int
use_servers(struct os_resolver *r)
{
	static const struct ares_socket_functions calls = {.asocket = own_socket,
		.aclose = own_close,
		.aconnect = own_connect,
		.arecvfrom = own_receive,
		.asendv = own_send};
	ares_set_socket_functions(r->channel, &calls, r);
	int rc = ares_set_servers_ports_csv(r->channel, r->servers->list);
	if (rc != ARES_SUCCESS) {
		close_channel(r);
	}
	return rc;
}

static int
init_with_servers(struct os_resolver *r, struct ares_options *o, int mask)
{
	static const char from_dns[] = "b", nothing[] = "/dev/null";
	const struct os_resolver_servers *s = r->servers;
	/* c-ares copies what the pointers without const lead to. */
	o->flags = ARES_FLAG_IGNTC | ARES_FLAG_EDNS;
	o->flags |= s->domains_n > 0 ? 0 : ARES_FLAG_NOSEARCH;
	o->ednspsz = EDNS_BYTES;
	o->lookups = (char *)from_dns;
	o->resolvconf_path = (char *)nothing;
	o->ndots = 1;
	mask |= ARES_OPT_FLAGS | ARES_OPT_EDNSPSZ | ARES_OPT_LOOKUPS | ARES_OPT_RESOLVCONF |
		ARES_OPT_NDOTS;
	if (s->domains_n > 0) {
		o->domains = (char **)s->domains;
		o->ndomains = (int)s->domains_n;
		mask |= ARES_OPT_DOMAINS;
	}
	int rc = ares_init_options(&r->channel, o, mask);
	return rc == ARES_SUCCESS ? use_servers(r) : rc;
}

static enum weft_err
open_channel(struct os_resolver *r)
{
	struct ares_options o = {.timeout = TIMEOUT_MS,
		.tries = TRIES,
		.sock_state_cb = on_socket,
		.sock_state_cb_data = r};
	int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;
	int rc = r->servers ? init_with_servers(r, &o, mask)
			    : ares_init_options(&r->channel, &o, mask);
	if (rc != ARES_SUCCESS) {
		r->channel = NULL;
		return rc == ARES_ENOMEM ? WEFT_ENOMEM : WEFT_EAGAIN;
	}
	ares_set_socket_configure_callback(r->channel, on_configure, r);
	return WEFT_OK;
}

static bool
take_address(const struct ares_addrinfo *list, enum ip_family family, struct ip_addr *out)
{
	const struct ares_addrinfo_node *n = list ? list->nodes : NULL;
	int af = family == IP_FAMILY_V4 ? AF_INET : AF_INET6;
	while (n && n->ai_family != af) {
		n = n->ai_next;
	}
	if (!n) {
		return false;
	}
	*out = (struct ip_addr){.family = family};
	if (family == IP_FAMILY_V4) {
		memcpy(out->b, &((const struct sockaddr_in *)(const void *)n->ai_addr)->sin_addr,
			4);
	} else {
		memcpy(out->b, &((const struct sockaddr_in6 *)(const void *)n->ai_addr)->sin6_addr,
			16);
	}
	return true;
}

static void
on_answer(void *ctx, int status, int timeouts, struct ares_addrinfo *list)
{
	struct question q = *(struct question *)ctx;
	struct os_resolver *r = q.resolver;
	struct ip_addr addr = {0};
	(void)timeouts;
	free(ctx);
	bool is_found = status == ARES_SUCCESS && take_address(list, q.family, &addr);
	if (list) {
		ares_freeaddrinfo(list);
	}
	r->asked--;
	if (r->is_ending) {
		return;
	}
	bool is_known_absent = status == ARES_SUCCESS || status == ARES_ENODATA ||
			       status == ARES_ENOTFOUND || status == ARES_EBADNAME;
	r->done(r->ctx, q.tag, q.family,
		is_found          ? WEFT_OK
		: is_known_absent ? WEFT_ENOENT
				  : WEFT_EAGAIN,
		&addr);
}

void
os_resolver_ask(struct os_resolver *r, const char *host, enum ip_family family, uint64_t tag)
{
	struct ip_addr none = {0};
	struct question *q = malloc(sizeof(*q));
	enum weft_err e = q ? WEFT_OK : WEFT_ENOMEM;
	if (!e && !r->channel) {
		e = open_channel(r);
	}
	if (e) {
		free(q);
		r->done(r->ctx, tag, family, WEFT_EAGAIN, &none);
		return;
	}
	*q = (struct question){r, tag, family};
	r->asked++;
	struct ares_addrinfo_hints hints = {.ai_flags = ARES_AI_NOSORT,
		.ai_family = family == IP_FAMILY_V4 ? AF_INET : AF_INET6,
		.ai_socktype = SOCK_DGRAM};
	ares_getaddrinfo(r->channel, host, NULL, &hints, on_answer, q);
}

struct mono
os_resolver_deadline(const struct os_resolver *r)
{
	struct timeval tv;
	if (!r->channel) {
		return MONO_NEVER;
	}
	if (r->asked == 0) {
		return (struct mono){0};
	}
	if (!ares_timeout(r->channel, NULL, &tv)) {
		return MONO_NEVER;
	}
	return mono_add_ns(os_clock_mono(),
		(int64_t)tv.tv_sec * WEFT_NS_PER_S + (int64_t)tv.tv_usec * WEFT_NS_PER_US);
}

void
os_resolver_turn(struct os_resolver *r, struct mono now)
{
	(void)now; /* c-ares has a clock of its own */
	if (!r->channel) {
		return;
	}
	if (r->asked > 0) {
		ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	}
	if (r->asked == 0) {
		close_channel(r);
	}
}

uint32_t
os_resolve_scope(const char *scope)
{
	uint32_t index = if_nametoindex(scope);
	if (index == 0) {
		char *end;
		unsigned long v = strtoul(scope, &end, 10);
		if (*scope && !*end && v <= UINT32_MAX) {
			index = (uint32_t)v;
		}
	}
	return index;
}

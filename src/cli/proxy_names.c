/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/proxy_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/overlay.h"
#include "os/inet.h"
#include "os/resolve.h"
#include "weft/dial.h"
#include "wire/conf.h"

struct proxy_names {
	struct overlay *overlay;
	struct os_loop *loop;
	struct os_resolver *resolver; /* NULL: no server is configured */
	struct os_resolver_servers servers;
	char *list;           /* servers.list */
	const char **domains; /* servers.domains, into the configuration */
	struct list asks;
	uint64_t tag;             /* of the last question */
	struct proxy_ask *asking; /* its answers may come at once */
};

static enum weft_err
open_socket(void *ctx, enum ip_family family, int *fd)
{
	const struct proxy_names *n = ctx;
	struct weft_dial_options o = {.size = sizeof(o), .flags = WEFT_NONBLOCK};
	bool is_v4 = family == IP_FAMILY_V4;
	return weft_packet(n->overlay->node, is_v4 ? "udp4" : "udp6",
		is_v4 ? "0.0.0.0:0" : "[::]:0", &o, fd, NULL);
}

static void
finish(struct proxy_ask *a)
{
	if (a->addrs_n > 0) {
		a->err = WEFT_OK;
	}
	list_remove(&a->link);
}

static void
answered(
	void *ctx, uint64_t tag, enum ip_family family, enum weft_err e, const struct ip_addr *addr)
{
	struct proxy_names *n = ctx;
	(void)family;
	LIST_FOR_EACH(it, &n->asks)
	{
		struct proxy_ask *a = WEFT_CONTAINER_OF(it, struct proxy_ask, link);
		if (a->tag != tag) {
			continue;
		}
		if (!e && a->addrs_n < PROXY_ADDRS_MAX) {
			a->addrs[a->addrs_n++] = *addr;
		} else if (e != WEFT_ENOENT) {
			a->err = e;
		}
		if (--a->left == 0 && a != n->asking) {
			finish(a);
			a->done(a);
		}
		return;
	}
}

/* A server whose address has a scope is left out: the overlay has no links. */
static enum weft_err
make_list(struct proxy_names *n)
{
	const struct conf_interface *i = &n->overlay->conf->interface;
	size_t len;
	FILE *f = open_memstream(&n->list, &len);
	if (!f) {
		return WEFT_ENOMEM;
	}
	unsigned count = 0;
	for (size_t k = 0; k < i->dns.n; k++) {
		const char *text = i->dns.v[k].text;
		if (!strchr(text, '%')) {
			bool is_v6 = strchr(text, ':') != NULL;
			fprintf(f, "%s%s%s%s", count++ ? "," : "", is_v6 ? "[" : "", text,
				is_v6 ? "]" : "");
		}
	}
	n->domains = calloc(i->dns_search.n + 1, sizeof(*n->domains));
	if (fclose(f) || !n->domains) {
		return WEFT_ENOMEM;
	}
	for (size_t k = 0; k < i->dns_search.n; k++) {
		n->domains[k] = i->dns_search.v[k].text;
	}
	n->servers = (struct os_resolver_servers){.list = n->list,
		.domains = n->domains,
		.domains_n = i->dns_search.n,
		.socket = open_socket,
		.ctx = n};
	if (count == 0) {
		return WEFT_OK;
	}
	enum weft_err e = os_resolver_new(n->loop, answered, n, &n->resolver);
	if (!e) {
		os_resolver_set_servers(n->resolver, &n->servers);
	}
	return e;
}

static void
close_resolver(struct proxy_names *n)
{
	os_resolver_free(n->resolver);
	n->resolver = NULL;
	free(n->list);
	free(n->domains);
	n->list = NULL;
	n->domains = NULL;
}

enum weft_err
proxy_names_new(struct overlay *v, struct os_loop *loop, struct proxy_names **out)
{
	struct proxy_names *n = calloc(1, sizeof(*n));
	if (!n) {
		return WEFT_ENOMEM;
	}
	n->overlay = v;
	n->loop = loop;
	list_init(&n->asks);
	enum weft_err e = make_list(n);
	if (e) {
		proxy_names_free(n);
		return e;
	}
	*out = n;
	return WEFT_OK;
}

void
proxy_names_free(struct proxy_names *n)
{
	if (!n) {
		return;
	}
	LIST_FOR_EACH_SAFE(it, tmp, &n->asks)
	{
		list_remove(it);
	}
	close_resolver(n);
	free(n);
}

enum weft_err
proxy_names_reload(struct proxy_names *n)
{
	close_resolver(n);
	enum weft_err e = make_list(n);
	/* What was asked of the servers before gets no answer. */
	while (!list_is_empty(&n->asks)) {
		struct proxy_ask *a = WEFT_CONTAINER_OF(n->asks.next, struct proxy_ask, link);
		a->err = WEFT_EAGAIN;
		finish(a);
		a->done(a);
	}
	return e;
}

/* Of a peer, or an address as text. */
static enum weft_err
find_peer(struct proxy_names *n, struct proxy_ask *a, const char *host)
{
	struct addrinfo *list;
	enum weft_err e = weft_getaddrinfo(n->overlay->node, host, NULL, NULL, &list);
	if (e) {
		return e;
	}
	for (const struct addrinfo *i = list; i && a->addrs_n < PROXY_ADDRS_MAX; i = i->ai_next) {
		uint16_t port;
		a->addrs_n += os_inet_read(i->ai_addr, i->ai_addrlen, &a->addrs[a->addrs_n], &port);
	}
	weft_freeaddrinfo(list);
	return WEFT_OK;
}

enum weft_err
proxy_names_ask(struct proxy_names *n, struct proxy_ask *a, const char *host)
{
	a->addrs_n = 0;
	a->err = find_peer(n, a, host);
	if (a->err != WEFT_ENOENT || !n->resolver) {
		return a->err;
	}
	a->tag = ++n->tag;
	a->left = 2;
	list_push_back(&n->asks, &a->link);
	n->asking = a;
	os_resolver_ask(n->resolver, host, IP_FAMILY_V6, a->tag);
	os_resolver_ask(n->resolver, host, IP_FAMILY_V4, a->tag);
	n->asking = NULL;
	if (a->left > 0) {
		return WEFT_EAGAIN;
	}
	finish(a);
	/* WEFT_EAGAIN would promise a call. */
	return a->err == WEFT_EAGAIN ? WEFT_EIO : a->err;
}

void
proxy_names_forget(struct proxy_ask *a)
{
	if (a->link.next) {
		list_remove(&a->link);
	}
}

bool
proxy_names_has_servers(const struct proxy_names *n)
{
	return n->resolver != NULL;
}

struct mono
proxy_names_deadline(const struct proxy_names *n)
{
	return n->resolver ? os_resolver_deadline(n->resolver) : MONO_NEVER;
}

void
proxy_names_turn(struct proxy_names *n, struct mono now)
{
	if (n->resolver) {
		os_resolver_turn(n->resolver, now);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Host names to addresses, by the resolver settings and the hosts file of the system.
 *
 * Questions run on the caller's loop by c-ares; nothing waits. Its sockets carry a mark, so that
 * they take the way of the tunnel's own datagrams: a default route into a tunnel whose endpoint
 * is yet to be found would swallow the question. The settings are read anew for each round of
 * questions: they change with the network.
 *
 * Threads: the loop's. */
#ifndef WEFT_OS_RESOLVE_H
#define WEFT_OS_RESOLVE_H

#include "base/addr.h"
#include "base/err.h"
#include "base/mono.h"

struct os_loop;
struct os_resolver;

#define OS_RESOLVER_WATCHES_MAX 32

/* The end of a question. WEFT_OK: addr is the first address; WEFT_ENOENT: the name has none of
 * that family; WEFT_EAGAIN: no answer now. May come before os_resolver_ask() returns. Must not
 * free the resolver. */
typedef void os_resolved(void *ctx, uint64_t tag, enum ip_family family, enum weft_err e,
	const struct ip_addr *addr);

/* Servers to ask in place of the system's settings, of which nothing is read then. */
struct os_resolver_servers {
	const char *list;           /* "10.0.0.2,[fd99::2]:53" */
	const char *const *domains; /* searched for names without a dot */
	size_t domains_n;
	/* A UDP socket of that family to ask from. Cut answers count as they are. */
	enum weft_err (*socket)(void *ctx, enum ip_family family, int *fd);
	void *ctx;
};

WEFT_MUST_CHECK enum weft_err os_resolver_new(
	struct os_loop *loop, os_resolved *done, void *ctx, struct os_resolver **out);
/* Questions under way end without a word. NULL is allowed. */
void os_resolver_free(struct os_resolver *r);
/* Of sockets from now on; 0 = none. */
void os_resolver_set_mark(struct os_resolver *r, uint32_t mark);
/* Of questions after a time without any. s stays the caller's and in place. */
void os_resolver_set_servers(struct os_resolver *r, const struct os_resolver_servers *s);
void os_resolver_ask(struct os_resolver *r, const char *host, enum ip_family family, uint64_t tag);
/* When os_resolver_turn() is due next; MONO_NEVER while nothing is asked. */
struct mono os_resolver_deadline(const struct os_resolver *r);
void os_resolver_turn(struct os_resolver *r, struct mono now);

/* Index of an interface by name or decimal number; 0 = none. */
uint32_t os_resolve_scope(const char *scope);

#endif

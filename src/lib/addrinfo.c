/* SPDX-License-Identifier: Apache-2.0 */
/* Names to addresses in the form of RFC 3493, section 6.1. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "lib/node.h"
#include "lib/target.h"
#include "os/inet.h"

/* One block an entry. */
struct entry {
	struct addrinfo info;
	struct os_inet_name name;
};

/* Without a started node there is no interface to name. */
static uint32_t
zone_of(struct weft_node *n, const struct ip_addr *a)
{
	uint32_t zone = 0;
	if (lib_node_enter(n) == WEFT_OK) {
		zone = lib_node_zone(n, a);
		lib_node_leave(n);
	}
	return zone;
}

static bool
add(struct addrinfo ***tail, const struct ip_addr *a, uint16_t port, uint32_t zone,
	const struct addrinfo *hints)
{
	struct entry *e = calloc(1, sizeof(*e));
	if (!e) {
		return false;
	}
	os_inet_name(a, port, zone, &e->name);
	e->info = (struct addrinfo){.ai_family = e->name.at.ss_family,
		.ai_socktype = hints->ai_socktype,
		.ai_protocol = hints->ai_protocol,
		.ai_addrlen = e->name.len,
		.ai_addr = (struct sockaddr *)&e->name.at};
	**tail = &e->info;
	*tail = &e->info.ai_next;
	return true;
}

static enum ip_family
family_of(const struct addrinfo *hints)
{
	return hints->ai_family == AF_INET    ? IP_FAMILY_V4
	       : hints->ai_family == AF_INET6 ? IP_FAMILY_V6
					      : IP_FAMILY_NONE;
}

/* Without a host: what to listen on, or the loopback interface. */
static size_t
own_addrs(const struct addrinfo *hints, struct ip_addr out[TARGET_ADDRS_MAX])
{
	enum ip_family family = family_of(hints);
	size_t n = 0;
	if (family != IP_FAMILY_V4) {
		out[n] = target_any(IP_FAMILY_V6);
		out[n++].b[15] = !(hints->ai_flags & AI_PASSIVE);
	}
	if (family != IP_FAMILY_V6) {
		out[n] = target_any(IP_FAMILY_V4);
		if (!(hints->ai_flags & AI_PASSIVE)) {
			memcpy(out[n].b, (const uint8_t[]){127, 0, 0, 1}, 4);
		}
		n++;
	}
	return n;
}

static enum weft_err
find(struct weft_node *n, const char *host, const struct addrinfo *hints,
	struct ip_addr out[TARGET_ADDRS_MAX], size_t *out_n)
{
	if (!host) {
		*out_n = own_addrs(hints, out);
		return WEFT_OK;
	}
	struct ip_addr numeric;
	if (hints->ai_flags & AI_NUMERICHOST && ip_addr_parse(host, strlen(host), &numeric)) {
		return WEFT_ENOENT;
	}
	return target_resolve(n, host, family_of(hints), out, out_n);
}

enum weft_err
weft_getaddrinfo(struct weft_node *n, const char *host, const char *service,
	const struct addrinfo *hints, struct addrinfo **out)
{
	static const struct addrinfo any;
	struct ip_addr addrs[TARGET_ADDRS_MAX];
	size_t count;
	uint16_t port = 0;
	hints = hints ? hints : &any;
	if (!n || !out || (!host && !service) ||
		(hints->ai_family != AF_UNSPEC && hints->ai_family != AF_INET &&
			hints->ai_family != AF_INET6)) {
		return WEFT_EINVAL;
	}
	enum weft_err e =
		service ? os_inet_service(service, hints->ai_socktype == SOCK_DGRAM, &port)
			: WEFT_OK;
	if (!e) {
		e = find(n, host, hints, addrs, &count);
	}
	if (e) {
		return e;
	}
	struct addrinfo *list = NULL, **tail = &list;
	for (size_t i = 0; i < count; i++) {
		if (!add(&tail, &addrs[i], port, zone_of(n, &addrs[i]), hints)) {
			weft_freeaddrinfo(list);
			return WEFT_ENOMEM;
		}
	}
	*out = list;
	return WEFT_OK;
}

void
weft_freeaddrinfo(struct addrinfo *list)
{
	while (list) {
		struct addrinfo *next = list->ai_next;
		free(list); /* the first member of its struct entry */
		list = next;
	}
}

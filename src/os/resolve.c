/* SPDX-License-Identifier: Apache-2.0 */
#include "os/resolve.h"

#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static bool
take_sockaddr(const struct sockaddr *sa, struct endpoint *e)
{
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)sa;
		e->addr.family = IP_FAMILY_V4;
		memcpy(e->addr.b, &in->sin_addr, 4);
		return true;
	}
	if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const void *)sa;
		e->addr.family = IP_FAMILY_V6;
		memcpy(e->addr.b, &in->sin6_addr, 16);
		e->scope_id = in->sin6_scope_id;
		return true;
	}
	return false;
}

enum weft_err
os_resolve(const char *host, uint16_t port, struct endpoint *out)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_ADDRCONFIG};
	struct addrinfo *list;
	int rc = getaddrinfo(host, NULL, &hints, &list);
	if (rc != 0) {
		return rc == EAI_NONAME || rc == EAI_FAIL ? WEFT_ENOENT : WEFT_EAGAIN;
	}
	struct endpoint e = {.port = port};
	bool is_found = false;
	for (struct addrinfo *a = list; a && !is_found; a = a->ai_next) {
		is_found = take_sockaddr(a->ai_addr, &e);
	}
	freeaddrinfo(list);
	if (!is_found) {
		return WEFT_ENOENT;
	}
	*out = e;
	return WEFT_OK;
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/target.h"

#include <stdio.h>
#include <string.h>

#include "lib/detail.h"
#include "lib/node.h"
#include "os/inet.h"

enum weft_err
target_network(const char *network, const char *kind, struct network *out, struct weft_detail *why)
{
	struct network n = {.is_udp = strncmp(network, "udp", 3) == 0};
	bool ok = n.is_udp || strncmp(network, "tcp", 3) == 0;
	if (ok && network[3] != 0) {
		n.family = network[3] == '4'   ? IP_FAMILY_V4
			   : network[3] == '6' ? IP_FAMILY_V6
					       : IP_FAMILY_NONE;
		ok = n.family != IP_FAMILY_NONE && network[4] == 0;
	}
	if (!ok || (kind && strncmp(network, kind, 3) != 0)) {
		return detail_set(why, WEFT_EINVAL, 0,
			"network must be \"%s\", or that with \"4\" or \"6\" behind it",
			kind ? kind : "tcp\" or \"udp");
	}
	*out = n;
	return WEFT_OK;
}

/* What accept(2) tells of IPv4 on a socket for both families (RFC 4291, section 2.5.5.2) is IPv4.
 */
static void
unmap(struct target *t)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct ip_addr a, v4 = {.family = IP_FAMILY_V4};
	char text[IP_ADDR_TEXT_MAX];
	if (ip_addr_parse(t->host, strlen(t->host), &a) == WEFT_OK && a.family == IP_FAMILY_V6 &&
		memcmp(a.b, mapped, sizeof(mapped)) == 0) {
		memcpy(v4.b, a.b + sizeof(mapped), 4);
		snprintf(t->host, sizeof(t->host), "%s", ip_addr_format(&v4, text));
	}
}

enum weft_err
target_parse(const char *address, bool is_udp, struct target *out, struct weft_detail *why)
{
	const char *colon = strrchr(address, ':');
	const char *host = address;
	size_t len = colon ? (size_t)(colon - address) : 0;
	bool is_bracketed = len >= 2 && host[0] == '[' && host[len - 1] == ']';
	if (is_bracketed) {
		host++;
		len -= 2;
	}
	if (!colon || len >= TARGET_HOST_MAX || (!is_bracketed && memchr(host, ':', len)) ||
		memchr(host, '[', len) || memchr(host, ']', len)) {
		return detail_set(why, WEFT_EPARSE, 0,
			"\"%.100s\": must be HOST:PORT, an IPv6 address in brackets", address);
	}
	if (os_inet_service(colon + 1, is_udp, &out->port)) {
		return detail_set(why, WEFT_ENOENT, 0,
			"\"%.60s\": no port from 0 to 65535, and no service in /etc/services",
			colon + 1);
	}
	memcpy(out->host, host, len);
	out->host[len] = 0;
	unmap(out);
	return WEFT_OK;
}

enum weft_err
target_resolve(struct weft_node *n, const char *host, enum ip_family family,
	struct ip_addr out[TARGET_ADDRS_MAX], size_t *out_n)
{
	struct ip_addr found[TARGET_ADDRS_MAX] = {0};
	if (ip_addr_parse(host, strlen(host), &found[0])) {
		os_mutex_lock(&n->mutex);
		const struct lib_name *name = lib_names_find(&n->names, host);
		if (name) {
			memcpy(found, name->addrs, sizeof(found));
		}
		os_mutex_unlock(&n->mutex);
	}
	size_t count = 0;
	for (size_t i = 0; i < TARGET_ADDRS_MAX; i++) {
		if (found[i].family != IP_FAMILY_NONE &&
			(family == IP_FAMILY_NONE || family == found[i].family)) {
			out[count++] = found[i];
		}
	}
	*out_n = count;
	return count ? WEFT_OK : WEFT_ENOENT;
}

struct ip_addr
target_any(enum ip_family family)
{
	return (struct ip_addr){.family = family};
}

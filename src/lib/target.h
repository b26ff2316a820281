/* SPDX-License-Identifier: Apache-2.0 */
/* "tcp6" and "[fd00::1]:80": what callers write, as values. */
#ifndef WEFT_LIB_TARGET_H
#define WEFT_LIB_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"

struct weft_detail;
struct weft_node;

#define TARGET_HOST_MAX 256

struct network {
	bool is_udp;
	enum ip_family family; /* IP_FAMILY_NONE: both */
};

struct target {
	char host[TARGET_HOST_MAX]; /* without brackets; may be empty */
	uint16_t port;
};

/* The addresses that a host may have here: one a family. */
#define TARGET_ADDRS_MAX 2

/* kinds: "tcp", "udp", or NULL for both. WEFT_EINVAL. */
WEFT_MUST_CHECK enum weft_err target_network(
	const char *network, const char *kind, struct network *out, struct weft_detail *why);
/* "HOST:PORT". WEFT_EPARSE; WEFT_ENOENT: no such service. */
WEFT_MUST_CHECK enum weft_err target_parse(
	const char *address, bool is_udp, struct target *out, struct weft_detail *why);
/* Addresses of a host, an IP address or a peer's name, of one family or IP_FAMILY_NONE.
 * WEFT_ENOENT. Takes the node's lock. */
WEFT_MUST_CHECK enum weft_err target_resolve(struct weft_node *n, const char *host,
	enum ip_family family, struct ip_addr out[TARGET_ADDRS_MAX], size_t *out_n);
/* The unspecified address. */
struct ip_addr target_any(enum ip_family family);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Internet addresses and UDP endpoints without any operating-system header.
 *
 * An endpoint is where a peer is reached, together with the local address that it must be
 * answered from (the sticky source). */
#ifndef WEFT_BASE_ADDR_H
#define WEFT_BASE_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/err.h"

enum ip_family {
	IP_FAMILY_NONE = 0,
	IP_FAMILY_V4 = 4,
	IP_FAMILY_V6 = 6,
};

struct ip_addr {
	enum ip_family family;
	uint8_t b[16]; /* network order; IPv4 uses the first 4, the rest is zero */
};

struct ip_prefix {
	struct ip_addr addr;
	uint8_t bits; /* 0..32 or 0..128 */
};

struct endpoint {
	struct ip_addr addr;  /* IP_FAMILY_NONE: no endpoint known */
	uint16_t port;        /* host order */
	uint32_t scope_id;    /* IPv6 link-local: interface index, else 0 */
	struct ip_addr src;   /* our address to send from; IP_FAMILY_NONE: the kernel chooses */
	uint32_t src_ifindex; /* interface it arrived on; 0 = unknown */
};

#define IP_ADDR_TEXT_MAX 46   /* with the final NUL */
#define ENDPOINT_TEXT_MAX 66  /* "[addr%scope]:port" with the final NUL */
#define IP_PREFIX_TEXT_MAX 50 /* "addr/bits" with the final NUL */

bool ip_addr_is_equal(const struct ip_addr *a, const struct ip_addr *b);
/* Of 127.0.0.0/8, or ::1. */
bool ip_addr_is_loopback(const struct ip_addr *a);
/* Same address, port and scope; the local source is not compared. */
bool endpoint_is_same_remote(const struct endpoint *a, const struct endpoint *b);
/* Number of bytes of an address of that family: 4, 16, or 0 for IP_FAMILY_NONE. */
size_t ip_family_len(enum ip_family family);

/* Numeric forms only: "192.0.2.1", "2001:db8::1". WEFT_EPARSE otherwise. */
WEFT_MUST_CHECK enum weft_err ip_addr_parse(const char *text, size_t len, struct ip_addr *out);
/* "addr" or "addr/bits"; host bits are kept as written. */
WEFT_MUST_CHECK enum weft_err ip_prefix_parse(const char *text, size_t len, struct ip_prefix *out);
/* "a.b.c.d:port" or "[v6]:port" or "[v6%scope]:port" with a numeric scope. */
WEFT_MUST_CHECK enum weft_err endpoint_parse(const char *text, size_t len, struct endpoint *out);
/* Clears the bits behind the prefix length. */
void ip_prefix_mask(struct ip_prefix *p);

/* Formatters write at most the _TEXT_MAX bytes above and return out. */
char *ip_addr_format(const struct ip_addr *a, char out[IP_ADDR_TEXT_MAX]);
char *ip_prefix_format(const struct ip_prefix *p, char out[IP_PREFIX_TEXT_MAX]);
char *endpoint_format(const struct endpoint *e, char out[ENDPOINT_TEXT_MAX]);

#endif

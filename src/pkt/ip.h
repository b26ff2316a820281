/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4 and IPv6 packets as they lie in memory: one parse for what routing, splitting and
 * joining ask, and the few fields that a tunnel changes.
 *
 * Spec: RFC 791, RFC 8200, RFC 4302 (AH). Protocols above are not looked into. */
#ifndef WEFT_PKT_IP_H
#define WEFT_PKT_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define IP4_HEADER_LEN 20 /* without options */
#define IP6_HEADER_LEN 40
#define IP_LEN_MAX 65535

#define IP_PROTO_HOP_BY_HOP 0
#define IP_PROTO_ICMP 1
#define IP_PROTO_TCP 6
#define IP_PROTO_UDP 17
#define IP_PROTO_ROUTING 43
#define IP_PROTO_FRAGMENT 44
#define IP_PROTO_AH 51
#define IP_PROTO_ICMP6 58
#define IP_PROTO_DEST_OPTIONS 60

/* Longer chains of IPv6 extension headers are not followed. */
#define IP6_EXTENSIONS_MAX 16

struct ip_view {
	const uint8_t *src; /* in the packet: 4 or 16 bytes, the destination right behind */
	const uint8_t *dst;
	uint32_t len;     /* of the packet by its own header; never more than the bytes given */
	uint32_t l4_off;  /* where proto's bytes begin; <= len */
	uint8_t version;  /* 4 or 6 */
	uint8_t tos;      /* TOS or traffic class */
	uint8_t proto;    /* IP_PROTO_ of what follows the IPv6 extension headers */
	bool is_fragment; /* any part of a fragmented packet, the first included */
	bool has_ah;      /* IPv6 authentication header before proto: nothing may be rewritten */
	bool has_l4;      /* a header of proto begins at l4_off: no later fragment, no chain that
			   * is cut off or too long */
};

/* WEFT_EPARSE: neither IPv4 nor IPv6, a header that is cut off, or a length that contradicts
 * itself or is beyond the bytes given. What lies behind the packet's own length is padding. A
 * faulty chain of extension headers is no error, since routing does not look at it. */
WEFT_MUST_CHECK enum weft_err ip_parse(const uint8_t *data, size_t len, struct ip_view *out);

/* The exact length of a packet that padding may follow, by the same rules as ip_parse(). */
WEFT_MUST_CHECK enum weft_err ip_exact_len(const uint8_t *data, size_t padded_len, uint32_t *out);

/* The ECN field, the last two bits of TOS and traffic class (enum ecn in ecn.h). ip is the
 * start of a packet that ip_parse() accepted. */
uint8_t ip_ecn(const uint8_t *ip);
/* Also keeps the IPv4 header checksum right, or as wrong as it was. */
void ip_set_ecn(uint8_t *ip, uint8_t ecn);

#endif

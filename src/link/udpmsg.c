/* SPDX-License-Identifier: Apache-2.0 */
#include "link/udpmsg.h"

#include <netinet/udp.h>
#include <string.h>

#include "base/assert.h"

#define ECN_MASK 3u

static void
encode_name(struct link_udpmsg_head *h, const struct endpoint *to)
{
	if (to->addr.family == IP_FAMILY_V4) {
		h->name.v4 =
			(struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(to->port)};
		memcpy(&h->name.v4.sin_addr, to->addr.b, 4);
		h->name_len = sizeof(h->name.v4);
	} else {
		h->name.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
			.sin6_port = htons(to->port),
			.sin6_scope_id = to->scope_id};
		memcpy(&h->name.v6.sin6_addr, to->addr.b, 16);
		h->name_len = sizeof(h->name.v6);
	}
}

/* Appends a control message; returns the new length. */
static size_t
put(struct link_udpmsg_head *h, size_t at, int level, int type, const void *data, size_t len)
{
	weft_dassert(at + CMSG_SPACE(len) <= sizeof(h->control));
	struct cmsghdr c = {.cmsg_level = level, .cmsg_type = type, .cmsg_len = CMSG_LEN(len)};
	memcpy(h->control + at, &c, sizeof(c));
	memcpy(h->control + at + CMSG_LEN(0), data, len);
	return at + CMSG_SPACE(len);
}

void
link_udpmsg_encode(struct link_udpmsg_head *h, const struct endpoint *to, bool has_src, uint8_t ecn,
	uint16_t seg)
{
	bool is_v4 = to->addr.family == IP_FAMILY_V4;
	size_t at = 0;
	encode_name(h, to);
	if (ecn & ECN_MASK) {
		int tos = ecn & ECN_MASK;
		at = is_v4 ? put(h, at, IPPROTO_IP, IP_TOS, &tos, sizeof(tos))
			   : put(h, at, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
	}
	/* The interface stays the routing's choice: only the address is pinned. A link-local
	 * destination names its interface by the scope. */
	if (has_src && to->src.family == to->addr.family && is_v4) {
		struct in_pktinfo p = {0};
		memcpy(&p.ipi_spec_dst, to->src.b, 4);
		at = put(h, at, IPPROTO_IP, IP_PKTINFO, &p, sizeof(p));
	} else if (has_src && to->src.family == to->addr.family) {
		struct in6_pktinfo p = {0};
		memcpy(&p.ipi6_addr, to->src.b, 16);
		at = put(h, at, IPPROTO_IPV6, IPV6_PKTINFO, &p, sizeof(p));
	}
	h->plain_len = (uint8_t)at;
	h->gso_len = (uint8_t)put(h, at, IPPROTO_UDP, UDP_SEGMENT, &seg, sizeof(seg));
}

void
link_udpmsg_apply(
	const struct link_udpmsg_head *h, bool is_gso, struct iovec *iov, struct msghdr *m)
{
	size_t len = is_gso ? h->gso_len : h->plain_len;
	*m = (struct msghdr){
		.msg_name = (void *)&h->name,
		.msg_namelen = h->name_len,
		.msg_iov = iov,
		.msg_iovlen = 1,
		.msg_control = len ? (void *)h->control : NULL,
		.msg_controllen = len,
	};
}

static void
decode_name(const struct msghdr *m, struct endpoint *from)
{
	const union link_udpmsg_name *n = m->msg_name;
	if (n->v4.sin_family == AF_INET) {
		from->addr.family = IP_FAMILY_V4;
		memcpy(from->addr.b, &n->v4.sin_addr, 4);
		from->port = ntohs(n->v4.sin_port);
	} else {
		from->addr.family = IP_FAMILY_V6;
		memcpy(from->addr.b, &n->v6.sin6_addr, 16);
		from->port = ntohs(n->v6.sin6_port);
		from->scope_id = n->v6.sin6_scope_id;
	}
}

static int
int_of(const struct cmsghdr *c)
{
	int v = 0;
	if (c->cmsg_len >= CMSG_LEN(sizeof(v))) {
		memcpy(&v, CMSG_DATA(c), sizeof(v));
	}
	return v;
}

static void
decode_v4(const struct cmsghdr *c, struct link_udpmsg_info *out)
{
	if (c->cmsg_type == IP_PKTINFO && c->cmsg_len >= CMSG_LEN(sizeof(struct in_pktinfo))) {
		struct in_pktinfo p;
		memcpy(&p, CMSG_DATA(c), sizeof(p));
		/* Not ipi_addr: that of a broadcast could not be sent from. */
		out->from.src.family = IP_FAMILY_V4;
		memcpy(out->from.src.b, &p.ipi_spec_dst, 4);
		out->from.src_ifindex = (uint32_t)p.ipi_ifindex;
	} else if (c->cmsg_type == IP_TOS && c->cmsg_len > CMSG_LEN(0)) {
		out->ecn = *CMSG_DATA(c) & ECN_MASK; /* one byte */
	}
}

static void
decode_v6(const struct cmsghdr *c, struct link_udpmsg_info *out)
{
	if (c->cmsg_type == IPV6_PKTINFO && c->cmsg_len >= CMSG_LEN(sizeof(struct in6_pktinfo))) {
		struct in6_pktinfo p;
		memcpy(&p, CMSG_DATA(c), sizeof(p));
		out->from.src.family = IP_FAMILY_V6;
		memcpy(out->from.src.b, &p.ipi6_addr, 16);
		out->from.src_ifindex = (uint32_t)p.ipi6_ifindex;
	} else if (c->cmsg_type == IPV6_TCLASS) {
		out->ecn = (uint8_t)((unsigned)int_of(c) & ECN_MASK);
	}
}

void
link_udpmsg_decode(struct msghdr *m, struct link_udpmsg_info *out)
{
	*out = (struct link_udpmsg_info){0};
	decode_name(m, &out->from);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IP) {
			decode_v4(c, out);
		} else if (c->cmsg_level == IPPROTO_IPV6) {
			decode_v6(c, out);
		} else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			out->seg = (uint16_t)int_of(c);
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
			out->has_dropped = true;
			out->dropped = (uint32_t)int_of(c);
		}
	}
}

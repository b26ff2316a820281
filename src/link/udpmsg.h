/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and control messages of UDP sockets: struct endpoint to and from struct msghdr. */
#ifndef WEFT_LINK_UDPMSG_H
#define WEFT_LINK_UDPMSG_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "base/compiler.h"

/* ECN, source address, segment size. */
#define LINK_UDPMSG_TX_CONTROL                                                                     \
	(CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct in6_pktinfo)) +                        \
		CMSG_SPACE(sizeof(uint16_t)))
/* ECN, local address, segment size, drops of the socket. */
#define LINK_UDPMSG_RX_CONTROL                                                                     \
	(CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct in6_pktinfo)) +                        \
		CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint32_t)))

union link_udpmsg_name {
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Where a message goes and how; shared by all messages of a run. The segment size is the last
 * control message, so that a message without it is the same, cut shorter. */
struct link_udpmsg_head {
	union link_udpmsg_name name;
	socklen_t name_len;
	uint8_t plain_len; /* control bytes without the segment size */
	uint8_t gso_len;   /* and with it */
	WEFT_ALIGNED(8) uint8_t control[LINK_UDPMSG_TX_CONTROL];
};

/* to->addr is not IP_FAMILY_NONE. Without has_src to->src is not used. */
void link_udpmsg_encode(struct link_udpmsg_head *h, const struct endpoint *to, bool has_src,
	uint8_t ecn, uint16_t seg);
/* Points m at the head and one iovec. */
void link_udpmsg_apply(
	const struct link_udpmsg_head *h, bool is_gso, struct iovec *iov, struct msghdr *m);

/* What came with a received message. */
struct link_udpmsg_info {
	struct endpoint from;
	uint8_t ecn;
	uint16_t seg; /* UDP_GRO's datagram length; 0: a single datagram */
	bool has_dropped;
	uint32_t dropped; /* at the socket since it was made; valid with has_dropped */
};
void link_udpmsg_decode(struct msghdr *m, struct link_udpmsg_info *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "packets.h"

#include <string.h>

#include "base/endian.h"
#include "base/rng.h"
#include "pkt/ip.h"
#include "pkt/l4.h"

static uint8_t
tcp_flags(enum packet_kind kind)
{
	return kind == PACKET_TCP_SYN   ? TCP_SYN
	       : kind == PACKET_TCP_FIN ? TCP_FIN | TCP_ACK
					: TCP_ACK;
}

size_t
packet_make(
	uint8_t *out, uint64_t seed, uint64_t number, enum packet_kind kind, int is_v6, size_t len)
{
	size_t ip_len = is_v6 ? IP6_HEADER_LEN : IP4_HEADER_LEN;
	if (kind == PACKET_TCP_ACK || kind == PACKET_TCP_SYN || kind == PACKET_TCP_FIN) {
		len = ip_len + TCP_HEADER_LEN;
	}
	if (kind == PACKET_TCP_FRAGMENT) {
		is_v6 = 0;
		ip_len = IP4_HEADER_LEN;
	}
	struct rng r;
	rng_init(&r, seed * 1000003 + number);
	rng_fill(&r, out, len);
	uint8_t proto = kind == PACKET_UDP ? IP_PROTO_UDP : IP_PROTO_TCP;
	if (is_v6) {
		out[0] = 0x60;
		store_be16(out + 4, (uint16_t)(len - IP6_HEADER_LEN));
		out[6] = proto;
	} else {
		out[0] = 0x45;
		store_be16(out + 2, (uint16_t)len);
		store_be16(out + 6, kind == PACKET_TCP_FRAGMENT ? 0x2000 : 0);
		out[9] = proto;
	}
	if (proto == IP_PROTO_TCP) {
		out[ip_len + TCP_DATA_OFFSET] = 5 << 4;
		out[ip_len + TCP_FLAGS] = tcp_flags(kind);
	}
	return len;
}

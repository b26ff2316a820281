/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/micro/flow.h"

#include <string.h>

#include "base/endian.h"
#include "pkt/ip.h"
#include "pkt/l4.h"

static uint32_t
ip_len(const struct flow *f)
{
	return f->family == IP_FAMILY_V4 ? IP4_HEADER_LEN : IP6_HEADER_LEN;
}

uint32_t
flow_header_len(const struct flow *f)
{
	return ip_len(f) + (f->is_tcp ? TCP_HEADER_LEN : UDP_HEADER_LEN);
}

/* One's complement sum of 16-bit words; len is even. */
static uint32_t
sum_words(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;
	for (size_t i = 0; i < len; i += 2) {
		sum += load_be16(p + i);
	}
	return sum;
}

static uint16_t
fold(uint32_t sum)
{
	while (sum >> 16) {
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return (uint16_t)sum;
}

static void
write_ip(const struct flow *f, uint8_t *p, uint32_t len)
{
	size_t n = ip_family_len(f->family);
	uint8_t proto = f->is_tcp ? IP_PROTO_TCP : IP_PROTO_UDP;
	memset(p, 0, ip_len(f));
	if (f->family == IP_FAMILY_V4) {
		p[0] = 0x45;
		store_be16(p + 2, (uint16_t)len);
		p[6] = 0x40; /* do not fragment */
		p[8] = 64;
		p[9] = proto;
		memcpy(p + 12, f->src, n);
		memcpy(p + 16, f->dst, n);
		store_be16(p + 10, (uint16_t)~fold(sum_words(p, IP4_HEADER_LEN)));
	} else {
		p[0] = 0x60;
		store_be16(p + 4, (uint16_t)(len - IP6_HEADER_LEN));
		p[6] = proto;
		p[7] = 64;
		memcpy(p + 8, f->src, n);
		memcpy(p + 24, f->dst, n);
	}
}

void
flow_frame(const struct flow *f, uint8_t *data, uint32_t len, uint16_t gso_size, struct frame *out)
{
	uint32_t l4 = ip_len(f), l4_len = len - l4;
	uint8_t *p = data + l4;
	size_t n = ip_family_len(f->family);
	bool is_v4 = f->family == IP_FAMILY_V4;

	write_ip(f, data, len);
	memset(p, 0, flow_header_len(f) - l4);
	store_be16(p, f->sport);
	store_be16(p + 2, f->dport);
	if (f->is_tcp) {
		store_be32(p + TCP_SEQ, f->seq);
		store_be32(p + TCP_ACK_NUMBER, 1);
		p[TCP_DATA_OFFSET] = TCP_HEADER_LEN / 4 << 4;
		p[TCP_FLAGS] = TCP_ACK;
		store_be16(p + TCP_WINDOW, 0xffff);
	} else {
		store_be16(p + UDP_LEN, (uint16_t)l4_len);
	}
	for (uint32_t i = flow_header_len(f); i < len; i++) {
		data[i] = (uint8_t)(i * 7);
	}
	uint32_t sum = sum_words(f->src, n) + sum_words(f->dst, n) + l4_len +
		       (f->is_tcp ? IP_PROTO_TCP : IP_PROTO_UDP);
	uint16_t offset = f->is_tcp ? TCP_CHECKSUM : UDP_CHECKSUM;
	store_be16(p + offset, fold(sum));
	*out = (struct frame){
		.data = data,
		.len = len,
		.gso = FRAME_GSO_NONE,
		.gso_size = gso_size,
		.hdr_len = (uint16_t)flow_header_len(f),
		.needs_csum = true,
		.csum_start = (uint16_t)l4,
		.csum_offset = offset,
	};
	if (gso_size > 0) {
		out->gso = f->is_tcp ? (is_v4 ? FRAME_GSO_TCP4 : FRAME_GSO_TCP6)
				     : (is_v4 ? FRAME_GSO_UDP4 : FRAME_GSO_UDP6);
	}
}

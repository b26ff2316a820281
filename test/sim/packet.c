/* SPDX-License-Identifier: Apache-2.0 */
#include "packet.h"

#include <string.h>

#include "base/endian.h"

#define IP4_LEN 20
#define IP6_LEN 40
#define PORT_BASE 20000
/* The marker comes again so often: a leak of a part of a packet shows, too. */
#define MARKER_EVERY 128

void
sim_address_of_host(unsigned host, bool is_v6, uint8_t *out)
{
	static const uint8_t v6[16] = {0xfd, 0, 0, 0x51, [15] = 9};
	if (is_v6) {
		memcpy(out, v6, 16);
		out[7] = (uint8_t)host;
	} else {
		memcpy(out, (uint8_t[4]){10, 51, (uint8_t)host, 9}, 4);
	}
}

unsigned
sim_host_of_address(const uint8_t *addr, bool is_v6)
{
	uint8_t mine[16];
	for (unsigned h = 0; h < SIM_HOSTS_MAX; h++) {
		sim_address_of_host(h, is_v6, mine);
		if (memcmp(addr, mine, is_v6 ? 16 : 4) == 0) {
			return h;
		}
	}
	return SIM_HOSTS_MAX;
}

static uint32_t
l4_off(const struct sim_packet *p)
{
	return p->is_v6 ? IP6_LEN : IP4_LEN;
}

uint32_t
sim_packet_header_len(const struct sim_packet *p)
{
	static const uint8_t l4[] = {
		[SIM_PROTO_RAW] = 0, [SIM_PROTO_UDP] = 8, [SIM_PROTO_TCP] = 20};
	return l4_off(p) + l4[p->proto];
}

void
sim_body_write(uint32_t id, uint8_t *out, uint32_t len)
{
	uint64_t x = (id + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
	uint8_t word[8];
	for (uint32_t at = 0; at < len; at += 8) {
		x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		store_le64(word, x ^ x >> 31);
		if (at % MARKER_EVERY == 8) {
			memcpy(word, SIM_MARKER, SIM_MARKER_LEN);
		}
		memcpy(out + at, word, len - at < 8 ? len - at : 8);
	}
	store_le32(out, id);
}

static uint32_t
sum_bytes(uint32_t sum, const uint8_t *b, uint32_t len)
{
	uint64_t s = sum;
	for (uint32_t i = 0; i + 1 < len; i += 2) {
		s += (uint32_t)b[i] << 8 | b[i + 1];
	}
	if (len % 2) {
		s += (uint32_t)b[len - 1] << 8;
	}
	while (s >> 16) {
		s = (s & 0xffff) + (s >> 16);
	}
	return (uint32_t)s;
}

static uint8_t
ip_proto(const struct sim_packet *p)
{
	static const uint8_t protos[] = {
		[SIM_PROTO_RAW] = 253, [SIM_PROTO_UDP] = 17, [SIM_PROTO_TCP] = 6};
	return protos[p->proto];
}

static uint32_t
pseudo_sum(const struct sim_packet *p, const uint8_t *ip, uint32_t l4_len)
{
	uint32_t sum = p->is_v6 ? sum_bytes(0, ip + 8, 32) : sum_bytes(0, ip + 12, 8);
	uint8_t rest[4] = {0, ip_proto(p), (uint8_t)(l4_len >> 8), (uint8_t)l4_len};
	return sum_bytes(sum, rest, 4);
}

static void
write_ip(const struct sim_packet *p, uint32_t len, uint8_t *out)
{
	memset(out, 0, l4_off(p));
	if (p->is_v6) {
		store_be32(out, UINT32_C(6) << 28 | (uint32_t)p->tos << 20 | p->flow);
		store_be16(out + 4, (uint16_t)(len - IP6_LEN));
		out[6] = ip_proto(p);
		out[7] = 61;
		sim_address_of_host(p->claimed, true, out + 8);
		sim_address_of_host(p->dst, true, out + 24);
		return;
	}
	out[0] = 0x45;
	out[1] = p->tos;
	store_be16(out + 2, (uint16_t)len);
	store_be16(out + 4, p->ip_id);
	out[8] = 61;
	out[9] = ip_proto(p);
	sim_address_of_host(p->claimed, false, out + 12);
	sim_address_of_host(p->dst, false, out + 16);
	store_be16(out + 10, (uint16_t)~sum_bytes(0, out, IP4_LEN));
}

/* With a checksum of zero. */
static void
write_l4(const struct sim_packet *p, uint32_t l4_len, uint8_t *out)
{
	if (p->proto == SIM_PROTO_RAW) {
		return;
	}
	store_be16(out, (uint16_t)(PORT_BASE + p->flow));
	store_be16(out + 2, (uint16_t)(PORT_BASE + 100 + p->dst));
	if (p->proto == SIM_PROTO_UDP) {
		store_be16(out + 4, (uint16_t)l4_len);
		store_be16(out + 6, 0);
		return;
	}
	memset(out + 8, 0, 12);
	store_be32(out + 4, p->tcp_seq);
	store_be32(out + 8, UINT32_C(0x01020304) + p->flow);
	out[12] = 5 << 4;
	out[13] = p->tcp_flags;
	store_be16(out + 14, 4096);
}

static void
put_checksum(const struct sim_packet *p, uint8_t *ip, uint32_t l4_len)
{
	if (p->proto == SIM_PROTO_RAW || p->is_unchecked) {
		return;
	}
	uint8_t *l4 = ip + l4_off(p);
	uint16_t sum = (uint16_t)~sum_bytes(pseudo_sum(p, ip, l4_len), l4, l4_len);
	if (p->proto == SIM_PROTO_UDP) {
		store_be16(l4 + 6, sum ? sum : 0xffff);
	} else {
		store_be16(l4 + 16, sum);
	}
}

void
sim_packet_write(const struct sim_packet *p, uint32_t id, uint8_t *out)
{
	uint32_t l4_len = p->len - l4_off(p), hdr = sim_packet_header_len(p);
	write_ip(p, p->len, out);
	write_l4(p, l4_len, out + l4_off(p));
	sim_body_write(id, out + hdr, p->len - hdr);
	put_checksum(p, out, l4_len);
}

void
sim_packet_leave_checksum(const struct sim_packet *p, uint8_t *data, struct frame *f)
{
	f->needs_csum = true;
	f->csum_start = (uint16_t)l4_off(p);
	f->csum_offset = p->proto == SIM_PROTO_UDP ? 6 : 16;
	uint32_t sum = pseudo_sum(p, data, f->len - l4_off(p));
	store_be16(data + f->csum_start + f->csum_offset, (uint16_t)sum);
}

struct sim_packet
sim_packet_of_frame(const struct sim_packet *first, uint32_t i, uint32_t n, uint16_t last_len)
{
	struct sim_packet p = *first;
	uint32_t body = first->len - sim_packet_header_len(first);
	p.ip_id = (uint16_t)(first->ip_id + i);
	p.seq = first->seq + i;
	p.tcp_seq = first->tcp_seq + i * body;
	if (i + 1 < n) {
		p.tcp_flags &= (uint8_t)~0x08; /* PSH stands in the last one */
	} else {
		p.len = last_len;
	}
	return p;
}

uint32_t
sim_packet_write_frame(const struct sim_packet *first, uint32_t n, uint16_t last_len, uint32_t id,
	uint8_t *out, struct frame *f)
{
	uint32_t hdr = sim_packet_header_len(first), body = first->len - hdr, at = hdr;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t len = i + 1 < n ? body : last_len - hdr;
		sim_body_write(id + i, out + at, len);
		at += len;
	}
	write_ip(first, at, out);
	write_l4(first, at - l4_off(first), out + l4_off(first));
	bool is_tcp = first->proto == SIM_PROTO_TCP;
	*f = (struct frame){.data = out,
		.len = at,
		.gso = is_tcp ? (first->is_v6 ? FRAME_GSO_TCP6 : FRAME_GSO_TCP4)
			      : (first->is_v6 ? FRAME_GSO_UDP6 : FRAME_GSO_UDP4),
		.gso_size = (uint16_t)body,
		.hdr_len = (uint16_t)hdr};
	sim_packet_leave_checksum(first, out, f);
	return at;
}

uint32_t
sim_packet_id(const uint8_t *packet, uint32_t len)
{
	bool is_v6 = len > 0 && packet[0] >> 4 == 6;
	uint32_t at = is_v6 ? IP6_LEN : IP4_LEN;
	if (len < at) {
		return UINT32_MAX;
	}
	uint8_t proto = is_v6 ? packet[6] : packet[9];
	at += proto == 17 ? 8u : proto == 6 ? 20u : 0u;
	return len < at + 4 ? UINT32_MAX : load_le32(packet + at);
}

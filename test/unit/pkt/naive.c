/* SPDX-License-Identifier: Apache-2.0 */
#include "naive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t
naive_seeds(uint64_t n)
{
	const char *stage = getenv("WEFT_TEST_STAGE");
	return stage && strcmp(stage, "tsan") == 0 ? n / 10 : n;
}

static void
put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void
put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v & 0xffff);
}

static unsigned
get16(const uint8_t *p)
{
	return p[0] * 256u + p[1];
}

uint16_t
naive_sum(const uint8_t *p, size_t len, uint16_t from)
{
	uint32_t sum = from;
	for (size_t i = 0; i < len; i++) {
		sum += i % 2 == 0 ? p[i] * 256u : p[i];
		if (sum > 0xffff) {
			sum -= 0xffff;
		}
	}
	return (uint16_t)sum;
}

uint32_t
naive_l4(const uint8_t *ip, uint32_t len, uint8_t *proto)
{
	uint32_t at;
	if (ip[0] >> 4 == 4) {
		*proto = ip[9];
		at = (ip[0] & 15u) * 4;
	} else {
		*proto = ip[6];
		at = 40;
		while (*proto == 0 || *proto == 43 || *proto == 60) {
			if (at + 8 > len) {
				return 0;
			}
			*proto = ip[at];
			at += (ip[at + 1] + 1u) * 8;
		}
	}
	if (*proto == 6) {
		return at + 20 <= len ? at : 0;
	}
	return *proto == 17 && at + 8 <= len ? at : 0;
}

static bool
is_extension(uint8_t proto)
{
	return proto == 0 || proto == 43 || proto == 51 || proto == 60;
}

/* Finds proto of an IPv6 packet of any content; returns where it begins, or 0. */
static uint32_t
walk6(const uint8_t *ip, uint32_t len, uint8_t *proto)
{
	uint32_t at = 40;
	*proto = ip[6];
	while (is_extension(*proto)) {
		if (at + 8 > len) {
			return 0;
		}
		uint8_t type = *proto;
		*proto = ip[at];
		at += type == 51 ? (ip[at + 1] + 2u) * 4 : (ip[at + 1] + 1u) * 8;
	}
	return at <= len ? at : 0;
}

void
naive_flow(const uint8_t *ip, uint32_t len, uint8_t out[NAIVE_FLOW_LEN])
{
	memset(out, 0, NAIVE_FLOW_LEN);
	uint32_t at = 0;
	uint8_t proto = 0;
	bool is_v4 = len >= 20 && ip[0] >> 4 == 4 && get16(ip + 2) <= len;
	bool is_v6 = len >= 40 && ip[0] >> 4 == 6 && get16(ip + 4) + 40 <= len;
	if (is_v4 && (get16(ip + 6) & 0x3fff) == 0) {
		at = (ip[0] & 15u) * 4;
		proto = ip[9];
	} else if (is_v6) {
		at = walk6(ip, len, &proto);
	}
	if (at < 20 || at + 4 > len || (proto != 6 && proto != 17)) {
		return;
	}
	out[0] = ip[0] >> 4;
	out[1] = proto;
	memcpy(out + 2, ip + at, 4);
	memcpy(out + 6, ip + (is_v4 ? 12 : 8), is_v4 ? 8 : 32);
}

/* The final destination: the last address of a routing header that is not used up. */
static const uint8_t *
final_dst6(const uint8_t *ip)
{
	uint8_t proto = ip[6];
	uint32_t at = 40;
	while (proto == 0 || proto == 43 || proto == 60) {
		uint32_t n = (ip[at + 1] + 1u) * 8;
		if (proto == 43 && ip[at + 3] > 0 && n >= 24) {
			return ip + at + n - 16;
		}
		proto = ip[at];
		at += n;
	}
	return ip + 24;
}

static uint16_t
pseudo_sum(const uint8_t *ip, uint8_t proto, uint32_t l4_len)
{
	uint8_t tail[8] = {0};
	put32(tail, l4_len);
	tail[7] = proto;
	uint16_t sum = naive_sum(tail, 8, 0);
	if (ip[0] >> 4 == 4) {
		return naive_sum(ip + 12, 8, sum);
	}
	return naive_sum(final_dst6(ip), 16, naive_sum(ip + 8, 16, sum));
}

static uint32_t
csum_field(uint32_t l4, uint8_t proto)
{
	return l4 + (proto == 6 ? 16 : 6);
}

void
naive_complete(uint8_t *ip, uint32_t len, bool keep_zero)
{
	uint8_t proto;
	uint32_t l4 = naive_l4(ip, len, &proto);
	if (ip[0] >> 4 == 4) {
		put16(ip + 10, 0);
		put16(ip + 10, 0xffffu - naive_sum(ip, (ip[0] & 15u) * 4, 0));
	}
	uint8_t *field = ip + csum_field(l4, proto);
	if (proto == 17 && keep_zero && get16(field) == 0) {
		return;
	}
	put16(field, 0);
	unsigned v = 0xffffu - naive_sum(ip + l4, len - l4, pseudo_sum(ip, proto, len - l4));
	put16(field, proto == 17 && v == 0 ? 0xffff : v);
}

bool
naive_is_right(const uint8_t *ip, uint32_t len)
{
	if (ip[0] >> 4 == 4 && naive_sum(ip, (ip[0] & 15u) * 4, 0) != 0xffff) {
		return false;
	}
	uint8_t proto;
	uint32_t l4 = naive_l4(ip, len, &proto);
	if (proto == 17 && get16(ip + l4 + 6) == 0) {
		return true;
	}
	return naive_sum(ip + l4, len - l4, pseudo_sum(ip, proto, len - l4)) == 0xffff;
}

uint32_t
naive_make_partial(uint8_t *ip, uint32_t len)
{
	uint8_t proto;
	uint32_t l4 = naive_l4(ip, len, &proto);
	uint32_t field = csum_field(l4, proto);
	put16(ip + field, pseudo_sum(ip, proto, len - l4));
	return field;
}

static uint32_t
build_ip(uint8_t *out, const struct naive_packet *n, uint32_t l4_len)
{
	if (n->version == 4) {
		uint32_t header = 20u + n->ip_options_len;
		out[0] = (uint8_t)(0x40 | header / 4);
		out[1] = n->tos;
		put16(out + 2, header + l4_len);
		put16(out + 4, n->id);
		put16(out + 6, n->fragment);
		out[8] = n->ttl;
		out[9] = n->proto;
		memcpy(out + 12, n->src, 4);
		memcpy(out + 16, n->dst, 4);
		memcpy(out + 20, n->ip_options, n->ip_options_len);
		return header;
	}
	put32(out, 6u << 28 | (uint32_t)n->tos << 20 | n->flow_label);
	put16(out + 4, n->ext_len + l4_len);
	out[6] = n->ext_len > 0 ? n->ext_first : n->proto;
	out[7] = n->ttl;
	memcpy(out + 8, n->src, 16);
	memcpy(out + 24, n->dst, 16);
	memcpy(out + 40, n->ext, n->ext_len);
	return 40u + n->ext_len;
}

uint32_t
naive_build(
	uint8_t *out, const struct naive_packet *n, const uint8_t *payload, uint32_t payload_len)
{
	memset(out, 0, 40 + 128 + 60);
	uint32_t header = n->proto == 6 ? 20u + n->options_len : 8;
	uint32_t l4 = build_ip(out, n, header + payload_len);
	uint8_t *p = out + l4;
	put16(p, n->sport);
	put16(p + 2, n->dport);
	if (n->proto == 6) {
		put32(p + 4, n->seq);
		put32(p + 8, n->ack);
		p[12] = (uint8_t)((header / 4) << 4 | n->tcp_reserved);
		p[13] = n->flags;
		put16(p + 14, n->window);
		put16(p + 18, n->urgent);
		memcpy(p + 20, n->options, n->options_len);
	} else {
		put16(p + 4, header + payload_len);
		put16(p + 6, n->has_zero_csum ? 0 : 1);
	}
	memcpy(p + header, payload, payload_len);
	naive_complete(out, l4 + header + payload_len, n->has_zero_csum);
	return l4 + header + payload_len;
}

/* Headers of segment i of n; done counts the payload bytes before it. */
static void
fix_segment(uint8_t *p, uint32_t len, size_t i, bool is_last, uint32_t done)
{
	uint8_t proto;
	uint32_t l4 = naive_l4(p, len, &proto);
	if (p[0] >> 4 == 4) {
		put16(p + 2, len);
		put16(p + 4, (get16(p + 4) + (unsigned)i) & 0xffff);
	} else {
		put16(p + 4, len - 40);
	}
	if (proto == 6) {
		uint32_t seq = get16(p + l4 + 4) << 16 | get16(p + l4 + 6);
		put32(p + l4 + 4, seq + done);
		if (!is_last) {
			p[l4 + 13] &= 0xf6; /* FIN, PSH */
		}
		if (i > 0) {
			p[l4 + 13] &= 0x7f; /* CWR */
		}
	} else {
		put16(p + l4 + 4, len - l4);
	}
}

size_t
naive_segment(const uint8_t *super, uint32_t len, uint16_t gso_size, bool keep_zero, uint8_t *out,
	size_t cap, uint32_t *lens, size_t lens_cap)
{
	uint8_t proto;
	uint32_t l4 = naive_l4(super, len, &proto);
	uint32_t header = l4 + (proto == 6 ? (super[l4 + 12] >> 4) * 4u : 8);
	size_t n = 0;
	uint32_t done = 0, total = len - header;
	do {
		uint32_t take = total - done < gso_size ? total - done : gso_size;
		if (n == lens_cap || cap < header + take) {
			fprintf(stderr, "naive_segment: no room\n");
			abort();
		}
		for (uint32_t i = 0; i < header; i++) {
			out[i] = super[i];
		}
		for (uint32_t i = 0; i < take; i++) {
			out[header + i] = super[header + done + i];
		}
		fix_segment(out, header + take, n, done + take == total, done);
		naive_complete(out, header + take, keep_zero);
		lens[n++] = header + take;
		out += header + take;
		cap -= header + take;
		done += take;
	} while (done < total);
	return n;
}

/* Extension headers of random bytes in front of proto. */
static void
random_extensions(struct rng *r, struct naive_packet *n)
{
	static const uint8_t types[] = {0, 43, 60, 60};
	size_t count = rng_below(r, 4);
	uint8_t *link = &n->ext_first;
	for (size_t i = 0; i < count; i++) {
		uint8_t type = types[i == 0 ? rng_below(r, 4) : 1 + rng_below(r, 3)];
		uint8_t *e = n->ext + n->ext_len;
		uint8_t units = (uint8_t)rng_below(r, 3);
		rng_fill(r, e, (units + 1u) * 8);
		e[1] = units;
		e[3] = 0; /* a routing header is used up */
		*link = type;
		link = e;
		n->ext_len = (uint8_t)(n->ext_len + (units + 1) * 8);
	}
	*link = n->proto;
}

struct naive_packet
naive_random(struct rng *r, bool has_extras)
{
	struct naive_packet n;
	memset(&n, 0, sizeof(n));
	n.version = rng_below(r, 2) ? 4 : 6;
	n.proto = rng_below(r, 2) ? 6 : 17;
	rng_fill(r, n.src, 16);
	rng_fill(r, n.dst, 16);
	n.sport = (uint16_t)rng_u64(r);
	n.dport = (uint16_t)rng_u64(r);
	n.tos = (uint8_t)rng_u64(r);
	n.ttl = (uint8_t)rng_u64(r);
	n.flow_label = (uint32_t)rng_below(r, 1 << 20);
	n.id = (uint16_t)rng_u64(r);
	n.fragment = rng_below(r, 2) ? 0x4000 : 0;
	n.seq = (uint32_t)rng_u64(r);
	n.ack = (uint32_t)rng_u64(r);
	n.flags = 0x10;
	n.window = (uint16_t)rng_u64(r);
	n.options_len = (uint8_t)(4 * rng_below(r, 11));
	rng_fill(r, n.options, n.options_len);
	if (has_extras && n.version == 4 && rng_below(r, 4) == 0) {
		n.ip_options_len = (uint8_t)(4 * rng_below(r, 11));
		rng_fill(r, n.ip_options, n.ip_options_len);
	}
	if (has_extras && n.version == 6 && rng_below(r, 4) == 0) {
		random_extensions(r, &n);
	}
	return n;
}

struct naive_packet
naive_tcp4(void)
{
	return (struct naive_packet){.version = 4,
		.proto = 6,
		.src = {10, 0, 0, 1},
		.dst = {10, 0, 0, 2},
		.sport = 1000,
		.dport = 2000,
		.ttl = 64,
		.tos = 0x02,
		.id = 0xfffe,
		.fragment = 0x4000,
		.seq = 0xfffffe00,
		.ack = 77,
		.flags = 0x10,
		.window = 500,
		.options = {1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8},
		.options_len = 12};
}

struct naive_packet
naive_udp4(void)
{
	struct naive_packet n = naive_tcp4();
	n.proto = 17;
	return n;
}

struct naive_packet
naive_as_v6(struct naive_packet n)
{
	n.version = 6;
	n.flow_label = 0xabcde;
	return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/endian.h"
#include "base/rng.h"
#include "pkt/ip.h"

static uint8_t *
v4(uint8_t *p, uint8_t ihl, uint16_t total, uint16_t fragment, uint8_t proto)
{
	memset(p, 0xcc, 256);
	p[0] = (uint8_t)(0x40 | ihl);
	p[1] = 0xb8;
	store_be16(p + 2, total);
	store_be16(p + 6, fragment);
	p[9] = proto;
	return p;
}

static uint8_t *
v6(uint8_t *p, uint16_t payload, uint8_t next)
{
	memset(p, 0xcc, 2048);
	p[0] = 0x6b;
	p[1] = 0x8f;
	store_be16(p + 4, payload);
	p[6] = next;
	return p;
}

static void
ip_parse_reads_ipv4(void **state)
{
	(void)state;
	uint8_t p[256];
	struct ip_view v;
	assert_int_equal(ip_parse(v4(p, 5, 100, 0x4000, IP_PROTO_TCP), 112, &v), WEFT_OK);
	assert_int_equal(v.version, 4);
	assert_int_equal(v.len, 100);
	assert_int_equal(v.l4_off, 20);
	assert_int_equal(v.tos, 0xb8);
	assert_int_equal(v.proto, IP_PROTO_TCP);
	assert_ptr_equal(v.src, p + 12);
	assert_ptr_equal(v.dst, p + 16);
	assert_true(v.has_l4);
	assert_false(v.is_fragment);
	assert_int_equal(ip_parse(v4(p, 15, 60, 0, IP_PROTO_UDP), 60, &v), WEFT_OK);
	assert_int_equal(v.l4_off, 60);
	assert_int_equal(v.len, 60);
}

static void
ip_parse_tells_ipv4_fragments(void **state)
{
	(void)state;
	uint8_t p[256];
	struct ip_view v;
	assert_int_equal(ip_parse(v4(p, 5, 100, 0x2000, IP_PROTO_TCP), 100, &v), WEFT_OK);
	assert_true(v.is_fragment);
	assert_true(v.has_l4);
	assert_int_equal(ip_parse(v4(p, 5, 100, 0x0001, IP_PROTO_TCP), 100, &v), WEFT_OK);
	assert_true(v.is_fragment);
	assert_false(v.has_l4);
	/* The reserved bit and DF make no fragment. */
	assert_int_equal(ip_parse(v4(p, 5, 100, 0xc000, IP_PROTO_TCP), 100, &v), WEFT_OK);
	assert_false(v.is_fragment);
	assert_true(v.has_l4);
}

static void
ip_parse_reads_ipv6(void **state)
{
	(void)state;
	uint8_t p[2048];
	struct ip_view v;
	assert_int_equal(ip_parse(v6(p, 60, IP_PROTO_UDP), 100, &v), WEFT_OK);
	assert_int_equal(v.version, 6);
	assert_int_equal(v.len, 100);
	assert_int_equal(v.l4_off, 40);
	assert_int_equal(v.tos, 0xb8);
	assert_int_equal(v.proto, IP_PROTO_UDP);
	assert_ptr_equal(v.src, p + 8);
	assert_ptr_equal(v.dst, p + 24);
	assert_true(v.has_l4);
	assert_false(v.is_fragment || v.has_ah);
	assert_int_equal(ip_parse(v6(p, 0, 59), 40, &v), WEFT_OK);
	assert_int_equal(v.len, 40);
	assert_int_equal(v.proto, 59);
}

static void
ip_parse_walks_every_ipv6_extension(void **state)
{
	(void)state;
	uint8_t p[2048];
	struct ip_view v;
	v6(p, 200, IP_PROTO_HOP_BY_HOP);
	uint8_t *e = p + 40;
	e[0] = IP_PROTO_ROUTING, e[1] = 0; /* hop-by-hop, 8 bytes */
	e += 8;
	e[0] = IP_PROTO_DEST_OPTIONS, e[1] = 2; /* routing, 24 bytes */
	e += 24;
	e[0] = IP_PROTO_AH, e[1] = 1; /* destination options, 16 bytes */
	e += 16;
	e[0] = IP_PROTO_FRAGMENT, e[1] = 4; /* AH, 24 bytes: its unit is 4 and counts from 2 */
	e += 24;
	e[0] = IP_PROTO_TCP, e[2] = 0, e[3] = 1; /* first fragment, more follow */
	e += 8;
	assert_int_equal(ip_parse(p, 240, &v), WEFT_OK);
	assert_int_equal(v.l4_off, 40 + 8 + 24 + 16 + 24 + 8);
	assert_int_equal(v.proto, IP_PROTO_TCP);
	assert_true(v.has_l4 && v.is_fragment && v.has_ah);
	e[-6] = 1; /* offset 32: what follows is no TCP header */
	assert_int_equal(ip_parse(p, 240, &v), WEFT_OK);
	assert_true(v.is_fragment && !v.has_l4);
	assert_int_equal(v.proto, IP_PROTO_TCP);
}

static void
ip_parse_lets_faulty_extensions_pass_without_l4(void **state)
{
	(void)state;
	uint8_t p[2048];
	struct ip_view v;
	/* A header that says it is longer than the packet. */
	v6(p, 24, IP_PROTO_ROUTING);
	p[40] = IP_PROTO_TCP, p[41] = 3;
	assert_int_equal(ip_parse(p, 64, &v), WEFT_OK);
	assert_false(v.has_l4);
	p[41] = 2;
	assert_int_equal(ip_parse(p, 64, &v), WEFT_OK);
	assert_true(v.has_l4);
	assert_int_equal(v.l4_off, 64);
	/* Too short for the two fields that every header has. */
	v6(p, 7, IP_PROTO_DEST_OPTIONS);
	assert_int_equal(ip_parse(p, 47, &v), WEFT_OK);
	assert_false(v.has_l4);
	/* A chain of one too many. */
	for (unsigned n = IP6_EXTENSIONS_MAX; n <= IP6_EXTENSIONS_MAX + 1; n++) {
		v6(p, 1000, IP_PROTO_DEST_OPTIONS);
		for (unsigned i = 0; i < n; i++) {
			p[40 + 8 * i] = i + 1 < n ? IP_PROTO_DEST_OPTIONS : IP_PROTO_UDP;
			p[41 + 8 * i] = 0;
		}
		assert_int_equal(ip_parse(p, 1040, &v), WEFT_OK);
		assert_int_equal(v.has_l4, n == IP6_EXTENSIONS_MAX);
	}
}

static void
ip_parse_refuses_what_is_no_packet(void **state)
{
	(void)state;
	uint8_t p[2048];
	struct ip_view v;
	uint32_t len;
	for (size_t n = 0; n < 20; n++) {
		assert_int_equal(ip_parse(v4(p, 5, 20, 0, 6), n, &v), WEFT_EPARSE);
	}
	for (size_t n = 0; n < 40; n++) {
		assert_int_equal(ip_parse(v6(p, 0, 6), n, &v), WEFT_EPARSE);
	}
	assert_int_equal(ip_parse(v4(p, 4, 100, 0, 6), 100, &v), WEFT_EPARSE); /* IHL below 5 */
	assert_int_equal(ip_parse(v4(p, 6, 23, 0, 6), 100, &v), WEFT_EPARSE);  /* total < IHL */
	assert_int_equal(ip_parse(v4(p, 5, 0, 0, 6), 100, &v), WEFT_EPARSE);   /* total 0 */
	assert_int_equal(ip_parse(v4(p, 5, 101, 0, 6), 100, &v), WEFT_EPARSE); /* total > bytes */
	assert_int_equal(ip_parse(v6(p, 61, 6), 100, &v), WEFT_EPARSE);        /* likewise */
	for (unsigned version = 0; version < 16; version++) {
		v6(p, 60, 6)[0] = (uint8_t)(version << 4 | 5);
		if (version != 4 && version != 6) {
			assert_int_equal(ip_parse(p, 100, &v), WEFT_EPARSE);
			assert_int_equal(ip_exact_len(p, 100, &len), WEFT_EPARSE);
		}
	}
}

static void
ip_exact_len_takes_padding_off(void **state)
{
	(void)state;
	uint8_t p[2048];
	for (uint16_t n = 40; n < 200; n++) {
		uint32_t len = 0;
		size_t padded = (n + 15u) / 16 * 16;
		assert_int_equal(ip_exact_len(v4(p, 5, n, 0, 17), padded, &len), WEFT_OK);
		assert_int_equal(len, n);
		assert_int_equal(
			ip_exact_len(v6(p, (uint16_t)(n - 40), 17), padded, &len), WEFT_OK);
		assert_int_equal(len, n);
	}
}

static void
ip_parse_stays_inside_for_any_bytes(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 200000; seed++) {
		struct rng r;
		uint8_t p[160];
		rng_init(&r, seed);
		rng_fill(&r, p, sizeof(p));
		size_t n = rng_below(&r, sizeof(p) + 1);
		p[0] = rng_below(&r, 2) ? 0x45 : 0x60;
		if (rng_below(&r, 4)) {
			store_be16(p + 2, (uint16_t)rng_below(&r, 200));
			store_be16(p + 4, (uint16_t)rng_below(&r, 160));
			static const uint8_t next[] = {0, 43, 44, 51, 60, 6};
			p[6] = next[rng_below(&r, 6)];
			p[40] = next[rng_below(&r, 6)];
			p[41] = (uint8_t)rng_below(&r, 8);
		}
		struct ip_view v;
		if (ip_parse(p, n, &v)) {
			continue;
		}
		if (v.len > n || v.l4_off > v.len || v.l4_off < 20 || v.src < p ||
			v.dst >= p + v.l4_off) {
			fail_msg("seed %llu", (unsigned long long)seed);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ip_parse_reads_ipv4),
		cmocka_unit_test(ip_parse_tells_ipv4_fragments),
		cmocka_unit_test(ip_parse_reads_ipv6),
		cmocka_unit_test(ip_parse_walks_every_ipv6_extension),
		cmocka_unit_test(ip_parse_lets_faulty_extensions_pass_without_l4),
		cmocka_unit_test(ip_parse_refuses_what_is_no_packet),
		cmocka_unit_test(ip_exact_len_takes_padding_off),
		cmocka_unit_test(ip_parse_stays_inside_for_any_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

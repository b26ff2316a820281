/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/endian.h"
#include "naive.h"
#include "pkt/gso.h"

#define ARENA_BYTES (1u << 20)
#define SEGS_MAX 4096

static uint8_t arena_bytes[ARENA_BYTES + 64], expected[ARENA_BYTES];
static uint8_t super[NAIVE_LEN_MAX + 1], super_before[NAIVE_LEN_MAX + 1], payload[NAIVE_LEN_MAX];
static struct gso_seg segs[SEGS_MAX];
static uint32_t lens[SEGS_MAX];

static struct gso_arena
arena(void)
{
	memset(arena_bytes, 0xa5, sizeof(arena_bytes));
	return (struct gso_arena){
		.buf = arena_bytes, .cap = ARENA_BYTES, .segs = segs, .segs_cap = SEGS_MAX};
}

static enum frame_gso
gso_of(const struct naive_packet *n)
{
	if (n->proto == 6) {
		return n->version == 4 ? FRAME_GSO_TCP4 : FRAME_GSO_TCP6;
	}
	return n->version == 4 ? FRAME_GSO_UDP4 : FRAME_GSO_UDP6;
}

/* A frame in super[] as the kernel hands it out. */
static struct frame
make(const struct naive_packet *n, uint32_t payload_len, uint16_t gso_size)
{
	struct frame f = {.data = super, .gso_size = gso_size, .hdr_len = 9999};
	f.len = naive_build(super, n, payload, payload_len);
	f.gso = gso_size > 0 ? gso_of(n) : FRAME_GSO_NONE;
	if (!n->has_zero_csum) {
		uint8_t proto;
		f.needs_csum = true;
		f.csum_start = (uint16_t)naive_l4(super, f.len, &proto);
		f.csum_offset = (uint16_t)(naive_make_partial(super, f.len) - f.csum_start);
	}
	return f;
}

static const uint8_t *
packet_at(const struct gso_arena *a, size_t i)
{
	return a->buf + a->segs[i].off + GSO_HEADROOM;
}

/* Everything that gso.h promises of where packets lie. Returns false at the first breach. */
static bool
is_laid_out(const struct gso_arena *a, uint16_t mtu)
{
	size_t at = 0;
	for (size_t i = 0; i < a->segs_n; i++) {
		const struct gso_seg *s = &a->segs[i];
		uint32_t want = (s->len + 15u) / 16 * 16;
		if (want > mtu) {
			want = s->len > mtu ? s->len : mtu;
		}
		if (s->off != at || s->padded_len != want) {
			return false;
		}
		for (uint32_t k = s->len; k < s->padded_len; k++) {
			if (packet_at(a, i)[k] != 0) {
				return false;
			}
		}
		/* Headroom and tailroom are the caller's. */
		for (uint32_t k = 0; k < 16; k++) {
			if (a->buf[at + k] != 0xa5 || a->buf[at + 16 + want + k] != 0xa5) {
				return false;
			}
		}
		at += 16 + want + 16;
	}
	return at == a->used && a->buf[at] == 0xa5;
}

static bool
is_split_like_naive(const struct frame *f, uint16_t mtu, bool keep_zero)
{
	struct gso_arena a = arena();
	enum drop_reason why = DROP_RX_SHORT;
	memcpy(super_before, super, f->len);
	size_t n = gso_split(f, mtu, &a, &why);
	uint16_t size = f->gso == FRAME_GSO_NONE ? UINT16_MAX : f->gso_size;
	size_t want = naive_segment(
		super, f->len, size, keep_zero, expected, sizeof(expected), lens, SEGS_MAX);
	if (n != want || n != a.segs_n || memcmp(super, super_before, f->len) != 0 ||
		!is_laid_out(&a, mtu)) {
		return false;
	}
	const uint8_t *e = expected;
	for (size_t i = 0; i < n; i++) {
		if (a.segs[i].len != lens[i] || memcmp(packet_at(&a, i), e, lens[i]) != 0 ||
			!naive_is_right(packet_at(&a, i), lens[i])) {
			return false;
		}
		e += lens[i];
	}
	return true;
}

static void
gso_split_equals_naive_model(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < naive_seeds(3000); seed++) {
		struct rng r;
		rng_init(&r, seed);
		struct naive_packet n = naive_random(&r, true);
		n.flags = (uint8_t)rng_u64(&r);
		n.tcp_reserved = (uint8_t)rng_below(&r, 16);
		n.urgent = (uint16_t)rng_u64(&r);
		n.has_zero_csum = n.proto == 17 && rng_below(&r, 4) == 0;
		uint32_t most = rng_below(&r, 8) == 0 ? 65000 : 6000;
		uint32_t len = (uint32_t)rng_below(&r, most);
		uint16_t size = (uint16_t)(1 + rng_below(&r, 1500));
		if (len / size >= 400) {
			size = (uint16_t)(len / 400 + 1);
		}
		if (rng_below(&r, 8) == 0) {
			size = 0;
		}
		rng_fill(&r, payload, len);
		struct frame f = make(&n, len, size);
		if (f.needs_csum && rng_below(&r, 8) == 0) {
			/* A checksum that is complete already: as needed without an offload. */
			f.len = naive_build(super, &n, payload, len);
			f.needs_csum = false;
		}
		if (!is_split_like_naive(
			    &f, (uint16_t)(576 + rng_below(&r, 2000)), !f.needs_csum)) {
			fail_msg("seed %llu", (unsigned long long)seed);
		}
	}
}

/* Splits and returns the arena; the split must work. */
static struct gso_arena
split(const struct frame *f, uint16_t mtu)
{
	struct gso_arena a = arena();
	enum drop_reason why;
	assert_int_not_equal(gso_split(f, mtu, &a, &why), 0);
	assert_true(is_laid_out(&a, mtu));
	return a;
}

static void
gso_fin_and_psh_stand_in_the_last_segment_alone(void **state)
{
	(void)state;
	struct naive_packet n = naive_tcp4();
	n.flags = 0x10 | 0x08 | 0x01;
	struct frame f = make(&n, 3000, 1000);
	struct gso_arena a = split(&f, 1420);
	assert_int_equal(a.segs_n, 3);
	assert_int_equal(packet_at(&a, 0)[20 + 13], 0x10);
	assert_int_equal(packet_at(&a, 1)[20 + 13], 0x10);
	assert_int_equal(packet_at(&a, 2)[20 + 13], 0x19);
}

static void
gso_cwr_stands_in_the_first_segment_alone(void **state)
{
	(void)state;
	struct naive_packet n = naive_tcp4();
	n.flags = 0x10 | 0x80 | 0x40;
	struct frame f = make(&n, 3000, 1000);
	f.has_ecn_gso = true;
	struct gso_arena a = split(&f, 1420);
	assert_int_equal(packet_at(&a, 0)[20 + 13], 0xd0);
	assert_int_equal(packet_at(&a, 1)[20 + 13], 0x50);
	assert_int_equal(packet_at(&a, 2)[20 + 13], 0x50);
}

static void
gso_urg_and_its_pointer_stay(void **state)
{
	(void)state;
	struct naive_packet n = naive_tcp4();
	n.flags = 0x30;
	n.urgent = 1234;
	struct frame f = make(&n, 3000, 1000);
	struct gso_arena a = split(&f, 1420);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(packet_at(&a, i)[20 + 13], 0x30);
		assert_int_equal(load_be16(packet_at(&a, i) + 20 + 18), 1234);
	}
}

static void
gso_sequence_and_ipv4_id_count_up_across_their_end(void **state)
{
	(void)state;
	struct naive_packet n = naive_tcp4();
	for (unsigned df = 0; df < 2; df++) {
		n.fragment = df ? 0x4000 : 0;
		struct frame f = make(&n, 3000, 1000);
		struct gso_arena a = split(&f, 1420);
		static const uint16_t ids[] = {0xfffe, 0xffff, 0};
		for (uint32_t i = 0; i < 3; i++) {
			assert_int_equal(load_be16(packet_at(&a, i) + 4), ids[i]);
			assert_int_equal(load_be32(packet_at(&a, i) + 24), 0xfffffe00u + i * 1000);
			assert_int_equal(packet_at(&a, i)[6], df ? 0x40 : 0);
		}
	}
}

static void
gso_udp_checksum_of_zero_becomes_ffff(void **state)
{
	(void)state;
	/* The first two payload bytes are chosen so that the sum is all ones. */
	for (uint8_t version = 4; version <= 6; version += 2) {
		for (uint16_t gso_size = 0; gso_size <= 100; gso_size += 100) {
			struct naive_packet n =
				version == 4 ? naive_udp4() : naive_as_v6(naive_udp4());
			uint32_t l4 = version == 4 ? 20 : 40;
			memset(payload, 0, 200);
			naive_build(super, &n, payload, 100);
			memcpy(payload, super + l4 + 6, 2);
			memcpy(payload + 100, payload, 2);
			struct frame f = make(&n, gso_size ? 200 : 100, gso_size);
			struct gso_arena a = split(&f, 1420);
			for (size_t i = 0; i < a.segs_n; i++) {
				const uint8_t *p = packet_at(&a, i);
				assert_int_equal(load_be16(p + l4 + 6), 0xffff);
				assert_true(naive_is_right(p, a.segs[i].len));
			}
		}
	}
}

static void
gso_udp_without_checksum_stays_without(void **state)
{
	(void)state;
	struct naive_packet n = naive_udp4();
	n.has_zero_csum = true;
	struct frame f = make(&n, 2500, 1000);
	assert_false(f.needs_csum);
	struct gso_arena a = split(&f, 1420);
	assert_int_equal(a.segs_n, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(load_be16(packet_at(&a, i) + 26), 0);
	}
	f = make(&n, 1000, 0);
	a = split(&f, 1420);
	assert_memory_equal(packet_at(&a, 0), super, f.len);
}

static void
gso_udp_lengths_are_those_of_the_segments(void **state)
{
	(void)state;
	struct naive_packet n = naive_as_v6(naive_udp4());
	struct frame f = make(&n, 2500, 1200);
	struct gso_arena a = split(&f, 1420);
	static const uint16_t want[] = {1208, 1208, 108};
	assert_int_equal(a.segs_n, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(load_be16(packet_at(&a, i) + 44), want[i]);
		assert_int_equal(load_be16(packet_at(&a, i) + 4), want[i]);
	}
}

static void
gso_partial_sum_keeps_the_destination_behind_a_routing_header(void **state)
{
	(void)state;
	for (uint8_t proto = 6; proto <= 17; proto += 11) {
		struct naive_packet n = naive_as_v6(naive_tcp4());
		n.proto = proto;
		n.ext_first = 43;
		n.ext_len = 24;
		memset(n.ext, 0xdd, 24); /* final destination dddd:... */
		memcpy(n.ext, (uint8_t[]){proto, 2, 2, 1, 0, 0, 0, 0}, 8);
		struct frame f = make(&n, 2500, 1000);
		struct gso_arena a = split(&f, 1420);
		for (size_t i = 0; i < a.segs_n; i++) {
			assert_true(naive_is_right(packet_at(&a, i), a.segs[i].len));
		}
	}
}

static void
gso_without_segmentation_completes_any_checksum(void **state)
{
	(void)state;
	/* ICMPv6 behind a hop-by-hop header: nothing that the parser looks into. */
	struct naive_packet n = naive_as_v6(naive_udp4());
	memset(payload, 7, 333);
	struct frame f = make(&n, 333, 0);
	super[6] = 58;
	f.csum_offset = 2;
	super[42] = 0x12;
	super[43] = 0x34;
	struct gso_arena a = split(&f, 1420);
	const uint8_t *p = packet_at(&a, 0);
	uint16_t stored = load_be16(p + 42);
	uint8_t zeroed[600];
	memcpy(zeroed, super, f.len);
	assert_int_equal(stored, 0xffff - naive_sum(zeroed + 40, f.len - 40, 0));
	memcpy(zeroed + 42, p + 42, 2);
	assert_memory_equal(p, zeroed, f.len);
}

static void
gso_frame_of_one_segment_is_one_packet(void **state)
{
	(void)state;
	struct naive_packet n = naive_tcp4();
	n.flags = 0xd9;
	static const uint32_t sizes[] = {0, 1, 999, 1000};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(sizes); i++) {
		struct frame f = make(&n, sizes[i], 1000);
		struct gso_arena a = split(&f, 1420);
		assert_int_equal(a.segs_n, 1);
		assert_int_equal(packet_at(&a, 0)[33], 0xd9);
		assert_true(naive_is_right(packet_at(&a, 0), a.segs[0].len));
	}
}

static void
gso_padding_stays_within_the_mtu(void **state)
{
	(void)state;
	struct naive_packet n = naive_udp4();
	n.has_zero_csum = true;
	for (uint32_t len = 28; len < 1500; len++) {
		struct frame f = make(&n, len - 28, 0);
		struct gso_arena a = split(&f, 1420);
		uint32_t want = len >= 1420 ? len : (len + 15) / 16 * 16;
		assert_int_equal(a.segs[0].len, len);
		assert_int_equal(a.segs[0].padded_len, want > 1420 && len <= 1420 ? 1420 : want);
	}
	struct frame f = make(&n, 65535 - 28, 0);
	struct gso_arena a = split(&f, 65535);
	assert_int_equal(a.segs[0].padded_len, 65535);
}

static void
gso_trailing_bytes_are_cut_off(void **state)
{
	(void)state;
	struct naive_packet n = naive_tcp4();
	struct frame f = make(&n, 100, 0);
	uint32_t exact = f.len;
	memset(super + f.len, 0xee, 50);
	f.len += 50;
	struct gso_arena a = split(&f, 1420);
	assert_int_equal(a.segs[0].len, exact);
	assert_true(naive_is_right(packet_at(&a, 0), exact));
}

static void
gso_full_arena_takes_nothing(void **state)
{
	(void)state;
	struct naive_packet n = naive_tcp4();
	struct frame f = make(&n, 3000, 1000); /* 3 x (16 + 1056 + 16), 1052 rounded up */
	enum drop_reason why;
	for (int by_bytes = 0; by_bytes < 2; by_bytes++) {
		struct gso_arena a = arena();
		a.cap = by_bytes ? 6 * 1088 - 1 : ARENA_BYTES;
		a.segs_cap = by_bytes ? SEGS_MAX : 5;
		assert_int_equal(gso_split(&f, 1420, &a, &why), 3);
		struct gso_arena before = a;
		assert_int_equal(gso_split(&f, 1420, &a, &why), 0);
		assert_int_equal(why, DROP_COUNT);
		assert_memory_equal(&a, &before, sizeof(a));
		for (size_t i = a.used; i < a.cap; i++) {
			assert_int_equal(a.buf[i], 0xa5);
		}
		a.cap += 1;
		a.segs_cap += 1;
		assert_int_equal(gso_split(&f, 1420, &a, &why), 3);
		assert_true(is_laid_out(&a, 1420));
	}
}

static void
gso_frame_beyond_the_empty_arena_is_too_big(void **state)
{
	(void)state;
	struct naive_packet n = naive_tcp4();
	struct frame f = make(&n, 3000, 1000);
	enum drop_reason why;
	struct gso_arena a = arena();
	a.cap = 3 * 1088 - 1;
	assert_int_equal(gso_split(&f, 1420, &a, &why), 0);
	assert_int_equal(why, DROP_TX_TOO_BIG);
	a = arena();
	a.segs_cap = 2;
	assert_int_equal(gso_split(&f, 1420, &a, &why), 0);
	assert_int_equal(why, DROP_TX_TOO_BIG);
	/* One byte a segment: 60,000 of them. */
	a = arena();
	f = make(&n, 60000, 1);
	assert_int_equal(gso_split(&f, 1420, &a, &why), 0);
	assert_int_equal(why, DROP_TX_TOO_BIG);
	f.len = 65536;
	assert_int_equal(gso_split(&f, 1420, &a, &why), 0);
	assert_int_equal(why, DROP_TX_TOO_BIG);
	assert_int_equal(a.used, 0);
}

static void
refuse(const struct frame *f, enum drop_reason want, const char *what)
{
	struct gso_arena a = arena();
	enum drop_reason why = DROP_RX_SHORT;
	if (gso_split(f, 1420, &a, &why) != 0 || why != want || a.used != 0 || a.segs_n != 0) {
		fail_msg("%s: %s", what, drop_name(why));
	}
}

static void
gso_refuses_malformed_packets(void **state)
{
	(void)state;
	struct naive_packet n = naive_tcp4();
	struct frame f = make(&n, 100, 0);
	f.len--;
	refuse(&f, DROP_TX_INNER, "shorter than its length");
	f.len = 0;
	refuse(&f, DROP_TX_INNER, "empty");
	f = make(&n, 3000, 1000);
	super[0] = 0x15;
	refuse(&f, DROP_TX_INNER, "version");
	super[0] = 0x44;
	refuse(&f, DROP_TX_INNER, "IHL");
}

static void
gso_refuses_offloads_that_contradict_the_packet(void **state)
{
	(void)state;
	struct naive_packet n = naive_tcp4();
	struct frame f = make(&n, 3000, 1000);
	struct frame g = f;
	g.gso_size = 0;
	refuse(&g, DROP_TX_OFFLOAD, "no segment size");
	g = f;
	g.gso = FRAME_GSO_TCP6;
	refuse(&g, DROP_TX_OFFLOAD, "family");
	g.gso = FRAME_GSO_UDP4;
	refuse(&g, DROP_TX_OFFLOAD, "protocol");
	g.needs_csum = false;
	refuse(&g, DROP_TX_OFFLOAD, "protocol without a checksum's place");
	g = f;
	g.csum_start = 24;
	refuse(&g, DROP_TX_OFFLOAD, "start of the checksum");
	g = f;
	g.csum_offset = 6;
	refuse(&g, DROP_TX_OFFLOAD, "place of the checksum");
	g = f;
	g.len++;
	refuse(&g, DROP_TX_OFFLOAD, "trailing bytes");
	super[32] = 0x40;
	refuse(&f, DROP_TX_OFFLOAD, "data offset below 5");
	f = make(&n, 20, 10);
	super[32] = 0xf0;
	refuse(&f, DROP_TX_OFFLOAD, "data offset beyond the packet");
	f = make(&n, 3000, 1000);
	super[6] = 0x20;
	refuse(&f, DROP_TX_OFFLOAD, "first fragment");
	super[6] = 0, super[7] = 1;
	refuse(&f, DROP_TX_OFFLOAD, "later fragment");
	struct naive_packet ah = naive_as_v6(naive_tcp4());
	ah.ext_first = 60;
	ah.ext_len = 24;
	memcpy(ah.ext, (uint8_t[]){6, 2}, 2);
	f = make(&ah, 3000, 1000);
	super[6] = 51, super[41] = 4; /* (4 + 2) x 4 bytes */
	refuse(&f, DROP_TX_OFFLOAD, "authentication header");
	/* Headers cut off by the packet's own length. */
	f = make(&n, 0, 1000);
	for (uint32_t len = 20; len < 52; len++) {
		g = f;
		g.len = len;
		store_be16(super + 2, (uint16_t)len);
		refuse(&g, DROP_TX_OFFLOAD, "cut TCP header");
	}
	n = naive_udp4();
	f = make(&n, 0, 1000);
	for (uint32_t len = 20; len < 28; len++) {
		g = f;
		g.len = len;
		store_be16(super + 2, (uint16_t)len);
		refuse(&g, DROP_TX_OFFLOAD, "cut UDP header");
	}
}

static void
gso_refuses_a_checksum_outside_what_follows_ip(void **state)
{
	(void)state;
	struct naive_packet n = naive_tcp4();
	struct frame f = make(&n, 100, 0);
	f.csum_start = 19;
	refuse(&f, DROP_TX_OFFLOAD, "inside the IPv4 header");
	f.csum_start = 20;
	f.csum_offset = (uint16_t)(f.len - 20 - 1);
	refuse(&f, DROP_TX_OFFLOAD, "last byte");
	f.csum_start = 65535;
	f.csum_offset = 65535;
	refuse(&f, DROP_TX_OFFLOAD, "far away");
	n = naive_as_v6(n);
	f = make(&n, 100, 0);
	f.csum_start = 39;
	refuse(&f, DROP_TX_OFFLOAD, "inside the IPv6 header");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gso_split_equals_naive_model),
		cmocka_unit_test(gso_fin_and_psh_stand_in_the_last_segment_alone),
		cmocka_unit_test(gso_cwr_stands_in_the_first_segment_alone),
		cmocka_unit_test(gso_urg_and_its_pointer_stay),
		cmocka_unit_test(gso_sequence_and_ipv4_id_count_up_across_their_end),
		cmocka_unit_test(gso_udp_checksum_of_zero_becomes_ffff),
		cmocka_unit_test(gso_udp_without_checksum_stays_without),
		cmocka_unit_test(gso_udp_lengths_are_those_of_the_segments),
		cmocka_unit_test(gso_partial_sum_keeps_the_destination_behind_a_routing_header),
		cmocka_unit_test(gso_without_segmentation_completes_any_checksum),
		cmocka_unit_test(gso_frame_of_one_segment_is_one_packet),
		cmocka_unit_test(gso_padding_stays_within_the_mtu),
		cmocka_unit_test(gso_trailing_bytes_are_cut_off),
		cmocka_unit_test(gso_full_arena_takes_nothing),
		cmocka_unit_test(gso_frame_beyond_the_empty_arena_is_too_big),
		cmocka_unit_test(gso_refuses_malformed_packets),
		cmocka_unit_test(gso_refuses_offloads_that_contradict_the_packet),
		cmocka_unit_test(gso_refuses_a_checksum_outside_what_follows_ip),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

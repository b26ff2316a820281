/* SPDX-License-Identifier: Apache-2.0 */
/* One claim a test; random soups are in gro_soup.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/endian.h"
#include "batch.h"
#include "naive.h"
#include "pkt/gro.h"

#define BATCH_BYTES (2u << 20)

static struct batch batch;
static uint8_t payload[NAIVE_LEN_MAX];
static const struct gro_caps all_caps = {true, true, true, true};

static int
set_up(void **state)
{
	(void)state;
	batch_init(&batch, BATCH_BYTES);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	batch_fini(&batch);
	return 0;
}

static void
join_and_check(void)
{
	batch_join(&batch, &all_caps);
	const char *wrong = batch_check(&batch);
	if (wrong) {
		fail_msg("%s", wrong);
	}
}

static struct naive_packet
tcp4(void)
{
	return (struct naive_packet){.version = 4,
		.proto = 6,
		.src = {10, 0, 0, 1},
		.dst = {10, 0, 0, 2},
		.sport = 1000,
		.dport = 2000,
		.ttl = 64,
		.tos = 0x02,
		.id = 0xfff0,
		.fragment = 0x4000,
		.seq = 0xffffe000,
		.ack = 77,
		.flags = 0x10,
		.window = 500,
		.options = {1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8},
		.options_len = 12};
}

static struct naive_packet
udp4(void)
{
	struct naive_packet n = tcp4();
	n.proto = 17;
	return n;
}

static struct naive_packet
as_v6(struct naive_packet n)
{
	n.version = 6;
	n.flow_label = 0xabcde;
	return n;
}

static void
gro_joins_a_run_of_each_kind(void **state)
{
	(void)state;
	static const enum frame_gso kinds[] = {
		FRAME_GSO_TCP4, FRAME_GSO_UDP4, FRAME_GSO_TCP6, FRAME_GSO_UDP6};
	for (size_t k = 0; k < 4; k++) {
		struct naive_packet n = k % 2 == 0 ? tcp4() : udp4();
		n = k < 2 ? n : as_v6(n);
		batch_begin(&batch);
		for (int i = 0; i < 40; i++) {
			batch_add_next(&batch, &n, 1368);
		}
		batch_add_next(&batch, &n, 100);
		join_and_check();
		assert_int_equal(batch.out.frames_n, 1);
		assert_int_equal(batch.frames[0].gso, kinds[k]);
		assert_int_equal(batch.frames[0].gso_size, 1368);
		assert_int_equal(batch.frames[0].packets, 41);
	}
}

static void
gro_joins_nothing_that_the_port_cannot_take(void **state)
{
	(void)state;
	for (size_t k = 0; k < 4; k++) {
		struct naive_packet n = k % 2 == 0 ? tcp4() : udp4();
		n = k < 2 ? n : as_v6(n);
		struct gro_caps caps = {k != 0, k != 2, k != 1, k != 3};
		batch_begin(&batch);
		for (int i = 0; i < 5; i++) {
			batch_add_next(&batch, &n, 1000);
		}
		batch_join(&batch, &caps);
		assert_null(batch_check(&batch));
		assert_int_equal(batch.out.frames_n, 5);
		assert_memory_equal(batch.bytes, batch.bytes_before, batch.used);
	}
}

static void
gro_single_packets_stay_as_they_are(void **state)
{
	(void)state;
	struct naive_packet a = tcp4(), b = udp4();
	b.src[3] = 9;
	batch_begin(&batch);
	batch_add_next(&batch, &a, 1000);
	batch_add_next(&batch, &b, 500);
	join_and_check();
	assert_int_equal(batch.out.frames_n, 2);
	assert_memory_equal(batch.bytes, batch.bytes_before, batch.used);
	assert_false(batch.frames[0].csum_valid);
}

static void
gro_keeps_an_empty_batch_empty(void **state)
{
	(void)state;
	batch_begin(&batch);
	batch.out.frames_n = 3;
	batch.out.pieces_n = 3;
	join_and_check();
	assert_int_equal(batch.out.frames_n, 0);
	assert_int_equal(batch.out.pieces_n, 0);
}

/* Five segments, the third of which differs: three frames, or as many as said. */
static void
check_difference(const char *what, struct naive_packet n, void (*differ)(struct naive_packet *n),
	size_t frames)
{
	batch_begin(&batch);
	for (int i = 0; i < 5; i++) {
		struct naive_packet m = n;
		if (i == 2) {
			differ(&m);
		}
		batch_add_built(&batch, &m, 1000);
		n.seq += 1000;
		n.id++;
	}
	batch_join(&batch, &all_caps);
	const char *wrong = batch_check(&batch);
	if (wrong) {
		fail_msg("%s: %s", what, wrong);
	}
	if (batch.out.frames_n != frames) {
		fail_msg("%s: %zu frames", what, batch.out.frames_n);
	}
}

#define DIFFER(name, change)                                                                       \
	static void differ_##name(struct naive_packet *n)                                          \
	{                                                                                          \
		change;                                                                            \
	}
DIFFER(ecn, n->tos ^= 3)
DIFFER(dscp, n->tos ^= 0x20)
DIFFER(ttl, n->ttl ^= 1)
DIFFER(df, n->fragment ^= 0x4000)
DIFFER(reserved, n->fragment ^= 0x8000)
DIFFER(id, n->id += 2)
DIFFER(flow_label, n->flow_label ^= 1)
DIFFER(window, n->window ^= 1)
DIFFER(ack, n->ack++)
DIFFER(timestamp, n->options[7]++)
DIFFER(sequence, n->seq++)
DIFFER(overlap, n->seq -= 1000)
DIFFER(urgent, n->urgent ^= 1)
DIFFER(tcp_reserved, n->tcp_reserved ^= 1)
DIFFER(ece, n->flags ^= 0x40)
DIFFER(fin, n->flags |= 0x01)
DIFFER(syn, n->flags |= 0x02)
DIFFER(rst, n->flags |= 0x04)
DIFFER(urg, n->flags |= 0x20)
DIFFER(cwr, n->flags |= 0x80)
DIFFER(no_ack, n->flags &= 0xef)
DIFFER(ip_options, n->ip_options_len = 8)
DIFFER(zero_csum, n->has_zero_csum = true)

static void
differ_options_len(struct naive_packet *n)
{
	n->options_len = 8;
}

static void
differ_extension(struct naive_packet *n)
{
	n->ext_first = 60;
	n->ext_len = 8;
	memcpy(n->ext, (uint8_t[]){n->proto, 0, 1, 4, 0, 0, 0, 0}, 8);
}

static void
gro_tcp_segments_that_differ_are_not_joined(void **state)
{
	(void)state;
#define ONE(name) check_difference(#name, tcp4(), differ_##name, 3)
	ONE(ecn), ONE(dscp), ONE(ttl), ONE(df), ONE(reserved), ONE(id), ONE(window), ONE(ack);
	ONE(timestamp), ONE(options_len), ONE(sequence), ONE(overlap), ONE(urgent);
	ONE(tcp_reserved), ONE(ece), ONE(fin), ONE(syn), ONE(rst), ONE(urg), ONE(cwr);
	ONE(no_ack), ONE(ip_options);
#undef ONE
#define ONE(name) check_difference(#name " v6", as_v6(tcp4()), differ_##name, 3)
	ONE(ecn), ONE(dscp), ONE(ttl), ONE(flow_label), ONE(window), ONE(extension);
#undef ONE
}

static void
gro_udp_datagrams_that_differ_are_not_joined(void **state)
{
	(void)state;
#define ONE(name) check_difference(#name, udp4(), differ_##name, 3)
	ONE(ecn), ONE(dscp), ONE(ttl), ONE(df), ONE(id), ONE(ip_options), ONE(zero_csum);
#undef ONE
#define ONE(name) check_difference(#name " v6", as_v6(udp4()), differ_##name, 3)
	ONE(ecn), ONE(dscp), ONE(ttl), ONE(flow_label), ONE(extension), ONE(zero_csum);
#undef ONE
}

static void
gro_equal_flags_that_cannot_be_cut_again_are_not_joined(void **state)
{
	(void)state;
	static const uint8_t flags[] = {0x11, 0x12, 0x14, 0x30, 0x90, 0x00};
	for (size_t k = 0; k < WEFT_ARRAY_LEN(flags); k++) {
		struct naive_packet n = tcp4();
		n.flags = flags[k];
		batch_begin(&batch);
		for (int i = 0; i < 4; i++) {
			batch_add_next(&batch, &n, 1000);
		}
		join_and_check();
		assert_int_equal(batch.out.frames_n, 4);
	}
}

static void
gro_ece_on_all_segments_is_joined(void **state)
{
	(void)state;
	struct naive_packet n = tcp4();
	n.flags = 0x50;
	batch_begin(&batch);
	for (int i = 0; i < 4; i++) {
		batch_add_next(&batch, &n, 1000);
	}
	join_and_check();
	assert_int_equal(batch.out.frames_n, 1);
}

static void
gro_psh_ends_a_run_and_is_kept(void **state)
{
	(void)state;
	struct naive_packet n = tcp4();
	batch_begin(&batch);
	for (int i = 0; i < 9; i++) {
		n.flags = i % 3 == 2 ? 0x18 : 0x10;
		batch_add_next(&batch, &n, 1000);
	}
	n.flags = 0x18; /* and one that stands alone */
	batch_add_next(&batch, &n, 1000);
	batch_add_next(&batch, &n, 1000);
	join_and_check();
	assert_int_equal(batch.out.frames_n, 5);
	assert_int_equal(batch.frames[2].packets, 3);
	assert_int_equal(batch.pkts[0].data[33], 0x18);
}

static void
gro_shorter_segment_ends_a_run_and_a_longer_one_begins_one(void **state)
{
	(void)state;
	struct naive_packet kinds[] = {tcp4(), udp4()};
	for (size_t k = 0; k < 2; k++) {
		struct naive_packet n = kinds[k];
		static const uint32_t sizes[] = {500, 500, 400, 400, 500, 500, 499, 1};
		batch_begin(&batch);
		for (size_t i = 0; i < WEFT_ARRAY_LEN(sizes); i++) {
			batch_add_next(&batch, &n, sizes[i]);
		}
		join_and_check();
		/* 500 500 400 | 400 | 500 500 499 | 1 */
		assert_int_equal(batch.out.frames_n, 4);
		assert_int_equal(batch.frames[0].packets, 3);
		assert_int_equal(batch.frames[1].packets, 1);
		assert_int_equal(batch.frames[2].packets, 3);
	}
}

static void
gro_empty_datagrams_and_pure_acks_pass_alone(void **state)
{
	(void)state;
	struct naive_packet kinds[] = {tcp4(), udp4()};
	for (size_t k = 0; k < 2; k++) {
		struct naive_packet n = kinds[k];
		batch_begin(&batch);
		for (int i = 0; i < 4; i++) {
			batch_add_next(&batch, &n, 0);
		}
		join_and_check();
		assert_int_equal(batch.out.frames_n, 4);
		assert_memory_equal(batch.bytes, batch.bytes_before, batch.used);
	}
}

static void
gro_pure_ack_of_another_flow_does_not_end_a_run(void **state)
{
	(void)state;
	struct naive_packet data = tcp4(), ack = tcp4();
	ack.src[3] = 3;
	batch_begin(&batch);
	for (int i = 0; i < 20; i++) {
		batch_add_next(&batch, &data, 1000);
		batch_add_next(&batch, &ack, 0);
	}
	join_and_check();
	assert_int_equal(batch.out.frames_n, 21);
	assert_int_equal(batch.frames[0].packets, 20);
}

static void
gro_pure_ack_of_the_same_flow_keeps_its_place(void **state)
{
	(void)state;
	struct naive_packet n = tcp4();
	batch_begin(&batch);
	batch_add_next(&batch, &n, 1000);
	batch_add_next(&batch, &n, 1000);
	batch_add_next(&batch, &n, 0);
	batch_add_next(&batch, &n, 1000);
	batch_add_next(&batch, &n, 1000);
	join_and_check();
	assert_int_equal(batch.out.frames_n, 3);
	assert_int_equal(batch.frames[1].len, 52);
}

static void
gro_joins_interleaved_flows(void **state)
{
	(void)state;
	struct naive_packet n[8];
	batch_begin(&batch);
	for (uint8_t k = 0; k < 8; k++) {
		n[k] = k % 2 ? udp4() : tcp4();
		n[k] = k % 4 < 2 ? n[k] : as_v6(n[k]);
		n[k].src[3] = (uint8_t)(k + 1);
	}
	for (int i = 0; i < 10; i++) {
		for (size_t k = 0; k < 8; k++) {
			batch_add_next(&batch, &n[k], 700);
		}
	}
	join_and_check();
	assert_int_equal(batch.out.frames_n, 8);
}

static void
gro_more_flows_than_runs_lose_joins_but_no_packet(void **state)
{
	(void)state;
	struct naive_packet n[40];
	batch_begin(&batch);
	for (uint8_t k = 0; k < 40; k++) {
		n[k] = tcp4();
		n[k].src[3] = (uint8_t)(k + 1);
	}
	for (int i = 0; i < 10; i++) {
		for (size_t k = 0; k < 40; k++) {
			batch_add_next(&batch, &n[k], 700);
		}
	}
	join_and_check();
}

static void
gro_wrong_checksum_inside_a_run_is_never_merged(void **state)
{
	(void)state;
	/* Which byte of the third packet is damaged: payload, L4 checksum, IPv4 checksum. */
	static const uint32_t at[] = {900, 36, 10};
	for (size_t k = 0; k < WEFT_ARRAY_LEN(at) * 2; k++) {
		struct naive_packet n = k % 2 ? udp4() : tcp4();
		uint32_t damage = at[k / 2] == 36 && k % 2 ? 26 : at[k / 2];
		batch_begin(&batch);
		for (int i = 0; i < 5; i++) {
			uint8_t *p = batch_add_next(&batch, &n, 1000);
			if (i == 2) {
				p[damage] ^= 0x40;
			}
		}
		join_and_check();
		assert_int_equal(batch.out.frames_n, 3);
		assert_int_equal(batch.frames[0].packets, 2);
		assert_int_equal(batch.frames[1].packets, 1);
		assert_false(batch.frames[1].csum_valid);
		assert_int_equal(batch.frames[2].packets, 2);
		assert_memory_equal(batch.pkts[2].data, batch_was(&batch, 2), batch.pkts[2].len);
	}
}

static void
gro_wrong_checksum_at_the_head_is_never_merged(void **state)
{
	(void)state;
	struct naive_packet n = as_v6(udp4());
	batch_begin(&batch);
	for (int i = 0; i < 4; i++) {
		uint8_t *p = batch_add_next(&batch, &n, 1000);
		p[500] ^= i == 0;
	}
	join_and_check();
	assert_int_equal(batch.out.frames_n, 2);
	assert_false(batch.frames[0].csum_valid);
	assert_int_equal(batch.frames[1].packets, 3);
}

static void
gro_says_of_a_verified_packet_that_it_is_valid(void **state)
{
	(void)state;
	struct naive_packet n = tcp4();
	batch_begin(&batch);
	batch_add_next(&batch, &n, 1000);
	batch_add_next(&batch, &n, 1000)[100] ^= 1;
	join_and_check();
	assert_int_equal(batch.out.frames_n, 2);
	assert_true(batch.frames[0].csum_valid);
	assert_false(batch.frames[1].csum_valid);
}

static void
gro_checksum_field_of_ffff_is_not_redrawn_as_zero(void **state)
{
	(void)state;
	/* The payload is chosen so that the right checksum is 0; ffff verifies as well. */
	struct naive_packet n = tcp4();
	batch_begin(&batch);
	batch_add_next(&batch, &n, 1000);
	uint8_t *p = batch_next(&batch);
	memset(payload, 0, 1000);
	naive_build(p, &n, payload, 1000);
	memcpy(payload, p + 36, 2);
	batch_add(&batch, naive_build(p, &n, payload, 1000));
	assert_int_equal(load_be16(p + 36), 0);
	store_be16(p + 36, 0xffff);
	assert_true(naive_is_right(p, 1052));
	join_and_check();
	assert_int_equal(batch.out.frames_n, 2);
}

static void
gro_atomic_packets_may_all_have_one_id(void **state)
{
	(void)state;
	for (unsigned df = 0; df < 2; df++) {
		struct naive_packet n = udp4();
		n.fragment = df ? 0x4000 : 0;
		batch_begin(&batch);
		for (int i = 0; i < 6; i++) {
			n.id = 0;
			batch_add_next(&batch, &n, 1000);
		}
		join_and_check();
		assert_int_equal(batch.out.frames_n, df ? 1 : 6);
		/* Equal ids first, then counting ones: not one run. */
		n.fragment = 0x4000;
		static const uint16_t ids[] = {5, 5, 6, 7, 7, 7};
		batch_begin(&batch);
		for (int i = 0; i < 6; i++) {
			n.id = ids[i];
			batch_add_next(&batch, &n, 1000);
		}
		join_and_check();
		assert_int_equal(batch.out.frames_n, 3); /* 5 5 | 6 7 | 7 7 */
	}
}

static void
gro_fragments_are_never_joined_and_keep_their_place(void **state)
{
	(void)state;
	static const uint16_t words[] = {0x2000, 0x0001, 0x2001};
	for (size_t k = 0; k < WEFT_ARRAY_LEN(words); k++) {
		struct naive_packet n = udp4();
		batch_begin(&batch);
		for (int i = 0; i < 6; i++) {
			uint8_t *p = batch_add_next(&batch, &n, 1000);
			if (i == 2 || i == 3) {
				p[6] = (uint8_t)(words[k] >> 8);
				p[7] = (uint8_t)words[k];
			}
		}
		join_and_check();
		assert_int_equal(batch.out.frames_n, 4);
		assert_int_equal(batch.frames[0].packets, 2);
	}
	/* IPv6: an atomic fragment has a whole datagram in it. */
	struct naive_packet n = as_v6(udp4());
	n.ext_first = 44;
	n.ext_len = 8;
	n.ext[0] = 17;
	batch_begin(&batch);
	for (int i = 0; i < 3; i++) {
		uint8_t *p = batch_next(&batch);
		n.ext_first = 60; /* built as an extension that the model knows */
		batch_add_built(&batch, &n, 1000);
		p[6] = 44;
	}
	batch_join(&batch, &all_caps);
	assert_int_equal(batch.out.frames_n, 3);
}

static void
gro_equal_extension_headers_are_joined(void **state)
{
	(void)state;
	struct naive_packet n = as_v6(tcp4());
	differ_extension(&n);
	batch_begin(&batch);
	for (int i = 0; i < 4; i++) {
		batch_add_next(&batch, &n, 1000);
	}
	n.ext[7] ^= 1;
	batch_add_next(&batch, &n, 1000);
	join_and_check();
	assert_int_equal(batch.out.frames_n, 2);
	assert_int_equal(batch.frames[0].csum_start, 48);
}

static void
gro_authentication_header_is_never_joined(void **state)
{
	(void)state;
	struct naive_packet n = as_v6(tcp4());
	n.ext_len = 24;
	n.ext[0] = 6;
	n.ext[1] = 2;
	batch_begin(&batch);
	for (int i = 0; i < 3; i++) {
		n.ext_first = 60; /* as long in the units of destination options */
		uint8_t *p = batch_add_next(&batch, &n, 1000);
		p[6] = 51;
		p[41] = 4; /* (4 + 2) x 4 bytes */
	}
	batch_join(&batch, &all_caps);
	assert_int_equal(batch.out.frames_n, 3);
	assert_memory_equal(batch.bytes, batch.bytes_before, batch.used);
}

static void
gro_udp_length_that_is_not_the_packets_is_not_joined(void **state)
{
	(void)state;
	struct naive_packet n = udp4();
	batch_begin(&batch);
	for (int i = 0; i < 3; i++) {
		uint8_t *p = batch_add_next(&batch, &n, 1000);
		/* 8 bytes of trailer behind the datagram. The first payload word takes up what
		 * the length lost, so that the sum over the whole stays right. */
		store_be16(p + 24, 1000);
		store_be16(p + 28, (uint16_t)(load_be16(p + 28) + 8));
		assert_true(naive_is_right(p, 1028));
	}
	join_and_check();
	assert_int_equal(batch.out.frames_n, 3);
}

static void
gro_frame_stays_within_the_longest_packet(void **state)
{
	(void)state;
	struct naive_packet kinds[] = {tcp4(), as_v6(tcp4()), udp4()};
	for (size_t k = 0; k < WEFT_ARRAY_LEN(kinds); k++) {
		struct naive_packet n = kinds[k];
		batch_begin(&batch);
		for (int i = 0; i < 60; i++) {
			batch_add_next(&batch, &n, 2000);
		}
		join_and_check();
		assert_int_equal(batch.out.frames_n, 2);
		assert_int_equal(batch.frames[0].packets, 32);
	}
	/* Exactly 65,535: 52 + 65,483 = 52 + 3 x 16,000 + 17,483; and one byte more. */
	for (uint32_t more = 0; more < 2; more++) {
		struct naive_packet n = tcp4();
		batch_begin(&batch);
		for (int i = 0; i < 3; i++) {
			batch_add_next(&batch, &n, 17000);
		}
		batch_add_next(&batch, &n, 65483 - 51000 + more);
		join_and_check();
		assert_int_equal(batch.out.frames_n, 1 + more);
		if (more == 0) {
			assert_int_equal(batch.frames[0].len, 65535);
		}
	}
}

static void
gro_frame_has_a_limited_number_of_packets(void **state)
{
	(void)state;
	struct naive_packet n = udp4();
	batch_begin(&batch);
	for (int i = 0; i < GRO_PACKETS_MAX + 10; i++) {
		batch_add_next(&batch, &n, 20);
	}
	join_and_check();
	assert_int_equal(batch.out.frames_n, 2);
	assert_int_equal(batch.frames[0].packets, GRO_PACKETS_MAX);
}

static void
gro_passes_what_is_no_packet(void **state)
{
	(void)state;
	struct naive_packet n = tcp4();
	batch_begin(&batch);
	batch_add_next(&batch, &n, 100);
	memset(batch_next(&batch), 0x11, 40);
	batch_add(&batch, 40);
	batch_add(&batch, 0);
	memset(batch_next(&batch), 0x45, 20);
	batch_add(&batch, 20);
	batch_add_next(&batch, &n, 100);
	batch_join(&batch, &all_caps);
	assert_int_equal(batch.out.frames_n, 4);
	assert_int_equal(batch.out.frames[0].packets, 2);
	for (size_t i = 1; i < 4; i++) {
		assert_ptr_equal(batch.pieces[batch.frames[i].first].data, batch.pkts[i].data);
		assert_int_equal(batch.frames[i].len, batch.pkts[i].len);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gro_joins_a_run_of_each_kind),
		cmocka_unit_test(gro_joins_nothing_that_the_port_cannot_take),
		cmocka_unit_test(gro_single_packets_stay_as_they_are),
		cmocka_unit_test(gro_keeps_an_empty_batch_empty),
		cmocka_unit_test(gro_tcp_segments_that_differ_are_not_joined),
		cmocka_unit_test(gro_udp_datagrams_that_differ_are_not_joined),
		cmocka_unit_test(gro_equal_flags_that_cannot_be_cut_again_are_not_joined),
		cmocka_unit_test(gro_ece_on_all_segments_is_joined),
		cmocka_unit_test(gro_psh_ends_a_run_and_is_kept),
		cmocka_unit_test(gro_shorter_segment_ends_a_run_and_a_longer_one_begins_one),
		cmocka_unit_test(gro_empty_datagrams_and_pure_acks_pass_alone),
		cmocka_unit_test(gro_pure_ack_of_another_flow_does_not_end_a_run),
		cmocka_unit_test(gro_pure_ack_of_the_same_flow_keeps_its_place),
		cmocka_unit_test(gro_joins_interleaved_flows),
		cmocka_unit_test(gro_more_flows_than_runs_lose_joins_but_no_packet),
		cmocka_unit_test(gro_wrong_checksum_inside_a_run_is_never_merged),
		cmocka_unit_test(gro_wrong_checksum_at_the_head_is_never_merged),
		cmocka_unit_test(gro_says_of_a_verified_packet_that_it_is_valid),
		cmocka_unit_test(gro_checksum_field_of_ffff_is_not_redrawn_as_zero),
		cmocka_unit_test(gro_atomic_packets_may_all_have_one_id),
		cmocka_unit_test(gro_fragments_are_never_joined_and_keep_their_place),
		cmocka_unit_test(gro_equal_extension_headers_are_joined),
		cmocka_unit_test(gro_authentication_header_is_never_joined),
		cmocka_unit_test(gro_udp_length_that_is_not_the_packets_is_not_joined),
		cmocka_unit_test(gro_frame_stays_within_the_longest_packet),
		cmocka_unit_test(gro_frame_has_a_limited_number_of_packets),
		cmocka_unit_test(gro_passes_what_is_no_packet),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}

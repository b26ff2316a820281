/* SPDX-License-Identifier: Apache-2.0 */
/* What gro.c must not join. */
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

/* Five segments, the third of which differs: three frames. */
static void
check_difference(const char *what, struct naive_packet n, void (*differ)(struct naive_packet *n))
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
	if (batch.out.frames_n != 3) {
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
#define ONE(name) check_difference(#name, naive_tcp4(), differ_##name)
	ONE(ecn), ONE(dscp), ONE(ttl), ONE(df), ONE(reserved), ONE(id), ONE(window), ONE(ack);
	ONE(timestamp), ONE(options_len), ONE(sequence), ONE(overlap), ONE(urgent);
	ONE(tcp_reserved), ONE(ece), ONE(fin), ONE(syn), ONE(rst), ONE(urg), ONE(cwr);
	ONE(no_ack), ONE(ip_options);
#undef ONE
#define ONE(name) check_difference(#name " v6", naive_as_v6(naive_tcp4()), differ_##name)
	ONE(ecn), ONE(dscp), ONE(ttl), ONE(flow_label), ONE(window), ONE(extension);
#undef ONE
}

static void
gro_udp_datagrams_that_differ_are_not_joined(void **state)
{
	(void)state;
#define ONE(name) check_difference(#name, naive_udp4(), differ_##name)
	ONE(ecn), ONE(dscp), ONE(ttl), ONE(df), ONE(id), ONE(ip_options), ONE(zero_csum);
#undef ONE
#define ONE(name) check_difference(#name " v6", naive_as_v6(naive_udp4()), differ_##name)
	ONE(ecn), ONE(dscp), ONE(ttl), ONE(flow_label), ONE(extension), ONE(zero_csum);
#undef ONE
}

static void
gro_equal_flags_that_cannot_be_cut_again_are_not_joined(void **state)
{
	(void)state;
	static const uint8_t flags[] = {0x11, 0x12, 0x14, 0x30, 0x90, 0x00};
	for (size_t k = 0; k < WEFT_ARRAY_LEN(flags); k++) {
		struct naive_packet n = naive_tcp4();
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
gro_empty_datagrams_and_pure_acks_pass_alone(void **state)
{
	(void)state;
	struct naive_packet kinds[] = {naive_tcp4(), naive_udp4()};
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
gro_wrong_checksum_inside_a_run_is_never_merged(void **state)
{
	(void)state;
	/* Which byte of the third packet is damaged: payload, L4 checksum, IPv4 checksum. */
	static const uint32_t at[] = {900, 36, 10};
	for (size_t k = 0; k < WEFT_ARRAY_LEN(at) * 2; k++) {
		struct naive_packet n = k % 2 ? naive_udp4() : naive_tcp4();
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
	struct naive_packet n = naive_as_v6(naive_udp4());
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
	struct naive_packet n = naive_tcp4();
	batch_begin(&batch);
	batch_add_next(&batch, &n, 1000);
	batch_add_next(&batch, &n, 1000)[100] ^= 1;
	join_and_check();
	assert_int_equal(batch.out.frames_n, 2);
	assert_true(batch.frames[0].csum_valid);
	assert_false(batch.frames[1].csum_valid);
}

/* Two bytes that, first in a payload of zeros, make the right checksum zero. */
static void
balance(const struct naive_packet *n, uint32_t csum_at, uint8_t out[2])
{
	uint8_t p[1200], zeros[1000] = {0};
	naive_build(p, n, zeros, 1000);
	memcpy(out, p + csum_at, 2);
}

static void
gro_checksum_field_of_ffff_is_not_redrawn_as_zero(void **state)
{
	(void)state;
	struct naive_packet n = naive_tcp4();
	uint8_t body[1000] = {0};
	batch_begin(&batch);
	batch_add_next(&batch, &n, 1000);
	balance(&n, 36, body);
	uint8_t *p = batch_next(&batch);
	batch_add(&batch, naive_build(p, &n, body, 1000));
	assert_int_equal(load_be16(p + 36), 0);
	store_be16(p + 36, 0xffff);
	assert_true(naive_is_right(p, 1052));
	join_and_check();
	assert_int_equal(batch.out.frames_n, 2);
}

static void
gro_udp_without_checksum_is_not_joined_though_its_sum_were_right(void **state)
{
	(void)state;
	struct naive_packet n = naive_udp4();
	batch_begin(&batch);
	for (int i = 0; i < 3; i++) {
		uint8_t body[1000] = {0};
		balance(&n, 26, body);
		uint8_t *p = batch_next(&batch);
		batch_add(&batch, naive_build(p, &n, body, 1000));
		assert_int_equal(load_be16(p + 26), 0xffff);
		store_be16(p + 26, 0);
		n.id++;
	}
	join_and_check();
	assert_int_equal(batch.out.frames_n, 3);
}

static void
gro_ipv4_checksum_of_ffff_is_not_redrawn_as_zero(void **state)
{
	(void)state;
	struct naive_packet n = naive_udp4();
	uint8_t p[1200], body[1000] = {0};
	n.fragment = 0x4000;
	n.id = 0;
	naive_build(p, &n, body, 1000);
	n.id = load_be16(p + 10); /* as a part of the sum it makes the checksum 0 */
	batch_begin(&batch);
	for (int i = 0; i < 3; i++) {
		uint8_t *q = batch_add_built(&batch, &n, 1000);
		assert_int_equal(load_be16(q + 10), 0);
		store_be16(q + 10, i == 2 ? 0xffff : 0);
	}
	join_and_check();
	assert_int_equal(batch.out.frames_n, 2);
}

static void
gro_ipv4_options_are_never_joined(void **state)
{
	(void)state;
	struct naive_packet n = naive_tcp4();
	n.ip_options_len = 8; /* all of them the end of the list: zeros, which sum to nothing */
	batch_begin(&batch);
	for (int i = 0; i < 3; i++) {
		batch_add_next(&batch, &n, 1000);
	}
	join_and_check();
	assert_int_equal(batch.out.frames_n, 3);
}

static void
gro_fragments_are_never_joined_and_keep_their_place(void **state)
{
	(void)state;
	static const uint16_t words[] = {0x2000, 0x0001, 0x2001};
	for (size_t k = 0; k < WEFT_ARRAY_LEN(words); k++) {
		struct naive_packet n = naive_udp4();
		batch_begin(&batch);
		batch_add_next(&batch, &n, 1000);
		batch_add_next(&batch, &n, 1000);
		uint8_t *p = batch_add_built(&batch, &n, 1000);
		store_be16(p + 6, words[k]);
		/* These would continue the run. */
		batch_add_next(&batch, &n, 1000);
		batch_add_next(&batch, &n, 1000);
		join_and_check();
		assert_int_equal(batch.out.frames_n, 3);
		assert_int_equal(batch.frames[0].packets, 2);
		assert_int_equal(batch.frames[1].packets, 1);
	}
	/* IPv6: an atomic fragment has a whole datagram in it. */
	struct naive_packet n = naive_as_v6(naive_udp4());
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
gro_authentication_header_is_never_joined(void **state)
{
	(void)state;
	struct naive_packet n = naive_as_v6(naive_tcp4());
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
	struct naive_packet n = naive_udp4();
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gro_tcp_segments_that_differ_are_not_joined),
		cmocka_unit_test(gro_udp_datagrams_that_differ_are_not_joined),
		cmocka_unit_test(gro_equal_flags_that_cannot_be_cut_again_are_not_joined),
		cmocka_unit_test(gro_empty_datagrams_and_pure_acks_pass_alone),
		cmocka_unit_test(gro_wrong_checksum_inside_a_run_is_never_merged),
		cmocka_unit_test(gro_wrong_checksum_at_the_head_is_never_merged),
		cmocka_unit_test(gro_says_of_a_verified_packet_that_it_is_valid),
		cmocka_unit_test(gro_checksum_field_of_ffff_is_not_redrawn_as_zero),
		cmocka_unit_test(gro_udp_without_checksum_is_not_joined_though_its_sum_were_right),
		cmocka_unit_test(gro_ipv4_checksum_of_ffff_is_not_redrawn_as_zero),
		cmocka_unit_test(gro_ipv4_options_are_never_joined),
		cmocka_unit_test(gro_fragments_are_never_joined_and_keep_their_place),
		cmocka_unit_test(gro_authentication_header_is_never_joined),
		cmocka_unit_test(gro_udp_length_that_is_not_the_packets_is_not_joined),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}

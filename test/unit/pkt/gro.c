/* SPDX-License-Identifier: Apache-2.0 */
/* What is joined and how. What is not is in gro_never.c, random soups are in gro_soup.c. */
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

static void
gro_joins_a_run_of_each_kind(void **state)
{
	(void)state;
	static const enum frame_gso kinds[] = {
		FRAME_GSO_TCP4, FRAME_GSO_UDP4, FRAME_GSO_TCP6, FRAME_GSO_UDP6};
	for (size_t k = 0; k < 4; k++) {
		struct naive_packet n = k % 2 == 0 ? naive_tcp4() : naive_udp4();
		n = k < 2 ? n : naive_as_v6(n);
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
		struct naive_packet n = k % 2 == 0 ? naive_tcp4() : naive_udp4();
		n = k < 2 ? n : naive_as_v6(n);
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
	struct naive_packet a = naive_tcp4(), b = naive_udp4();
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

static void
gro_ece_on_all_segments_is_joined(void **state)
{
	(void)state;
	struct naive_packet n = naive_tcp4();
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
	struct naive_packet n = naive_tcp4();
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
	struct naive_packet kinds[] = {naive_tcp4(), naive_udp4()};
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
gro_pure_ack_of_another_flow_does_not_end_a_run(void **state)
{
	(void)state;
	struct naive_packet data = naive_tcp4(), ack = naive_tcp4();
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
	struct naive_packet n = naive_tcp4();
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
		n[k] = k % 2 ? naive_udp4() : naive_tcp4();
		n[k] = k % 4 < 2 ? n[k] : naive_as_v6(n[k]);
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
		n[k] = naive_tcp4();
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
gro_tells_flows_apart_that_hash_alike(void **state)
{
	(void)state;
	struct naive_packet a = naive_tcp4(), b = naive_tcp4();
	/* The hash takes the source address and the ports together by exclusive or. */
	b.src[1] ^= 1;
	b.sport ^= 1;
	batch_begin(&batch);
	for (int i = 0; i < 4; i++) {
		batch_add_next(&batch, &a, 1000);
		batch_add_next(&batch, &b, 1000);
	}
	join_and_check();
	assert_int_equal(batch.out.frames_n, 2);
}

static void
gro_atomic_packets_may_all_have_one_id(void **state)
{
	(void)state;
	for (unsigned df = 0; df < 2; df++) {
		struct naive_packet n = naive_udp4();
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
gro_equal_extension_headers_are_joined(void **state)
{
	(void)state;
	struct naive_packet n = naive_as_v6(naive_tcp4());
	n.ext_first = 60;
	n.ext_len = 8;
	memcpy(n.ext, (uint8_t[]){6, 0, 1, 4, 0, 0, 0, 0}, 8);
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
gro_frame_stays_within_the_longest_packet(void **state)
{
	(void)state;
	struct naive_packet kinds[] = {naive_tcp4(), naive_as_v6(naive_tcp4()), naive_udp4()};
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
		struct naive_packet n = naive_tcp4();
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
	struct naive_packet n = naive_udp4();
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
	struct naive_packet n = naive_tcp4();
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
		cmocka_unit_test(gro_ece_on_all_segments_is_joined),
		cmocka_unit_test(gro_psh_ends_a_run_and_is_kept),
		cmocka_unit_test(gro_shorter_segment_ends_a_run_and_a_longer_one_begins_one),
		cmocka_unit_test(gro_pure_ack_of_another_flow_does_not_end_a_run),
		cmocka_unit_test(gro_pure_ack_of_the_same_flow_keeps_its_place),
		cmocka_unit_test(gro_joins_interleaved_flows),
		cmocka_unit_test(gro_more_flows_than_runs_lose_joins_but_no_packet),
		cmocka_unit_test(gro_tells_flows_apart_that_hash_alike),
		cmocka_unit_test(gro_atomic_packets_may_all_have_one_id),
		cmocka_unit_test(gro_equal_extension_headers_are_joined),
		cmocka_unit_test(gro_frame_stays_within_the_longest_packet),
		cmocka_unit_test(gro_frame_has_a_limited_number_of_packets),
		cmocka_unit_test(gro_passes_what_is_no_packet),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}

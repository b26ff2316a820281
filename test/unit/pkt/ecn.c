/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "pkt/csum.h"
#include "pkt/ecn.h"
#include "pkt/ip.h"

static void
ecn_encapsulation_copies(void **state)
{
	(void)state;
	for (uint8_t i = 0; i < 4; i++) {
		assert_int_equal(ecn_encapsulate(i), i);
	}
}

static void
ecn_decapsulation_is_figure_4(void **state)
{
	(void)state;
	static const struct {
		uint8_t inner, outer, result;
		bool is_dropped;
	} figure[] = {
		{ECN_NOT_ECT, ECN_NOT_ECT, ECN_NOT_ECT, false},
		{ECN_NOT_ECT, ECN_ECT0, ECN_NOT_ECT, false},
		{ECN_NOT_ECT, ECN_ECT1, ECN_NOT_ECT, false},
		{ECN_NOT_ECT, ECN_CE, 0, true},
		{ECN_ECT0, ECN_NOT_ECT, ECN_ECT0, false},
		{ECN_ECT0, ECN_ECT0, ECN_ECT0, false},
		{ECN_ECT0, ECN_ECT1, ECN_ECT1, false},
		{ECN_ECT0, ECN_CE, ECN_CE, false},
		{ECN_ECT1, ECN_NOT_ECT, ECN_ECT1, false},
		{ECN_ECT1, ECN_ECT0, ECN_ECT1, false},
		{ECN_ECT1, ECN_ECT1, ECN_ECT1, false},
		{ECN_ECT1, ECN_CE, ECN_CE, false},
		{ECN_CE, ECN_NOT_ECT, ECN_CE, false},
		{ECN_CE, ECN_ECT0, ECN_CE, false},
		{ECN_CE, ECN_ECT1, ECN_CE, false},
		{ECN_CE, ECN_CE, ECN_CE, false},
	};
	assert_int_equal(WEFT_ARRAY_LEN(figure), 16);
	for (size_t i = 0; i < 16; i++) {
		uint8_t out = 0x77;
		assert_int_equal(ecn_decapsulate(figure[i].inner, figure[i].outer, &out),
			!figure[i].is_dropped);
		assert_int_equal(out, figure[i].is_dropped ? 0x77 : figure[i].result);
	}
}

/* Every value of the whole TOS or traffic class, so that DSCP and its neighbours are seen not
 * to change. */
static void
check_packet(uint8_t *ip, size_t len, uint8_t outer)
{
	uint8_t before[IP6_HEADER_LEN];
	memcpy(before, ip, len);
	uint8_t want = ip_ecn(ip);
	bool is_kept = ecn_decapsulate(want, outer, &want);
	assert_int_equal(ecn_decapsulate_packet(ip, outer), is_kept);
	assert_int_equal(ip_ecn(ip), want);
	if (len == IP4_HEADER_LEN) {
		assert_int_equal(csum_fold(csum_header(ip, len)), 0xffff);
		before[1] = (uint8_t)((before[1] & ~3) | want);
		memcpy(before + 10, ip + 10, 2);
	} else {
		before[1] = (uint8_t)((before[1] & ~0x30) | (want << 4));
	}
	assert_memory_equal(ip, before, len);
}

static void
ecn_of_a_packet_changes_nothing_else(void **state)
{
	(void)state;
	for (unsigned tos = 0; tos < 256; tos++) {
		for (uint8_t outer = 0; outer < 4; outer++) {
			uint8_t p4[IP4_HEADER_LEN] = {0x45, (uint8_t)tos, 0, 20, 0xab, 0xcd, 0x40,
				0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2};
			csum_store(p4 + 10, csum_header(p4, sizeof(p4)));
			check_packet(p4, sizeof(p4), outer);
			uint8_t p6[IP6_HEADER_LEN] = {(uint8_t)(0x60 | (tos >> 4)),
				(uint8_t)((tos << 4) | 0xf), 0xff, 0xff, 0, 0, 59, 64};
			check_packet(p6, sizeof(p6), outer);
		}
	}
}

static void
ecn_keeps_a_wrong_checksum_wrong(void **state)
{
	(void)state;
	uint8_t ip[IP4_HEADER_LEN] = {0x45, ECN_ECT0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 1};
	csum_store(ip + 10, csum_header(ip, sizeof(ip)) + 5);
	ip_set_ecn(ip, ECN_CE);
	assert_int_equal(ip_ecn(ip), ECN_CE);
	assert_int_not_equal(csum_fold(csum_header(ip, sizeof(ip))), 0xffff);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ecn_encapsulation_copies),
		cmocka_unit_test(ecn_decapsulation_is_figure_4),
		cmocka_unit_test(ecn_of_a_packet_changes_nothing_else),
		cmocka_unit_test(ecn_keeps_a_wrong_checksum_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

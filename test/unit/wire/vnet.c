/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "pkt/frame.h"
#include "pkt/gro.h"
#include "wire/vnet.h"

static uint8_t frame4[200] = {0x45};
static uint8_t frame6[200] = {0x60};

static void
vnet_decode_reads_every_type(void **state)
{
	(void)state;
	static const struct {
		uint8_t type;
		uint8_t *data;
		enum frame_gso gso;
		bool ecn;
	} cases[] = {{0, frame4, FRAME_GSO_NONE, false}, {0, frame6, FRAME_GSO_NONE, false},
		{1, frame4, FRAME_GSO_TCP4, false}, {0x81, frame4, FRAME_GSO_TCP4, true},
		{4, frame6, FRAME_GSO_TCP6, false}, {0x84, frame6, FRAME_GSO_TCP6, true},
		{5, frame4, FRAME_GSO_UDP4, false}, {5, frame6, FRAME_GSO_UDP6, false}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		const uint8_t hdr[VNET_HDR_LEN] = {
			1, cases[i].type, 0x36, 0x12, 0x84, 0x05, 20, 0, 16, 0};
		struct frame f = {.data = cases[i].data, .len = 200};
		assert_int_equal(vnet_decode(hdr, &f), WEFT_OK);
		assert_int_equal(f.gso, cases[i].gso);
		assert_int_equal(f.has_ecn_gso, cases[i].ecn);
		assert_int_equal(f.hdr_len, 0x1236);
		assert_int_equal(f.gso_size, cases[i].gso == FRAME_GSO_NONE ? 0 : 0x584);
		assert_true(f.needs_csum);
		assert_int_equal(f.csum_start, 20);
		assert_int_equal(f.csum_offset, 16);
		assert_ptr_equal(f.data, cases[i].data);
		assert_int_equal(f.len, 200);
	}
}

static void
vnet_decode_refuses_what_cannot_be_split(void **state)
{
	(void)state;
	static const struct {
		const char *what;
		uint8_t hdr[VNET_HDR_LEN];
		uint8_t *data;
		uint32_t len;
	} cases[] = {
		{"UFO", {0, 3, 0, 0, 8, 0}, frame4, 200},
		{"unknown type", {0, 2, 0, 0, 8, 0}, frame4, 200},
		{"unknown bit", {0, 0x41, 0, 0, 8, 0}, frame4, 200},
		{"ECN alone", {0, 0x80, 0, 0, 8, 0}, frame4, 200},
		{"ECN with UDP", {0, 0x85, 0, 0, 8, 0}, frame4, 200},
		{"no segment size", {0, 1, 0, 0, 0, 0}, frame4, 200},
		{"TCPV4 of IPv6", {0, 1, 0, 0, 8, 0}, frame6, 200},
		{"TCPV6 of IPv4", {0, 4, 0, 0, 8, 0}, frame4, 200},
		{"UDP of an empty frame", {0, 5, 0, 0, 8, 0}, NULL, 0},
		{"checksum one byte past the end", {1, 0, 0, 0, 0, 0, 183, 0, 16, 0}, frame4, 200},
		{"checksum far past the end", {1, 0, 0, 0, 0, 0, 255, 255, 255, 255}, frame4, 200},
	};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		struct frame f = {.data = cases[i].data, .len = cases[i].len, .hdr_len = 77};
		if (vnet_decode(cases[i].hdr, &f) != WEFT_EPARSE) {
			fail_msg("accepted: %s", cases[i].what);
		}
		assert_int_equal(f.hdr_len, 77);
	}
}

static void
vnet_checksum_may_end_with_the_frame(void **state)
{
	(void)state;
	static const uint8_t hdr[VNET_HDR_LEN] = {1, 0, 0, 0, 0, 0, 182, 0, 16, 0};
	struct frame f = {.data = frame4, .len = 200};
	assert_int_equal(vnet_decode(hdr, &f), WEFT_OK);
}

static void
vnet_hints_are_ignored(void **state)
{
	(void)state;
	/* DATA_VALID and RSC_INFO; checksum fields without NEEDS_CSUM are noise. */
	static const uint8_t hdr[VNET_HDR_LEN] = {6, 0, 255, 255, 9, 9, 255, 255, 255, 255};
	struct frame f = {.data = frame4, .len = 200};
	assert_int_equal(vnet_decode(hdr, &f), WEFT_OK);
	assert_false(f.needs_csum);
	assert_int_equal(f.csum_start, 0);
	assert_int_equal(f.gso_size, 0);
}

static void
vnet_encode_of_a_plain_frame_is_zeros(void **state)
{
	(void)state;
	static const uint8_t zeros[VNET_HDR_LEN];
	uint8_t hdr[VNET_HDR_LEN];
	memset(hdr, 0xee, sizeof(hdr));
	vnet_encode(&(struct gro_frame){.len = 1500, .hdr_len = 40, .n = 1, .packets = 1}, hdr);
	assert_memory_equal(hdr, zeros, sizeof(hdr));
	vnet_encode(&(struct gro_frame){.csum_valid = true, .n = 1, .packets = 1}, hdr);
	assert_int_equal(hdr[0], 2);
	assert_memory_equal(hdr + 1, zeros, sizeof(hdr) - 1);
}

static void
vnet_decode_reads_what_encode_wrote(void **state)
{
	(void)state;
	struct rng r;
	rng_init(&r, 1);
	for (int i = 0; i < 1000; i++) {
		struct gro_frame g = {.gso = (enum frame_gso)rng_below(&r, 5),
			.gso_size = (uint16_t)(1 + rng_below(&r, 65535)),
			.hdr_len = (uint16_t)rng_below(&r, 65536),
			.needs_csum = rng_below(&r, 2) != 0,
			.csum_start = (uint16_t)rng_below(&r, 100),
			.csum_offset = (uint16_t)rng_below(&r, 90)};
		bool is_v6 = g.gso == FRAME_GSO_TCP6 || g.gso == FRAME_GSO_UDP6;
		uint8_t hdr[VNET_HDR_LEN];
		vnet_encode(&g, hdr);
		struct frame f = {.data = is_v6 ? frame6 : frame4, .len = 200};
		assert_int_equal(vnet_decode(hdr, &f), WEFT_OK);
		assert_int_equal(f.gso, g.gso);
		assert_int_equal(f.needs_csum, g.needs_csum);
		if (g.gso != FRAME_GSO_NONE) {
			assert_int_equal(f.gso_size, g.gso_size);
			assert_int_equal(f.hdr_len, g.hdr_len);
		}
		if (g.needs_csum) {
			assert_int_equal(f.csum_start, g.csum_start);
			assert_int_equal(f.csum_offset, g.csum_offset);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vnet_decode_reads_every_type),
		cmocka_unit_test(vnet_decode_refuses_what_cannot_be_split),
		cmocka_unit_test(vnet_checksum_may_end_with_the_frame),
		cmocka_unit_test(vnet_hints_are_ignored),
		cmocka_unit_test(vnet_encode_of_a_plain_frame_is_zeros),
		cmocka_unit_test(vnet_decode_reads_what_encode_wrote),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "wire/wg.h"

/* A message whose every byte says where it is. */
static void
number_bytes(uint8_t *out, size_t len, enum wire_wg_type type)
{
	for (size_t i = 0; i < len; i++) {
		out[i] = (uint8_t)i;
	}
	store_le32(out, type);
}

static void
initiation_fields_lie_where_the_paper_draws_them(void **state)
{
	(void)state;
	uint8_t in[WIRE_WG_INITIATION_LEN], out[WIRE_WG_INITIATION_LEN];
	number_bytes(in, sizeof(in), WIRE_WG_TYPE_INITIATION);
	struct wire_wg_initiation m;
	assert_true(wire_wg_initiation_decode(in, sizeof(in), &m));
	assert_int_equal(m.sender, 0x07060504);
	assert_int_equal(m.ephemeral[0], 8);
	assert_int_equal(m.static_sealed[0], 40);
	assert_int_equal(m.stamp_sealed[0], 88);
	assert_int_equal(m.stamp_sealed[27], 115);
	wire_wg_initiation_encode(&m, out);
	assert_memory_equal(in, out, WIRE_WG_INITIATION_MAC1_OFF);
	static const uint8_t no_macs[32];
	assert_memory_equal(out + WIRE_WG_INITIATION_MAC1_OFF, no_macs, 32);
}

static void
response_fields_lie_where_the_paper_draws_them(void **state)
{
	(void)state;
	uint8_t in[WIRE_WG_RESPONSE_LEN], out[WIRE_WG_RESPONSE_LEN];
	number_bytes(in, sizeof(in), WIRE_WG_TYPE_RESPONSE);
	struct wire_wg_response m;
	assert_true(wire_wg_response_decode(in, sizeof(in), &m));
	assert_int_equal(m.sender, 0x07060504);
	assert_int_equal(m.receiver, 0x0b0a0908);
	assert_int_equal(m.ephemeral[0], 12);
	assert_int_equal(m.empty_sealed[0], 44);
	assert_int_equal(m.empty_sealed[15], 59);
	wire_wg_response_encode(&m, out);
	assert_memory_equal(in, out, WIRE_WG_RESPONSE_MAC1_OFF);
	static const uint8_t no_macs[32];
	assert_memory_equal(out + WIRE_WG_RESPONSE_MAC1_OFF, no_macs, 32);
}

static void
cookie_reply_round_trips_all_64_bytes(void **state)
{
	(void)state;
	uint8_t in[WIRE_WG_COOKIE_REPLY_LEN], out[WIRE_WG_COOKIE_REPLY_LEN];
	number_bytes(in, sizeof(in), WIRE_WG_TYPE_COOKIE_REPLY);
	struct wire_wg_cookie_reply m;
	assert_true(wire_wg_cookie_reply_decode(in, sizeof(in), &m));
	assert_int_equal(m.receiver, 0x07060504);
	assert_int_equal(m.nonce[0], 8);
	assert_int_equal(m.cookie_sealed[0], 32);
	wire_wg_cookie_reply_encode(&m, out);
	assert_memory_equal(in, out, sizeof(in));
}

static void
decoders_refuse_every_other_length(void **state)
{
	(void)state;
	uint8_t buf[200];
	for (size_t len = 0; len <= sizeof(buf); len++) {
		struct wire_wg_initiation i;
		struct wire_wg_response r;
		struct wire_wg_cookie_reply c;
		number_bytes(buf, sizeof(buf), WIRE_WG_TYPE_INITIATION);
		assert_int_equal(wire_wg_initiation_decode(buf, len, &i), len == 148);
		number_bytes(buf, sizeof(buf), WIRE_WG_TYPE_RESPONSE);
		assert_int_equal(wire_wg_response_decode(buf, len, &r), len == 92);
		number_bytes(buf, sizeof(buf), WIRE_WG_TYPE_COOKIE_REPLY);
		assert_int_equal(wire_wg_cookie_reply_decode(buf, len, &c), len == 64);
		number_bytes(buf, sizeof(buf), WIRE_WG_TYPE_DATA);
		assert_int_equal(wire_wg_data_is_well_formed(buf, len), len >= 32);
	}
}

static void
type_refuses_unknown_types_and_reserved_bits(void **state)
{
	(void)state;
	uint8_t buf[WIRE_WG_INITIATION_LEN] = {0};
	for (unsigned first = 0; first < 256; first++) {
		buf[0] = (uint8_t)first;
		enum wire_wg_type t = wire_wg_type(buf, sizeof(buf));
		assert_int_equal(t, first <= 4 ? first : 0);
	}
	for (unsigned type = 1; type <= 4; type++) {
		for (unsigned bit = 8; bit < 32; bit++) {
			if (type == WIRE_WG_TYPE_DATA && bit == 8) {
				continue; /* the mark of the second cipher */
			}
			store_le32(buf, type | 1u << bit);
			assert_int_equal(wire_wg_type(buf, sizeof(buf)), WIRE_WG_TYPE_NONE);
			assert_false(wire_wg_data_is_well_formed(buf, sizeof(buf)));
		}
	}
	store_le32(buf, WIRE_WG_TYPE_DATA);
	assert_int_equal(wire_wg_type(buf, 3), WIRE_WG_TYPE_NONE);
}

static void
data_header_reads_back_what_was_written(void **state)
{
	(void)state;
	uint8_t buf[32] = {0};
	wire_wg_data_write_header(
		buf, AEAD_CIPHER_CHACHA20_POLY1305, 0x04030201, 0x0c0b0a0908070605);
	static const uint8_t want[] = {4, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
	assert_memory_equal(buf, want, sizeof(want));
	assert_true(wire_wg_data_is_well_formed(buf, sizeof(buf)));
	assert_int_equal(wire_wg_data_receiver(buf), 0x04030201);
	assert_true(wire_wg_data_counter(buf) == UINT64_C(0x0c0b0a0908070605));
	assert_int_equal(wire_wg_data_cipher(buf), AEAD_CIPHER_CHACHA20_POLY1305);
}

static void
data_is_marked_with_its_cipher_in_the_second_byte_alone(void **state)
{
	(void)state;
	uint8_t buf[32] = {0};
	wire_wg_data_write_header(buf, AEAD_CIPHER_AES_256_GCM, 0x04030201, 0x0c0b0a0908070605);
	static const uint8_t want[] = {4, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
	assert_memory_equal(buf, want, sizeof(want));
	assert_int_equal(wire_wg_data_cipher(buf), AEAD_CIPHER_AES_256_GCM);
	assert_true(wire_wg_data_is_well_formed(buf, sizeof(buf)));
	assert_false(wire_wg_data_is_well_formed(buf, 31));
	for (uint32_t reserved = 0; reserved < 1u << 24; reserved += reserved < 512 ? 1 : 255) {
		store_le32(buf, WIRE_WG_TYPE_DATA | reserved << 8);
		assert_int_equal(wire_wg_type(buf, sizeof(buf)),
			reserved <= 1 ? WIRE_WG_TYPE_DATA : WIRE_WG_TYPE_NONE);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(initiation_fields_lie_where_the_paper_draws_them),
		cmocka_unit_test(response_fields_lie_where_the_paper_draws_them),
		cmocka_unit_test(cookie_reply_round_trips_all_64_bytes),
		cmocka_unit_test(decoders_refuse_every_other_length),
		cmocka_unit_test(type_refuses_unknown_types_and_reserved_bits),
		cmocka_unit_test(data_header_reads_back_what_was_written),
		cmocka_unit_test(data_is_marked_with_its_cipher_in_the_second_byte_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "wire/key.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Base64 as a stream of bits, character by character. */
static void
naive_encode(const uint8_t key[KEY_LEN], char out[KEY_BASE64_LEN + 1])
{
	for (unsigned i = 0; i < 43; i++) {
		unsigned v = 0;
		for (unsigned b = 0; b < 6; b++) {
			unsigned bit = i * 6 + b;
			v = v << 1 | (bit < 256 ? key[bit / 8] >> (7 - bit % 8) & 1 : 0);
		}
		out[i] = alphabet[v];
	}
	strcpy(out + 43, "=");
}

static void
key_text_round_trips_and_equals_a_naive_encoder(void **state)
{
	(void)state;
	struct rng r;
	rng_init(&r, 1);
	for (int i = 0; i < 2000; i++) {
		uint8_t key[KEY_LEN], back[KEY_LEN];
		char text[KEY_BASE64_LEN + 1], want[KEY_BASE64_LEN + 1], hex[KEY_HEX_LEN + 1];
		rng_fill(&r, key, sizeof(key));
		naive_encode(key, want);
		assert_string_equal(key_encode_base64(key, text), want);
		assert_int_equal(key_decode_base64(text, KEY_BASE64_LEN, back), WEFT_OK);
		assert_memory_equal(back, key, KEY_LEN);
		memset(back, 0, sizeof(back));
		assert_int_equal(
			key_decode_hex(key_encode_hex(key, hex), KEY_HEX_LEN, back), WEFT_OK);
		assert_memory_equal(back, key, KEY_LEN);
		for (unsigned k = 0; k < KEY_LEN; k++) {
			char two[3];
			snprintf(two, sizeof(two), "%02x", key[k]);
			assert_memory_equal(hex + 2 * k, two, 2);
		}
	}
}

static void
key_base64_accepts_each_byte_exactly_where_the_alphabet_has_it(void **state)
{
	(void)state;
	char text[KEY_BASE64_LEN + 1] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
	for (unsigned at = 0; at < KEY_BASE64_LEN; at++) {
		for (int c = 0; c < 256; c++) {
			char saved = text[at];
			text[at] = (char)c;
			const char *p = c ? strchr(alphabet, c) : NULL;
			/* The last character before '=' has four bits of the key. */
			bool want =
				at == 43 ? c == '=' : p && (at != 42 || (p - alphabet) % 4 == 0);
			uint8_t out[KEY_LEN];
			memset(out, 0xee, sizeof(out));
			enum weft_err e = key_decode_base64(text, KEY_BASE64_LEN, out);
			if (e != (want ? WEFT_OK : WEFT_EPARSE)) {
				fail_msg("byte %d at %u: %d", c, at, e);
			}
			assert_true(want || out[0] == 0xee); /* results on success only */
			text[at] = saved;
		}
	}
}

static void
key_of_another_length_is_refused(void **state)
{
	(void)state;
	static const char text[] =
		"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=AAAAAAAAAAAAAAAAAAAAAAAA=";
	static const char hex[] =
		"00000000000000000000000000000000000000000000000000000000000000000000";
	uint8_t out[KEY_LEN];
	for (size_t n = 0; n <= 66; n++) {
		assert_int_equal(key_decode_base64(text, n, out), n == 44 ? WEFT_OK : WEFT_EPARSE);
		assert_int_equal(key_decode_hex(hex, n, out), n == 64 ? WEFT_OK : WEFT_EPARSE);
	}
}

static void
key_hex_takes_either_case_and_nothing_else(void **state)
{
	(void)state;
	char text[KEY_HEX_LEN + 1];
	memset(text, '0', KEY_HEX_LEN);
	text[KEY_HEX_LEN] = 0;
	for (int c = 0; c < 256; c++) {
		text[33] = (char)c;
		bool want = c && strchr("0123456789abcdefABCDEF", c);
		uint8_t out[KEY_LEN];
		assert_int_equal(
			key_decode_hex(text, KEY_HEX_LEN, out), want ? WEFT_OK : WEFT_EPARSE);
	}
	text[33] = 'F';
	uint8_t out[KEY_LEN];
	assert_int_equal(key_decode_hex(text, KEY_HEX_LEN, out), WEFT_OK);
	assert_int_equal(out[16], 15);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_text_round_trips_and_equals_a_naive_encoder),
		cmocka_unit_test(key_base64_accepts_each_byte_exactly_where_the_alphabet_has_it),
		cmocka_unit_test(key_of_another_length_is_refused),
		cmocka_unit_test(key_hex_takes_either_case_and_nothing_else),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

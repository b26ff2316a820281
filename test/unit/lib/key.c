/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "weft/node.h"

static void
key_public_is_that_of_rfc_7748(void **state)
{
	(void)state;
	/* Section 6.1: Alice's. */
	static const uint8_t private_key[WEFT_KEY_LEN] = {0x77, 0x07, 0x6d, 0x0a, 0x73, 0x18, 0xa5,
		0x7d, 0x3c, 0x16, 0xc1, 0x72, 0x51, 0xb2, 0x66, 0x45, 0xdf, 0x4c, 0x2f, 0x87, 0xeb,
		0xc0, 0x99, 0x2a, 0xb1, 0x77, 0xfb, 0xa5, 0x1d, 0xb9, 0x2c, 0x2a};
	static const uint8_t public_key[WEFT_KEY_LEN] = {0x85, 0x20, 0xf0, 0x09, 0x89, 0x30, 0xa7,
		0x54, 0x74, 0x8b, 0x7d, 0xdc, 0xb4, 0x3e, 0xf7, 0x5a, 0x0d, 0xbf, 0x3a, 0x0d, 0x26,
		0x38, 0x1a, 0xf4, 0xeb, 0xa4, 0xa9, 0x8e, 0xaa, 0x9b, 0x4e, 0x6a};
	uint8_t out[WEFT_KEY_LEN];
	assert_int_equal(weft_key_public(private_key, out), WEFT_OK);
	assert_memory_equal(out, public_key, WEFT_KEY_LEN);
}

static void
key_generated_are_distinct_and_clamped(void **state)
{
	(void)state;
	uint8_t a[WEFT_KEY_LEN], b[WEFT_KEY_LEN];
	assert_int_equal(weft_key_generate(a), WEFT_OK);
	assert_int_equal(weft_key_generate(b), WEFT_OK);
	assert_memory_not_equal(a, b, WEFT_KEY_LEN);
	assert_int_equal(a[0] & 7, 0);
	assert_int_equal(a[31] & 0xc0, 0x40);
}

static void
key_text_reads_back_and_other_text_is_refused(void **state)
{
	(void)state;
	uint8_t a[WEFT_KEY_LEN], b[WEFT_KEY_LEN];
	char text[WEFT_KEY_TEXT_LEN];
	assert_int_equal(weft_key_generate(a), WEFT_OK);
	weft_key_format(a, text);
	assert_int_equal(strlen(text), WEFT_KEY_TEXT_LEN - 1);
	assert_int_equal(weft_key_parse(text, b), WEFT_OK);
	assert_memory_equal(a, b, WEFT_KEY_LEN);
	text[43] = 0;
	assert_int_equal(weft_key_parse(text, b), WEFT_EPARSE);
	assert_int_equal(weft_key_parse("", b), WEFT_EPARSE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_public_is_that_of_rfc_7748),
		cmocka_unit_test(key_generated_are_distinct_and_clamped),
		cmocka_unit_test(key_text_reads_back_and_other_text_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

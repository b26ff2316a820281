/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "crypto/secret.h"

static void
wipe_clears_exactly_its_bytes(void **state)
{
	(void)state;
	uint8_t b[34];
	memset(b, 0x55, sizeof(b));
	secret_wipe(b + 1, 32);
	assert_int_equal(b[0], 0x55);
	assert_int_equal(b[33], 0x55);
	assert_true(secret_is_zero(b + 1, 32));
	secret_wipe(b, 0);
	assert_int_equal(b[0], 0x55);
}

static void
every_differing_bit_is_seen(void **state)
{
	(void)state;
	uint8_t a[32] = {0}, b[32] = {0};
	assert_true(secret_is_equal(a, b, sizeof(a)));
	assert_true(secret_is_equal(a, b, 0));
	for (size_t i = 0; i < 256; i++) {
		b[i / 8] = (uint8_t)(1u << (i % 8));
		assert_false(secret_is_equal(a, b, sizeof(a)));
		assert_false(secret_is_zero(b, sizeof(b)));
		b[i / 8] = 0;
	}
	assert_true(secret_is_zero(b, sizeof(b)));
	assert_true(secret_is_zero(b, 0));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wipe_clears_exactly_its_bytes),
		cmocka_unit_test(every_differing_bit_is_seen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

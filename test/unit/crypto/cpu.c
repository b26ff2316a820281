/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "crypto/aead.h"
#include "crypto/cpu.h"

static void
arm_needs_both_aes_and_pmull(void **state)
{
	(void)state;
	assert_true(cpu_armcap_has_aes_gcm("OPENSSL_armcap=0xbd"));
	assert_true(cpu_armcap_has_aes_gcm("OPENSSL_armcap=0x24"));
	assert_false(cpu_armcap_has_aes_gcm("OPENSSL_armcap=0x1d"));
	assert_false(cpu_armcap_has_aes_gcm("OPENSSL_armcap=0x21"));
	assert_false(cpu_armcap_has_aes_gcm("OPENSSL_armcap=0x0"));
}

static void
other_settings_tell_nothing(void **state)
{
	(void)state;
	assert_false(cpu_armcap_has_aes_gcm(NULL));
	assert_false(cpu_armcap_has_aes_gcm(""));
	assert_false(cpu_armcap_has_aes_gcm("OPENSSL_armcap="));
	assert_false(cpu_armcap_has_aes_gcm("OPENSSL_ia32cap=0xffffffffffffffff:0xffffffff"));
}

static void
the_answer_stays_the_same(void **state)
{
	(void)state;
	assert_int_equal(aead_has_fast_aes(), cpu_has_aes_gcm());
	assert_int_equal(cpu_has_aes_gcm(), cpu_has_aes_gcm());
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arm_needs_both_aes_and_pmull),
		cmocka_unit_test(other_settings_tell_nothing),
		cmocka_unit_test(the_answer_stays_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

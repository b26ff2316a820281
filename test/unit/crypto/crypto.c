/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/err.h>

#include "crypto/crypto.h"
#include "crypto/dh.h"
#include "crypto/hash.h"
#include "crypto/xaead.h"
#include "model.h"

/* Runs in a process that called crypto_process_init() first: see main(). */
static void
every_primitive_works_without_configuration(void **state)
{
	(void)state;
	struct crypto *c = NULL;
	uint8_t key[32] = {1}, got[32], want[32], nonce[24] = {2};
	uint8_t sealed[16 + 16];
	const struct xaead_bytes none = {NULL, 0}, text = {key, 16}, all = {sealed, 32};
	assert_int_equal(crypto_new(&c), WEFT_OK);
	hash_blake2s(c, got, key, 32, NULL, 0);
	model_blake2s(want, 32, NULL, 0, key, 32);
	assert_memory_equal(got, want, 32);
	mac_blake2s(c, got, key, 32, key, 32);
	model_blake2s(want, 16, key, 32, key, 32);
	assert_memory_equal(got, want, 16);
	assert_int_equal(dh_public(c, got, key), WEFT_OK);
	xaead_seal(c, sealed, key, nonce, text, none);
	assert_int_equal(xaead_open(c, got, key, nonce, all, none), WEFT_OK);
	assert_memory_equal(got, key, 16);
	assert_int_equal(ERR_peek_error(), 0);
	crypto_free(c);
}

static void
contexts_do_not_disturb_each_other(void **state)
{
	(void)state;
	struct crypto *a = NULL, *b = NULL;
	uint8_t key[32] = {1}, other[32] = {2}, x[32], y[32], want[32];
	assert_int_equal(crypto_new(&a), WEFT_OK);
	assert_int_equal(crypto_new(&b), WEFT_OK);
	mac_blake2s(a, x, key, 32, "one", 3);
	mac_blake2s(b, y, other, 16, "two", 3);
	mac_blake2s(a, x, key, 32, "one", 3);
	model_blake2s(want, 16, key, 32, (const uint8_t *)"one", 3);
	assert_memory_equal(x, want, 16);
	crypto_free(a);
	mac_blake2s(b, y, other, 16, "two", 3);
	model_blake2s(want, 16, other, 16, (const uint8_t *)"two", 3);
	assert_memory_equal(y, want, 16);
	crypto_free(b);
	crypto_free(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_primitive_works_without_configuration),
		cmocka_unit_test(contexts_do_not_disturb_each_other),
	};
	crypto_process_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

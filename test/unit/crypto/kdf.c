/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "crypto/crypto.h"
#include "crypto/hash.h"
#include "crypto/kdf.h"
#include "model.h"

static int
setup(void **state)
{
	return crypto_new((struct crypto **)state) == WEFT_OK ? 0 : -1;
}

static int
teardown(void **state)
{
	crypto_free(*state);
	return 0;
}

/* The definition in section 5.4 of the WireGuard paper, term by term. */
static void
model_kdf(uint8_t out[3][KDF_LEN], const uint8_t *key, const uint8_t *input, size_t len)
{
	uint8_t prk[32], block[33];
	model_hmac(prk, key, 32, input, len);
	model_hmac(out[0], prk, 32, (const uint8_t *)"\x01", 1);
	memcpy(block, out[0], 32);
	block[32] = 2;
	model_hmac(out[1], prk, 32, block, 33);
	memcpy(block, out[1], 32);
	block[32] = 3;
	model_hmac(out[2], prk, 32, block, 33);
}

static void
kdfs_agree_with_the_definition(void **state)
{
	struct crypto *c = *state;
	for (uint64_t seed = 1; seed <= 500; seed++) {
		uint8_t key[KDF_LEN], input[200], want[3][KDF_LEN], got[3][KDF_LEN];
		struct rng r;
		rng_init(&r, seed);
		size_t len = seed % 2 == 0 ? KDF_LEN : rng_below(&r, sizeof(input) + 1);
		rng_fill(&r, key, sizeof(key));
		rng_fill(&r, input, sizeof(input));
		model_kdf(want, key, input, len);
		kdf1(c, got[0], key, input, len);
		bool ok = memcmp(got, want, KDF_LEN) == 0;
		kdf2(c, got[0], got[1], key, input, len);
		ok = ok && memcmp(got, want, 2 * KDF_LEN) == 0;
		if (len == KDF_LEN) {
			kdf3(c, got[0], got[1], got[2], key, input);
			ok = ok && memcmp(got, want, 3 * KDF_LEN) == 0;
		}
		if (!ok) {
			fail_msg(
				"differs from the definition: seed %llu", (unsigned long long)seed);
		}
	}
}

/* From Python: hmac over hashlib.blake2s, key 00..1f, input 20..3f. */
static void
kdf_gives_known_answers(void **state)
{
	struct crypto *c = *state;
	static const char *const wants[3] = {
		"6a96444e20e8d4c1cee974416acae1c10b3c92886010e54ed94dafb2c3b80ea0",
		"57af120b0de7acbe7907ec149c5ae870a2dbb74232b65777ba4123f1f7f888f5",
		"0926c7caabb6e8d73beda759e6f4f0d324ce5b5000bcf8cd784b26db3049faa9"};
	uint8_t key[KDF_LEN], input[KDF_LEN], got[3][KDF_LEN], want[KDF_LEN];
	for (size_t i = 0; i < KDF_LEN; i++) {
		key[i] = (uint8_t)i;
		input[i] = (uint8_t)(32 + i);
	}
	kdf3(c, got[0], got[1], got[2], key, input);
	for (size_t i = 0; i < 3; i++) {
		model_unhex(want, sizeof(want), wants[i]);
		assert_memory_equal(got[i], want, KDF_LEN);
	}
}

static void
kdf_takes_an_empty_input(void **state)
{
	struct crypto *c = *state;
	uint8_t key[KDF_LEN] = {3}, want[3][KDF_LEN], got[2][KDF_LEN];
	model_kdf(want, key, NULL, 0);
	kdf2(c, got[0], got[1], key, NULL, 0);
	assert_memory_equal(got, want, sizeof(got));
}

static void
outputs_may_replace_key_and_input(void **state)
{
	struct crypto *c = *state;
	uint8_t key[KDF_LEN] = {1}, input[KDF_LEN] = {2}, third[KDF_LEN], want[3][KDF_LEN];
	model_kdf(want, key, input, KDF_LEN);
	kdf3(c, key, input, third, key, input);
	assert_memory_equal(key, want[0], KDF_LEN);
	assert_memory_equal(input, want[1], KDF_LEN);
	assert_memory_equal(third, want[2], KDF_LEN);

	model_kdf(want, key, input, KDF_LEN);
	kdf2(c, input, key, key, input, KDF_LEN);
	assert_memory_equal(input, want[0], KDF_LEN);
	assert_memory_equal(key, want[1], KDF_LEN);
	model_kdf(want, key, input, KDF_LEN);
	kdf1(c, key, key, input, KDF_LEN);
	assert_memory_equal(key, want[0], KDF_LEN);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kdfs_agree_with_the_definition),
		cmocka_unit_test(kdf_gives_known_answers),
		cmocka_unit_test(kdf_takes_an_empty_input),
		cmocka_unit_test(outputs_may_replace_key_and_input),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

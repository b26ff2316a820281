/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/core_names.h>

#include "base/endian.h"
#include "base/rng.h"
#include "base/siphash.h"

static struct siphash_key
counting_key(uint8_t bytes[SIPHASH_KEY_LEN])
{
	struct siphash_key k;
	for (unsigned i = 0; i < SIPHASH_KEY_LEN; i++) {
		bytes[i] = (uint8_t)i;
	}
	siphash_key_init(&k, bytes);
	return k;
}

/* Key 00 01 .. 0f, message 00 01 .. of n bytes. */
static void
siphash_gives_published_vectors(void **state)
{
	(void)state;
	static const struct {
		size_t n;
		uint8_t out[8];
	} vectors[] = {
		{0, {0x31, 0x0e, 0x0e, 0xdd, 0x47, 0xdb, 0x6f, 0x72}},
		{1, {0xfd, 0x67, 0xdc, 0x93, 0xc5, 0x39, 0xf8, 0x74}},
		{2, {0x5a, 0x4f, 0xa9, 0xd9, 0x09, 0x80, 0x6c, 0x0d}},
		{3, {0x2d, 0x7e, 0xfb, 0xd7, 0x96, 0x66, 0x67, 0x85}},
		{4, {0xb7, 0x87, 0x71, 0x27, 0xe0, 0x94, 0x27, 0xcf}},
		{5, {0x8d, 0xa6, 0x99, 0xcd, 0x64, 0x55, 0x76, 0x18}},
		{6, {0xce, 0xe3, 0xfe, 0x58, 0x6e, 0x46, 0xc9, 0xcb}},
		{7, {0x37, 0xd1, 0x01, 0x8b, 0xf5, 0x00, 0x02, 0xab}},
		{8, {0x62, 0x24, 0x93, 0x9a, 0x79, 0xf5, 0xf5, 0x93}},
		{15, {0xe5, 0x45, 0xbe, 0x49, 0x61, 0xca, 0x29, 0xa1}},
	};
	uint8_t bytes[SIPHASH_KEY_LEN];
	struct siphash_key k = counting_key(bytes);
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		uint8_t message[16];
		for (unsigned j = 0; j < sizeof(message); j++) {
			message[j] = (uint8_t)j;
		}
		uint8_t out[8];
		store_le64(out, siphash(&k, message, vectors[i].n));
		assert_memory_equal(out, vectors[i].out, 8);
	}
}

static uint64_t
libcrypto_siphash(EVP_MAC_CTX *ctx, const uint8_t *key, const uint8_t *data, size_t len)
{
	size_t size = 8;
	OSSL_PARAM params[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
		OSSL_PARAM_construct_end()};
	uint8_t out[8];
	assert_int_equal(EVP_MAC_init(ctx, key, SIPHASH_KEY_LEN, params), 1);
	assert_int_equal(EVP_MAC_update(ctx, data, len), 1);
	assert_int_equal(EVP_MAC_final(ctx, out, &size, sizeof(out)), 1);
	assert_int_equal(size, 8);
	return load_le64(out);
}

static void
siphash_equals_libcrypto_at_every_length(void **state)
{
	(void)state;
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "SIPHASH", NULL);
	assert_non_null(mac);
	EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(mac);
	assert_non_null(ctx);
	struct rng rng;
	rng_init(&rng, 7);
	uint8_t data[257];
	for (size_t len = 0; len < sizeof(data); len++) {
		uint8_t key[SIPHASH_KEY_LEN];
		struct siphash_key k;
		rng_fill(&rng, key, sizeof(key));
		rng_fill(&rng, data, sizeof(data));
		siphash_key_init(&k, key);
		/* From an odd address: nothing may depend on alignment. */
		size_t n = len > 0 ? len - 1 : 0;
		assert_true(siphash(&k, data + 1, n) == libcrypto_siphash(ctx, key, data + 1, n));
	}
	EVP_MAC_CTX_free(ctx);
	EVP_MAC_free(mac);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siphash_gives_published_vectors),
		cmocka_unit_test(siphash_equals_libcrypto_at_every_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

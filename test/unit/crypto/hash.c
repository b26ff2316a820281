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

static void
assert_bytes_hex(const uint8_t *got, size_t len, const char *hex)
{
	uint8_t want[64];
	assert_int_equal(model_unhex(want, sizeof(want), hex), len);
	assert_memory_equal(got, want, len);
}

/* RFC 7693, appendix E: a hash over the hashes of many lengths, keyed and not. */
static void
model_matches_the_self_test_of_rfc_7693(void **state)
{
	(void)state;
	static const size_t out_lens[] = {16, 20, 28, 32};
	static const size_t lens[] = {0, 3, 64, 65, 255, 1024};
	uint8_t all[4 * 6 * 2 * 32];
	size_t at = 0;
	for (size_t i = 0; i < 4; i++) {
		for (size_t j = 0; j < 6; j++) {
			for (int is_keyed = 0; is_keyed < 2; is_keyed++) {
				/* The sequence of the RFC: Fibonacci numbers from a seed. */
				uint8_t data[1024], key[32];
				uint32_t a = 0xdead4bad * (uint32_t)lens[j], b = 1;
				for (size_t k = 0; k < lens[j]; k++) {
					uint32_t t = a + b;
					a = b;
					b = t;
					data[k] = (uint8_t)(t >> 24);
				}
				a = 0xdead4bad * (uint32_t)out_lens[i];
				b = 1;
				for (size_t k = 0; k < out_lens[i]; k++) {
					uint32_t t = a + b;
					a = b;
					b = t;
					key[k] = (uint8_t)(t >> 24);
				}
				model_blake2s(all + at, out_lens[i], key,
					is_keyed ? out_lens[i] : 0, data, lens[j]);
				at += out_lens[i];
			}
		}
	}
	uint8_t out[32];
	model_blake2s(out, 32, NULL, 0, all, at);
	assert_bytes_hex(
		out, 32, "6a411f08ce25adcdfb02aba641451cec53c598b24f4fc787fbdc88797f4c1dfe");
}

static void
hash_gives_known_answers(void **state)
{
	struct crypto *c = *state;
	uint8_t out[HASH_LEN];
	/* RFC 7693, appendix B. */
	hash_blake2s(c, out, "abc", 3, NULL, 0);
	assert_bytes_hex(
		out, 32, "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982");
	/* The reference implementation's published answer for no input. */
	hash_blake2s(c, out, NULL, 0, NULL, 0);
	assert_bytes_hex(
		out, 32, "69217a3079908094e11121d042354a7c1f55b6482ca1a51e1b250dfd1ed0eef9");
}

/* The two hashes that every WireGuard handshake starts from. */
static void
hash_gives_the_constants_of_wireguard(void **state)
{
	static const char construction[] = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
	static const char identifier[] = "WireGuard v1 zx2c4 Jason@zx2c4.com";
	struct crypto *c = *state;
	uint8_t chain[HASH_LEN], hash[HASH_LEN];
	hash_blake2s(c, chain, construction, sizeof(construction) - 1, NULL, 0);
	assert_bytes_hex(
		chain, 32, "60e26daef327efc02ec335e2a025d2d016eb4206f87277f52d38d1988b78cd36");
	hash_blake2s(c, hash, chain, sizeof(chain), identifier, sizeof(identifier) - 1);
	assert_bytes_hex(
		hash, 32, "2211b361081ac566691243db458ad5322d9c6c662293e8b70ee19c65ba079ef3");
}

static void
keyed_hash_gives_known_answers(void **state)
{
	struct crypto *c = *state;
	uint8_t key[32], data[20], out[HASH_LEN];
	for (size_t i = 0; i < sizeof(key); i++) {
		key[i] = (uint8_t)i;
	}
	for (size_t i = 0; i < sizeof(data); i++) {
		data[i] = (uint8_t)i;
	}
	/* The first two keyed answers published with the reference implementation. */
	mac_blake2s_32(c, out, key, 32, NULL, 0);
	assert_bytes_hex(
		out, 32, "48a8997da407876b3d79c0d92325ad3b89cbb754d86ab71aee047ad345fd2c49");
	mac_blake2s_32(c, out, key, 32, data, 1);
	assert_bytes_hex(
		out, 32, "40d15fee7c328830166ac3f918650f807e7e01e177258cdc0a39b11f598066f1");
	/* From Python's hashlib.blake2s(data, key=key, digest_size=16). */
	mac_blake2s(c, out, key, 32, data, 20);
	assert_bytes_hex(out, 16, "bc26f48421dd99fd45e15e736d3e7dac");
	mac_blake2s(c, out, key, 16, data, 20);
	assert_bytes_hex(out, 16, "68b450dfe99ec93ee87c42c6752bcb50");
}

static void
short_mac_is_no_prefix_of_the_long_one(void **state)
{
	struct crypto *c = *state;
	uint8_t key[32] = {1}, a[MAC_LEN], b[HASH_LEN];
	mac_blake2s(c, a, key, 32, "x", 1);
	mac_blake2s_32(c, b, key, 32, "x", 1);
	assert_memory_not_equal(a, b, MAC_LEN);
}

static void
hash_of_two_parts_is_the_hash_of_their_sequence(void **state)
{
	struct crypto *c = *state;
	uint8_t data[300], got[HASH_LEN], want[HASH_LEN];
	struct rng r;
	rng_init(&r, 1);
	rng_fill(&r, data, sizeof(data));
	for (size_t len = 0; len <= sizeof(data); len++) {
		model_blake2s(want, 32, NULL, 0, data, len);
		for (size_t cut = 0; cut <= len; cut += 7) {
			hash_blake2s(c, got, data, cut, data + cut, len - cut);
			assert_memory_equal(got, want, HASH_LEN);
		}
	}
}

static void
hash_may_be_written_over_its_input(void **state)
{
	struct crypto *c = *state;
	uint8_t h[HASH_LEN] = {7}, want[HASH_LEN];
	uint8_t both[HASH_LEN + 5] = {7};
	memcpy(both + HASH_LEN, "hello", 5);
	model_blake2s(want, 32, NULL, 0, both, sizeof(both));
	hash_blake2s(c, h, h, sizeof(h), "hello", 5);
	assert_memory_equal(h, want, HASH_LEN);

	uint8_t key[HASH_LEN] = {9};
	model_hmac(want, key, 32, key, 32);
	hmac_blake2s(c, key, key, key, 32);
	assert_memory_equal(key, want, HASH_LEN);
}

static void
compare_with_models(struct crypto *c, uint64_t seed)
{
	uint8_t data[1100], key[32], got[HASH_LEN], want[HASH_LEN];
	struct rng r;
	rng_init(&r, seed);
	size_t len = rng_below(&r, sizeof(data) + 1);
	size_t key_len = 1 + rng_below(&r, 32);
	rng_fill(&r, data, len);
	rng_fill(&r, key, sizeof(key));
	bool ok = true;
	hash_blake2s(c, got, data, len, NULL, 0);
	model_blake2s(want, 32, NULL, 0, data, len);
	ok = ok && memcmp(got, want, 32) == 0;
	mac_blake2s(c, got, key, key_len, data, len);
	model_blake2s(want, 16, key, key_len, data, len);
	ok = ok && memcmp(got, want, 16) == 0;
	mac_blake2s_32(c, got, key, key_len, data, len);
	model_blake2s(want, 32, key, key_len, data, len);
	ok = ok && memcmp(got, want, 32) == 0;
	hmac_blake2s(c, got, key, data, len);
	model_hmac(want, key, 32, data, len);
	ok = ok && memcmp(got, want, 32) == 0;
	if (!ok) {
		fail_msg("differs from the model: seed %llu", (unsigned long long)seed);
	}
}

static void
hashes_agree_with_the_models(void **state)
{
	for (uint64_t seed = 1; seed <= 2000; seed++) {
		compare_with_models(*state, seed);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(model_matches_the_self_test_of_rfc_7693),
		cmocka_unit_test(hash_gives_known_answers),
		cmocka_unit_test(hash_gives_the_constants_of_wireguard),
		cmocka_unit_test(keyed_hash_gives_known_answers),
		cmocka_unit_test(short_mac_is_no_prefix_of_the_long_one),
		cmocka_unit_test(hash_of_two_parts_is_the_hash_of_their_sequence),
		cmocka_unit_test(hash_may_be_written_over_its_input),
		cmocka_unit_test(hashes_agree_with_the_models),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/err.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "crypto/crypto.h"
#include "crypto/dh.h"
#include "crypto/secret.h"
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
dh_gives_the_answers_of_rfc_7748(void **state)
{
	struct crypto *c = *state;
	/* Section 5.2, then section 6.1 both ways: scalar, point, product. */
	static const char *const vectors[][3] = {
		{"a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
			"e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
			"c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"},
		{"4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
			"e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
			"95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957"},
		{"77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
			"de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
			"4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"},
		{"5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
			"8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
			"4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"},
	};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(vectors); i++) {
		uint8_t scalar[DH_LEN], point[DH_LEN], want[DH_LEN], got[DH_LEN];
		model_unhex(scalar, sizeof(scalar), vectors[i][0]);
		model_unhex(point, sizeof(point), vectors[i][1]);
		model_unhex(want, sizeof(want), vectors[i][2]);
		assert_int_equal(dh_x25519(c, got, scalar, point), WEFT_OK);
		assert_memory_equal(got, want, DH_LEN);
	}
}

static void
public_keys_are_those_of_rfc_7748(void **state)
{
	struct crypto *c = *state;
	static const char *const vectors[][2] = {
		{"77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
			"8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"},
		{"5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
			"de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"},
	};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(vectors); i++) {
		uint8_t key[DH_LEN], want[DH_LEN], got[DH_LEN];
		model_unhex(key, sizeof(key), vectors[i][0]);
		model_unhex(want, sizeof(want), vectors[i][1]);
		assert_int_equal(dh_public(c, got, key), WEFT_OK);
		assert_memory_equal(got, want, DH_LEN);
		assert_int_equal(dh_public(c, key, key), WEFT_OK);
		assert_memory_equal(key, want, DH_LEN);
	}
}

/* RFC 7748, section 5.2: scalar and point feed each other. */
static void
dh_survives_a_thousand_iterations(void **state)
{
	struct crypto *c = *state;
	uint8_t k[DH_LEN] = {9}, u[DH_LEN] = {9}, want[DH_LEN];
	for (int i = 0; i < 1000; i++) {
		uint8_t next[DH_LEN];
		assert_int_equal(dh_x25519(c, next, k, u), WEFT_OK);
		memcpy(u, k, DH_LEN);
		memcpy(k, next, DH_LEN);
		if (i == 0) {
			model_unhex(want, sizeof(want),
				"422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079");
			assert_memory_equal(k, want, DH_LEN);
		}
	}
	model_unhex(want, sizeof(want),
		"684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51");
	assert_memory_equal(k, want, DH_LEN);
}

static void
both_sides_get_the_same_secret(void **state)
{
	struct crypto *c = *state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		uint8_t a[DH_LEN], b[DH_LEN], pa[DH_LEN], pb[DH_LEN], sa[DH_LEN], sb[DH_LEN];
		struct rng r;
		rng_init(&r, seed);
		rng_fill(&r, a, sizeof(a));
		rng_fill(&r, b, sizeof(b));
		dh_clamp(a); /* b stays as it is: clamped inside */
		assert_int_equal(dh_public(c, pa, a), WEFT_OK);
		assert_int_equal(dh_public(c, pb, b), WEFT_OK);
		assert_int_equal(dh_x25519(c, sa, a, pb), WEFT_OK);
		assert_int_equal(dh_x25519(c, sb, b, pa), WEFT_OK);
		if (memcmp(sa, sb, DH_LEN) != 0) {
			fail_msg("secrets differ: seed %llu", (unsigned long long)seed);
		}
	}
}

static void
clamping_changes_five_bits_and_no_result(void **state)
{
	struct crypto *c = *state;
	uint8_t raw[DH_LEN], clamped[DH_LEN], p[DH_LEN], q[DH_LEN];
	memset(raw, 0xff, sizeof(raw));
	memset(clamped, 0xff, sizeof(clamped));
	dh_clamp(clamped);
	assert_int_equal(clamped[0], 0xf8);
	assert_int_equal(clamped[31], 0x7f);
	assert_memory_equal(clamped + 1, raw + 1, 30);
	assert_int_equal(dh_public(c, p, raw), WEFT_OK);
	assert_int_equal(dh_public(c, q, clamped), WEFT_OK);
	assert_memory_equal(p, q, DH_LEN);

	memset(clamped, 0, sizeof(clamped));
	dh_clamp(clamped);
	assert_int_equal(clamped[0], 0);
	assert_int_equal(clamped[31], 0x40);
}

static void
points_of_small_order_are_refused(void **state)
{
	struct crypto *c = *state;
	/* 0, 1, two of order 8, p - 1, p, p + 1. */
	static const char *const points[] = {
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
		"5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(points); i++) {
		uint8_t key[DH_LEN], point[DH_LEN], out[DH_LEN];
		struct rng r;
		rng_init(&r, i);
		rng_fill(&r, key, sizeof(key));
		model_unhex(point, sizeof(point), points[i]);
		for (int high_bit = 0; high_bit < 2; high_bit++) {
			/* The top bit of a point is ignored: RFC 7748, section 5. */
			point[31] = (uint8_t)(point[31] | (high_bit << 7));
			memset(out, 0xaa, sizeof(out));
			assert_int_equal(dh_x25519(c, out, key, point), WEFT_ECRYPTO);
			assert_true(secret_is_zero(out, sizeof(out)));
		}
	}
	/* The refusals have left nothing in the thread's error queue, nor harmed the context. */
	assert_int_equal(ERR_peek_error(), 0);
	dh_gives_the_answers_of_rfc_7748(state);
}

static void
secret_may_be_written_over_either_key(void **state)
{
	struct crypto *c = *state;
	uint8_t a[DH_LEN] = {1, 2}, b[DH_LEN] = {3, 4}, p[DH_LEN], want[DH_LEN];
	assert_int_equal(dh_public(c, p, b), WEFT_OK);
	assert_int_equal(dh_x25519(c, want, a, p), WEFT_OK);
	memcpy(b, a, DH_LEN);
	assert_int_equal(dh_x25519(c, b, b, p), WEFT_OK);
	assert_memory_equal(b, want, DH_LEN);
	assert_int_equal(dh_x25519(c, p, a, p), WEFT_OK);
	assert_memory_equal(p, want, DH_LEN);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dh_gives_the_answers_of_rfc_7748),
		cmocka_unit_test(public_keys_are_those_of_rfc_7748),
		cmocka_unit_test(dh_survives_a_thousand_iterations),
		cmocka_unit_test(both_sides_get_the_same_secret),
		cmocka_unit_test(clamping_changes_five_bits_and_no_result),
		cmocka_unit_test(points_of_small_order_are_refused),
		cmocka_unit_test(secret_may_be_written_over_either_key),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

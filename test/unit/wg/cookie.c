/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/endian.h"
#include "base/rng.h"
#include "crypto/crypto.h"
#include "wg/cookie.h"

struct bench {
	struct crypto *crypto;
	struct rng rng;
	struct entropy entropy;
	struct wg_cookie_checker checker;
	struct wg_cookie_jar jar;
	uint8_t key[32]; /* the checker's public key */
	struct endpoint from;
	uint8_t msg[WIRE_WG_INITIATION_LEN];
	struct wg_cookie_claim claim;
};

static void
fill(void *ctx, void *out, size_t len)
{
	rng_fill(ctx, out, len);
}

static void
setup(struct bench *b)
{
	memset(b, 0, sizeof(*b));
	rng_init(&b->rng, 1);
	b->entropy = (struct entropy){fill, &b->rng};
	assert_int_equal(crypto_new(&b->crypto), WEFT_OK);
	rng_fill(&b->rng, b->key, sizeof(b->key));
	rng_fill(&b->rng, b->msg, sizeof(b->msg));
	store_le32(b->msg, 1);
	store_le32(b->msg + 4, 0xabcdef01);
	wg_cookie_checker_set_key(b->crypto, &b->checker, b->key);
	b->from = (struct endpoint){
		.addr = {.family = IP_FAMILY_V4, .b = {192, 0, 2, 1}}, .port = 1234};
	b->claim = (struct wg_cookie_claim){b->msg, sizeof(b->msg), &b->from};
}

static struct mono
at_s(double s)
{
	return (struct mono){(int64_t)(s * 1e9)};
}

static void
sign(struct bench *b, struct mono now)
{
	wg_cookie_jar_sign(b->crypto, &b->jar, b->key, now, b->msg, sizeof(b->msg));
}

static bool
mac2_is_right(struct bench *b, struct mono now)
{
	return wg_cookie_check_mac2(b->crypto, &b->checker, &b->claim, now);
}

/* Signs, is answered, and takes the cookie. */
static void
get_cookie(struct bench *b, struct mono now)
{
	uint8_t bytes[WIRE_WG_COOKIE_REPLY_LEN];
	struct wire_wg_cookie_reply reply;
	sign(b, now);
	wg_cookie_reply(b->crypto, &b->checker, &b->entropy, &b->claim, now, bytes);
	assert_true(wire_wg_cookie_reply_decode(bytes, sizeof(bytes), &reply));
	assert_int_equal(reply.receiver, 0xabcdef01);
	assert_true(wg_cookie_jar_take(b->crypto, &b->jar, b->key, now, &reply));
}

static void
mac1_covers_every_byte_and_the_receivers_key(void **state)
{
	(void)state;
	struct bench b;
	setup(&b);
	sign(&b, at_s(1));
	assert_true(wg_cookie_check_mac1(b.crypto, &b.checker, &b.claim));
	for (size_t i = 0; i < WIRE_WG_INITIATION_LEN - 16; i++) {
		b.msg[i] ^= 0x10;
		assert_false(wg_cookie_check_mac1(b.crypto, &b.checker, &b.claim));
		b.msg[i] ^= 0x10;
	}
	b.key[0] ^= 1;
	wg_cookie_checker_set_key(b.crypto, &b.checker, b.key);
	assert_false(wg_cookie_check_mac1(b.crypto, &b.checker, &b.claim));
	crypto_free(b.crypto);
}

static void
mac2_is_zero_without_a_cookie_and_right_with_one(void **state)
{
	(void)state;
	struct bench b;
	static const uint8_t zeros[16];
	setup(&b);
	sign(&b, at_s(1));
	assert_memory_equal(b.msg + WIRE_WG_INITIATION_LEN - 16, zeros, 16);
	assert_false(mac2_is_right(&b, at_s(1)));
	get_cookie(&b, at_s(1));
	sign(&b, at_s(2));
	assert_true(mac2_is_right(&b, at_s(2)));
	assert_true(wg_cookie_check_mac1(b.crypto, &b.checker, &b.claim));
	crypto_free(b.crypto);
}

static void
cookie_is_bound_to_address_and_port(void **state)
{
	(void)state;
	struct bench b;
	setup(&b);
	get_cookie(&b, at_s(1));
	sign(&b, at_s(2));
	b.from.port++;
	assert_false(mac2_is_right(&b, at_s(2)));
	b.from.port--;
	b.from.addr.b[3]++;
	assert_false(mac2_is_right(&b, at_s(2)));
	b.from.addr.b[3]--;
	assert_true(mac2_is_right(&b, at_s(2)));
	crypto_free(b.crypto);
}

static void
cookie_ends_with_its_secret_after_two_minutes(void **state)
{
	(void)state;
	struct bench b;
	setup(&b);
	get_cookie(&b, at_s(1));
	sign(&b, at_s(115));
	assert_true(mac2_is_right(&b, at_s(115)));
	assert_true(mac2_is_right(&b, at_s(120.9)));
	assert_false(mac2_is_right(&b, at_s(121)));
	/* The owner of the cookie stops using it some seconds before. */
	static const uint8_t zeros[16];
	sign(&b, at_s(116));
	assert_memory_equal(b.msg + WIRE_WG_INITIATION_LEN - 16, zeros, 16);
	/* A new secret makes new cookies. */
	get_cookie(&b, at_s(122));
	sign(&b, at_s(122));
	assert_true(mac2_is_right(&b, at_s(122)));
	crypto_free(b.crypto);
}

static void
reply_is_taken_once_and_only_for_the_message_signed_last(void **state)
{
	(void)state;
	struct bench b;
	uint8_t bytes[WIRE_WG_COOKIE_REPLY_LEN];
	struct wire_wg_cookie_reply reply;
	setup(&b);
	sign(&b, at_s(1));
	wg_cookie_reply(b.crypto, &b.checker, &b.entropy, &b.claim, at_s(1), bytes);
	assert_true(wire_wg_cookie_reply_decode(bytes, sizeof(bytes), &reply));
	struct wire_wg_cookie_reply forged = reply;
	forged.cookie_sealed[5] ^= 1;
	assert_false(wg_cookie_jar_take(b.crypto, &b.jar, b.key, at_s(1), &forged));
	b.msg[50] ^= 1;
	sign(&b, at_s(1)); /* another message: the reply answers the one before */
	assert_false(wg_cookie_jar_take(b.crypto, &b.jar, b.key, at_s(1), &reply));
	b.msg[50] ^= 1;
	sign(&b, at_s(1));
	assert_true(wg_cookie_jar_take(b.crypto, &b.jar, b.key, at_s(1), &reply));
	assert_false(wg_cookie_jar_take(b.crypto, &b.jar, b.key, at_s(100), &reply));
	crypto_free(b.crypto);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mac1_covers_every_byte_and_the_receivers_key),
		cmocka_unit_test(mac2_is_zero_without_a_cookie_and_right_with_one),
		cmocka_unit_test(cookie_is_bound_to_address_and_port),
		cmocka_unit_test(cookie_ends_with_its_secret_after_two_minutes),
		cmocka_unit_test(reply_is_taken_once_and_only_for_the_message_signed_last),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "crypto/crypto.h"
#include "crypto/kdf.h"
#include "wg/noise.h"

/* Two sides with their views of each other. */
struct pair {
	struct crypto *crypto;
	struct rng rng;
	struct wg_noise_identity a, b;
	struct wg_noise_remote b_at_a, a_at_b;
	struct wg_noise_pending pending;
	struct wire_wg_initiation initiation;
	struct wire_wg_response response;
	struct wg_noise_incoming incoming;
	struct wg_noise_keys a_keys, b_keys;
	uint8_t stamp[WIRE_WG_STAMP_LEN];
};

static void
pair_init(struct pair *p, uint64_t seed)
{
	memset(p, 0, sizeof(*p));
	rng_init(&p->rng, seed);
	uint8_t key[32];
	assert_int_equal(crypto_new(&p->crypto), WEFT_OK);
	rng_fill(&p->rng, key, sizeof(key));
	assert_int_equal(wg_noise_identity_set(p->crypto, &p->a, key), WEFT_OK);
	rng_fill(&p->rng, key, sizeof(key));
	assert_int_equal(wg_noise_identity_set(p->crypto, &p->b, key), WEFT_OK);
	memcpy(p->b_at_a.public_key, p->b.public_key, 32);
	memcpy(p->a_at_b.public_key, p->a.public_key, 32);
	rng_fill(&p->rng, p->stamp, sizeof(p->stamp));
	rng_fill(&p->rng, p->pending.ephemeral_private, 32);
	p->initiation.sender = 0x11223344;
}

static void
pair_fini(struct pair *p)
{
	crypto_free(p->crypto);
}

static enum weft_err
initiate(struct pair *p)
{
	return wg_noise_initiate(
		p->crypto, &p->a, &p->b_at_a, &p->pending, p->stamp, &p->initiation);
}

static enum weft_err
receive_initiation(struct pair *p)
{
	enum weft_err e = wg_noise_open_static(p->crypto, &p->b, &p->initiation, &p->incoming);
	return e ? e
		 : wg_noise_open_stamp(p->crypto, &p->b, &p->a_at_b, &p->initiation, &p->incoming);
}

static enum weft_err
respond(struct pair *p)
{
	uint8_t ephemeral[32];
	rng_fill(&p->rng, ephemeral, sizeof(ephemeral));
	p->response.sender = 0x55667788;
	return wg_noise_respond(
		p->crypto, &p->a_at_b, &p->incoming, ephemeral, &p->response, &p->b_keys);
}

static enum weft_err
receive_response(struct pair *p)
{
	return wg_noise_open_response(
		p->crypto, &p->a, &p->b_at_a, &p->pending, &p->response, &p->a_keys);
}

static void
run_to_response(struct pair *p)
{
	assert_int_equal(initiate(p), WEFT_OK);
	assert_int_equal(receive_initiation(p), WEFT_OK);
	assert_int_equal(respond(p), WEFT_OK);
}

static void
both_sides_derive_the_same_keys_crosswise(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct pair p;
		pair_init(&p, seed);
		if (seed % 2) {
			rng_fill(&p.rng, p.b_at_a.psk, 32);
			memcpy(p.a_at_b.psk, p.b_at_a.psk, 32);
		}
		assert_int_equal(initiate(&p), WEFT_OK);
		assert_int_equal(receive_initiation(&p), WEFT_OK);
		assert_memory_equal(p.incoming.remote_static, p.a.public_key, 32);
		assert_memory_equal(p.incoming.stamp, p.stamp, sizeof(p.stamp));
		assert_int_equal(respond(&p), WEFT_OK);
		assert_int_equal(p.response.receiver, 0x11223344);
		assert_int_equal(receive_response(&p), WEFT_OK);
		assert_memory_equal(p.a_keys.send, p.b_keys.recv, 32);
		assert_memory_equal(p.a_keys.recv, p.b_keys.send, 32);
		assert_memory_not_equal(p.a_keys.send, p.a_keys.recv, 32);
		pair_fini(&p);
	}
}

static void
keys_of_aes_come_from_the_others_and_are_none_of_them(void **state)
{
	(void)state;
	static const char label[] = {'w', 'e', 'f', 't', ' ', 'v', '1', ' ', 'A', 'E', 'S', '-',
		'2', '5', '6', '-', 'G', 'C', 'M'};
	struct pair p;
	pair_init(&p, 9);
	run_to_response(&p);
	assert_int_equal(receive_response(&p), WEFT_OK);
	assert_memory_equal(p.a_keys.send_aes, p.b_keys.recv_aes, 32);
	assert_memory_equal(p.a_keys.recv_aes, p.b_keys.send_aes, 32);
	uint8_t want[32];
	kdf1(p.crypto, want, p.a_keys.send, label, sizeof(label));
	assert_memory_equal(p.a_keys.send_aes, want, 32);
	kdf1(p.crypto, want, p.a_keys.recv, label, sizeof(label));
	assert_memory_equal(p.a_keys.recv_aes, want, 32);
	const uint8_t *keys[] = {
		p.a_keys.send, p.a_keys.recv, p.a_keys.send_aes, p.a_keys.recv_aes};
	for (size_t i = 0; i < 4; i++) {
		for (size_t k = 0; k < i; k++) {
			assert_memory_not_equal(keys[i], keys[k], 32);
		}
	}
	pair_fini(&p);
}

static void
initiation_to_another_key_does_not_open(void **state)
{
	(void)state;
	struct pair p;
	pair_init(&p, 1);
	p.b_at_a.public_key[3] ^= 4;
	assert_int_equal(initiate(&p), WEFT_OK);
	assert_int_equal(receive_initiation(&p), WEFT_ECRYPTO);
	pair_fini(&p);
}

static void
initiation_with_any_bit_changed_does_not_open(void **state)
{
	(void)state;
	struct pair p;
	pair_init(&p, 2);
	assert_int_equal(initiate(&p), WEFT_OK);
	struct wire_wg_initiation good = p.initiation;
	uint8_t *fields[] = {
		p.initiation.ephemeral, p.initiation.static_sealed, p.initiation.stamp_sealed};
	static const size_t lens[] = {32, 48, 28};
	for (size_t f = 0; f < 3; f++) {
		for (size_t i = 0; i < lens[f]; i++) {
			p.initiation = good;
			/* The top bit of an X25519 point is masked (RFC 7748), but hashed. */
			fields[f][i] ^= (uint8_t)(1u << rng_below(&p.rng, 8));
			if (receive_initiation(&p) == WEFT_OK) {
				fail_msg("field %zu byte %zu", f, i);
			}
		}
	}
	p.initiation = good;
	assert_int_equal(receive_initiation(&p), WEFT_OK);
	pair_fini(&p);
}

static void
response_with_another_psk_does_not_open(void **state)
{
	(void)state;
	struct pair p;
	pair_init(&p, 3);
	p.a_at_b.psk[0] = 1;
	run_to_response(&p);
	assert_int_equal(receive_response(&p), WEFT_ECRYPTO);
	/* What was forged leaves the initiator as it was. */
	p.b_at_a.psk[0] = 1;
	assert_int_equal(receive_response(&p), WEFT_OK);
	assert_memory_equal(p.a_keys.send, p.b_keys.recv, 32);
	pair_fini(&p);
}

static void
response_with_any_bit_changed_does_not_open(void **state)
{
	(void)state;
	struct pair p;
	pair_init(&p, 4);
	run_to_response(&p);
	struct wire_wg_response good = p.response;
	for (size_t i = 0; i < 48; i++) {
		p.response = good;
		uint8_t *byte =
			i < 32 ? &p.response.ephemeral[i] : &p.response.empty_sealed[i - 32];
		*byte ^= (uint8_t)(1u << rng_below(&p.rng, 8));
		assert_int_equal(receive_response(&p), WEFT_ECRYPTO);
	}
	pair_fini(&p);
}

static void
response_to_an_earlier_initiation_does_not_open(void **state)
{
	(void)state;
	struct pair p;
	pair_init(&p, 5);
	run_to_response(&p);
	rng_fill(&p.rng, p.pending.ephemeral_private, 32);
	assert_int_equal(initiate(&p), WEFT_OK);
	assert_int_equal(receive_response(&p), WEFT_ECRYPTO);
	pair_fini(&p);
}

/* All points of small order on the curve and its twist, and their non-canonical forms
 * (cr.yp.to/ecdh.html#validate). */
static const uint8_t small_order[][32] = {
	{0},
	{1},
	{0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4,
		0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f,
		0x49, 0xb8, 0x00},
	{0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef,
		0x5b, 0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0,
		0x9f, 0x11, 0x57},
	{0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0x7f},
	{0xed, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0x7f},
	{0xee, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0x7f},
};

static void
ephemerals_of_small_order_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(small_order) / 32; i++) {
		struct pair p;
		pair_init(&p, 6);
		run_to_response(&p);
		memcpy(p.initiation.ephemeral, small_order[i], 32);
		assert_int_equal(receive_initiation(&p), WEFT_ECRYPTO);
		memcpy(p.response.ephemeral, small_order[i], 32);
		assert_int_equal(receive_response(&p), WEFT_ECRYPTO);
		pair_fini(&p);
	}
}

static void
peers_whose_key_is_of_small_order_get_no_initiation(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(small_order) / 32; i++) {
		struct pair p;
		pair_init(&p, 7);
		memcpy(p.b_at_a.public_key, small_order[i], 32);
		assert_int_equal(initiate(&p), WEFT_ECRYPTO);
		pair_fini(&p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_derive_the_same_keys_crosswise),
		cmocka_unit_test(keys_of_aes_come_from_the_others_and_are_none_of_them),
		cmocka_unit_test(initiation_to_another_key_does_not_open),
		cmocka_unit_test(initiation_with_any_bit_changed_does_not_open),
		cmocka_unit_test(response_with_another_psk_does_not_open),
		cmocka_unit_test(response_with_any_bit_changed_does_not_open),
		cmocka_unit_test(response_to_an_earlier_initiation_does_not_open),
		cmocka_unit_test(ephemerals_of_small_order_are_refused),
		cmocka_unit_test(peers_whose_key_is_of_small_order_get_no_initiation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <pthread.h>

#include <openssl/err.h>
#include <openssl/evp.h>

#include "base/compiler.h"
#include "base/endian.h"
#include "base/rng.h"
#include "crypto/aead.h"
#include "crypto/aead_backend.h"
#include "model.h"

#define GUARD 24 /* bytes around each packet that must not change */
#define GUARD_BYTE 0xc3
#define LEN_MAX 2048

/* Packets for a call: each in memory of its own, with guards before and behind. */
struct batch {
	struct aead_op *ops;
	uint8_t **memory;
	size_t n;
};

static void
batch_init(struct batch *b, size_t n)
{
	b->n = n;
	b->ops = calloc(n + 1, sizeof(*b->ops));
	b->memory = calloc(n + 1, sizeof(*b->memory));
	assert_non_null(b->ops);
	assert_non_null(b->memory);
}

/* Packet i: len random bytes at an address of the given misalignment. */
static void
batch_set(struct batch *b, size_t i, uint32_t len, uint64_t counter, struct rng *r)
{
	size_t shift = rng_below(r, 16);
	size_t total = GUARD + shift + len + AEAD_TAG_LEN + GUARD;
	free(b->memory[i]);
	b->memory[i] = malloc(total);
	assert_non_null(b->memory[i]);
	memset(b->memory[i], GUARD_BYTE, total);
	b->ops[i] = (struct aead_op){
		.data = b->memory[i] + GUARD + shift, .len = len, .counter = counter};
	rng_fill(r, b->ops[i].data, len);
}

static void
batch_copy(struct batch *to, const struct batch *from)
{
	struct rng r;
	rng_init(&r, 99);
	batch_init(to, from->n);
	for (size_t i = 0; i < from->n; i++) {
		const struct aead_op *op = &from->ops[i];
		batch_set(to, i, op->len, op->counter, &r);
		memcpy(to->ops[i].data, op->data, op->len + AEAD_TAG_LEN);
	}
}

static bool
batch_is_equal(const struct batch *a, const struct batch *b, size_t tail)
{
	for (size_t i = 0; i < a->n; i++) {
		if (memcmp(a->ops[i].data, b->ops[i].data, a->ops[i].len + tail) != 0) {
			return false;
		}
	}
	return true;
}

static bool
batch_has_guards(const struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		const uint8_t *behind = b->ops[i].data + b->ops[i].len + AEAD_TAG_LEN;
		for (const uint8_t *p = b->memory[i]; p < b->ops[i].data; p++) {
			if (*p != GUARD_BYTE) {
				return false;
			}
		}
		for (size_t j = 0; j < GUARD; j++) {
			if (behind[j] != GUARD_BYTE) {
				return false;
			}
		}
	}
	return true;
}

static void
batch_fini(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		free(b->memory[i]);
	}
	free(b->memory);
	free(b->ops);
}

/* Seed 0 is the key of zeros, which an engine might hold for no key at all. */
static void
key_make(struct aead_key *k, enum aead_cipher cipher, uint64_t seed)
{
	struct rng r;
	uint8_t bytes[AEAD_KEY_LEN] = {0};
	rng_init(&r, seed);
	if (seed != 0) {
		rng_fill(&r, bytes, sizeof(bytes));
	}
	aead_key_init(k, cipher, bytes);
}

/* What the tests of each backend and cipher get. */
struct subject {
	struct aead *aead; /* NULL: not on this machine */
	enum aead_cipher cipher;
};

static void
seal_by_model(const struct aead_key *k, const struct aead_op *op)
{
	uint8_t nonce[12] = {0};
	const struct model_text text = {op->data, op->len}, none = {NULL, 0};
	store_le64(nonce + 4, op->counter);
	if (k->cipher == AEAD_CIPHER_AES_256_GCM) {
		model_gcm_seal(op->data, k->bytes, nonce, text, none);
	} else {
		model_aead_seal(op->data, k->bytes, nonce, text, none);
	}
}

/* libcrypto in its plainest use: a new context a packet. */
static void
seal_by_evp(const struct aead_key *k, const struct aead_op *op)
{
	uint8_t nonce[12] = {0};
	int len = 0, last = 0;
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	const EVP_CIPHER *cipher =
		k->cipher == AEAD_CIPHER_AES_256_GCM ? EVP_aes_256_gcm() : EVP_chacha20_poly1305();
	store_le64(nonce + 4, op->counter);
	assert_non_null(ctx);
	assert_int_equal(EVP_EncryptInit_ex(ctx, cipher, NULL, k->bytes, nonce), 1);
	assert_int_equal(EVP_EncryptUpdate(ctx, op->data, &len, op->data, (int)op->len), 1);
	assert_int_equal(EVP_EncryptFinal_ex(ctx, op->data + len, &last), 1);
	assert_int_equal(
		EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, 16, op->data + op->len), 1);
	EVP_CIPHER_CTX_free(ctx);
}

/* --- tests of each backend with each cipher; state is a struct subject --- */

static void
seals_every_length_like_the_model_in_one_mixed_batch(void **state)
{
	struct subject *t = *state;
	struct aead *a = t->aead;
	struct batch got, want;
	struct aead_key k;
	struct rng r;
	rng_init(&r, 1);
	key_make(&k, t->cipher, 1);
	batch_init(&got, LEN_MAX + 1);
	for (uint32_t len = 0; len <= LEN_MAX; len++) {
		batch_set(&got, len, len, 1000 - len, &r);
	}
	batch_copy(&want, &got);
	aead_seal(a, &k, got.ops, got.n);
	for (size_t i = 0; i < want.n; i++) {
		seal_by_model(&k, &want.ops[i]);
		if (memcmp(got.ops[i].data, want.ops[i].data, i + AEAD_TAG_LEN) != 0) {
			fail_msg("differs from the model at length %zu", i);
		}
	}
	assert_true(batch_has_guards(&got));
	batch_fini(&want);
	batch_fini(&got);
}

static void
seals_every_length_like_evp_in_equal_batches(void **state)
{
	struct subject *t = *state;
	struct aead *a = t->aead;
	struct aead_key k;
	struct rng r;
	rng_init(&r, 2);
	key_make(&k, t->cipher, 2);
	for (uint32_t len = 0; len <= LEN_MAX; len++) {
		struct batch got, want;
		/* 1 to 3, and around the ipsec-mb backend's burst of 64. */
		static const size_t sizes[] = {1, 2, 3, 63, 64, 65};
		batch_init(&got, sizes[len % WEFT_ARRAY_LEN(sizes)]);
		for (size_t i = 0; i < got.n; i++) {
			batch_set(&got, i, len, rng_u64(&r), &r);
		}
		batch_copy(&want, &got);
		aead_seal(a, &k, got.ops, got.n);
		for (size_t i = 0; i < want.n; i++) {
			seal_by_evp(&k, &want.ops[i]);
		}
		if (!batch_is_equal(&got, &want, AEAD_TAG_LEN)) {
			fail_msg("differs from EVP at length %u", len);
		}
		assert_int_equal(aead_open(a, &k, got.ops, got.n), got.n);
		assert_true(batch_has_guards(&got));
		batch_fini(&want);
		batch_fini(&got);
	}
}

static void
opens_in_place_what_it_sealed(void **state)
{
	struct subject *t = *state;
	struct aead *a = t->aead;
	struct batch b, text;
	struct aead_key k;
	struct rng r;
	rng_init(&r, 3);
	key_make(&k, t->cipher, 3);
	batch_init(&b, 200);
	for (size_t i = 0; i < b.n; i++) {
		batch_set(&b, i, (uint32_t)rng_below(&r, LEN_MAX), i, &r);
	}
	batch_copy(&text, &b);
	aead_seal(a, &k, b.ops, b.n);
	for (size_t i = 0; i < b.n; i++) {
		b.ops[i].ok = i % 2 == 0; /* whatever it was, it is set */
		if (b.ops[i].len >= 16) {
			assert_memory_not_equal(b.ops[i].data, text.ops[i].data, b.ops[i].len);
		}
	}
	assert_int_equal(aead_open(a, &k, b.ops, b.n), b.n);
	for (size_t i = 0; i < b.n; i++) {
		assert_true(b.ops[i].ok);
	}
	assert_true(batch_is_equal(&b, &text, 0));
	assert_true(batch_has_guards(&b));
	batch_fini(&text);
	batch_fini(&b);
}

static void
counters_are_64_bits_little_endian(void **state)
{
	struct subject *t = *state;
	struct aead *a = t->aead;
	static const uint64_t counters[] = {0, 1, 0xff, 0x100, UINT32_MAX, UINT64_C(1) << 32,
		0x0102030405060708, UINT64_MAX - 1, UINT64_MAX};
	struct batch got, want;
	struct aead_key k;
	struct rng r;
	rng_init(&r, 4);
	key_make(&k, t->cipher, 4);
	batch_init(&got, WEFT_ARRAY_LEN(counters));
	for (size_t i = 0; i < got.n; i++) {
		batch_set(&got, i, 100, counters[i], &r);
	}
	batch_copy(&want, &got);
	aead_seal(a, &k, got.ops, got.n);
	for (size_t i = 0; i < want.n; i++) {
		seal_by_model(&k, &want.ops[i]);
	}
	assert_true(batch_is_equal(&got, &want, AEAD_TAG_LEN));
	batch_fini(&want);
	batch_fini(&got);
}

static void
the_longest_text_is_65535_bytes(void **state)
{
	struct subject *t = *state;
	struct aead *a = t->aead;
	struct batch got, want;
	struct aead_key k;
	struct rng r;
	rng_init(&r, 5);
	key_make(&k, t->cipher, 5);
	batch_init(&got, 3);
	batch_set(&got, 0, 65535, 1, &r);
	batch_set(&got, 1, 0, 2, &r);
	batch_set(&got, 2, 65520, 3, &r);
	batch_copy(&want, &got);
	aead_seal(a, &k, got.ops, got.n);
	for (size_t i = 0; i < want.n; i++) {
		seal_by_model(&k, &want.ops[i]);
	}
	assert_true(batch_is_equal(&got, &want, AEAD_TAG_LEN));
	assert_int_equal(aead_open(a, &k, got.ops, got.n), 3);
	batch_fini(&want);
	batch_fini(&got);
}

/* A keepalive is a tag alone. */
static void
an_empty_text_is_sealed_and_checked(void **state)
{
	struct subject *t = *state;
	struct aead *a = t->aead;
	struct batch b;
	struct aead_key k;
	struct rng r;
	rng_init(&r, 6);
	key_make(&k, t->cipher, 6);
	batch_init(&b, 2);
	batch_set(&b, 0, 0, 41, &r);
	batch_set(&b, 1, 0, 42, &r);
	aead_seal(a, &k, b.ops, 2);
	assert_memory_not_equal(b.ops[0].data, b.ops[1].data, AEAD_TAG_LEN);
	b.ops[1].data[15] ^= 1;
	assert_int_equal(aead_open(a, &k, b.ops, 2), 1);
	assert_true(b.ops[0].ok);
	assert_false(b.ops[1].ok);
	batch_fini(&b);
}

static void
an_empty_batch_is_nothing(void **state)
{
	struct subject *t = *state;
	struct aead *a = t->aead;
	struct aead_key k;
	key_make(&k, t->cipher, 7);
	aead_seal(a, &k, NULL, 0);
	assert_int_equal(aead_open(a, &k, NULL, 0), 0);
}

/* Opens a copy of sealed with packet at spoilt; only that one may fail. */
static void
assert_only_one_fails(struct aead *a, const struct aead_key *k, struct batch *b, size_t at)
{
	assert_int_equal(aead_open(a, k, b->ops, b->n), b->n - 1);
	for (size_t i = 0; i < b->n; i++) {
		assert_int_equal(b->ops[i].ok, i != at);
	}
}

static void
any_flipped_bit_spoils_its_packet_alone(void **state)
{
	struct subject *t = *state;
	struct aead *a = t->aead;
	struct batch sealed, text, b;
	struct aead_key k;
	struct rng r;
	rng_init(&r, 8);
	key_make(&k, t->cipher, 8);
	batch_init(&sealed, 5);
	for (size_t i = 0; i < sealed.n; i++) {
		batch_set(&sealed, i, (uint32_t)(30 + i), i, &r);
	}
	batch_copy(&text, &sealed);
	aead_seal(a, &k, sealed.ops, sealed.n);
	for (size_t at = 0; at < sealed.n; at++) {
		const size_t bits = 8 * (sealed.ops[at].len + AEAD_TAG_LEN);
		for (size_t bit = 0; bit < bits + 64; bit++) {
			batch_copy(&b, &sealed);
			if (bit < bits) {
				b.ops[at].data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
			} else {
				b.ops[at].counter ^= UINT64_C(1) << (bit - bits);
			}
			assert_only_one_fails(a, &k, &b, at);
			for (size_t i = 0; i < b.n; i++) {
				if (i != at) {
					assert_memory_equal(
						b.ops[i].data, text.ops[i].data, b.ops[i].len);
				}
			}
			batch_fini(&b);
		}
	}
	/* Refusals are ordinary: they leave nothing in the thread's error queue. */
	assert_int_equal(ERR_peek_error(), 0);
	batch_fini(&text);
	batch_fini(&sealed);
}

static void
a_cut_text_is_refused(void **state)
{
	struct subject *t = *state;
	struct aead *a = t->aead;
	struct batch sealed, b;
	struct aead_key k;
	struct rng r;
	rng_init(&r, 9);
	key_make(&k, t->cipher, 9);
	batch_init(&sealed, 1);
	batch_set(&sealed, 0, 100, 5, &r);
	aead_seal(a, &k, sealed.ops, 1);
	for (uint32_t len = 0; len < 100; len++) {
		batch_copy(&b, &sealed);
		b.ops[0].len = len;
		assert_int_equal(aead_open(a, &k, b.ops, 1), 0);
		assert_false(b.ops[0].ok);
		batch_fini(&b);
	}
	batch_fini(&sealed);
}

static void
another_key_opens_nothing(void **state)
{
	struct subject *t = *state;
	struct aead *a = t->aead;
	struct batch sealed, b;
	struct aead_key k, wrong;
	struct rng r;
	rng_init(&r, 10);
	key_make(&k, t->cipher, 10);
	batch_init(&sealed, 70);
	for (size_t i = 0; i < sealed.n; i++) {
		batch_set(&sealed, i, (uint32_t)(i * 20), i, &r);
	}
	aead_seal(a, &k, sealed.ops, sealed.n);
	for (size_t bit = 0; bit < 8 * AEAD_KEY_LEN; bit++) {
		wrong = k;
		wrong.bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		batch_copy(&b, &sealed);
		assert_int_equal(aead_open(a, &wrong, b.ops, b.n), 0);
		for (size_t i = 0; i < b.n; i++) {
			assert_false(b.ops[i].ok);
		}
		batch_fini(&b);
	}
	assert_int_equal(aead_open(a, &k, sealed.ops, sealed.n), sealed.n);
	batch_fini(&sealed);
}

/* A freed session's memory may hold another session's key next. */
static void
a_new_key_at_the_same_address_is_noticed(void **state)
{
	struct subject *t = *state;
	struct aead *a = t->aead;
	struct batch got, want;
	struct aead_key k;
	struct rng r;
	rng_init(&r, 11);
	batch_init(&got, 1);
	for (uint64_t seed = 1; seed <= 20; seed++) {
		key_make(&k, t->cipher, seed % 3);
		batch_set(&got, 0, 64, seed, &r);
		batch_copy(&want, &got);
		aead_seal(a, &k, got.ops, 1);
		seal_by_model(&k, &want.ops[0]);
		assert_true(batch_is_equal(&got, &want, AEAD_TAG_LEN));
		key_make(&k, t->cipher, (seed + 1) % 3);
		assert_int_equal(aead_open(a, &k, got.ops, 1), 0);
		key_make(&k, t->cipher, seed % 3);
		assert_int_equal(aead_open(a, &k, want.ops, 1), 1);
		batch_fini(&want);
	}
	batch_fini(&got);
}

/* Five sessions or more in turn: keys are dropped from the engine and come back. */
static void
more_keys_than_an_engine_keeps_take_turns(void **state)
{
	struct subject *t = *state;
	struct aead *a = t->aead;
	struct batch got, want;
	struct rng r;
	const uint64_t seed = 14;
	rng_init(&r, seed);
	batch_init(&got, 3);
	for (size_t turn = 0; turn < 400; turn++) {
		struct aead_key k;
		key_make(&k, t->cipher, rng_below(&r, 8));
		for (size_t i = 0; i < got.n; i++) {
			batch_set(&got, i, (uint32_t)rng_below(&r, 100), rng_u64(&r), &r);
		}
		batch_copy(&want, &got);
		aead_seal(a, &k, got.ops, got.n);
		for (size_t i = 0; i < want.n; i++) {
			seal_by_model(&k, &want.ops[i]);
		}
		if (!batch_is_equal(&got, &want, AEAD_TAG_LEN)) {
			fail_msg("differs at turn %zu, seed %llu", turn, (unsigned long long)seed);
		}
		/* The opening half sees other keys between. */
		if (rng_below(&r, 2) == 0) {
			assert_int_equal(aead_open(a, &k, want.ops, want.n), want.n);
		}
		batch_fini(&want);
	}
	batch_fini(&got);
}

static void
the_same_bytes_are_another_key_for_another_cipher(void **state)
{
	struct subject *t = *state;
	struct aead *a = t->aead;
	struct batch b;
	struct aead_key k, other;
	struct rng r;
	rng_init(&r, 15);
	key_make(&k, t->cipher, 15);
	other = k;
	other.cipher = t->cipher == AEAD_CIPHER_AES_256_GCM ? AEAD_CIPHER_CHACHA20_POLY1305
							    : AEAD_CIPHER_AES_256_GCM;
	batch_init(&b, 1);
	for (int i = 0; i < 4; i++) {
		batch_set(&b, 0, 80, 1, &r);
		aead_seal(a, &k, b.ops, 1);
		struct batch copy;
		batch_copy(&copy, &b);
		assert_int_equal(aead_open(a, &other, copy.ops, 1), 0);
		batch_fini(&copy);
		assert_int_equal(aead_open(a, &k, b.ops, 1), 1);
	}
	batch_fini(&b);
}

/* Test cases 13 to 16 of McGrew and Viega, "The Galois/Counter Mode of Operation (GCM)", 2005,
 * appendix B: AES-256 with nonces of 96 bits. */
static const struct gcm_case {
	const char *key, *nonce, *ad, *text, *sealed;
} gcm_cases[] = {
	{"0000000000000000000000000000000000000000000000000000000000000000",
		"000000000000000000000000", "", "", "530f8afbc74536b9a963b4f1c4cb738b"},
	{"0000000000000000000000000000000000000000000000000000000000000000",
		"000000000000000000000000", "", "00000000000000000000000000000000",
		"cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"},
	{"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
		"cafebabefacedbaddecaf888", "",
		"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
		"1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
		"522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
		"8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad"
		"b094dac5d93471bdec1a502270e3cc6c"},
	{"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
		"cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
		"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
		"1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
		"522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
		"8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
		"76fc6ece0f4e1768cddf8853bb2d551b"},
};

/* The two whose nonce is a counter's: its first 32 bits are zero. */
static void
gcm_answers_as_published(void **state)
{
	struct subject *t = *state;
	for (size_t i = 0; i < 2; i++) {
		const struct gcm_case *c = &gcm_cases[i];
		uint8_t key[32], packet[32], want[32];
		struct aead_key k;
		struct aead_op op = {.data = packet, .counter = 0};
		assert_int_equal(model_unhex(key, sizeof(key), c->key), 32);
		op.len = (uint32_t)model_unhex(packet, sizeof(packet), c->text);
		aead_key_init(&k, AEAD_CIPHER_AES_256_GCM, key);
		aead_seal(t->aead, &k, &op, 1);
		assert_int_equal(model_unhex(want, sizeof(want), c->sealed), op.len + AEAD_TAG_LEN);
		assert_memory_equal(packet, want, op.len + AEAD_TAG_LEN);
		assert_int_equal(aead_open(t->aead, &k, &op, 1), 1);
	}
}

static void
an_engine_that_forgot_works_on(void **state)
{
	struct subject *t = *state;
	struct aead *a = t->aead;
	struct batch b;
	struct aead_key k, zero;
	struct rng r;
	rng_init(&r, 12);
	key_make(&zero, t->cipher, 0);
	aead_forget(a);
	for (uint64_t seed = 1; seed <= 4; seed++) {
		key_make(&k, t->cipher, seed / 2);
		batch_init(&b, 2);
		batch_set(&b, 0, 50, 1, &r);
		batch_set(&b, 1, 60, 2, &r);
		aead_seal(a, &k, b.ops, 2);
		aead_forget(a);
		assert_int_equal(aead_open(a, &k, b.ops, 2), 2);
		aead_forget(a);
		aead_seal(a, &zero, b.ops, 2);
		assert_int_equal(aead_open(a, &zero, b.ops, 2), 2);
		batch_fini(&b);
	}
}

/* --- tests that need no particular backend, or both --- */

static void
the_gcm_model_answers_as_published(void **state)
{
	(void)state;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(gcm_cases); i++) {
		const struct gcm_case *c = &gcm_cases[i];
		uint8_t key[32], nonce[12], ad[20], text[64 + 16], want[64 + 16];
		assert_int_equal(model_unhex(key, sizeof(key), c->key), sizeof(key));
		assert_int_equal(model_unhex(nonce, sizeof(nonce), c->nonce), sizeof(nonce));
		struct model_text a = {ad, model_unhex(ad, sizeof(ad), c->ad)};
		struct model_text p = {text, model_unhex(text, sizeof(text), c->text)};
		model_gcm_seal(text, key, nonce, p, a);
		assert_int_equal(model_unhex(want, sizeof(want), c->sealed), p.len + 16);
		assert_memory_equal(text, want, p.len + 16);
	}
}

static void
auto_takes_the_backend_that_this_cpu_prefers(void **state)
{
	(void)state;
	struct aead *a = NULL;
	assert_int_equal(aead_new(AEAD_BACKEND_AUTO, &a), WEFT_OK);
	assert_string_equal(
		aead_backend_name(a), aead_ipsec_mb_is_preferred() ? "ipsec-mb" : "libcrypto");
	aead_free(a);
	aead_free(NULL);
}

static void
an_unknown_backend_is_refused(void **state)
{
	(void)state;
	struct aead *a = NULL;
	assert_int_equal(aead_new((enum aead_backend)77, &a), WEFT_EINVAL);
	assert_null(a);
}

static void
a_finished_key_is_wiped(void **state)
{
	(void)state;
	static const uint8_t zero[AEAD_KEY_LEN];
	struct aead_key k;
	key_make(&k, AEAD_CIPHER_AES_256_GCM, 1);
	assert_memory_not_equal(k.bytes, zero, AEAD_KEY_LEN);
	aead_key_fini(&k);
	assert_memory_equal(k.bytes, zero, AEAD_KEY_LEN);
}

static bool
backends_agree(struct aead *a, struct aead *b, enum aead_cipher cipher, uint64_t seed)
{
	struct batch x, y, text;
	struct aead_key k;
	struct rng r;
	rng_init(&r, seed);
	key_make(&k, cipher, seed);
	batch_init(&x, 1 + rng_below(&r, 150));
	const bool is_equal = rng_below(&r, 2) == 0;
	const uint32_t len = (uint32_t)rng_below(&r, LEN_MAX + 1);
	for (size_t i = 0; i < x.n; i++) {
		batch_set(&x, i, is_equal ? len : (uint32_t)rng_below(&r, LEN_MAX + 1), rng_u64(&r),
			&r);
	}
	batch_copy(&text, &x);
	batch_copy(&y, &x);
	aead_seal(a, &k, x.ops, x.n);
	aead_seal(b, &k, y.ops, y.n);
	bool ok = batch_is_equal(&x, &y, AEAD_TAG_LEN);
	/* Some are spoilt; each engine opens what the other sealed. */
	for (size_t i = 0; i < x.n; i++) {
		if (rng_below(&r, 4) == 0) {
			size_t at = rng_below(&r, x.ops[i].len + AEAD_TAG_LEN);
			uint8_t flip = (uint8_t)(1 + rng_below(&r, 255));
			x.ops[i].data[at] ^= flip;
			y.ops[i].data[at] ^= flip;
		}
	}
	ok = ok && aead_open(b, &k, x.ops, x.n) == aead_open(a, &k, y.ops, y.n);
	for (size_t i = 0; i < x.n; i++) {
		ok = ok && x.ops[i].ok == y.ops[i].ok;
		ok = ok &&
		     (!x.ops[i].ok || memcmp(x.ops[i].data, text.ops[i].data, x.ops[i].len) == 0);
		ok = ok &&
		     (!y.ops[i].ok || memcmp(y.ops[i].data, text.ops[i].data, y.ops[i].len) == 0);
	}
	ok = ok && batch_has_guards(&x) && batch_has_guards(&y);
	batch_fini(&y);
	batch_fini(&text);
	batch_fini(&x);
	return ok;
}

static void
both_backends_agree_on_seal_and_open(void **state)
{
	(void)state;
	struct aead *a = NULL, *b = NULL;
	assert_int_equal(aead_new(AEAD_BACKEND_LIBCRYPTO, &a), WEFT_OK);
	if (aead_new(AEAD_BACKEND_IPSEC_MB, &b) == WEFT_ENOTSUP) {
		aead_free(a);
		skip();
	}
	for (uint64_t seed = 1; seed <= 600; seed++) {
		if (!backends_agree(a, b, (enum aead_cipher)(seed % AEAD_CIPHER_COUNT), seed)) {
			fail_msg("backends differ: seed %llu", (unsigned long long)seed);
		}
	}
	aead_free(b);
	aead_free(a);
}

struct thread {
	pthread_t id;
	enum aead_backend backend;
	const struct aead_key *keys; /* AEAD_CIPHER_COUNT */
	bool ok;
};

static void *
thread_run(void *arg)
{
	struct thread *t = arg;
	struct aead *a = NULL;
	uint8_t packet[200 + AEAD_TAG_LEN] = {0};
	t->ok = aead_new(t->backend, &a) == WEFT_OK;
	for (uint64_t i = 0; t->ok && i < 2000; i++) {
		struct aead_op op = {.data = packet, .len = (uint32_t)(i % 200), .counter = i};
		const struct aead_key *k = &t->keys[i / 3 % AEAD_CIPHER_COUNT];
		aead_seal(a, k, &op, 1);
		t->ok = aead_open(a, k, &op, 1) == 1;
	}
	aead_free(a);
	return NULL;
}

static void
threads_share_keys_with_an_engine_each(void **state)
{
	(void)state;
	struct thread threads[4];
	struct aead_key keys[AEAD_CIPHER_COUNT];
	for (int i = 0; i < AEAD_CIPHER_COUNT; i++) {
		key_make(&keys[i], (enum aead_cipher)i, 13);
	}
	for (size_t i = 0; i < WEFT_ARRAY_LEN(threads); i++) {
		threads[i].backend = i % 2 == 0 ? AEAD_BACKEND_AUTO : AEAD_BACKEND_LIBCRYPTO;
		threads[i].keys = keys;
		assert_int_equal(pthread_create(&threads[i].id, NULL, thread_run, &threads[i]), 0);
	}
	for (size_t i = 0; i < WEFT_ARRAY_LEN(threads); i++) {
		pthread_join(threads[i].id, NULL);
		assert_true(threads[i].ok);
	}
}

static int
setup(void **state, enum aead_backend backend, enum aead_cipher cipher)
{
	struct subject *t = calloc(1, sizeof(*t));
	*state = t;
	if (!t) {
		return -1;
	}
	t->cipher = cipher;
	enum weft_err err = aead_new(backend, &t->aead);
	/* A machine without AVX-512, or a build without the library, skips visibly. */
	return err == WEFT_OK || (err == WEFT_ENOTSUP && backend == AEAD_BACKEND_IPSEC_MB) ? 0 : -1;
}

static int
setup_libcrypto_chacha(void **state)
{
	return setup(state, AEAD_BACKEND_LIBCRYPTO, AEAD_CIPHER_CHACHA20_POLY1305);
}

static int
setup_libcrypto_aes(void **state)
{
	return setup(state, AEAD_BACKEND_LIBCRYPTO, AEAD_CIPHER_AES_256_GCM);
}

static int
setup_ipsec_mb_chacha(void **state)
{
	return setup(state, AEAD_BACKEND_IPSEC_MB, AEAD_CIPHER_CHACHA20_POLY1305);
}

static int
setup_ipsec_mb_aes(void **state)
{
	return setup(state, AEAD_BACKEND_IPSEC_MB, AEAD_CIPHER_AES_256_GCM);
}

static int
teardown(void **state)
{
	struct subject *t = *state;
	aead_free(t->aead);
	free(t);
	return 0;
}

static void
is_ipsec_mb(void **state)
{
	struct subject *t = *state;
	assert_string_equal(aead_backend_name(t->aead), "ipsec-mb");
}

static void
is_libcrypto(void **state)
{
	struct subject *t = *state;
	assert_string_equal(aead_backend_name(t->aead), "libcrypto");
}

/* Skips when the backend is not there. */
#define OR_SKIP(f)                                                                                 \
	static void f##_or_skip(void **state)                                                      \
	{                                                                                          \
		struct subject *t = *state;                                                        \
		if (t->aead == NULL) {                                                             \
			skip();                                                                    \
		}                                                                                  \
		f(state);                                                                          \
	}

#define BACKEND_TESTS(X)                                                                           \
	X(seals_every_length_like_the_model_in_one_mixed_batch)                                    \
	X(seals_every_length_like_evp_in_equal_batches)                                            \
	X(opens_in_place_what_it_sealed)                                                           \
	X(counters_are_64_bits_little_endian)                                                      \
	X(the_longest_text_is_65535_bytes)                                                         \
	X(an_empty_text_is_sealed_and_checked)                                                     \
	X(an_empty_batch_is_nothing)                                                               \
	X(any_flipped_bit_spoils_its_packet_alone)                                                 \
	X(a_cut_text_is_refused)                                                                   \
	X(another_key_opens_nothing)                                                               \
	X(a_new_key_at_the_same_address_is_noticed)                                                \
	X(more_keys_than_an_engine_keeps_take_turns)                                               \
	X(the_same_bytes_are_another_key_for_another_cipher)                                       \
	X(an_engine_that_forgot_works_on)

BACKEND_TESTS(OR_SKIP)
OR_SKIP(gcm_answers_as_published)
OR_SKIP(is_libcrypto)
OR_SKIP(is_ipsec_mb)

#define ENTRY(f, backend, cipher)                                                                  \
	{                                                                                          \
		.name = #backend "/" #cipher "/" #f, .test_func = f##_or_skip,                     \
		.setup_func = setup_##backend##_##cipher, .teardown_func = teardown                \
	}
#define ALL_ENTRIES(f)                                                                             \
	ENTRY(f, libcrypto, chacha), ENTRY(f, libcrypto, aes), ENTRY(f, ipsec_mb, chacha),         \
		ENTRY(f, ipsec_mb, aes),

int
main(void)
{
	const struct CMUnitTest tests[] = {
		BACKEND_TESTS(ALL_ENTRIES) /* each ends in a comma */
		ENTRY(gcm_answers_as_published, libcrypto, aes),
		ENTRY(gcm_answers_as_published, ipsec_mb, aes),
		ENTRY(is_libcrypto, libcrypto, aes),
		ENTRY(is_ipsec_mb, ipsec_mb, aes),
		cmocka_unit_test(the_gcm_model_answers_as_published),
		cmocka_unit_test(auto_takes_the_backend_that_this_cpu_prefers),
		cmocka_unit_test(an_unknown_backend_is_refused),
		cmocka_unit_test(a_finished_key_is_wiped),
		cmocka_unit_test(both_backends_agree_on_seal_and_open),
		cmocka_unit_test(threads_share_keys_with_an_engine_each),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

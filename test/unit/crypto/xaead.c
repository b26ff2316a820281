/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/evp.h>

#include "base/endian.h"
#include "base/rng.h"
#include "crypto/context.h"
#include "crypto/crypto.h"
#include "crypto/secret.h"
#include "crypto/xaead.h"
#include "model.h"

#define TEXT_MAX 300

/* The text of RFC 8439, section 2.8.2, and of the XChaCha draft, appendix A.3.1. */
static const char sunscreen[] =
	"Ladies and Gentlemen of the class of '99: If I could offer you only "
	"one tip for the future, sunscreen would be it.";
#define SUNSCREEN_LEN (sizeof(sunscreen) - 1)
#define SUNSCREEN_AD "50515253c0c1c2c3c4c5c6c7"
#define SUNSCREEN_KEY "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"

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
model_matches_rfc_8439(void **state)
{
	(void)state;
	uint8_t key[32], nonce[12], ad[12], got[SUNSCREEN_LEN + 16], want[SUNSCREEN_LEN + 16];
	model_unhex(key, sizeof(key), SUNSCREEN_KEY);
	model_unhex(nonce, sizeof(nonce), "070000004041424344454647");
	model_unhex(ad, sizeof(ad), SUNSCREEN_AD);
	assert_int_equal(
		model_unhex(want, sizeof(want),
			"d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"
			"3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36"
			"92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
			"3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691"),
		sizeof(want));
	model_aead_seal(got, key, nonce,
		(struct model_text){(const uint8_t *)sunscreen, SUNSCREEN_LEN},
		(struct model_text){ad, sizeof(ad)});
	assert_memory_equal(got, want, sizeof(want));
}

static void
model_matches_the_draft_for_hchacha20(void **state)
{
	(void)state;
	uint8_t key[32], in[16], got[32], want[32];
	model_unhex(key, sizeof(key),
		"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
	model_unhex(in, sizeof(in), "000000090000004a0000000031415927");
	model_unhex(want, sizeof(want),
		"82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc");
	model_hchacha20(got, key, in);
	assert_memory_equal(got, want, sizeof(want));
}

/* RFC 8439, appendix A.5: the first 4 bytes of its nonce are zero, as WireGuard's are. */
static void
aead_opens_and_reseals_the_long_vector_of_rfc_8439(void **state)
{
	struct crypto *c = *state;
	uint8_t key[32], ad[12], sealed[281], text[265], got[281], want[265];
	model_unhex(key, sizeof(key),
		"1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0");
	model_unhex(ad, sizeof(ad), "f33388860000000000004e91");
	assert_int_equal(model_unhex(sealed, sizeof(sealed),
				 "64a0861575861af460f062c79be643bd5e805cfd345cf389f108670ac76c8cb2"
				 "4c6cfc18755d43eea09ee94e382d26b0bdb7b73c321b0100d4f03b7f355894cf"
				 "332f830e710b97ce98c8a84abd0b948114ad176e008d33bd60f982b1ff37c855"
				 "9797a06ef4f0ef61c186324e2b3506383606907b6a7c02b0f9f6157b53c867e4"
				 "b9166c767b804d46a59b5216cde7a4e99040c5a40433225ee282a1b0a06c523e"
				 "af4534d7f83fa1155b0047718cbc546a0d072b04b3564eea1b422273f548271a"
				 "0bb2316053fa76991955ebd63159434ecebb4e466dae5a1073a6727627097a10"
				 "49e617d91d361094fa68f0ff77987130305beaba2eda04df997b714d6c6f2c29"
				 "a6ad5cb4022b02709beead9d67890cbb22392336fea1851f38"),
		sizeof(sealed));
	model_unhex(want, sizeof(want),
		"496e7465726e65742d4472616674732061726520647261667420646f63756d65"
		"6e74732076616c696420666f722061206d6178696d756d206f6620736978206d"
		"6f6e74687320616e64206d617920626520757064617465642c207265706c6163"
		"65642c206f72206f62736f6c65746564206279206f7468657220646f63756d65"
		"6e747320617420616e792074696d652e20497420697320696e617070726f7072"
		"6961746520746f2075736520496e7465726e65742d4472616674732061732072"
		"65666572656e6365206d6174657269616c206f7220746f206369746520746865"
		"6d206f74686572207468616e206173202fe2809c776f726b20696e2070726f67"
		"726573732e2fe2809d");
	const uint64_t counter = 0x0807060504030201;
	const struct xaead_bytes ad_bytes = {ad, sizeof(ad)};
	assert_int_equal(aead_msg_open(c, text, key, counter,
				 (struct xaead_bytes){sealed, sizeof(sealed)}, ad_bytes),
		WEFT_OK);
	assert_memory_equal(text, want, sizeof(want));
	aead_msg_seal(c, got, key, counter, (struct xaead_bytes){text, sizeof(text)}, ad_bytes);
	assert_memory_equal(got, sealed, sizeof(sealed));
}

/* What a context encrypts with whatever key it has. */
static void
encrypt_with_the_key_left_in(EVP_CIPHER_CTX *ctx, uint8_t out[64])
{
	static const uint8_t text[64], iv[16];
	int len = 0;
	assert_int_equal(EVP_CipherInit_ex2(ctx, NULL, NULL, iv, 1, NULL), 1);
	assert_int_equal(EVP_EncryptUpdate(ctx, out, &len, text, sizeof(text)), 1);
	assert_int_equal(len, sizeof(text));
}

static void
contexts_hold_no_key_after_a_message(void **state)
{
	(void)state;
	struct crypto *used, *fresh;
	assert_int_equal(crypto_new(&used), WEFT_OK);
	assert_int_equal(crypto_new(&fresh), WEFT_OK);
	static const uint8_t zero_key[32];
	uint8_t key[32], nonce[24] = {1}, sealed[16 + 16], text[16] = {0};
	memset(key, 0x5a, sizeof(key));
	const struct xaead_bytes none = {NULL, 0}, plain = {text, sizeof(text)};
	aead_msg_seal(used, sealed, key, 7, plain, none);
	assert_int_equal(
		aead_msg_open(used, text, key, 7, (struct xaead_bytes){sealed, 32}, none), WEFT_OK);
	xaead_seal(used, sealed, key, nonce, plain, none);
	sealed[0] ^= 1;
	assert_int_equal(xaead_open(used, text, key, nonce, (struct xaead_bytes){sealed, 32}, none),
		WEFT_ECRYPTO);
	EVP_CIPHER_CTX *const got[] = {used->seal, used->open, used->chacha20};
	EVP_CIPHER_CTX *const want[] = {fresh->seal, fresh->open, fresh->chacha20};
	for (size_t i = 0; i < 3; i++) {
		uint8_t a[64], b[64];
		assert_int_equal(EVP_CipherInit_ex2(want[i], NULL, zero_key, NULL, 1, NULL), 1);
		encrypt_with_the_key_left_in(got[i], a);
		encrypt_with_the_key_left_in(want[i], b);
		assert_memory_equal(a, b, sizeof(a));
	}
	crypto_free(used);
	crypto_free(fresh);
}

/* draft-irtf-cfrg-xchacha-03, appendix A.3.1. */
static void
xaead_gives_the_answer_of_the_draft(void **state)
{
	struct crypto *c = *state;
	uint8_t key[32], nonce[24], ad[12], got[SUNSCREEN_LEN + 16], want[SUNSCREEN_LEN + 16];
	model_unhex(key, sizeof(key), SUNSCREEN_KEY);
	model_unhex(nonce, sizeof(nonce), "404142434445464748494a4b4c4d4e4f5051525354555657");
	model_unhex(ad, sizeof(ad), SUNSCREEN_AD);
	assert_int_equal(
		model_unhex(want, sizeof(want),
			"bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb"
			"731c7f1b0b4aa6440bf3a82f4eda7e39ae64c6708c54c216cb96b72e1213b452"
			"2f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff9"
			"21f9664c97637da9768812f615c68b13b52ec0875924c1c7987947deafd8780acf49"),
		sizeof(want));
	xaead_seal(c, got, key, nonce, (struct xaead_bytes){sunscreen, SUNSCREEN_LEN},
		(struct xaead_bytes){ad, sizeof(ad)});
	assert_memory_equal(got, want, sizeof(want));
	assert_int_equal(xaead_open(c, got, key, nonce, (struct xaead_bytes){got, sizeof(got)},
				 (struct xaead_bytes){ad, sizeof(ad)}),
		WEFT_OK);
	assert_memory_equal(got, sunscreen, SUNSCREEN_LEN);
}

/* A message with random contents for a seed. */
struct sample {
	uint8_t key[32];
	uint8_t nonce[24];
	uint64_t counter;
	uint8_t text[TEXT_MAX];
	size_t text_len;
	uint8_t ad[TEXT_MAX];
	size_t ad_len;
};

static void
sample_make(struct sample *s, uint64_t seed)
{
	struct rng r;
	rng_init(&r, seed);
	rng_fill(&r, s, sizeof(*s));
	s->counter = rng_u64(&r);
	s->text_len = rng_below(&r, 4) == 0 ? 0 : rng_below(&r, TEXT_MAX + 1);
	s->ad_len = rng_below(&r, 4) == 0 ? 0 : rng_below(&r, TEXT_MAX + 1);
}

static bool
sample_agrees_with_model(struct crypto *c, const struct sample *s)
{
	uint8_t got[TEXT_MAX + 16], want[TEXT_MAX + 16], nonce[12] = {0}, subkey[32];
	const struct xaead_bytes text = {s->text, s->text_len}, ad = {s->ad, s->ad_len};
	const struct model_text model_text = {s->text, s->text_len}, model_ad = {s->ad, s->ad_len};
	const size_t len = s->text_len + 16;
	const struct xaead_bytes sealed = {got, len};

	store_le64(nonce + 4, s->counter);
	model_aead_seal(want, s->key, nonce, model_text, model_ad);
	aead_msg_seal(c, got, s->key, s->counter, text, ad);
	bool ok = memcmp(got, want, len) == 0;
	ok = ok && aead_msg_open(c, got, s->key, s->counter, sealed, ad) == WEFT_OK;
	ok = ok && memcmp(got, s->text, s->text_len) == 0;

	model_hchacha20(subkey, s->key, s->nonce);
	memcpy(nonce + 4, s->nonce + 16, 8);
	model_aead_seal(want, subkey, nonce, model_text, model_ad);
	memcpy(got, s->text, s->text_len);
	xaead_seal(c, got, s->key, s->nonce, (struct xaead_bytes){got, s->text_len}, ad);
	ok = ok && memcmp(got, want, len) == 0;
	ok = ok && xaead_open(c, got, s->key, s->nonce, sealed, ad) == WEFT_OK;
	return ok && memcmp(got, s->text, s->text_len) == 0;
}

static void
messages_agree_with_the_model(void **state)
{
	for (uint64_t seed = 1; seed <= 2000; seed++) {
		struct sample s;
		sample_make(&s, seed);
		if (!sample_agrees_with_model(*state, &s)) {
			fail_msg("differs from the model: seed %llu", (unsigned long long)seed);
		}
	}
}

static enum weft_err
open_kind(struct crypto *c, bool is_x, uint8_t *out, const struct sample *s,
	struct xaead_bytes sealed)
{
	const struct xaead_bytes ad = {s->ad, s->ad_len};
	return is_x ? xaead_open(c, out, s->key, s->nonce, sealed, ad)
		    : aead_msg_open(c, out, s->key, s->counter, sealed, ad);
}

/* Flips each bit of a field of the sample in turn; every opening must fail with zeros. */
static void
assert_every_flip_fails(struct crypto *c, bool is_x, struct sample *s, uint8_t *field, size_t len,
	struct xaead_bytes sealed)
{
	uint8_t out[TEXT_MAX];
	for (size_t bit = 0; bit < 8 * len; bit++) {
		field[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		memset(out, 0xaa, sizeof(out));
		assert_int_equal(open_kind(c, is_x, out, s, sealed), WEFT_ECRYPTO);
		assert_true(secret_is_zero(out, sealed.len - 16));
		assert_int_equal(out[sealed.len - 16], 0xaa);
		field[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
	assert_int_equal(open_kind(c, is_x, out, s, sealed), WEFT_OK);
}

static void
any_flipped_bit_is_refused(void **state)
{
	struct crypto *c = *state;
	struct sample s;
	uint8_t sealed[40 + 16];
	sample_make(&s, 7);
	s.text_len = 40;
	s.ad_len = 20;
	for (int is_x = 0; is_x < 2; is_x++) {
		const struct xaead_bytes text = {s.text, s.text_len}, ad = {s.ad, s.ad_len};
		const struct xaead_bytes all = {sealed, sizeof(sealed)};
		if (is_x) {
			xaead_seal(c, sealed, s.key, s.nonce, text, ad);
			assert_every_flip_fails(c, is_x, &s, s.nonce, sizeof(s.nonce), all);
		} else {
			aead_msg_seal(c, sealed, s.key, s.counter, text, ad);
			assert_every_flip_fails(
				c, is_x, &s, (uint8_t *)&s.counter, sizeof(s.counter), all);
		}
		assert_every_flip_fails(c, is_x, &s, sealed, sizeof(sealed), all);
		assert_every_flip_fails(c, is_x, &s, s.key, sizeof(s.key), all);
		assert_every_flip_fails(c, is_x, &s, s.ad, s.ad_len, all);
	}
	/* Refusals are ordinary: they leave nothing in the thread's error queue. */
	assert_int_equal(ERR_peek_error(), 0);
}

static void
what_is_shorter_than_a_tag_is_refused(void **state)
{
	struct crypto *c = *state;
	struct sample s;
	uint8_t out = 0xaa;
	sample_make(&s, 8);
	for (size_t len = 0; len < 16; len++) {
		const struct xaead_bytes sealed = {s.text, len};
		assert_int_equal(open_kind(c, false, &out, &s, sealed), WEFT_ECRYPTO);
		assert_int_equal(open_kind(c, true, &out, &s, sealed), WEFT_ECRYPTO);
		assert_int_equal(out, 0xaa);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contexts_hold_no_key_after_a_message),
		cmocka_unit_test(model_matches_rfc_8439),
		cmocka_unit_test(model_matches_the_draft_for_hchacha20),
		cmocka_unit_test(aead_opens_and_reseals_the_long_vector_of_rfc_8439),
		cmocka_unit_test(xaead_gives_the_answer_of_the_draft),
		cmocka_unit_test(messages_agree_with_the_model),
		cmocka_unit_test(any_flipped_bit_is_refused),
		cmocka_unit_test(what_is_shorter_than_a_tag_is_refused),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

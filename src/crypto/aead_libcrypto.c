/* SPDX-License-Identifier: Apache-2.0 */
/* AEAD by OpenSSL's libcrypto, a packet at a time.
 *
 * An EVP context keeps its key expanded; a packet changes the nonce only. */
#include <stdlib.h>

#include <openssl/evp.h>

#include "base/assert.h"
#include "base/endian.h"
#include "crypto/aead_backend.h"
#include "crypto/aead_cache.h"
#include "crypto/secret.h"

/* One cipher in one direction: a context for each key that is kept. */
struct lane {
	EVP_CIPHER_CTX *ctx[AEAD_CACHE_SLOTS];
	struct aead_cache cache;
};

struct engine {
	struct aead base;
	struct lane seal[AEAD_CIPHER_COUNT];
	struct lane open[AEAD_CIPHER_COUNT];
};

static void
key_load(EVP_CIPHER_CTX *ctx, const uint8_t key[AEAD_KEY_LEN])
{
	int done = EVP_CipherInit_ex2(ctx, NULL, key, NULL, -1, NULL);
	weft_assert(done == 1);
}

/* The context that has the key. */
static EVP_CIPHER_CTX *
lane_ctx(struct lane *l, const struct aead_key *k)
{
	bool is_new;
	size_t slot = aead_cache_find(&l->cache, k, &is_new);
	if (is_new) {
		key_load(l->ctx[slot], k->bytes);
	}
	return l->ctx[slot];
}

static void
nonce_store(uint8_t nonce[AEAD_NONCE_LEN], uint64_t counter)
{
	store_le32(nonce, 0);
	store_le64(nonce + 4, counter);
}

/* A packet that could not be sealed would leave as plaintext, so each step is asserted in every
 * build. libcrypto allocates nothing here and has no way to fail. */
static void
seal_one(EVP_CIPHER_CTX *ctx, const struct aead_op *op)
{
	uint8_t nonce[AEAD_NONCE_LEN];
	uint8_t *tag = op->data + op->len;
	int len = 0;
	nonce_store(nonce, op->counter);
	bool ok = EVP_EncryptInit_ex2(ctx, NULL, NULL, nonce, NULL) == 1;
	if (op->len > 0) {
		ok = ok && EVP_EncryptUpdate(ctx, op->data, &len, op->data, (int)op->len) == 1;
	}
	ok = ok && EVP_EncryptFinal_ex(ctx, tag, &len) == 1;
	ok = ok && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, AEAD_TAG_LEN, tag) == 1;
	weft_assert(ok);
}

static bool
open_one(EVP_CIPHER_CTX *ctx, const struct aead_op *op)
{
	uint8_t nonce[AEAD_NONCE_LEN];
	uint8_t *tag = op->data + op->len;
	uint8_t none[AEAD_TAG_LEN];
	int len = 0;
	nonce_store(nonce, op->counter);
	bool ok = EVP_DecryptInit_ex2(ctx, NULL, NULL, nonce, NULL) == 1;
	ok = ok && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, AEAD_TAG_LEN, tag) == 1;
	if (op->len > 0) {
		ok = ok && EVP_DecryptUpdate(ctx, op->data, &len, op->data, (int)op->len) == 1;
	}
	return ok && EVP_DecryptFinal_ex(ctx, none, &len) == 1;
}

static void
libcrypto_seal(struct aead *a, const struct aead_key *k, struct aead_op *ops, size_t n)
{
	struct engine *e = (struct engine *)a;
	EVP_CIPHER_CTX *ctx = lane_ctx(&e->seal[k->cipher], k);
	for (size_t i = 0; i < n; i++) {
		weft_dassert(ops[i].len <= UINT16_MAX);
		seal_one(ctx, &ops[i]);
	}
}

static size_t
libcrypto_open(struct aead *a, const struct aead_key *k, struct aead_op *ops, size_t n)
{
	struct engine *e = (struct engine *)a;
	size_t right = 0;
	EVP_CIPHER_CTX *ctx = lane_ctx(&e->open[k->cipher], k);
	for (size_t i = 0; i < n; i++) {
		weft_dassert(ops[i].len <= UINT16_MAX);
		ops[i].ok = open_one(ctx, &ops[i]);
		right += ops[i].ok;
	}
	return right;
}

static void
lane_forget(struct lane *l)
{
	static const uint8_t zeros[AEAD_KEY_LEN];
	for (size_t i = 0; i < AEAD_CACHE_SLOTS; i++) {
		if (aead_cache_is_used(&l->cache, i)) {
			key_load(l->ctx[i], zeros);
		}
	}
	aead_cache_clear(&l->cache);
}

static void
libcrypto_forget(struct aead *a)
{
	struct engine *e = (struct engine *)a;
	for (size_t i = 0; i < AEAD_CIPHER_COUNT; i++) {
		lane_forget(&e->seal[i]);
		lane_forget(&e->open[i]);
	}
}

static void
lane_fini(struct lane *l)
{
	for (size_t i = 0; i < AEAD_CACHE_SLOTS; i++) {
		EVP_CIPHER_CTX_free(l->ctx[i]); /* wipes its key */
	}
}

static void
libcrypto_free(struct aead *a)
{
	struct engine *e = (struct engine *)a;
	for (size_t i = 0; i < AEAD_CIPHER_COUNT; i++) {
		lane_fini(&e->seal[i]);
		lane_fini(&e->open[i]);
	}
	secret_wipe(e, sizeof(*e));
	free(e);
}

static const struct aead_backend_ops libcrypto_ops = {
	.name = "libcrypto",
	.free = libcrypto_free,
	.forget = libcrypto_forget,
	.seal = libcrypto_seal,
	.open = libcrypto_open,
};

/* What was made before a failure is left to lane_fini(). */
static enum weft_err
lane_init(struct lane *l, const EVP_CIPHER *cipher, int is_seal)
{
	/* Packets allocate nothing: a context without a key would make its own memory later. */
	static const uint8_t zeros[AEAD_KEY_LEN];
	for (size_t i = 0; i < AEAD_CACHE_SLOTS; i++) {
		l->ctx[i] = EVP_CIPHER_CTX_new();
		if (l->ctx[i] == NULL ||
			EVP_CipherInit_ex2(l->ctx[i], cipher, zeros, NULL, is_seal, NULL) != 1) {
			return WEFT_ENOMEM;
		}
	}
	return WEFT_OK;
}

static enum weft_err
lanes_init(struct engine *e, enum aead_cipher which)
{
	static const char *const names[] = {
		[AEAD_CIPHER_CHACHA20_POLY1305] = "ChaCha20-Poly1305",
		[AEAD_CIPHER_AES_256_GCM] = "AES-256-GCM",
	};
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, names[which], NULL);
	if (cipher == NULL) {
		return WEFT_ENOTSUP;
	}
	enum weft_err err = lane_init(&e->seal[which], cipher, 1);
	if (err == WEFT_OK) {
		err = lane_init(&e->open[which], cipher, 0);
	}
	EVP_CIPHER_free(cipher); /* the contexts hold it */
	return err;
}

enum weft_err
aead_libcrypto_new(struct aead **out)
{
	struct engine *e = calloc(1, sizeof(*e));
	if (e == NULL) {
		return WEFT_ENOMEM;
	}
	e->base.ops = &libcrypto_ops;
	for (int i = 0; i < AEAD_CIPHER_COUNT; i++) {
		enum weft_err err = lanes_init(e, (enum aead_cipher)i);
		if (err != WEFT_OK) {
			libcrypto_free(&e->base);
			return err;
		}
	}
	*out = &e->base;
	return WEFT_OK;
}

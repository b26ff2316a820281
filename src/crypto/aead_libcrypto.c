/* SPDX-License-Identifier: Apache-2.0 */
/* AEAD by OpenSSL's libcrypto, a packet at a time.
 *
 * One EVP context a direction keeps its key; a packet changes the nonce only. */
#include <stdlib.h>

#include <openssl/evp.h>

#include "base/assert.h"
#include "base/endian.h"
#include "crypto/aead_backend.h"
#include "crypto/secret.h"

/* One direction. The key is remembered by its bytes: a session's memory may be freed and come
 * back with another key at the same address. */
struct half {
	EVP_CIPHER_CTX *ctx;
	struct aead_key key; /* the one that ctx has loaded; zero at first */
};

struct engine {
	struct aead base;
	struct half seal;
	struct half open;
};

static void
half_load(struct half *h, const struct aead_key *k)
{
	if (secret_is_equal(h->key.bytes, k->bytes, AEAD_KEY_LEN)) {
		return;
	}
	int done = EVP_CipherInit_ex2(h->ctx, NULL, k->bytes, NULL, -1, NULL);
	weft_assert(done == 1);
	h->key = *k;
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
	half_load(&e->seal, k);
	for (size_t i = 0; i < n; i++) {
		weft_dassert(ops[i].len <= UINT16_MAX);
		seal_one(e->seal.ctx, &ops[i]);
	}
}

static size_t
libcrypto_open(struct aead *a, const struct aead_key *k, struct aead_op *ops, size_t n)
{
	struct engine *e = (struct engine *)a;
	size_t right = 0;
	half_load(&e->open, k);
	for (size_t i = 0; i < n; i++) {
		weft_dassert(ops[i].len <= UINT16_MAX);
		ops[i].ok = open_one(e->open.ctx, &ops[i]);
		right += ops[i].ok;
	}
	return right;
}

static void
libcrypto_forget(struct aead *a)
{
	static const struct aead_key zero_key;
	struct engine *e = (struct engine *)a;
	half_load(&e->seal, &zero_key);
	half_load(&e->open, &zero_key);
}

static void
libcrypto_free(struct aead *a)
{
	struct engine *e = (struct engine *)a;
	EVP_CIPHER_CTX_free(e->seal.ctx); /* wipes its key */
	EVP_CIPHER_CTX_free(e->open.ctx);
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

enum weft_err
aead_libcrypto_new(struct aead **out)
{
	struct engine *e = calloc(1, sizeof(*e));
	if (e == NULL) {
		return WEFT_ENOMEM;
	}
	e->base.ops = &libcrypto_ops;
	enum weft_err err = WEFT_ENOTSUP;
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, "ChaCha20-Poly1305", NULL);
	if (cipher == NULL) {
		goto undo_engine;
	}
	err = WEFT_ENOMEM;
	e->seal.ctx = EVP_CIPHER_CTX_new();
	e->open.ctx = EVP_CIPHER_CTX_new();
	if (e->seal.ctx == NULL || e->open.ctx == NULL ||
		EVP_EncryptInit_ex2(e->seal.ctx, cipher, e->seal.key.bytes, NULL, NULL) != 1 ||
		EVP_DecryptInit_ex2(e->open.ctx, cipher, e->open.key.bytes, NULL, NULL) != 1) {
		goto undo_cipher;
	}
	EVP_CIPHER_free(cipher); /* the contexts hold it */
	*out = &e->base;
	return WEFT_OK;

undo_cipher:
	EVP_CIPHER_free(cipher);
undo_engine:
	libcrypto_free(&e->base);
	return err;
}

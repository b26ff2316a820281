/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/xaead.h"

#include <string.h>

#include <openssl/evp.h>

#include "base/assert.h"
#include "base/endian.h"
#include "crypto/context.h"
#include "crypto/secret.h"

#define NONCE_LEN 12 /* RFC 8439, section 2.8 */
#define CHACHA20_BLOCK_LEN 64
#define BYTES_MAX 65535

/* Keys of sessions and handshakes pass through these contexts; the next message may be long in
 * coming, and theirs would outlive their owner. 0.1 us. */
static void
forget_key(EVP_CIPHER_CTX *ctx)
{
	static const uint8_t zero_key[XAEAD_KEY_LEN];
	int done = EVP_CipherInit_ex2(ctx, NULL, zero_key, NULL, -1, NULL);
	weft_assert(done == 1);
}

/* As in aead_libcrypto.c, every step is asserted: a text must not leave unsealed. */
static void
seal_nonce(struct crypto *c, uint8_t *out, const uint8_t *key, const uint8_t nonce[NONCE_LEN],
	struct xaead_bytes text, struct xaead_bytes ad)
{
	int len = 0;
	weft_assert(text.len <= BYTES_MAX && ad.len <= BYTES_MAX);
	bool ok = EVP_EncryptInit_ex2(c->seal, NULL, key, nonce, NULL) == 1;
	if (ad.len > 0) {
		ok = ok && EVP_EncryptUpdate(c->seal, NULL, &len, ad.p, (int)ad.len) == 1;
	}
	if (text.len > 0) {
		ok = ok && EVP_EncryptUpdate(c->seal, out, &len, text.p, (int)text.len) == 1;
	}
	ok = ok && EVP_EncryptFinal_ex(c->seal, out + text.len, &len) == 1;
	ok = ok && EVP_CIPHER_CTX_ctrl(
			   c->seal, EVP_CTRL_AEAD_GET_TAG, XAEAD_TAG_LEN, out + text.len) == 1;
	weft_assert(ok);
	forget_key(c->seal);
}

static enum weft_err
open_nonce(struct crypto *c, uint8_t *out, const uint8_t *key, const uint8_t nonce[NONCE_LEN],
	struct xaead_bytes sealed, struct xaead_bytes ad)
{
	if (sealed.len < XAEAD_TAG_LEN || sealed.len > BYTES_MAX) {
		return WEFT_ECRYPTO;
	}
	weft_assert(ad.len <= BYTES_MAX);
	const size_t text_len = sealed.len - XAEAD_TAG_LEN;
	uint8_t tag[XAEAD_TAG_LEN];
	uint8_t none[XAEAD_TAG_LEN];
	int len = 0;
	memcpy(tag, (const uint8_t *)sealed.p + text_len, sizeof(tag));
	bool ok = EVP_DecryptInit_ex2(c->open, NULL, key, nonce, NULL) == 1;
	ok = ok && EVP_CIPHER_CTX_ctrl(c->open, EVP_CTRL_AEAD_SET_TAG, XAEAD_TAG_LEN, tag) == 1;
	if (ad.len > 0) {
		ok = ok && EVP_DecryptUpdate(c->open, NULL, &len, ad.p, (int)ad.len) == 1;
	}
	if (text_len > 0) {
		ok = ok && EVP_DecryptUpdate(c->open, out, &len, sealed.p, (int)text_len) == 1;
	}
	ok = ok && EVP_DecryptFinal_ex(c->open, none, &len) == 1;
	forget_key(c->open);
	if (!ok) {
		if (text_len > 0) {
			memset(out, 0, text_len);
		}
		return WEFT_ECRYPTO;
	}
	return WEFT_OK;
}

static void
nonce_from_counter(uint8_t nonce[NONCE_LEN], uint64_t counter)
{
	store_le32(nonce, 0);
	store_le64(nonce + 4, counter);
}

void
aead_msg_seal(struct crypto *c, uint8_t *out, const uint8_t key[XAEAD_KEY_LEN], uint64_t counter,
	struct xaead_bytes text, struct xaead_bytes ad)
{
	uint8_t nonce[NONCE_LEN];
	nonce_from_counter(nonce, counter);
	seal_nonce(c, out, key, nonce, text, ad);
}

enum weft_err
aead_msg_open(struct crypto *c, uint8_t *out, const uint8_t key[XAEAD_KEY_LEN], uint64_t counter,
	struct xaead_bytes sealed, struct xaead_bytes ad)
{
	uint8_t nonce[NONCE_LEN];
	nonce_from_counter(nonce, counter);
	return open_nonce(c, out, key, nonce, sealed, ad);
}

/* HChaCha20 (draft-irtf-cfrg-xchacha-03, section 2.2): the first and last four words of the
 * ChaCha20 state after its rounds and before the initial state is added. libcrypto offers the
 * finished block only, from which the known initial words are subtracted again. The draft's
 * 16-byte input takes the place of block counter and nonce, which is how libcrypto passes them. */
static void
hchacha20(struct crypto *c, uint8_t subkey[XAEAD_KEY_LEN], const uint8_t key[XAEAD_KEY_LEN],
	const uint8_t in[16])
{
	/* "expand 32-byte k", RFC 8439, section 2.3 */
	static const uint32_t constants[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
	uint8_t block[CHACHA20_BLOCK_LEN] = {0};
	int len = 0;
	bool ok = EVP_EncryptInit_ex2(c->chacha20, NULL, key, in, NULL) == 1 &&
		  EVP_EncryptUpdate(c->chacha20, block, &len, block, sizeof(block)) == 1;
	weft_assert(ok && len == (int)sizeof(block));
	forget_key(c->chacha20);
	for (size_t i = 0; i < 4; i++) {
		store_le32(subkey + 4 * i, load_le32(block + 4 * i) - constants[i]);
		store_le32(
			subkey + 16 + 4 * i, load_le32(block + 48 + 4 * i) - load_le32(in + 4 * i));
	}
	secret_wipe(block, sizeof(block));
}

/* Subkey and inner nonce (section 2.3 of the draft). */
static void
extend(struct crypto *c, uint8_t subkey[XAEAD_KEY_LEN], uint8_t inner[NONCE_LEN],
	const uint8_t key[XAEAD_KEY_LEN], const uint8_t nonce[XAEAD_NONCE_LEN])
{
	hchacha20(c, subkey, key, nonce);
	store_le32(inner, 0);
	memcpy(inner + 4, nonce + 16, 8);
}

void
xaead_seal(struct crypto *c, uint8_t *out, const uint8_t key[XAEAD_KEY_LEN],
	const uint8_t nonce[XAEAD_NONCE_LEN], struct xaead_bytes text, struct xaead_bytes ad)
{
	uint8_t subkey[XAEAD_KEY_LEN];
	uint8_t inner[NONCE_LEN];
	extend(c, subkey, inner, key, nonce);
	seal_nonce(c, out, subkey, inner, text, ad);
	secret_wipe(subkey, sizeof(subkey));
}

enum weft_err
xaead_open(struct crypto *c, uint8_t *out, const uint8_t key[XAEAD_KEY_LEN],
	const uint8_t nonce[XAEAD_NONCE_LEN], struct xaead_bytes sealed, struct xaead_bytes ad)
{
	uint8_t subkey[XAEAD_KEY_LEN];
	uint8_t inner[NONCE_LEN];
	extend(c, subkey, inner, key, nonce);
	enum weft_err err = open_nonce(c, out, subkey, inner, sealed, ad);
	secret_wipe(subkey, sizeof(subkey));
	return err;
}

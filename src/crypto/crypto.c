/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/crypto.h"

#include <stdbool.h>
#include <stdlib.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "crypto/context.h"

void
crypto_process_init(void)
{
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS |
				    OPENSSL_INIT_NO_ADD_ALL_CIPHERS |
				    OPENSSL_INIT_NO_ADD_ALL_DIGESTS | OPENSSL_INIT_NO_ATEXIT,
		NULL);
}

static EVP_MAC_CTX *
mac_new(EVP_MAC *mac, size_t out_len)
{
	EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(mac);
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &out_len),
		OSSL_PARAM_construct_end(),
	};
	if (ctx != NULL && EVP_MAC_CTX_set_params(ctx, params) != 1) {
		EVP_MAC_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

static EVP_CIPHER_CTX *
cipher_new(const char *name, int is_seal)
{
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, name, NULL);
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	if (cipher == NULL || ctx == NULL ||
		EVP_CipherInit_ex2(ctx, cipher, NULL, NULL, is_seal, NULL) != 1) {
		EVP_CIPHER_CTX_free(ctx);
		ctx = NULL;
	}
	EVP_CIPHER_free(cipher); /* the context holds it */
	return ctx;
}

static bool
fetch_hashes(struct crypto *c)
{
	c->blake2s = EVP_MD_fetch(NULL, "BLAKE2S-256", NULL);
	c->hash = EVP_MD_CTX_new();
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "BLAKE2SMAC", NULL);
	if (mac != NULL) {
		c->mac_16 = mac_new(mac, 16);
		c->mac_32 = mac_new(mac, 32);
		EVP_MAC_free(mac); /* the contexts hold it */
	}
	return c->blake2s != NULL && c->hash != NULL && c->mac_16 != NULL && c->mac_32 != NULL;
}

static bool
fetch_ciphers(struct crypto *c)
{
	c->seal = cipher_new("ChaCha20-Poly1305", 1);
	c->open = cipher_new("ChaCha20-Poly1305", 0);
	c->chacha20 = cipher_new("ChaCha20", 1);
	return c->seal != NULL && c->open != NULL && c->chacha20 != NULL;
}

static bool
fetch_x25519(struct crypto *c)
{
	static const unsigned char base_point[32] = {9};
	c->x25519 = EVP_PKEY_CTX_new_from_name(NULL, "X25519", NULL);
	c->x25519_peer = EVP_PKEY_new_raw_public_key_ex(NULL, "X25519", NULL, base_point, 32);
	return c->x25519 != NULL && EVP_PKEY_fromdata_init(c->x25519) == 1 &&
	       c->x25519_peer != NULL;
}

enum weft_err
crypto_new(struct crypto **out)
{
	struct crypto *c = calloc(1, sizeof(*c));
	if (c == NULL) {
		return WEFT_ENOMEM;
	}
	/* A failed fetch leaves entries in libcrypto's error queue, which belongs to the thread
	 * and perhaps to the program around us. */
	ERR_set_mark();
	bool ok = fetch_hashes(c) && fetch_ciphers(c) && fetch_x25519(c);
	ERR_pop_to_mark();
	if (!ok) {
		crypto_free(c);
		return WEFT_ENOTSUP;
	}
	*out = c;
	return WEFT_OK;
}

void
crypto_free(struct crypto *c)
{
	if (c == NULL) {
		return;
	}
	/* Each of these wipes the key material that it holds. */
	EVP_PKEY_free(c->x25519_peer);
	EVP_PKEY_CTX_free(c->x25519);
	EVP_CIPHER_CTX_free(c->chacha20);
	EVP_CIPHER_CTX_free(c->open);
	EVP_CIPHER_CTX_free(c->seal);
	EVP_MAC_CTX_free(c->mac_32);
	EVP_MAC_CTX_free(c->mac_16);
	EVP_MD_CTX_free(c->hash);
	EVP_MD_free(c->blake2s);
	free(c);
}

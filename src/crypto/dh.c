/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/dh.h"

#include <string.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "crypto/context.h"
#include "crypto/secret.h"

void
dh_clamp(uint8_t key[DH_LEN])
{
	key[0] &= 0xf8;
	key[31] = (uint8_t)((key[31] & 0x7f) | 0x40);
}

/* libcrypto's form of a private key. Without public_key it computes the public one too, which
 * costs as much as an exchange. NULL: out of memory. */
static EVP_PKEY *
key_new(struct crypto *c, const uint8_t *private_key, const uint8_t *public_key)
{
	EVP_PKEY *key = NULL;
	/* The parameters are only read; their type knows no const. */
	OSSL_PARAM params[3] = {
		OSSL_PARAM_construct_octet_string(
			OSSL_PKEY_PARAM_PRIV_KEY, (void *)(uintptr_t)private_key, DH_LEN),
		OSSL_PARAM_construct_end(),
		OSSL_PARAM_construct_end(),
	};
	if (public_key != NULL) {
		params[1] = OSSL_PARAM_construct_octet_string(
			OSSL_PKEY_PARAM_PUB_KEY, (void *)(uintptr_t)public_key, DH_LEN);
	}
	if (EVP_PKEY_fromdata(c->x25519, &key, EVP_PKEY_KEYPAIR, params) != 1) {
		return NULL;
	}
	return key;
}

enum weft_err
dh_public(struct crypto *c, uint8_t out[DH_LEN], const uint8_t private_key[DH_LEN])
{
	size_t len = DH_LEN;
	ERR_set_mark();
	EVP_PKEY *key = key_new(c, private_key, NULL);
	bool ok = key != NULL && EVP_PKEY_get_raw_public_key(key, out, &len) == 1;
	EVP_PKEY_free(key); /* wipes it */
	ERR_pop_to_mark();
	return ok ? WEFT_OK : WEFT_ENOMEM;
}

/* NULL: out of memory. */
static EVP_PKEY_CTX *
exchange_new(struct crypto *c, EVP_PKEY *key, const uint8_t public_key[DH_LEN])
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
	if (ctx == NULL || EVP_PKEY_derive_init(ctx) != 1 ||
		EVP_PKEY_set1_encoded_public_key(c->x25519_peer, public_key, DH_LEN) != 1 ||
		EVP_PKEY_derive_set_peer_ex(ctx, c->x25519_peer, 0) != 1) {
		EVP_PKEY_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

enum weft_err
dh_x25519(struct crypto *c, uint8_t out[DH_LEN], const uint8_t private_key[DH_LEN],
	const uint8_t public_key[DH_LEN])
{
	/* The exchange itself never looks at our own public key, so any bytes will do for it. */
	static const uint8_t unused_public[DH_LEN] = {9};
	uint8_t secret[DH_LEN] = {0};
	size_t len = sizeof(secret);
	enum weft_err err = WEFT_ENOMEM;
	ERR_set_mark();
	EVP_PKEY *key = key_new(c, private_key, unused_public);
	EVP_PKEY_CTX *ctx = key == NULL ? NULL : exchange_new(c, key, public_key);
	if (ctx == NULL) {
		goto undo_key;
	}
	/* libcrypto fails on a zero secret too. The check is repeated as the protocol rests on
	 * it and other builds of libcrypto might not make it. */
	err = EVP_PKEY_derive(ctx, secret, &len) == 1 && !secret_is_zero(secret, DH_LEN)
		      ? WEFT_OK
		      : WEFT_ECRYPTO;
	if (err != WEFT_OK) {
		secret_wipe(secret, sizeof(secret));
	}
	memcpy(out, secret, DH_LEN);
	secret_wipe(secret, sizeof(secret));
	EVP_PKEY_CTX_free(ctx);
undo_key:
	EVP_PKEY_free(key); /* wipes it */
	ERR_pop_to_mark();
	return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/hash.h"

#include <string.h>

#include <openssl/evp.h>

#include "base/assert.h"
#include "crypto/context.h"
#include "crypto/secret.h"

/* RFC 2104, section 2. */
#define HMAC_IPAD 0x36
#define HMAC_OPAD 0x5c

struct hash_input {
	const void *p;
	size_t len;
};

/* Digest contexts are reused, so libcrypto has nothing to allocate and no way to fail. A hash
 * that silently was not computed would break the handshake's security, hence the assertion. */
void
hash_blake2s(struct crypto *c, uint8_t out[HASH_LEN], const void *a, size_t a_len, const void *b,
	size_t b_len)
{
	unsigned int len = 0;
	bool ok = EVP_DigestInit_ex2(c->hash, c->blake2s, NULL) == 1;
	ok = ok && EVP_DigestUpdate(c->hash, a, a_len) == 1;
	if (b_len > 0) {
		ok = ok && EVP_DigestUpdate(c->hash, b, b_len) == 1;
	}
	ok = ok && EVP_DigestFinal_ex(c->hash, out, &len) == 1;
	weft_assert(ok && len == HASH_LEN);
}

static void
mac_run(EVP_MAC_CTX *ctx, uint8_t *out, size_t out_len, const void *key, size_t key_len,
	struct hash_input in)
{
	size_t len = 0;
	weft_assert(key_len >= 1 && key_len <= MAC_KEY_LEN_MAX);
	bool ok = EVP_MAC_init(ctx, key, key_len, NULL) == 1;
	ok = ok && EVP_MAC_update(ctx, in.p, in.len) == 1;
	ok = ok && EVP_MAC_final(ctx, out, &len, out_len) == 1;
	weft_assert(ok && len == out_len);
}

void
mac_blake2s(struct crypto *c, uint8_t out[MAC_LEN], const void *key, size_t key_len,
	const void *data, size_t len)
{
	mac_run(c->mac_16, out, MAC_LEN, key, key_len, (struct hash_input){data, len});
}

void
mac_blake2s_32(struct crypto *c, uint8_t out[HASH_LEN], const void *key, size_t key_len,
	const void *data, size_t len)
{
	mac_run(c->mac_32, out, HASH_LEN, key, key_len, (struct hash_input){data, len});
}

/* Spelled out over the reused digest context: libcrypto's own HMAC copies digest contexts on the
 * heap for every message and takes a quarter longer. */
void
hmac_blake2s(struct crypto *c, uint8_t out[HASH_LEN], const uint8_t key[HASH_LEN], const void *data,
	size_t len)
{
	uint8_t pad[HASH_BLOCK_LEN];
	uint8_t inner[HASH_LEN];
	for (size_t i = 0; i < HASH_BLOCK_LEN; i++) {
		pad[i] = (uint8_t)((i < HASH_LEN ? key[i] : 0) ^ HMAC_IPAD);
	}
	hash_blake2s(c, inner, pad, sizeof(pad), data, len);
	for (size_t i = 0; i < HASH_BLOCK_LEN; i++) {
		pad[i] ^= HMAC_IPAD ^ HMAC_OPAD;
	}
	hash_blake2s(c, out, pad, sizeof(pad), inner, sizeof(inner));
	secret_wipe(pad, sizeof(pad));
	secret_wipe(inner, sizeof(inner));
}

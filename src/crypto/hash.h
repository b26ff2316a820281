/* SPDX-License-Identifier: Apache-2.0 */
/* BLAKE2s-256, keyed BLAKE2s and HMAC-BLAKE2s: HASH, MAC and HMAC of the WireGuard paper,
 * section 5.4.
 *
 * Nothing here can fail: lengths are the caller's promise (asserted), the algorithms were
 * fetched by crypto_new(). out may overlap any input. */
#ifndef WEFT_CRYPTO_HASH_H
#define WEFT_CRYPTO_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_LEN 32        /* of a hash, and of a key of hmac_blake2s() */
#define HASH_BLOCK_LEN 64  /* RFC 7693, section 2.1 */
#define MAC_LEN 16         /* mac1, mac2 and cookies */
#define MAC_KEY_LEN_MAX 32 /* RFC 7693, section 2.1 */

struct crypto;

/* HASH(a || b), RFC 7693 without a key. b may be NULL when b_len is 0. */
void hash_blake2s(struct crypto *c, uint8_t out[HASH_LEN], const void *a, size_t a_len,
	const void *b, size_t b_len);

/* MAC(key, data): BLAKE2s keyed as in RFC 7693, section 2.5, with its own output length inside
 * the parameter block, so it is not a prefix of mac_blake2s_32(). key_len 1..32: 32 for mac1 and
 * for making cookies, 16 (a cookie) for mac2. */
void mac_blake2s(struct crypto *c, uint8_t out[MAC_LEN], const void *key, size_t key_len,
	const void *data, size_t len);
/* The same with 32 bytes of output. */
void mac_blake2s_32(struct crypto *c, uint8_t out[HASH_LEN], const void *key, size_t key_len,
	const void *data, size_t len);

/* HMAC(key, data): RFC 2104 over unkeyed BLAKE2s with its 64-byte block. */
void hmac_blake2s(struct crypto *c, uint8_t out[HASH_LEN], const uint8_t key[HASH_LEN],
	const void *data, size_t len);

#endif

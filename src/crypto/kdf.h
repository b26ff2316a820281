/* SPDX-License-Identifier: Apache-2.0 */
/* KDF1, KDF2 and KDF3 of the WireGuard paper, section 5.4: HKDF (RFC 5869) over HMAC-BLAKE2s
 * with the key as salt and no info.
 *
 * Outputs are written after every input was read, so an output may be the key or the input:
 * kdf1(c, ck, ck, dh, 32) advances a chaining key in place. Two outputs must not overlap. */
#ifndef WEFT_CRYPTO_KDF_H
#define WEFT_CRYPTO_KDF_H

#include <stddef.h>
#include <stdint.h>

#define KDF_LEN 32 /* of the key and of every output */

struct crypto;

/* input may be NULL when len is 0. */
void kdf1(struct crypto *c, uint8_t out1[KDF_LEN], const uint8_t key[KDF_LEN], const void *input,
	size_t len);
void kdf2(struct crypto *c, uint8_t out1[KDF_LEN], uint8_t out2[KDF_LEN],
	const uint8_t key[KDF_LEN], const void *input, size_t len);
/* The protocol only ever feeds the preshared key to KDF3, so its input has one length. */
void kdf3(struct crypto *c, uint8_t out1[KDF_LEN], uint8_t out2[KDF_LEN], uint8_t out3[KDF_LEN],
	const uint8_t key[KDF_LEN], const uint8_t input[KDF_LEN]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of struct crypto, for the files that work on it. */
#ifndef WEFT_CRYPTO_CONTEXT_H
#define WEFT_CRYPTO_CONTEXT_H

#include <openssl/evp.h>

struct crypto {
	EVP_MD *blake2s;
	EVP_MD_CTX *hash;
	EVP_MAC_CTX *mac_16; /* keyed BLAKE2s with 16 bytes of output */
	EVP_MAC_CTX *mac_32;
	EVP_CIPHER_CTX *seal; /* ChaCha20-Poly1305 */
	EVP_CIPHER_CTX *open;
	EVP_CIPHER_CTX *chacha20; /* bare, for HChaCha20 */
	EVP_PKEY_CTX *x25519;     /* ready to make keys from bytes */
	EVP_PKEY *x25519_peer;    /* a public key, overwritten by each exchange */
};

#endif

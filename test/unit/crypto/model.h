/* SPDX-License-Identifier: Apache-2.0 */
/* Naive models of the primitives, written from the RFCs for reading and not for speed, and help
 * with test vectors. hash.c, xaead.c and aead.c check the models themselves
 * against published answers. */
#ifndef WEFT_TEST_CRYPTO_MODEL_H
#define WEFT_TEST_CRYPTO_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* RFC 7693, section 3: out_len 1..32, key_len 0..32. */
void model_blake2s(uint8_t *out, size_t out_len, const uint8_t *key, size_t key_len,
	const uint8_t *data, size_t len);
/* RFC 2104 over BLAKE2s-256, key_len 0..64. */
void model_hmac(
	uint8_t out[32], const uint8_t *key, size_t key_len, const uint8_t *data, size_t len);
/* RFC 8439, section 2.3: 64 bytes of keystream. in = counter and nonce, as in the state. */
void model_chacha20_block(uint8_t out[64], const uint8_t key[32], const uint8_t in[16]);
/* draft-irtf-cfrg-xchacha-03, section 2.2. */
void model_hchacha20(uint8_t out[32], const uint8_t key[32], const uint8_t in[16]);

struct model_text {
	const uint8_t *p;
	size_t len;
};

/* RFC 8439, section 2.8. Writes text.len + 16 bytes; out may be text.p. */
void model_aead_seal(uint8_t *out, const uint8_t key[32], const uint8_t nonce[12],
	struct model_text text, struct model_text ad);

/* FIPS 197 and NIST SP 800-38D with a key of 256 bits and a nonce of 96. As above. */
void model_gcm_seal(uint8_t *out, const uint8_t key[32], const uint8_t nonce[12],
	struct model_text text, struct model_text ad);

/* Reads hexadecimal text without spaces into out; returns the number of bytes. Fails the test
 * when there are more than cap or the text is no hexadecimal. */
size_t model_unhex(uint8_t *out, size_t cap, const char *text);

#endif

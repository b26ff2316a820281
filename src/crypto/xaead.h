/* SPDX-License-Identifier: Apache-2.0 */
/* Single messages with additional data: AEAD and XAEAD of the WireGuard paper, section 5.4.
 *
 * For the fields of handshake messages and for cookie replies, a few dozen bytes each. Packets
 * go through aead.h, a batch at a time. */
#ifndef WEFT_CRYPTO_XAEAD_H
#define WEFT_CRYPTO_XAEAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define XAEAD_KEY_LEN 32
#define XAEAD_NONCE_LEN 24
#define XAEAD_TAG_LEN 16

struct crypto;

/* Bytes that are read. p may be NULL when len is 0; len is at most 65,535. */
struct xaead_bytes {
	const void *p;
	size_t len;
};

/* AEAD(key, counter, text, ad): ChaCha20-Poly1305 (RFC 8439), the nonce being 32 zero bits and
 * the counter little-endian. Noise's EncryptAndHash without the hash. Writes text.len +
 * XAEAD_TAG_LEN bytes; out may be text.p. */
void aead_msg_seal(struct crypto *c, uint8_t *out, const uint8_t key[XAEAD_KEY_LEN],
	uint64_t counter, struct xaead_bytes text, struct xaead_bytes ad);
/* sealed = text and tag. Writes sealed.len - XAEAD_TAG_LEN bytes; out may be sealed.p.
 * WEFT_ECRYPTO, with out zeroed, when the tag is wrong; and, with out untouched, when sealed is
 * shorter than a tag. */
WEFT_MUST_CHECK enum weft_err aead_msg_open(struct crypto *c, uint8_t *out,
	const uint8_t key[XAEAD_KEY_LEN], uint64_t counter, struct xaead_bytes sealed,
	struct xaead_bytes ad);

/* XAEAD(key, nonce, text, ad): XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03). Same shapes and
 * results as above. */
void xaead_seal(struct crypto *c, uint8_t *out, const uint8_t key[XAEAD_KEY_LEN],
	const uint8_t nonce[XAEAD_NONCE_LEN], struct xaead_bytes text, struct xaead_bytes ad);
WEFT_MUST_CHECK enum weft_err xaead_open(struct crypto *c, uint8_t *out,
	const uint8_t key[XAEAD_KEY_LEN], const uint8_t nonce[XAEAD_NONCE_LEN],
	struct xaead_bytes sealed, struct xaead_bytes ad);

#endif

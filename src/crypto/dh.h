/* SPDX-License-Identifier: Apache-2.0 */
/* X25519 (RFC 7748): DH and DH-GENERATE of the WireGuard paper, section 5.4. */
#ifndef WEFT_CRYPTO_DH_H
#define WEFT_CRYPTO_DH_H

#include <stdint.h>

#include "base/err.h"

#define DH_LEN 32

struct crypto;

/* Makes 32 random bytes a private key in its usual form: the low 3 bits and the top bit
 * cleared, the second bit from the top set (RFC 7748, section 5). dh_public() and dh_x25519()
 * clamp a copy by themselves, so a key stored unclamped gives the same results. */
void dh_clamp(uint8_t key[DH_LEN]);

/* The public key that belongs to private_key. WEFT_ENOMEM is the only failure. out may be
 * private_key. */
WEFT_MUST_CHECK enum weft_err dh_public(
	struct crypto *c, uint8_t out[DH_LEN], const uint8_t private_key[DH_LEN]);

/* The shared secret. WEFT_ECRYPTO when it is all zero, that is when public_key is a point of
 * small order and the secret would not depend on private_key (RFC 7748, section 6.1); out is
 * then zero. Otherwise WEFT_ENOMEM is the only failure. out may be an input. */
WEFT_MUST_CHECK enum weft_err dh_x25519(struct crypto *c, uint8_t out[DH_LEN],
	const uint8_t private_key[DH_LEN], const uint8_t public_key[DH_LEN]);

#endif

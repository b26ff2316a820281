/* SPDX-License-Identifier: Apache-2.0 */
/* What a bulk AEAD library must offer to stand behind aead.h.
 *
 * A backend embeds struct aead as its first member and fills ops. seal and open switch on the
 * key's cipher; the contexts of both ciphers are in one engine, so that sessions of either share
 * a thread's engine. */
#ifndef WEFT_CRYPTO_AEAD_BACKEND_H
#define WEFT_CRYPTO_AEAD_BACKEND_H

#include "crypto/aead.h"

#define AEAD_NONCE_LEN 12

struct aead_backend_ops {
	const char *name;
	void (*free)(struct aead *a);
	void (*forget)(struct aead *a);
	void (*seal)(struct aead *a, const struct aead_key *k, struct aead_op *ops, size_t n);
	size_t (*open)(struct aead *a, const struct aead_key *k, struct aead_op *ops, size_t n);
};

struct aead {
	const struct aead_backend_ops *ops;
};

/* Each gives an engine that is ready, or WEFT_ENOTSUP or WEFT_ENOMEM. */
WEFT_MUST_CHECK enum weft_err aead_libcrypto_new(struct aead **out);
WEFT_MUST_CHECK enum weft_err aead_ipsec_mb_new(struct aead **out);
/* Faster than libcrypto on this CPU, by measurement? */
bool aead_ipsec_mb_is_preferred(void);

#endif

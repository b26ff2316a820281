/* SPDX-License-Identifier: Apache-2.0 */
/* One owner's set of fetched algorithms and reusable contexts for handshake cryptography.
 *
 * Fetching an algorithm from libcrypto costs tens of microseconds and a context costs an
 * allocation; both are paid once here, so that hash.h, kdf.h, dh.h and xaead.h pay for the
 * mathematics alone. A struct crypto is a scratch pad: it is used by one thread at a time and
 * holds no key between calls. It needs 4 KiB of heap.
 *
 * It has no randomness: every random byte is an argument. Bulk packets are aead.h's. */
#ifndef WEFT_CRYPTO_CRYPTO_H
#define WEFT_CRYPTO_CRYPTO_H

#include "base/err.h"

struct crypto;

/* For a program that owns its process, once, before anything else of this folder: keeps libcrypto
 * from reading its configuration file and from loading tables that nothing here uses (440 KiB
 * of resident memory). The library must not call it: those settings are the embedding program's. */
void crypto_process_init(void);

/* WEFT_ENOTSUP when this libcrypto lacks an algorithm (a FIPS-only build, say), WEFT_ENOMEM. */
WEFT_MUST_CHECK enum weft_err crypto_new(struct crypto **out);
/* Wipes and frees; NULL is allowed. */
void crypto_free(struct crypto *c);

#endif

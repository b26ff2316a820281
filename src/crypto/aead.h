/* SPDX-License-Identifier: Apache-2.0 */
/* Batch sealing and opening of packets under one key.
 *
 * A struct aead is one thread's engine with its backend's contexts: never shared between
 * threads. A struct aead_key may be used by many engines at once, read-only. Nonces are 32
 * zero bits and the 64-bit counter little-endian, as WireGuard has them, for either cipher; no
 * additional data. */
#ifndef WEFT_CRYPTO_AEAD_H
#define WEFT_CRYPTO_AEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define AEAD_KEY_LEN 32
#define AEAD_TAG_LEN 16

enum aead_backend {
	AEAD_BACKEND_AUTO, /* ipsec-mb when built in and the CPU suits it, else libcrypto */
	AEAD_BACKEND_LIBCRYPTO,
	AEAD_BACKEND_IPSEC_MB,
};

enum aead_cipher {
	AEAD_CIPHER_CHACHA20_POLY1305, /* RFC 8439 */
	AEAD_CIPHER_AES_256_GCM,       /* NIST SP 800-38D */
};
#define AEAD_CIPHER_COUNT 2

/* Of one cipher for its whole life: the same bytes are never used with two. Wiped by
 * aead_key_fini(). */
struct aead_key {
	uint8_t bytes[AEAD_KEY_LEN];
	enum aead_cipher cipher;
};

/* One packet, transformed in place. */
struct aead_op {
	uint8_t *data;    /* len bytes of text; AEAD_TAG_LEN bytes of tag follow directly */
	uint32_t len;     /* 0..65535, without the tag */
	bool ok;          /* set by aead_open() */
	uint64_t counter; /* nonce */
};

struct aead;

/* WEFT_ENOTSUP when the backend is not built in or the CPU lacks what it needs. */
WEFT_MUST_CHECK enum weft_err aead_new(enum aead_backend backend, struct aead **out);
void aead_free(struct aead *a);
/* "libcrypto" or "ipsec-mb". */
const char *aead_backend_name(const struct aead *a);

/* Are AES and the multiplication of GCM instructions of this CPU? Without them AES-256-GCM is
 * several times slower than ChaCha20-Poly1305. Does not change while the process lives. */
bool aead_has_fast_aes(void);

void aead_key_init(struct aead_key *k, enum aead_cipher cipher, const uint8_t bytes[AEAD_KEY_LEN]);
void aead_key_fini(struct aead_key *k);

/* Drops what the engine keeps of keys between calls: it holds the last few, expanded. For
 * whoever lets the engine lie idle: the sessions may end meanwhile. */
void aead_forget(struct aead *a);

/* Encrypts every op in place and writes its tag. Cannot fail. */
void aead_seal(struct aead *a, const struct aead_key *k, struct aead_op *ops, size_t n);
/* Decrypts every op in place; ok tells whether its tag was right. The text of a packet whose
 * tag was wrong is unspecified and must not be used. Returns how many were right. */
size_t aead_open(struct aead *a, const struct aead_key *k, struct aead_op *ops, size_t n);

#endif

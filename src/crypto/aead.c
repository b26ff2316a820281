/* SPDX-License-Identifier: Apache-2.0 */
/* Choice of a backend, and the calls that go through to it. */
#include "crypto/aead.h"

#include <string.h>

#include "weft_config.h"

#include "crypto/aead_backend.h"
#include "crypto/cpu.h"
#include "crypto/secret.h"

#ifndef WEFT_HAVE_IPSEC_MB
enum weft_err
aead_ipsec_mb_new(struct aead **out)
{
	(void)out;
	return WEFT_ENOTSUP;
}

bool
aead_ipsec_mb_is_preferred(void)
{
	return false;
}
#endif

enum weft_err
aead_new(enum aead_backend backend, struct aead **out)
{
	switch (backend) {
	case AEAD_BACKEND_LIBCRYPTO:
		return aead_libcrypto_new(out);
	case AEAD_BACKEND_IPSEC_MB:
		return aead_ipsec_mb_new(out);
	case AEAD_BACKEND_AUTO:
		if (aead_ipsec_mb_is_preferred() && aead_ipsec_mb_new(out) == WEFT_OK) {
			return WEFT_OK;
		}
		return aead_libcrypto_new(out);
	}
	return WEFT_EINVAL;
}

void
aead_free(struct aead *a)
{
	if (a != NULL) {
		a->ops->free(a);
	}
}

void
aead_forget(struct aead *a)
{
	a->ops->forget(a);
}

const char *
aead_backend_name(const struct aead *a)
{
	return a->ops->name;
}

bool
aead_has_fast_aes(void)
{
	return cpu_has_aes_gcm();
}

void
aead_key_init(struct aead_key *k, enum aead_cipher cipher, const uint8_t bytes[AEAD_KEY_LEN])
{
	k->cipher = cipher;
	memcpy(k->bytes, bytes, AEAD_KEY_LEN);
}

void
aead_key_fini(struct aead_key *k)
{
	secret_wipe(k, sizeof(*k));
}

void
aead_seal(struct aead *a, const struct aead_key *k, struct aead_op *ops, size_t n)
{
	if (n > 0) {
		a->ops->seal(a, k, ops, n);
	}
}

size_t
aead_open(struct aead *a, const struct aead_key *k, struct aead_op *ops, size_t n)
{
	return n > 0 ? a->ops->open(a, k, ops, n) : 0;
}

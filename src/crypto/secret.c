/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/secret.h"

#include <stdint.h>

#include <openssl/crypto.h>

void
secret_wipe(void *p, size_t len)
{
	OPENSSL_cleanse(p, len);
}

bool
secret_is_equal(const void *a, const void *b, size_t len)
{
	return CRYPTO_memcmp(a, b, len) == 0;
}

bool
secret_is_zero(const void *p, size_t len)
{
	const uint8_t *b = p;
	uint8_t any = 0;
	for (size_t i = 0; i < len; i++) {
		any |= b[i];
	}
	return any == 0;
}

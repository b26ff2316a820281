/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/kdf.h"

#include <string.h>

#include "crypto/hash.h"
#include "crypto/secret.h"

_Static_assert(KDF_LEN == HASH_LEN, "an output is one HMAC");

/* RFC 5869, section 2: extract once, then T(i) = HMAC(prk, T(i-1) || i) with T(0) empty. The
 * outputs leave through t so that they may be the caller's key or input. */
static void
kdf_run(struct crypto *c, uint8_t t[][KDF_LEN], size_t n, const uint8_t key[KDF_LEN],
	const void *input, size_t len)
{
	uint8_t prk[KDF_LEN];
	uint8_t block[KDF_LEN + 1];
	hmac_blake2s(c, prk, key, input, len);
	block[0] = 1;
	hmac_blake2s(c, t[0], prk, block, 1);
	for (size_t i = 1; i < n; i++) {
		memcpy(block, t[i - 1], KDF_LEN);
		block[KDF_LEN] = (uint8_t)(i + 1);
		hmac_blake2s(c, t[i], prk, block, sizeof(block));
	}
	secret_wipe(prk, sizeof(prk));
	secret_wipe(block, sizeof(block));
}

void
kdf1(struct crypto *c, uint8_t out1[KDF_LEN], const uint8_t key[KDF_LEN], const void *input,
	size_t len)
{
	uint8_t t[1][KDF_LEN];
	kdf_run(c, t, 1, key, input, len);
	memcpy(out1, t[0], KDF_LEN);
	secret_wipe(t, sizeof(t));
}

void
kdf2(struct crypto *c, uint8_t out1[KDF_LEN], uint8_t out2[KDF_LEN], const uint8_t key[KDF_LEN],
	const void *input, size_t len)
{
	uint8_t t[2][KDF_LEN];
	kdf_run(c, t, 2, key, input, len);
	memcpy(out1, t[0], KDF_LEN);
	memcpy(out2, t[1], KDF_LEN);
	secret_wipe(t, sizeof(t));
}

void
kdf3(struct crypto *c, uint8_t out1[KDF_LEN], uint8_t out2[KDF_LEN], uint8_t out3[KDF_LEN],
	const uint8_t key[KDF_LEN], const uint8_t input[KDF_LEN])
{
	uint8_t t[3][KDF_LEN];
	kdf_run(c, t, 3, key, input, KDF_LEN);
	memcpy(out1, t[0], KDF_LEN);
	memcpy(out2, t[1], KDF_LEN);
	memcpy(out3, t[2], KDF_LEN);
	secret_wipe(t, sizeof(t));
}

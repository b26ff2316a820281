/* SPDX-License-Identifier: Apache-2.0 */
/* Keys for programs. */
#include <string.h>

#include "crypto/crypto.h"
#include "crypto/dh.h"
#include "os/entropy.h"
#include "weft/node.h"
#include "wire/key.h"

enum weft_err
weft_key_generate(uint8_t out[WEFT_KEY_LEN])
{
	struct entropy entropy = os_entropy();
	entropy.fill(entropy.ctx, out, WEFT_KEY_LEN);
	dh_clamp(out);
	return WEFT_OK;
}

enum weft_err
weft_key_public(const uint8_t private_key[WEFT_KEY_LEN], uint8_t out[WEFT_KEY_LEN])
{
	struct crypto *c;
	enum weft_err e = crypto_new(&c);
	if (!e) {
		e = dh_public(c, out, private_key);
		crypto_free(c);
	}
	return e;
}

void
weft_key_format(const uint8_t key[WEFT_KEY_LEN], char out[WEFT_KEY_TEXT_LEN])
{
	key_encode_base64(key, out);
}

enum weft_err
weft_key_parse(const char *text, uint8_t out[WEFT_KEY_LEN])
{
	return key_decode_base64(text, strlen(text), out);
}

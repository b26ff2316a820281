/* SPDX-License-Identifier: Apache-2.0 */
/* Keys as text: what is accepted is the one text of its key, up to the case of hexadecimal. */
#include <string.h>

#include "base/assert.h"
#include "fuzz.h"
#include "wire/key.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t key[KEY_LEN];
	char text[KEY_HEX_LEN + 1];

	if (key_decode_base64((const char *)data, len, key) == WEFT_OK) {
		weft_assert(len == KEY_BASE64_LEN);
		weft_assert(memcmp(key_encode_base64(key, text), data, len) == 0);
	}
	if (key_decode_hex((const char *)data, len, key) == WEFT_OK) {
		weft_assert(len == KEY_HEX_LEN);
		key_encode_hex(key, text);
		for (size_t i = 0; i < len; i++) {
			weft_assert((data[i] | 0x20) == text[i]);
		}
	}
	return 0;
}

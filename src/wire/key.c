/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/key.h"

#include <stdbool.h>
#include <string.h>

#include "crypto/secret.h"

/* All ones when lo <= c <= hi, else zero, without a branch. */
static uint32_t
mask_between(uint32_t c, uint32_t lo, uint32_t hi)
{
	/* Bit 31 of a difference of small numbers is its sign. */
	return (((c - lo) >> 31) - 1u) & (((hi - c) >> 31) - 1u);
}

/* Adds to *bad when c is no character of the alphabet. */
static uint32_t
base64_value(unsigned char c, uint32_t *bad)
{
	uint32_t upper = mask_between(c, 'A', 'Z');
	uint32_t lower = mask_between(c, 'a', 'z');
	uint32_t digit = mask_between(c, '0', '9');
	uint32_t plus = mask_between(c, '+', '+');
	uint32_t slash = mask_between(c, '/', '/');
	*bad |= ~(upper | lower | digit | plus | slash);
	return (upper & (c - 'A')) | (lower & (c - 'a' + 26u)) | (digit & (c - '0' + 52u)) |
	       (plus & 62u) | (slash & 63u);
}

static char
base64_char(uint32_t v)
{
	return (char)((mask_between(v, 0, 25) & (v + 'A')) |
		      (mask_between(v, 26, 51) & (v - 26 + 'a')) |
		      (mask_between(v, 52, 61) & (v - 52 + '0')) | (mask_between(v, 62, 62) & '+') |
		      (mask_between(v, 63, 63) & '/'));
}

static uint32_t
hex_value(unsigned char c, uint32_t *bad)
{
	uint32_t digit = mask_between(c, '0', '9');
	uint32_t lower = mask_between(c, 'a', 'f');
	uint32_t upper = mask_between(c, 'A', 'F');
	*bad |= ~(digit | lower | upper);
	return (digit & (c - '0')) | (lower & (c - 'a' + 10u)) | (upper & (c - 'A' + 10u));
}

static char
hex_char(uint32_t v)
{
	return (char)((mask_between(v, 0, 9) & (v + '0')) |
		      (mask_between(v, 10, 15) & (v - 10 + 'a')));
}

enum weft_err
key_decode_base64(const char *text, size_t len, uint8_t out[KEY_LEN])
{
	uint8_t key[KEY_LEN + 1];
	uint32_t bad = 0;

	if (len != KEY_BASE64_LEN || text[KEY_BASE64_LEN - 1] != '=') {
		return WEFT_EPARSE;
	}
	for (unsigned i = 0; i < KEY_BASE64_LEN / 4; i++) {
		const unsigned char *p = (const unsigned char *)text + 4 * i;
		/* The final '=' stands for six zero bits. */
		bool is_last = i == KEY_BASE64_LEN / 4 - 1;
		uint32_t v = (base64_value(p[0], &bad) << 18) | (base64_value(p[1], &bad) << 12) |
			     (base64_value(p[2], &bad) << 6) |
			     (is_last ? 0 : base64_value(p[3], &bad));
		key[3 * i] = (uint8_t)(v >> 16);
		key[3 * i + 1] = (uint8_t)(v >> 8);
		key[3 * i + 2] = (uint8_t)v;
	}
	bad |= key[KEY_LEN];
	if (bad == 0) {
		memcpy(out, key, KEY_LEN);
	}
	secret_wipe(key, sizeof(key));
	return bad ? WEFT_EPARSE : WEFT_OK;
}

enum weft_err
key_decode_hex(const char *text, size_t len, uint8_t out[KEY_LEN])
{
	uint8_t key[KEY_LEN];
	uint32_t bad = 0;

	if (len != KEY_HEX_LEN) {
		return WEFT_EPARSE;
	}
	for (unsigned i = 0; i < KEY_LEN; i++) {
		const unsigned char *p = (const unsigned char *)text + 2 * i;
		key[i] = (uint8_t)((hex_value(p[0], &bad) << 4) | hex_value(p[1], &bad));
	}
	if (bad == 0) {
		memcpy(out, key, KEY_LEN);
	}
	secret_wipe(key, sizeof(key));
	return bad ? WEFT_EPARSE : WEFT_OK;
}

char *
key_encode_base64(const uint8_t key[KEY_LEN], char out[KEY_BASE64_LEN + 1])
{
	for (unsigned i = 0; i < KEY_BASE64_LEN / 4; i++) {
		bool is_last = i == KEY_BASE64_LEN / 4 - 1;
		uint32_t v = ((uint32_t)key[3 * i] << 16) | ((uint32_t)key[3 * i + 1] << 8) |
			     (is_last ? 0u : key[3 * i + 2]);
		out[4 * i] = base64_char(v >> 18);
		out[4 * i + 1] = base64_char((v >> 12) & 63);
		out[4 * i + 2] = base64_char((v >> 6) & 63);
		out[4 * i + 3] = is_last ? '=' : base64_char(v & 63);
	}
	out[KEY_BASE64_LEN] = 0;
	return out;
}

char *
key_encode_hex(const uint8_t key[KEY_LEN], char out[KEY_HEX_LEN + 1])
{
	for (unsigned i = 0; i < KEY_LEN; i++) {
		out[2 * i] = hex_char(key[i] >> 4);
		out[2 * i + 1] = hex_char(key[i] & 15);
	}
	out[KEY_HEX_LEN] = 0;
	return out;
}

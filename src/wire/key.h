/* SPDX-License-Identifier: Apache-2.0 */
/* 32-byte keys as text: base64 in configuration files and on the command line, hexadecimal in
 * the UAPI.
 *
 * The time and the memory accesses of every function depend on lengths alone, not on the key. */
#ifndef WEFT_WIRE_KEY_H
#define WEFT_WIRE_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define KEY_LEN 32
#define KEY_BASE64_LEN 44 /* without a final NUL; the last character is '=' */
#define KEY_HEX_LEN 64    /* without a final NUL */

/* Exactly 44 characters of RFC 4648, section 4, whose two unused bits are zero, so that a key
 * has one text. WEFT_EPARSE otherwise. */
WEFT_MUST_CHECK enum weft_err key_decode_base64(const char *text, size_t len, uint8_t out[KEY_LEN]);
/* Exactly 64 hexadecimal digits of either case. */
WEFT_MUST_CHECK enum weft_err key_decode_hex(const char *text, size_t len, uint8_t out[KEY_LEN]);

/* Both end the text with a NUL and return out. */
char *key_encode_base64(const uint8_t key[KEY_LEN], char out[KEY_BASE64_LEN + 1]);
char *key_encode_hex(const uint8_t key[KEY_LEN], char out[KEY_HEX_LEN + 1]);

#endif

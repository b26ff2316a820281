/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and values that requests and replies share. Not for others. */
#ifndef WEFT_WIRE_UAPI_INTERNAL_H
#define WEFT_WIRE_UAPI_INTERNAL_H

#include "wire/uapi.h"

struct uapi_text {
	const char *p;
	size_t len;
};

struct uapi_line {
	struct uapi_text key, value;
};

/* false: no '='. */
bool uapi_line_split(const char *p, size_t len, struct uapi_line *out);
/* Takes the next line off text that consists of whole lines. false at the end. A line without
 * '=' gives an empty key. */
bool uapi_line_take(const char **p, size_t *left, struct uapi_line *out);
bool uapi_text_is(const struct uapi_text *t, const char *word);
/* Decimal digits alone, at most max. */
bool uapi_text_number(const struct uapi_text *t, uint64_t max, uint64_t *out);
bool uapi_text_key(const struct uapi_text *t, uint8_t out[KEY_LEN]);
/* A scope that is no number goes to scope. Port 0 is refused. */
bool uapi_text_endpoint(
	const struct uapi_text *t, struct endpoint *out, char scope[UAPI_SCOPE_MAX + 1]);

#endif

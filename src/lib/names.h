/* SPDX-License-Identifier: Apache-2.0 */
/* Names of peers, both ways: to their addresses in the overlay, and from their keys. */
#ifndef WEFT_LIB_NAMES_H
#define WEFT_LIB_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "weft/node.h"

struct conf;

struct lib_name {
	char text[WEFT_NAME_LEN];
	uint8_t public_key[WEFT_KEY_LEN];
	struct ip_addr addrs[2]; /* in the order of AllowedIPs; unused ones have no family */
};

/* Zero-initialised, it is empty. */
struct lib_names {
	struct lib_name *v;       /* sorted by text, letter case aside */
	struct lib_name **by_key; /* sorted by public_key */
	size_t n;
};

WEFT_MUST_CHECK enum weft_err lib_names_init(struct lib_names *t, const struct conf *c);
void lib_names_fini(struct lib_names *t);
/* NULL: no peer is called that. */
const struct lib_name *lib_names_find(const struct lib_names *t, const char *text);
/* Empty: the peer has no name. */
const char *lib_names_of(const struct lib_names *t, const uint8_t public_key[WEFT_KEY_LEN]);

#endif

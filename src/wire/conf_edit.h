/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of configuration files that leave alone what they need not touch: comments, order, names
 * of hosts, the way somebody writes. No I/O. */
#ifndef WEFT_WIRE_CONF_EDIT_H
#define WEFT_WIRE_CONF_EDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "wire/key.h"

/* A running device, as far as a file can hold it. */
struct conf_state_peer {
	uint8_t public_key[KEY_LEN];
	bool has_psk;
	uint8_t psk[KEY_LEN];
	const struct ip_prefix *allowed; /* masked */
	size_t allowed_n;
	struct ip_addr addr; /* of the endpoint; IP_FAMILY_NONE: not known */
	uint16_t port;
	uint32_t scope; /* interface index; 0: none */
	uint16_t keepalive_s;
};

struct conf_state {
	bool has_private_key; /* false: the file's stays */
	uint8_t private_key[KEY_LEN];
	bool has_listen_port; /* false: the file's, or none, stays */
	uint16_t listen_port;
	bool has_fwmark;
	uint32_t fwmark;
	const struct conf_state_peer *peers; /* each key once */
	size_t peers_n;
};

/* The text with what is different in s: peers that are gone lose their sections, new ones come at
 * the end, values are changed where they stand. An endpoint is changed only where an address is
 * written: a name stays. No private key is put where there was none.
 * WEFT_OK: *out is allocated, with a NUL, equal to text when nothing is different, and to be freed
 * by conf_text_free(). WEFT_EPARSE: the text has faults. */
WEFT_MUST_CHECK enum weft_err conf_edit(
	const char *text, size_t len, const struct conf_state *s, char **out, size_t *out_len);

/* The text in canonical form: names of keys as in the manual, "Key = value", lists with ", ", one
 * empty line before a section, comments kept, LF, no byte order mark. It means the same. */
WEFT_MUST_CHECK enum weft_err conf_format(
	const char *text, size_t len, char **out, size_t *out_len);

/* Wipes and frees; NULL is allowed. */
void conf_text_free(char *text, size_t len);
/* Tells texts apart: has a file changed? */
uint64_t conf_text_sum(const char *text, size_t len);

#endif

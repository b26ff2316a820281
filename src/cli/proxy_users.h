/* SPDX-License-Identifier: Apache-2.0 */
/* Who may use a proxy: names with passwords, from a file of lines "NAME:PASSWORD". */
#ifndef WEFT_CLI_PROXY_USERS_H
#define WEFT_CLI_PROXY_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define PROXY_USERS_MAX 1000
#define PROXY_USERS_BYTES_MAX (PROXY_USERS_MAX * 514u)
#define PROXY_WORD_MAX 255 /* bytes of a name or a password, as in RFC 1929 */

/* Zero-initialised, there is none. */
struct proxy_users {
	struct proxy_user *v;
	size_t n;
};

/* Empty lines and those that begin with '#' are passed over. WEFT_EPARSE: *line is the first that
 * is wrong; WEFT_ENOENT: no user at all; WEFT_ENOMEM: too many. */
WEFT_MUST_CHECK enum weft_err proxy_users_parse(
	struct proxy_users *u, const char *text, size_t len, unsigned *line);
/* Passwords are wiped. */
void proxy_users_fini(struct proxy_users *u);
/* Takes as long for a wrong password as for a wrong name. */
bool proxy_users_has(const struct proxy_users *u, const uint8_t *name, size_t name_len,
	const uint8_t *password, size_t password_len);

#endif

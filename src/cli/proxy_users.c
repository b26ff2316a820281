/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/proxy_users.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"

struct proxy_user {
	uint8_t name_len, password_len;
	/* Zeros behind their ends, so that whole fields compare. */
	uint8_t name[PROXY_WORD_MAX], password[PROXY_WORD_MAX];
};

static bool
parse_line(const char *p, size_t len, struct proxy_user *out)
{
	const char *colon = memchr(p, ':', len);
	size_t name = colon ? (size_t)(colon - p) : 0;
	if (name == 0 || name > PROXY_WORD_MAX || len - name - 1 > PROXY_WORD_MAX) {
		return false;
	}
	out->name_len = (uint8_t)name;
	out->password_len = (uint8_t)(len - name - 1);
	memcpy(out->name, p, name);
	memcpy(out->password, colon + 1, out->password_len);
	return true;
}

enum weft_err
proxy_users_parse(struct proxy_users *u, const char *text, size_t len, unsigned *line)
{
	const char *end = text + len;
	size_t cap = 0;
	*u = (struct proxy_users){0};
	*line = 0;
	for (const char *p = text; p < end; p++) {
		cap += *p == '\n' && cap < PROXY_USERS_MAX;
	}
	u->v = calloc(cap + 1, sizeof(*u->v));
	if (!u->v) {
		return WEFT_ENOMEM;
	}
	enum weft_err e = WEFT_OK;
	for (const char *p = text; !e && p < end;) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((newline ? newline : end) - p);
		const char *next = p + n + 1;
		n -= n > 0 && p[n - 1] == '\r';
		++*line;
		if (n > 0 && *p != '#') {
			e = u->n == cap + 1                 ? WEFT_ENOMEM
			    : parse_line(p, n, &u->v[u->n]) ? WEFT_OK
							    : WEFT_EPARSE;
			u->n += !e;
		}
		p = newline ? next : end;
	}
	if (!e && u->n == 0) {
		e = WEFT_ENOENT;
	}
	if (e) {
		proxy_users_fini(u);
	}
	return e;
}

void
proxy_users_fini(struct proxy_users *u)
{
	if (u->v) {
		explicit_bzero(u->v, u->n * sizeof(*u->v));
	}
	free(u->v);
	*u = (struct proxy_users){0};
}

bool
proxy_users_has(const struct proxy_users *u, const uint8_t *name, size_t name_len,
	const uint8_t *password, size_t password_len)
{
	struct proxy_user asked = {0};
	bool is_there = false;
	if (name_len > PROXY_WORD_MAX || password_len > PROXY_WORD_MAX) {
		return false;
	}
	asked.name_len = (uint8_t)name_len;
	asked.password_len = (uint8_t)password_len;
	memcpy(asked.name, name, name_len);
	memcpy(asked.password, password, password_len);
	for (size_t i = 0; i < u->n; i++) {
		is_there |= secret_is_equal(&asked, &u->v[i], sizeof(asked));
	}
	explicit_bzero(&asked, sizeof(asked));
	return is_there;
}

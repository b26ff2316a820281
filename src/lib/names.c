/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "wire/conf.h"

static int
compare_text(const void *a, const void *b)
{
	const struct lib_name *x = a, *y = b;
	return strcasecmp(x->text, y->text);
}

static int
compare_key(const void *a, const void *b)
{
	const struct lib_name *const *x = a, *const *y = b;
	return memcmp((*x)->public_key, (*y)->public_key, WEFT_KEY_LEN);
}

/* Addresses of single hosts, the first of each family. */
static void
take_addrs(const struct conf_prefixes *allowed, struct lib_name *out)
{
	size_t n = 0;
	for (size_t i = 0; i < allowed->n && n < 2; i++) {
		const struct ip_prefix *p = &allowed->v[i].prefix;
		if (p->bits == 8 * ip_family_len(p->addr.family) &&
			(n == 0 || out->addrs[0].family != p->addr.family)) {
			out->addrs[n++] = p->addr;
		}
	}
}

static void
fill(struct lib_names *t, const struct conf *c)
{
	for (size_t i = 0; i < c->peers_n; i++) {
		if (c->peers[i].name) {
			struct lib_name *out = &t->v[t->n++];
			snprintf(out->text, sizeof(out->text), "%s", c->peers[i].name);
			memcpy(out->public_key, c->peers[i].public_key, WEFT_KEY_LEN);
			take_addrs(&c->peers[i].allowed, out);
		}
	}
	qsort(t->v, t->n, sizeof(*t->v), compare_text);
	for (size_t i = 0; i < t->n; i++) {
		t->by_key[i] = &t->v[i];
	}
	qsort(t->by_key, t->n, sizeof(struct lib_name *), compare_key);
}

enum weft_err
lib_names_init(struct lib_names *t, const struct conf *c)
{
	size_t n = 0;
	for (size_t i = 0; i < c->peers_n; i++) {
		n += c->peers[i].name != NULL;
	}
	struct lib_names fresh = {0};
	if (n > 0) {
		fresh.v = calloc(n, sizeof(*fresh.v));
		fresh.by_key = calloc(n, sizeof(struct lib_name *));
		if (!fresh.v || !fresh.by_key) {
			lib_names_fini(&fresh);
			return WEFT_ENOMEM;
		}
		fill(&fresh, c);
	}
	*t = fresh;
	return WEFT_OK;
}

void
lib_names_fini(struct lib_names *t)
{
	free(t->v);
	free(t->by_key);
	*t = (struct lib_names){0};
}

const struct lib_name *
lib_names_find(const struct lib_names *t, const char *text)
{
	struct lib_name wanted;
	size_t len = strlen(text);
	if (t->n == 0 || len >= sizeof(wanted.text)) {
		return NULL;
	}
	memcpy(wanted.text, text, len + 1);
	return bsearch(&wanted, t->v, t->n, sizeof(*t->v), compare_text);
}

const char *
lib_names_of(const struct lib_names *t, const uint8_t public_key[WEFT_KEY_LEN])
{
	struct lib_name wanted;
	const struct lib_name *key = &wanted;
	if (t->n == 0) {
		return "";
	}
	memcpy(wanted.public_key, public_key, WEFT_KEY_LEN);
	struct lib_name **found =
		bsearch(&key, t->by_key, t->n, sizeof(struct lib_name *), compare_key);
	return found ? (*found)->text : "";
}

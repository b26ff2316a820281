/* SPDX-License-Identifier: Apache-2.0 */
#include "node/census.h"

#include <stdlib.h>
#include <string.h>

#include "wire/conf.h"

/* A section of the file. */
struct section {
	const struct conf_peer *peer;
	size_t at;    /* in the file */
	size_t owner; /* index of its census_peer */
};

/* A prefix that a section names. */
struct claim {
	struct ip_prefix prefix;
	size_t at;    /* among all claims of the file */
	size_t owner; /* index of its census_peer */
};

int
census_compare_prefixes(const void *a, const void *b)
{
	const struct ip_prefix *x = a, *y = b;
	if (x->addr.family != y->addr.family) {
		return x->addr.family < y->addr.family ? -1 : 1;
	}
	if (x->bits != y->bits) {
		return x->bits < y->bits ? -1 : 1;
	}
	return memcmp(x->addr.b, y->addr.b, sizeof(x->addr.b));
}

static int
compare_numbers(size_t a, size_t b)
{
	return a < b ? -1 : a > b;
}

static int
by_key(const void *a, const void *b)
{
	const struct section *x = a, *y = b;
	int order = memcmp(x->peer->public_key, y->peer->public_key, KEY_LEN);
	return order ? order : compare_numbers(x->at, y->at);
}

static int
by_place(const void *a, const void *b)
{
	const struct section *x = a, *y = b;
	return compare_numbers(x->at, y->at);
}

static int
by_prefix(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;
	int order = census_compare_prefixes(&x->prefix, &y->prefix);
	return order ? order : compare_numbers(x->at, y->at);
}

static int
by_owner(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;
	int order = compare_numbers(x->owner, y->owner);
	return order ? order : census_compare_prefixes(&x->prefix, &y->prefix);
}

static void
add_section(struct census_peer *to, const struct conf_peer *p)
{
	if (!to->key) {
		to->key = p->public_key;
		to->line = p->pos.line;
	}
	if (p->has_psk) {
		to->psk = p->psk;
	}
	if (p->endpoint.host) {
		to->endpoint = &p->endpoint;
	}
	if (p->keepalive_s) {
		to->keepalive_s = p->keepalive_s;
	}
	to->policy = &p->policy;
}

/* Numbers the peers in the order in which the file has them first, and fills them. */
static void
take_sections(struct census *s, struct section *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_key);
	for (size_t i = 0; i < n; i++) {
		bool is_again = i > 0 && memcmp(v[i].peer->public_key, v[i - 1].peer->public_key,
						 KEY_LEN) == 0;
		v[i].owner = is_again ? v[i - 1].owner : v[i].at; /* its first section */
	}
	qsort(v, n, sizeof(*v), by_place);
	for (size_t i = 0; i < n; i++) {
		v[i].owner = v[i].owner == i ? s->n++ : v[v[i].owner].owner;
		add_section(&s->v[v[i].owner], v[i].peer);
	}
}

static enum weft_err
take_prefixes(struct census *s, const struct section *v, size_t n)
{
	size_t all = 0, kept = 0;
	for (size_t i = 0; i < n; i++) {
		all += v[i].peer->allowed.n;
	}
	struct claim *claims = calloc(all + 1, sizeof(*claims));
	s->prefixes = calloc(all + 1, sizeof(*s->prefixes));
	if (!claims || !s->prefixes) {
		free(claims);
		return WEFT_ENOMEM;
	}
	all = 0;
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < v[i].peer->allowed.n; k++, all++) {
			claims[all] =
				(struct claim){v[i].peer->allowed.v[k].prefix, all, v[i].owner};
			ip_prefix_mask(&claims[all].prefix);
		}
	}
	qsort(claims, all, sizeof(*claims), by_prefix);
	for (size_t i = 0; i < all; i++) {
		/* The last of those that claim it. */
		if (i + 1 == all ||
			census_compare_prefixes(&claims[i].prefix, &claims[i + 1].prefix) != 0) {
			claims[kept++] = claims[i];
		}
	}
	qsort(claims, kept, sizeof(*claims), by_owner);
	for (size_t i = 0; i < kept; i++) {
		struct census_peer *p = &s->v[claims[i].owner];
		s->prefixes[i] = claims[i].prefix;
		if (p->prefixes_n++ == 0) {
			p->prefixes = &s->prefixes[i];
		}
	}
	free(claims);
	return WEFT_OK;
}

static void
index_keys(struct census *s, struct section *v, size_t n)
{
	size_t k = 0;
	qsort(v, n, sizeof(*v), by_key);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || v[i].owner != v[i - 1].owner) {
			s->by_key[k++] = v[i].owner;
		}
	}
}

enum weft_err
census_make(const struct conf *c, struct census *out)
{
	struct census s = {0};
	struct section *v = calloc(c->peers_n + 1, sizeof(*v));
	s.v = calloc(c->peers_n + 1, sizeof(*s.v));
	s.by_key = calloc(c->peers_n + 1, sizeof(*s.by_key));
	enum weft_err e = v && s.v && s.by_key ? WEFT_OK : WEFT_ENOMEM;
	if (!e) {
		for (size_t i = 0; i < c->peers_n; i++) {
			v[i] = (struct section){&c->peers[i], i, i};
		}
		take_sections(&s, v, c->peers_n);
		e = take_prefixes(&s, v, c->peers_n);
	}
	if (e) {
		census_fini(&s);
	} else {
		index_keys(&s, v, c->peers_n);
		*out = s;
	}
	free(v);
	return e;
}

void
census_fini(struct census *s)
{
	free(s->v);
	free(s->by_key);
	free(s->prefixes);
	*s = (struct census){0};
}

const struct census_peer *
census_find(const struct census *s, const uint8_t *key)
{
	size_t low = 0, high = s->n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct census_peer *p = &s->v[s->by_key[mid]];
		int order = memcmp(key, p->key, KEY_LEN);
		if (order == 0) {
			return p;
		}
		if (order < 0) {
			high = mid;
		} else {
			low = mid + 1;
		}
	}
	return NULL;
}

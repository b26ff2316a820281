/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/node.h"
#include "wire/conf.h"

/* A shared hold, in peers that are looked at: some 50 us. */
#define LOOKS_A_LOCK 64

static int
compare_names(const void *a, const void *b)
{
	const struct look_name *x = a, *y = b;
	return memcmp(x->key, y->key, sizeof(x->key));
}

static const char *
name_of(const struct look *l, const uint8_t key[WG_KEY_LEN])
{
	struct look_name wanted;
	memcpy(wanted.key, key, sizeof(wanted.key));
	const struct look_name *found =
		l->names_n ? bsearch(&wanted, l->names, l->names_n, sizeof(wanted), compare_names)
			   : NULL;
	return found ? found->text : "";
}

static void
name_row(const struct look *l, struct look_row *r)
{
	const char *name = name_of(l, r->key);
	r->is_named = name[0];
	snprintf(r->name, sizeof(r->name), "%s", name);
}

static bool
add(struct look *l, struct wg_peer *p, const struct look_sink *s)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 16;
		struct look_row *rows = realloc(l->rows, cap * sizeof(*rows));
		if (!rows) {
			return false;
		}
		l->rows = rows;
		l->cap = cap;
	}
	struct wg_peer_info info;
	struct look_row *r = &l->rows[l->n++];
	wg_peer_info(p, &info);
	wg_peer_get(p);
	*r = (struct look_row){.peer = p, .turn = l->turn};
	memcpy(r->key, info.public_key, sizeof(r->key));
	name_row(l, r);
	s->added(s->ctx, r);
	return true;
}

bool
look_at_list(struct look *l, struct node *n, const struct look_sink *s)
{
	size_t kept = 0, before = l->n;
	const struct wg_device *d = node_lock_shared(n);
	struct wg_peer *p = wg_peer_next(d, NULL);
	for (size_t i = 0; i < before; i++) {
		if (l->rows[i].peer != p) {
			s->gone(s->ctx, &l->rows[i], i);
			wg_peer_put(l->rows[i].peer);
			continue;
		}
		if (kept != i) {
			l->rows[kept] = l->rows[i];
			s->moved(s->ctx, i, kept);
		}
		kept++;
		p = wg_peer_next(d, p);
	}
	l->n = kept;
	while (p && add(l, p, s)) {
		p = wg_peer_next(d, p);
	}
	node_unlock_shared(n);
	return kept != before || l->n != kept;
}

static bool
is_as_before(const struct look_row *r, const struct wg_peer_info *i)
{
	return r->was_seen && r->rx_bytes == i->rx_bytes && r->tx_bytes == i->tx_bytes &&
	       r->handshake_wall_ns == i->last_handshake_wall_ns &&
	       r->handshake_tries == i->handshake_tries && r->unanswered == i->unanswered &&
	       r->has_session == i->has_session &&
	       endpoint_is_same_remote(&r->endpoint, &i->endpoint);
}

static enum fec_why
why_of(const struct ally_info *a)
{
	bool is_off = a->policy.fec.mode == FEC_MODE_OFF;
	return a->has_fec ? a->fec.why : is_off ? FEC_WHY_OFF : FEC_WHY_NOT_AGREED;
}

/* What the two sides agreed on changes with traffic, so peers without any are passed over. */
static void
look_at(struct look *l, struct look_row *r, const struct look_sink *s)
{
	struct wg_peer_info i;
	struct ally_info a;
	wg_peer_info(r->peer, &i);
	if (is_as_before(r, &i)) {
		return;
	}
	node_ally_info(r->peer, &a);
	r->endpoint = i.endpoint;
	r->rx_bytes = i.rx_bytes;
	r->tx_bytes = i.tx_bytes;
	r->handshake_wall_ns = i.last_handshake_wall_ns;
	r->handshake_tries = i.handshake_tries;
	r->unanswered = i.unanswered;
	r->has_session = i.has_session;
	r->state = a.state;
	r->cipher = a.cipher;
	r->turn = l->turn;
	if (!r->is_named) {
		snprintf(r->name, sizeof(r->name), "%s", a.name);
	}
	enum fec_why was = r->why;
	r->why = why_of(&a);
	if (r->was_seen && r->why != was) {
		s->why_changed(s->ctx, r, was);
	}
	r->was_seen = true;
}

void
look_at_peers(struct look *l, struct node *n, const struct look_sink *s)
{
	l->turn++;
	for (size_t i = 0; i < l->n;) {
		(void)node_lock_shared(n);
		for (size_t k = 0; k < LOOKS_A_LOCK && i < l->n; k++, i++) {
			if (!wg_peer_is_removed(l->rows[i].peer)) {
				look_at(l, &l->rows[i], s);
			}
		}
		node_unlock_shared(n);
	}
}

static size_t
count_names(const struct conf *c)
{
	size_t n = 0;
	for (size_t i = 0; c && i < c->peers_n; i++) {
		n += c->peers[i].name != NULL;
	}
	return n;
}

void
look_set_names(struct look *l, const struct conf *c)
{
	size_t n = count_names(c), at = 0;
	struct look_name *v = n ? calloc(n, sizeof(*v)) : NULL;
	for (size_t i = 0; v && i < c->peers_n; i++) {
		if (c->peers[i].name) {
			memcpy(v[at].key, c->peers[i].public_key, sizeof(v[at].key));
			snprintf(v[at].text, sizeof(v[at].text), "%s", c->peers[i].name);
			at++;
		}
	}
	free(l->names);
	l->names = v;
	l->names_n = at;
	if (at > 0) {
		qsort(v, at, sizeof(*v), compare_names);
	}
	for (size_t i = 0; i < l->n; i++) {
		name_row(l, &l->rows[i]);
		l->rows[i].was_seen = false; /* else one without a name of the file keeps none */
	}
}

char *
look_name(const struct look *l, struct node *n, const uint8_t key[WG_KEY_LEN],
	char out[LOOK_NAME_MAX])
{
	struct ally_info a = {0};
	const char *name = name_of(l, key);
	if (!name[0]) {
		const struct wg_peer *p = wg_peer_find(node_lock_shared(n), key);
		if (p) {
			node_ally_info(p, &a);
		}
		node_unlock_shared(n);
		name = a.name;
	}
	snprintf(out, LOOK_NAME_MAX, "%s", name);
	return out;
}

void
look_fini(struct look *l)
{
	for (size_t i = 0; i < l->n; i++) {
		wg_peer_put(l->rows[i].peer);
	}
	free(l->rows);
	free(l->names);
	*l = (struct look){0};
}

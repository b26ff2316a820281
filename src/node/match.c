/* SPDX-License-Identifier: Apache-2.0 */
#include "node/match.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "node/ally.h"
#include "node/census.h"
#include "node/news.h"
#include "node/node.h"
#include "node/peers.h"
#include "node/policy.h"
#include "os/resolve.h"
#include "wire/conf.h"

/* An exclusive hold of the device, in prefixes: some 30 us; in peers that go. */
#define PREFIXES_A_LOCK 256
#define PEERS_A_LOCK 8
/* A shared hold, in peers that are looked at. */
#define LOOKS_A_LOCK 64

/* A peer of the engine as it is. Used again for the next. */
struct sight {
	bool is_there;
	struct wg_peer_info info;
	struct ally_policy policy;
	uint8_t psk[WG_KEY_LEN];
	struct ip_prefix *prefixes; /* sorted */
	size_t n, cap;
};

static enum weft_err
add_prefix(struct sight *s, const struct ip_prefix *p)
{
	if (s->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 8;
		struct ip_prefix *v = realloc(s->prefixes, cap * sizeof(*v));
		if (!v) {
			return WEFT_ENOMEM;
		}
		s->prefixes = v;
		s->cap = cap;
	}
	s->prefixes[s->n++] = *p;
	return WEFT_OK;
}

static enum weft_err
see(struct node *n, const uint8_t *key, struct sight *s)
{
	enum weft_err e = WEFT_OK;
	const struct wg_peer *p = wg_peer_find(node_lock_shared(n), key);
	s->is_there = p != NULL;
	s->n = 0;
	if (p) {
		struct ally_info ally;
		void *cursor = NULL;
		struct ip_prefix prefix;
		wg_peer_info(p, &s->info);
		wg_peer_psk(p, s->psk);
		node_ally_info(p, &ally);
		s->policy = ally.policy;
		while (!e && wg_peer_allowed_next(p, &cursor, &prefix)) {
			e = add_prefix(s, &prefix);
		}
	}
	node_unlock_shared(n);
	if (s->n > 1) {
		qsort(s->prefixes, s->n, sizeof(*s->prefixes), census_compare_prefixes);
	}
	return e;
}

static void
sight_fini(struct sight *s)
{
	free(s->prefixes);
	secret_wipe(s, sizeof(*s));
}

static bool
is_same_policy(const struct ally_policy *a, const struct ally_policy *b)
{
	return a->has_extensions == b->has_extensions && a->cipher == b->cipher &&
	       a->fec.mode == b->fec.mode && a->fec.percent == b->fec.percent &&
	       a->fec.budget_us == b->fec.budget_us;
}

static bool
is_same_endpoint(const struct conf_endpoint *a, const struct conf_endpoint *b)
{
	return a->port == b->port && strcmp(a->host, b->host) == 0 &&
	       strcmp(a->scope, b->scope) == 0;
}

/* The endpoint to set; false for none. Names are not here, nor addresses whose interface may come
 * later: node/names.h. */
static bool
wants_endpoint(const struct census_peer *p, const struct census_peer *before, const struct sight *s,
	struct endpoint *out)
{
	const struct conf_endpoint *e = p->endpoint;
	if (!e || e->addr.family == IP_FAMILY_NONE || e->scope[0]) {
		return false;
	}
	*out = (struct endpoint){.addr = e->addr, .port = e->port};
	return !s->is_there || s->info.endpoint.addr.family == IP_FAMILY_NONE || !before ||
	       !before->endpoint || !is_same_endpoint(before->endpoint, e);
}

/* A walk over the entries of a, sorted, that b, sorted, does not have. */
struct missing {
	const struct ip_prefix *a, *b;
	size_t a_n, b_n, i, k;
};

static const struct ip_prefix *
next_missing(struct missing *m)
{
	while (m->i < m->a_n) {
		const struct ip_prefix *p = &m->a[m->i++];
		int order = 1;
		while (m->k < m->b_n && (order = census_compare_prefixes(&m->b[m->k], p)) < 0) {
			m->k++;
		}
		if (m->k == m->b_n || order != 0) {
			return p;
		}
	}
	return NULL;
}

/* All but prefixes and keepalive, which come when the peer has its endpoint. */
static enum weft_err
change_peer(struct node *n, struct wg_peer *peer, const struct census_peer *p,
	const struct census_peer *before, const struct sight *s)
{
	static const uint8_t no_psk[WG_KEY_LEN];
	const uint8_t *psk = p->psk ? p->psk : no_psk;
	struct ally_policy policy;
	struct endpoint at;
	policy_from_conf(p->policy, &policy);
	if (s->is_there ? !is_same_policy(&policy, &s->policy) : !policy_is_default(p->policy)) {
		enum weft_err e = node_set_policy(n, peer, &policy);
		if (e) {
			return e;
		}
	}
	if (!s->is_there || !secret_is_equal(psk, s->psk, WG_KEY_LEN)) {
		wg_peer_set_psk(peer, psk);
	}
	if (wants_endpoint(p, before, s, &at)) {
		wg_peer_set_endpoint(peer, &at);
	}
	return WEFT_OK;
}

static bool
is_right(const struct census_peer *p, const struct census_peer *before, const struct sight *s)
{
	static const uint8_t no_psk[WG_KEY_LEN];
	struct ally_policy policy;
	struct endpoint at;
	struct missing m = {p->prefixes, s->prefixes, p->prefixes_n, s->n, 0, 0};
	policy_from_conf(p->policy, &policy);
	return s->is_there && is_same_policy(&policy, &s->policy) &&
	       secret_is_equal(p->psk ? p->psk : no_psk, s->psk, WG_KEY_LEN) &&
	       s->info.keepalive_s == p->keepalive_s && !wants_endpoint(p, before, s, &at) &&
	       !next_missing(&m);
}

static enum weft_err
match_one(struct node *n, const struct census_peer *p, const struct census_peer *before,
	const struct sight *s)
{
	struct wg_out *out;
	struct wg_peer *peer;
	struct missing m = {p->prefixes, s->prefixes, p->prefixes_n, s->n, 0, 0};
	struct wg_device *d = node_lock(n, &out);
	enum weft_err e = s->is_there ? WEFT_OK : wg_peer_add(d, p->key, &peer);
	/* Nobody removes peers but this thread. */
	peer = e ? NULL : wg_peer_find(d, p->key);
	if (!e) {
		e = change_peer(n, peer, p, before, s);
	}
	const struct ip_prefix *prefix = e ? NULL : next_missing(&m);
	for (size_t i = 1; prefix && !e; i++, prefix = next_missing(&m)) {
		if (i % PREFIXES_A_LOCK == 0) {
			node_unlock(n);
			d = node_lock(n, &out);
		}
		e = wg_peer_allow(d, peer, prefix);
	}
	if (!e && p->keepalive_s != (s->is_there ? s->info.keepalive_s : 0)) {
		wg_peer_set_keepalive(d, peer, p->keepalive_s, node_time(), out);
	}
	node_unlock(n);
	return e;
}

enum weft_err
match_peers(
	struct node *n, const struct census *before, const struct census *c, const struct log *log)
{
	struct sight s = {0};
	enum weft_err e = WEFT_OK;
	for (size_t i = 0; i < c->n && !e; i++) {
		const struct census_peer *p = &c->v[i];
		const struct census_peer *old = census_find(before, p->key);
		e = see(n, p->key, &s);
		if (!e && !is_right(p, old, &s)) {
			e = match_one(n, p, old, &s);
		}
		if (e == WEFT_EINVAL) {
			log_warn(log, "line %u: this peer has our own public key and is left out",
				p->line);
			e = WEFT_OK;
		} else if (e) {
			log_error(log, "line %u: cannot set up the peer: %s", p->line,
				weft_err_text(e));
		}
	}
	sight_fini(&s);
	return e;
}

static void
disallow_extras(struct node *n, const struct census_peer *p, const struct sight *s)
{
	struct missing m = {s->prefixes, p->prefixes, s->n, p->prefixes_n, 0, 0};
	const struct ip_prefix *prefix = next_missing(&m);
	while (prefix) {
		struct wg_out *out;
		struct wg_device *d = node_lock(n, &out);
		struct wg_peer *peer = wg_peer_find(d, p->key);
		for (size_t i = 0; prefix && i < PREFIXES_A_LOCK; i++) {
			/* One that another peer has by now is not this one's any more. */
			(void)wg_peer_disallow(d, peer, prefix);
			prefix = next_missing(&m);
		}
		node_unlock(n);
	}
}

/* Those that c has are let go of. */
static void
keep_strangers(struct node *n, const struct census *c, struct node_peers *all)
{
	size_t kept = 0;
	for (size_t i = 0; i < all->n;) {
		(void)node_lock_shared(n);
		for (size_t k = 0; k < LOOKS_A_LOCK && i < all->n; k++, i++) {
			struct wg_peer_info info;
			wg_peer_info(all->v[i], &info);
			if (census_find(c, info.public_key)) {
				wg_peer_put(all->v[i]);
			} else {
				all->v[kept++] = all->v[i];
			}
		}
		node_unlock_shared(n);
	}
	all->n = kept;
}

/* With the device alone. */
static void
remove_peer(struct node *n, struct wg_device *d, struct wg_peer *p)
{
	if (news_is_up(p)) {
		struct wg_peer_info info;
		wg_peer_info(p, &info);
		struct node_news v = {.kind = NODE_NEWS_PEER_DOWN, .to = info.endpoint};
		memcpy(v.public_key, info.public_key, sizeof(v.public_key));
		node_put_news(n, &v);
	}
	wg_peer_remove(d, p);
}

static void
remove_peers(struct node *n, struct node_peers *all)
{
	for (size_t i = 0; i < all->n;) {
		struct wg_out *out;
		struct wg_device *d = node_lock(n, &out);
		for (size_t k = 0; k < PEERS_A_LOCK && i < all->n; k++, i++) {
			if (!wg_peer_is_removed(all->v[i])) {
				remove_peer(n, d, all->v[i]);
			}
		}
		node_unlock(n);
	}
}

void
match_prune(struct node *n, const struct census *c, const struct log *log)
{
	struct sight s = {0};
	struct node_peers all = {0};
	enum weft_err e = WEFT_OK;
	for (size_t i = 0; i < c->n && !e; i++) {
		e = see(n, c->v[i].key, &s);
		if (!e && s.is_there) {
			disallow_extras(n, &c->v[i], &s);
		}
	}
	sight_fini(&s);
	if (!e) {
		e = node_peers_take(n, &all);
	}
	if (!e) {
		keep_strangers(n, c, &all);
		remove_peers(n, &all);
	}
	node_peers_fini(&all);
	if (e) {
		log_warn(log, "what the configuration does not have any more stays in part: %s",
			weft_err_text(e));
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "node/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/device.h"
#include "node/news.h"
#include "node/node.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "os/netlink.h"
#include "os/resolve.h"
#include "wire/conf.h"

static uint32_t
random_u32(void)
{
	struct entropy e = os_entropy();
	uint32_t r;
	e.fill(e.ctx, &r, sizeof(r));
	return r;
}

static struct names_entry *
find_tag(struct names *t, uint64_t tag)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->v[i].tag == tag) {
			return &t->v[i];
		}
	}
	return NULL;
}

static struct endpoint
endpoint_of(const struct names_entry *e, unsigned slot)
{
	struct endpoint at = {.addr = e->name.found[slot], .port = e->port};
	if (e->scope[0]) {
		at.scope_id = os_resolve_scope(e->scope);
	}
	return at;
}

/* Is there a way to it beside our own interface? */
static bool
has_route(const struct names *t, const struct ip_addr *to)
{
	struct node_facts facts;
	struct os_netlink *nl; /* of this thread's namespace, where our datagrams leave */
	struct os_route r;
	if (os_netlink_open(&nl)) {
		return true;
	}
	node_facts(t->node, &facts);
	bool has = os_netlink_route_get(nl, to, facts.fwmark, &r) == WEFT_OK &&
		   (node_device_of(t->node)->is_private || r.ifindex != facts.ifindex);
	os_netlink_close(nl);
	return has;
}

/* IPv6 first where there is a way to it. Returns how many there are. */
static unsigned
order(const struct names *t, const struct names_entry *e, struct endpoint out[2])
{
	bool has4 = e->name.found[0].family != IP_FAMILY_NONE;
	bool has6 = e->name.found[1].family != IP_FAMILY_NONE;
	unsigned first = has6 && (!has4 || has_route(t, &e->name.found[1])) ? 1 : 0;
	unsigned n = 0;
	if (has4 || has6) {
		out[n++] = endpoint_of(e, first);
	}
	if (has4 && has6) {
		out[n++] = endpoint_of(e, !first);
	}
	return n;
}

/* A peer with a session that is answered has its endpoint from there: it may have roamed. */
static bool
is_well(const struct wg_peer *p, const struct wg_peer_info *info, struct mono now)
{
	return info->endpoint.addr.family != IP_FAMILY_NONE && info->unanswered == 0 &&
	       wg_peer_can_send(p, now);
}

static void
give(struct wg_device *d, struct wg_peer *p, bool must_move, const struct endpoint *at, unsigned n,
	struct wg_out *out)
{
	struct wg_peer_info info;
	struct wg_time now = node_time();
	wg_peer_info(p, &info);
	if (is_well(p, &info, now.mono) && !must_move) {
		return;
	}
	if (!endpoint_is_same_remote(&info.endpoint, &at[0]) &&
		!(n == 2 && endpoint_is_same_remote(&info.endpoint, &at[1]))) {
		wg_peer_set_endpoint(p, &at[0]);
	}
	struct endpoint now_at = wg_peer_endpoint(p);
	if (n == 1) {
		wg_peer_set_endpoint(p, &now_at); /* drops a rival that the name has no more */
	} else {
		wg_peer_set_rival(p, &at[endpoint_is_same_remote(&now_at, &at[0]) ? 1 : 0]);
	}
	if (info.keepalive_s && info.endpoint.addr.family == IP_FAMILY_NONE) {
		/* Off and on: a keepalive that waited for an endpoint leaves now. */
		wg_peer_set_keepalive(d, p, 0, now, out);
		wg_peer_set_keepalive(d, p, info.keepalive_s, now, out);
	}
}

static void
tell(struct names *t, const struct names_entry *e, enum node_news_kind kind,
	const struct endpoint *at)
{
	struct node_news v = {.kind = kind, .to = *at};
	memcpy(v.public_key, e->key, sizeof(v.public_key));
	snprintf(v.text, sizeof(v.text), "%s", e->host ? e->host : e->scope);
	node_put_news(t->node, &v);
}

static void
use(struct names *t, struct names_entry *e)
{
	struct endpoint at[2];
	struct wg_out *out;
	char text[ENDPOINT_TEXT_MAX];
	unsigned n = order(t, e, at);
	if (n == 0) {
		return;
	}
	if (e->has_warned || !endpoint_is_same_remote(&e->told, &at[0])) {
		tell(t, e, NODE_NEWS_NAME_FOUND, &at[0]);
	}
	e->told = at[0];
	e->has_warned = false;
	e->answer = WEFT_OK;
	log_debug(&t->log, "%s is %s", e->host ? e->host : e->scope, endpoint_format(&at[0], text));
	struct wg_device *d = node_lock(t->node, &out);
	struct wg_peer *p = wg_peer_find(d, e->key);
	if (p) {
		give(d, p, e->must_move, at, n, out);
	}
	node_unlock(t->node);
	e->must_move = false;
}

static void step(struct names *t, struct names_entry *e, enum name_event event,
	const struct ip_addr *answer, struct mono now);

/* The kernel knows at once. */
static void
ask_scope(struct names *t, struct names_entry *e, struct mono now)
{
	const struct ip_addr other = {.family = IP_FAMILY_V4};
	step(t, e, NAME_EVENT_ABSENT, &other, now);
	step(t, e, os_resolve_scope(e->scope) ? NAME_EVENT_FOUND : NAME_EVENT_FAILED, &e->addr,
		now);
}

/* No answer changes t->v, so e stays where it is. */
static void
ask_host(struct names *t, struct names_entry *e)
{
	struct node_facts facts;
	node_facts(t->node, &facts);
	os_resolver_set_mark(t->resolver, facts.fwmark);
	e->answer = WEFT_OK;
	os_resolver_ask(t->resolver, e->host, IP_FAMILY_V4, e->tag);
	os_resolver_ask(t->resolver, e->host, IP_FAMILY_V6, e->tag);
}

static void
warn_of_failure(struct names *t, struct names_entry *e)
{
	log_write(&t->log, e->has_warned ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN,
		e->host ? "cannot resolve %s; it is tried again"
			: "there is no interface %s, which an endpoint names; it is tried again",
		e->host ? e->host : e->scope);
	if (!e->has_warned) {
		tell(t, e, NODE_NEWS_NAME_FAILED, &(struct endpoint){0});
	}
	e->has_warned = true;
}

static void
step(struct names *t, struct names_entry *e, enum name_event event, const struct ip_addr *answer,
	struct mono now)
{
	bool was_asking = e->name.state == NAME_STATE_ASKING;
	unsigned todo = name_step(&e->name, event, answer, now, random_u32());
	if (was_asking && e->name.state == NAME_STATE_WAITING) {
		warn_of_failure(t, e);
	}
	if (todo & NAME_DO_USE) {
		use(t, e);
	}
	if (todo & NAME_DO_ASK) {
		if (e->host) {
			ask_host(t, e);
		} else {
			ask_scope(t, e, now);
		}
	}
}

static void
on_resolved(void *ctx, uint64_t tag, enum ip_family family, enum weft_err err,
	const struct ip_addr *addr)
{
	struct names *t = ctx;
	struct names_entry *e = find_tag(t, tag);
	struct ip_addr answer = {.family = family};
	if (!e) {
		return; /* it left the configuration meanwhile */
	}
	if (err == WEFT_OK) {
		answer = *addr;
	} else if (e->answer != WEFT_EAGAIN) {
		e->answer = err; /* of two families "no answer" says more than "no address" */
	}
	step(t, e,
		err == WEFT_OK       ? NAME_EVENT_FOUND
		: err == WEFT_ENOENT ? NAME_EVENT_ABSENT
				     : NAME_EVENT_FAILED,
		&answer, os_clock_mono());
}

enum weft_err
names_init(struct names *t, struct node *n, struct os_loop *loop, const struct log *log)
{
	*t = (struct names){.node = n, .log = *log};
	return os_resolver_new(loop, on_resolved, t, &t->resolver);
}

static void
free_entries(struct names_entry *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].host);
	}
	free(v);
}

void
names_fini(struct names *t)
{
	os_resolver_free(t->resolver);
	free_entries(t->v, t->n);
	*t = (struct names){0};
}

static enum weft_err
make_entry(struct names *t, const struct conf_peer *p, struct mono now, struct names_entry *out)
{
	*out = (struct names_entry){.tag = ++t->tags,
		.addr = p->endpoint.addr,
		.port = p->endpoint.port,
		.must_move = t->was_set};
	memcpy(out->key, p->public_key, sizeof(out->key));
	memcpy(out->scope, p->endpoint.scope, sizeof(out->scope));
	if (p->endpoint.addr.family == IP_FAMILY_NONE) {
		out->host = strdup(p->endpoint.host);
		if (!out->host) {
			return WEFT_ENOMEM;
		}
	}
	name_init(&out->name, now);
	return WEFT_OK;
}

/* Of one key the latest first: it is the one that counts. */
static int
compare_entries(const void *a, const void *b)
{
	const struct names_entry *x = a, *y = b;
	int order = memcmp(x->key, y->key, sizeof(x->key));
	return order ? order : x->tag > y->tag ? -1 : 1;
}

static size_t
keep_latest(struct names_entry *v, size_t n)
{
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		if (kept > 0 && memcmp(v[kept - 1].key, v[i].key, sizeof(v[i].key)) == 0) {
			free(v[i].host);
		} else {
			v[kept++] = v[i];
		}
	}
	return kept;
}

/* An address without a scope needs no look-up; it only had to be seen, as the latest word. */
static size_t
keep_wanted(struct names_entry *v, size_t n)
{
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		if (v[i].host || v[i].scope[0]) {
			v[kept++] = v[i];
		}
	}
	return kept;
}

static bool
is_same(const struct names_entry *a, const struct names_entry *b)
{
	return memcmp(a->key, b->key, sizeof(a->key)) == 0 && a->port == b->port &&
	       ip_addr_is_equal(&a->addr, &b->addr) && strcmp(a->scope, b->scope) == 0 &&
	       !a->host == !b->host && (!a->host || strcmp(a->host, b->host) == 0);
}

/* What is the same in both keeps its state. Both are sorted by key. */
static void
carry_over(struct names_entry *to, size_t to_n, const struct names_entry *from, size_t from_n)
{
	size_t k = 0;
	for (size_t i = 0; i < to_n; i++) {
		while (k < from_n && memcmp(from[k].key, to[i].key, sizeof(to[i].key)) < 0) {
			k++;
		}
		if (k < from_n && is_same(&from[k], &to[i])) {
			char *host = to[i].host;
			to[i] = from[k];
			to[i].host = host;
		}
	}
}

static bool
lacks_endpoint(const struct names *t, const struct names_entry *e)
{
	const struct wg_peer *p = wg_peer_find(node_lock_shared(t->node), e->key);
	bool lacks = p && wg_peer_endpoint(p).addr.family == IP_FAMILY_NONE;
	node_unlock_shared(t->node);
	return lacks;
}

enum weft_err
names_read(struct names *t, const struct conf *c, struct mono now, struct names_list *out)
{
	size_t cap = 0, n = 0;
	for (size_t i = 0; i < c->peers_n; i++) {
		cap += c->peers[i].endpoint.host != NULL;
	}
	struct names_entry *v = calloc(cap ? cap : 1, sizeof(*v));
	if (!v) {
		return WEFT_ENOMEM;
	}
	for (size_t i = 0; i < c->peers_n; i++) {
		if (!c->peers[i].endpoint.host) {
			continue;
		}
		enum weft_err e = make_entry(t, &c->peers[i], now, &v[n]);
		if (e) {
			free_entries(v, n);
			return e;
		}
		n++;
	}
	qsort(v, n, sizeof(*v), compare_entries);
	n = keep_latest(v, n);
	*out = (struct names_list){v, keep_wanted(v, n)};
	return WEFT_OK;
}

void
names_drop(struct names_list *list)
{
	free_entries(list->v, list->n);
	*list = (struct names_list){0};
}

void
names_put(struct names *t, struct names_list *list)
{
	carry_over(list->v, list->n, t->v, t->n);
	t->was_set = true;
	free_entries(t->v, t->n);
	t->v = list->v;
	t->n = list->n;
	*list = (struct names_list){0};
	for (size_t i = 0; i < t->n; i++) {
		/* A peer that was removed by hand and is there again. */
		if (t->v[i].name.state == NAME_STATE_KNOWN && lacks_endpoint(t, &t->v[i])) {
			use(t, &t->v[i]);
		}
	}
}

struct mono
names_deadline(const struct names *t)
{
	struct mono due = os_resolver_deadline(t->resolver);
	for (size_t i = 0; i < t->n; i++) {
		due = mono_min(due, t->v[i].name.due);
	}
	return due;
}

void
names_turn(struct names *t, struct mono now)
{
	os_resolver_turn(t->resolver, now);
	for (size_t i = 0; i < t->n; i++) {
		if (!mono_is_before(now, t->v[i].name.due)) {
			step(t, &t->v[i], NAME_EVENT_TIMER, NULL, now);
		}
	}
}

void
names_look(struct names *t, struct mono now)
{
	for (size_t i = 0; i < t->n; i++) {
		struct names_entry *e = &t->v[i];
		struct wg_peer_info info = {0};
		const struct wg_peer *p = wg_peer_find(node_lock_shared(t->node), e->key);
		if (p) {
			wg_peer_info(p, &info);
		}
		node_unlock_shared(t->node);
		if (info.handshakes != e->handshakes) {
			e->handshakes = info.handshakes;
			step(t, e, NAME_EVENT_UP, NULL, now);
		}
		if (info.unanswered >= NAMES_UNANSWERED) {
			step(t, e, NAME_EVENT_UNANSWERED, NULL, now);
		}
	}
}

const struct names_entry *
names_find(const struct names *t, const uint8_t key[WG_KEY_LEN])
{
	for (size_t i = 0; i < t->n; i++) {
		if (memcmp(t->v[i].key, key, WG_KEY_LEN) == 0) {
			return &t->v[i];
		}
	}
	return NULL;
}

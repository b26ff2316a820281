/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ctl/judge.h"
#include "ctl/peers.h"
#include "ctl/why_json.h"
#include "node/keeper.h"
#include "node/node.h"
#include "os/netlink.h"
#include "wire/conf.h"
#include "wire/key.h"

#define WHY_KEY_PREFIX_MIN 3
#define SHORT_KEY_LEN 10

struct why {
	struct node *node;
	const struct keeper *keeper;
	const struct conf *conf; /* or NULL */
	struct node_facts device;
	struct judge_facts *f;
	uint8_t key[WG_KEY_LEN]; /* of the peer, with f->has_peer */
	char error[200];         /* what cannot be asked */
	const char *code;        /* of that; NULL: none */
};

/* --- names --- */

static const struct conf_peer *
conf_peer_of(const struct why *y, const uint8_t key[WG_KEY_LEN])
{
	for (size_t i = 0; y->conf && i < y->conf->peers_n; i++) {
		if (memcmp(y->conf->peers[i].public_key, key, WG_KEY_LEN) == 0) {
			return &y->conf->peers[i];
		}
	}
	return NULL;
}

/* "berlin (xTIBA5rboU)", "peer xTIBA5rboU" */
static void
name_peer(const struct why *y, const uint8_t key[WG_KEY_LEN], char out[JUDGE_WHO_MAX])
{
	char text[KEY_BASE64_LEN + 1];
	const struct conf_peer *p = conf_peer_of(y, key);
	key_encode_base64(key, text);
	text[SHORT_KEY_LEN] = 0;
	if (p && p->name) {
		snprintf(out, JUDGE_WHO_MAX, "%s (%s)", p->name, text);
	} else {
		snprintf(out, JUDGE_WHO_MAX, "peer %s", text);
	}
}

static bool
find_name(const struct why *y, const char *text, uint8_t key[WG_KEY_LEN])
{
	for (size_t i = 0; y->conf && i < y->conf->peers_n; i++) {
		const struct conf_peer *p = &y->conf->peers[i];
		if (p->name && strcasecmp(p->name, text) == 0) {
			memcpy(key, p->public_key, WG_KEY_LEN);
			return true;
		}
	}
	return false;
}

/* How many peers have keys that begin so; key is one of them. */
static size_t
find_prefix(const struct why *y, const char *text, uint8_t key[WG_KEY_LEN])
{
	size_t len = strlen(text), n = 0;
	const struct wg_device *d = node_lock_shared(y->node);
	for (struct wg_peer *p = wg_peer_next(d, NULL); p; p = wg_peer_next(d, p)) {
		char of[KEY_BASE64_LEN + 1];
		struct wg_peer_info info;
		wg_peer_info(p, &info);
		if (strncmp(key_encode_base64(info.public_key, of), text, len) == 0) {
			memcpy(key, info.public_key, WG_KEY_LEN);
			n++;
		}
	}
	node_unlock_shared(y->node);
	return n;
}

static bool
has_peer(const struct why *y, const uint8_t key[WG_KEY_LEN])
{
	bool has = wg_peer_find(node_lock_shared(y->node), key) != NULL;
	node_unlock_shared(y->node);
	return has;
}

/* A peer by name, key or the beginning of a key. False: why->code says what is wrong. */
static bool
find_peer(struct why *y, const char *text, uint8_t key[WG_KEY_LEN])
{
	bool is_key = key_decode_base64(text, strlen(text), key) == WEFT_OK;
	y->code = "unknown_peer";
	if (is_key || find_name(y, text, key)) {
		if (has_peer(y, key)) {
			y->code = NULL;
			return true;
		}
		snprintf(y->error, sizeof(y->error), "%s: the device has no such peer", text);
		return false;
	}
	size_t n = strlen(text) >= WHY_KEY_PREFIX_MIN ? find_prefix(y, text, key) : 0;
	if (n == 1) {
		y->code = NULL;
		return true;
	}
	snprintf(y->error, sizeof(y->error),
		n > 1 ? "%s: %zu peers have keys that begin so; give more of it"
		      : "%s: no address, and no peer's name or key",
		text, n);
	return false;
}

/* --- addresses --- */

static unsigned
common_bits(const struct ip_addr *a, const struct ip_addr *b)
{
	unsigned bits = 0;
	for (size_t i = 0; i < ip_family_len(a->family); i++) {
		for (unsigned k = 0; k < 8; k++, bits++) {
			if ((a->b[i] ^ b->b[i]) & (0x80u >> k)) {
				return bits;
			}
		}
	}
	return bits;
}

static bool
has_inside(const struct ip_prefix *p, const struct ip_addr *a)
{
	return p->addr.family == a->family && common_bits(&p->addr, a) >= p->bits;
}

/* Which of a peer's prefixes says most of the address: the one that has it, else the closest. */
static const struct ip_prefix *
best_prefix(const struct ctl_peer *p, const struct ip_addr *a, unsigned *common)
{
	const struct ip_prefix *best = NULL;
	*common = 0;
	for (size_t i = 0; i < p->allowed_n; i++) {
		const struct ip_prefix *x = &p->allowed[i];
		if (x->addr.family != a->family) {
			continue;
		}
		unsigned n = common_bits(&x->addr, a);
		n = n < x->bits ? n : x->bits;
		if (!best || n > *common) {
			best = x;
			*common = n;
		}
	}
	return best;
}

/* Who else has it, or who comes closest to having it. */
static void
look_around(struct why *y, const struct ctl_peer *p, const uint8_t *expect, unsigned *near_bits)
{
	struct judge_facts *f = y->f;
	unsigned common;
	bool is_it = f->has_peer && memcmp(p->info.public_key, y->key, WG_KEY_LEN) == 0;
	bool is_expected = expect && memcmp(p->info.public_key, expect, WG_KEY_LEN) == 0;
	const struct ip_prefix *best = best_prefix(p, &f->address, &common);
	bool has_it = best && has_inside(best, &f->address);
	if (is_it) {
		f->match = best ? *best : (struct ip_prefix){0};
	} else if (is_expected) {
		f->is_other_expected = f->has_peer;
		name_peer(y, p->info.public_key, f->other);
		f->other_prefix = has_it ? *best : (struct ip_prefix){0};
	} else if (has_it && !f->is_other_expected && best->bits >= f->other_prefix.bits) {
		name_peer(y, p->info.public_key, f->other);
		f->other_prefix = *best;
	} else if (!f->has_peer && best && common > 0 && common >= *near_bits) {
		*near_bits = common;
		name_peer(y, p->info.public_key, f->near);
		f->near_prefix = *best;
	}
}

/* --- the engine's facts --- */

static void
take_peer(struct why *y, const struct ctl_peer *p)
{
	struct judge_facts *f = y->f;
	f->info = p->info;
	f->ally = p->ally;
	f->allowed_n = p->allowed_n;
	for (size_t i = 0; i < p->allowed_n && f->inner_n < JUDGE_ROUTES_MAX; i++) {
		if (f->address.family == IP_FAMILY_NONE) {
			f->inner[f->inner_n++].prefix = p->allowed[i];
		}
	}
}

/* One walk over all peers, each locked by itself. */
static enum weft_err
walk_peers(struct why *y, const uint8_t *expect)
{
	struct ctl_peers peers;
	struct ctl_peer peer = {0};
	unsigned near_bits = 0;
	enum weft_err e = ctl_peers_take(y->node, &peers);
	if (e) {
		return e;
	}
	while (!(e = ctl_peers_next(y->node, &peers, &peer))) {
		if (y->f->has_peer && memcmp(peer.info.public_key, y->key, WG_KEY_LEN) == 0) {
			take_peer(y, &peer);
		}
		if (y->f->address.family != IP_FAMILY_NONE) {
			look_around(y, &peer, expect, &near_bits);
		}
	}
	ctl_peers_fini(&peers);
	ctl_peer_fini(&peer);
	return e == WEFT_ENOENT ? WEFT_OK : e;
}

static void
take_trail(struct why *y)
{
	const struct wg_peer *p = wg_peer_find(node_lock_shared(y->node), y->key);
	if (p) {
		wg_peer_trail(p, &y->f->trail);
		y->f->can_send = wg_peer_can_send(p, y->f->now);
	}
	node_unlock_shared(y->node);
}

static bool
find_owner(const struct why *y, const struct ip_addr *a, uint8_t key[WG_KEY_LEN])
{
	struct wg_peer_info info;
	const struct wg_peer *p = wg_device_route(node_lock_shared(y->node), a);
	if (p) {
		wg_peer_info(p, &info);
		memcpy(key, info.public_key, WG_KEY_LEN);
	}
	node_unlock_shared(y->node);
	return p != NULL;
}

static void
take_sources(struct why *y)
{
	struct judge_facts *f = y->f;
	const struct wg_troubles *t = &f->troubles[0];
	for (size_t i = 0; i < t->n && f->sources_n < JUDGE_SOURCES_MAX; i++) {
		if (t->v[i].kind != WG_TROUBLE_SOURCE ||
			memcmp(t->v[i].key, y->key, WG_KEY_LEN) != 0) {
			continue;
		}
		uint8_t owner[WG_KEY_LEN];
		struct judge_source *s = &f->sources[f->sources_n];
		*s = (struct judge_source){.addr = t->v[i].at.addr, .latest = t->v[i].latest};
		if (find_owner(y, &s->addr, owner)) {
			if (memcmp(owner, y->key, WG_KEY_LEN) == 0) {
				continue; /* it was given to it since */
			}
			name_peer(y, owner, s->owner);
		}
		f->sources_n++;
	}
}

/* What the file gives to the peer and another one got. */
static void
take_taken(struct why *y)
{
	const struct conf_peer *p = conf_peer_of(y, y->key);
	for (size_t i = 0; p && i < p->allowed.n; i++) {
		const struct ip_prefix *x = &p->allowed.v[i].prefix;
		for (const struct conf_peer *q = p + 1; q < y->conf->peers + y->conf->peers_n;
			q++) {
			for (size_t k = 0; k < q->allowed.n; k++) {
				const struct ip_prefix *z = &q->allowed.v[k].prefix;
				if (z->bits == x->bits && ip_addr_is_equal(&z->addr, &x->addr) &&
					memcmp(q->public_key, y->key, WG_KEY_LEN) != 0) {
					y->f->taken = *x;
					name_peer(y, q->public_key, y->f->taken_by);
				}
			}
		}
	}
}

/* --- the kernel's facts --- */

/* An address inside, other than the network's own. */
static struct ip_addr
sample_of(const struct ip_prefix *p)
{
	static const struct ip_addr anywhere[] = {{IP_FAMILY_V4, {203, 0, 113, 1}},
		{IP_FAMILY_V6, {0x20, 0x01, 0x0d, 0xb8, [15] = 1}}};
	struct ip_addr a = p->addr;
	size_t len = ip_family_len(a.family);
	if (p->bits == 0) {
		return anywhere[a.family == IP_FAMILY_V6];
	}
	if (p->bits < 8) {
		a.b[0] |= 1;
	}
	if (p->bits < len * 8) {
		a.b[len - 1] |= 1;
	}
	return a;
}

static void
ask_route(const struct why *y, struct os_netlink *nl, uint32_t mark, struct judge_route *r)
{
	struct os_route route;
	struct os_link_info link;
	if (os_netlink_route_get(nl, &r->to, mark, &route)) {
		return;
	}
	r->is_there = true;
	r->is_ours = route.ifindex == y->device.ifindex;
	r->is_local = route.is_local;
	r->mtu = route.mtu;
	if (os_netlink_link_by_index(nl, route.ifindex, &link) == WEFT_OK) {
		memcpy(r->dev, link.name, sizeof(r->dev));
		r->mtu = r->mtu ? r->mtu : link.mtu;
	}
}

struct addresses {
	const struct why *y;
	bool has_any;
	bool *is_there; /* of the file's, by index */
};

static bool
take_address(void *ctx, const struct ip_prefix *p)
{
	struct addresses *a = ctx;
	const struct judge_facts *f = a->y->f;
	const struct conf_prefixes *wanted = a->y->conf ? &a->y->conf->interface.addresses : NULL;
	bool is_link_local = p->addr.family == IP_FAMILY_V6 && p->addr.b[0] == 0xfe &&
			     (p->addr.b[1] & 0xc0) == 0x80;
	a->has_any |= !is_link_local &&
		      (f->address.family == IP_FAMILY_NONE || f->address.family == p->addr.family);
	for (size_t i = 0; wanted && a->is_there && i < wanted->n; i++) {
		a->is_there[i] |= ip_addr_is_equal(&wanted->v[i].prefix.addr, &p->addr);
	}
	return true;
}

static void
take_addresses(struct why *y, struct os_netlink *nl)
{
	const struct conf_prefixes *wanted = y->conf ? &y->conf->interface.addresses : NULL;
	size_t n = wanted ? wanted->n : 0;
	struct addresses a = {.y = y, .is_there = calloc(n + 1, sizeof(bool))};
	y->f->has_address = true; /* unless the kernel says otherwise */
	if (a.is_there && os_netlink_addrs(nl, y->device.ifindex, take_address, &a) == WEFT_OK) {
		y->f->has_address = a.has_any;
		for (size_t i = 0; i < n; i++) {
			if (!a.is_there[i]) {
				y->f->missing_address = wanted->v[i].prefix;
			}
		}
	}
	free(a.is_there);
}

static void
take_routes(struct why *y, struct os_netlink *nl)
{
	struct judge_facts *f = y->f;
	if (f->address.family != IP_FAMILY_NONE) {
		struct judge_route *r = &f->inner[0];
		r->to = f->address;
		ask_route(y, nl, 0, r);
		f->is_own = r->is_local;
		f->inner_n = 1;
	} else {
		for (size_t i = 0; i < f->inner_n; i++) {
			f->inner[i].to = sample_of(&f->inner[i].prefix);
			ask_route(y, nl, 0, &f->inner[i]);
		}
	}
	const struct endpoint *at = &f->info.endpoint;
	/* The way to a link-local address is in its scope. */
	if (f->has_peer && at->addr.family != IP_FAMILY_NONE && at->scope_id == 0) {
		f->has_outer = true;
		f->outer.to = at->addr;
		ask_route(y, nl, y->device.fwmark, &f->outer);
	}
}

static void
take_kernel(struct why *y)
{
	struct os_netlink *nl;
	struct os_link_info link;
	y->f->is_up = y->device.is_up;
	y->f->has_address = true;
	if (os_netlink_open(&nl)) {
		y->f->inner_n = 0;
		return;
	}
	if (os_netlink_link_by_index(nl, y->device.ifindex, &link) == WEFT_OK) {
		y->f->is_up = link.is_up;
	}
	take_addresses(y, nl);
	take_routes(y, nl);
	os_netlink_close(nl);
}

/* --- the request --- */

static void
take_device(struct why *y)
{
	uint8_t key[WG_KEY_LEN];
	struct judge_facts *f = y->f;
	node_facts(y->node, &y->device);
	memcpy(f->device, y->device.name, sizeof(f->device));
	f->mtu = y->device.mtu;
	f->has_key = wg_device_public_key(node_lock_shared(y->node), key);
	node_unlock_shared(y->node);
	f->is_table_off = y->conf && y->conf->interface.table == CONF_TABLE_OFF;
	node_drop_times(y->node, &f->drops);
	node_troubles(y->node, f->troubles);
}

static bool
read_target(struct why *y, const json_t *request, uint8_t expect[WG_KEY_LEN], bool *has_expect)
{
	const char *target = json_string_value(json_object_get(request, "target"));
	const json_t *wanted = json_object_get(request, "expect");
	const json_t *probe = json_object_get(request, "probe");
	if (!target || (wanted && !json_is_string(wanted)) || (probe && !json_is_integer(probe))) {
		y->code = "value";
		snprintf(y->error, sizeof(y->error),
			"target: a peer or an address is wanted; expect: a peer; probe: an errno");
		return false;
	}
	y->f->is_probed = probe != NULL;
	y->f->probe_errnum = (int)json_integer_value(probe);
	*has_expect = wanted != NULL;
	if (wanted && !find_peer(y, json_string_value(wanted), expect)) {
		return false;
	}
	if (ip_addr_parse(target, strlen(target), &y->f->address) == WEFT_OK) {
		y->f->has_peer = find_owner(y, &y->f->address, y->key);
		return true;
	}
	y->f->has_peer = find_peer(y, target, y->key);
	return y->f->has_peer;
}

static json_t *
answer(struct why *y, const json_t *request)
{
	uint8_t expect[WG_KEY_LEN];
	bool has_expect;
	if (!read_target(y, request, expect, &has_expect)) {
		return json_pack("{s:{s:s, s:s}}", "error", "code", y->code, "text", y->error);
	}
	bool is_as_expected =
		has_expect && y->f->has_peer && memcmp(expect, y->key, WG_KEY_LEN) == 0;
	take_device(y);
	if (walk_peers(y, has_expect && !is_as_expected ? expect : NULL)) {
		return NULL;
	}
	if (y->f->has_peer) {
		name_peer(y, y->key, y->f->who);
		take_trail(y);
		take_sources(y);
		take_taken(y);
		y->f->has_name = y->keeper && keeper_name(y->keeper, y->key, &y->f->name);
	}
	take_kernel(y);
	struct judge_verdict *v = malloc(sizeof(*v));
	if (!v) {
		return NULL;
	}
	judge(y->f, v);
	const struct conf_peer *p = y->f->has_peer ? conf_peer_of(y, y->key) : NULL;
	json_t *o = why_json(y->f, v, p ? p->name : NULL, y->device.fwmark);
	free(v);
	return o;
}

json_t *
ctl_why(struct node *n, const struct keeper *keeper, const json_t *request)
{
	struct judge_facts *f = calloc(1, sizeof(*f));
	if (!f) {
		return NULL;
	}
	struct why y = {.node = n, .keeper = keeper, .f = f};
	y.conf = keeper ? keeper_conf(keeper) : NULL;
	f->now = node_time().mono;
	json_t *o = answer(&y, request);
	free(f);
	return o;
}

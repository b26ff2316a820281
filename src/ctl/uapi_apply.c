/* SPDX-License-Identifier: Apache-2.0 */
/* A set, put into a running device.
 *
 * What can fail is tried first: names of interfaces, the mark, the port, the count of peers.
 * What is left can fail by memory alone. */
#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "ctl/uapi.h"
#include "node/node.h"
#include "node/peers.h"
#include "os/netlink.h"

#define ERRNO_ENODEV 19
#define ERRNO_EOPNOTSUPP 95
/* An exclusive hold of the device, in peers that go and in prefixes: some 30 us. */
#define PEERS_A_LOCK 8
#define PREFIXES_A_LOCK 256

static int
errno_of(enum weft_err e)
{
	switch (e) {
	case WEFT_OK:
		return 0;
	case WEFT_EPERM:
		return UAPI_EPERM;
	case WEFT_EINVAL:
	case WEFT_EPARSE:
		return UAPI_EINVAL;
	case WEFT_ENOMEM:
		return UAPI_ENOMEM;
	case WEFT_ENOENT:
		return ERRNO_ENODEV;
	case WEFT_ENOTSUP:
		return ERRNO_EOPNOTSUPP;
	case WEFT_EADDRINUSE:
		return UAPI_EADDRINUSE;
	default:
		return UAPI_EIO;
	}
}

/* Indices of interfaces that endpoints name. */
struct scopes {
	struct os_netlink *netlink; /* opened when the first name comes */
	char name[UAPI_SCOPE_MAX + 1];
	uint32_t index; /* of name */
};

static enum weft_err
resolve_scope(struct scopes *s, struct uapi_set_peer *peer)
{
	struct os_link_info info;
	if (!peer->scope[0]) {
		return WEFT_OK;
	}
	if (strcmp(peer->scope, s->name) != 0) {
		enum weft_err e = s->netlink ? WEFT_OK : os_netlink_open(&s->netlink);
		if (!e) {
			e = os_netlink_link_by_name(s->netlink, peer->scope, &info);
		}
		if (e) {
			return e;
		}
		memcpy(s->name, peer->scope, sizeof(s->name));
		s->index = info.index;
	}
	peer->endpoint.scope_id = s->index;
	return WEFT_OK;
}

/* Goes through the peers without changing any. */
static enum weft_err
check_peers(struct node *n, struct scopes *scopes, const struct uapi_set_device *device,
	struct uapi_set_cursor cursor)
{
	struct uapi_set_peer peer;
	enum weft_err e = WEFT_OK;
	const struct wg_device *d = node_lock_shared(n);
	size_t count = device->has_replace_peers ? 0 : wg_device_peer_count(d);
	node_unlock_shared(n);

	while (!e && uapi_set_peer(&cursor, &peer)) {
		e = resolve_scope(scopes, &peer);
		if (peer.is_removed || peer.is_update_only) {
			continue;
		}
		bool is_there = false;
		if (!device->has_replace_peers) {
			is_there = wg_peer_find(node_lock_shared(n), peer.public_key) != NULL;
			node_unlock_shared(n);
		}
		count += !is_there;
		if (count > WG_PEERS_MAX) {
			e = WEFT_ENOMEM;
		}
	}
	secret_wipe(&peer, sizeof(peer));
	return e;
}

static enum weft_err
apply_sockets(struct node *n, const struct uapi_set_device *device)
{
	struct node_facts old;
	node_facts(n, &old);
	if (device->has_fwmark && device->fwmark != old.fwmark) {
		enum weft_err e = node_set_fwmark(n, device->fwmark);
		if (e) {
			return e;
		}
	}
	/* Port 0 asks for a new one each time. */
	if (device->has_listen_port &&
		(device->listen_port == 0 || device->listen_port != old.listen_port)) {
		enum weft_err e = node_set_listen_port(n, device->listen_port);
		if (e && device->has_fwmark && device->fwmark != old.fwmark) {
			enum weft_err back = node_set_fwmark(n, old.fwmark);
			(void)back; /* it was allowed a moment ago */
		}
		return e;
	}
	return WEFT_OK;
}

/* The key that is there already ends no sessions: wg syncconf sends it each time. */
static void
apply_private_key(struct node *n, const uint8_t key[KEY_LEN])
{
	struct wg_out *out;
	uint8_t old[KEY_LEN] = {0};
	struct wg_device *d = node_lock(n, &out);
	wg_device_private_key(d, old);
	if (!secret_is_equal(old, key, KEY_LEN)) {
		wg_device_set_private_key(d, secret_is_zero(key, KEY_LEN) ? NULL : key);
	}
	node_unlock(n);
	secret_wipe(old, sizeof(old));
}

/* A peer of the set, read before the device is locked for it. Zero-initialised, it is empty; used
 * again for the next. */
struct wish {
	struct uapi_set_peer peer;
	struct line {
		struct ip_prefix prefix;
		bool is_removal;
	} * lines;
	size_t n, cap;
};

static enum weft_err
read_lines(struct wish *w)
{
	struct line l;
	w->n = 0;
	while (uapi_set_allowed(&w->peer, &l.prefix, &l.is_removal)) {
		if (w->n == w->cap) {
			size_t cap = w->cap ? w->cap * 2 : 8;
			struct line *v = realloc(w->lines, cap * sizeof(*v));
			if (!v) {
				return WEFT_ENOMEM;
			}
			w->lines = v;
			w->cap = cap;
		}
		w->lines[w->n++] = l;
	}
	return WEFT_OK;
}

static void
wish_fini(struct wish *w)
{
	free(w->lines);
	secret_wipe(w, sizeof(*w));
}

/* Does the peer have just these, in this order? */
static bool
has_lines(const struct wg_peer *p, const struct wish *w)
{
	void *cursor = NULL;
	struct ip_prefix has;
	for (size_t i = 0; i < w->n; i++) {
		const struct ip_prefix *wanted = &w->lines[i].prefix;
		if (w->lines[i].is_removal || !wg_peer_allowed_next(p, &cursor, &has) ||
			has.bits != wanted->bits || !ip_addr_is_equal(&has.addr, &wanted->addr)) {
			return false;
		}
	}
	return !wg_peer_allowed_next(p, &cursor, &has);
}

static bool
is_as_wished(const struct wg_peer *p, const struct wish *w)
{
	const struct uapi_set_peer *to = &w->peer;
	struct wg_peer_info info;
	uint8_t psk[KEY_LEN];
	if (!p || to->is_removed) {
		return !p && (to->is_removed || to->is_update_only);
	}
	wg_peer_info(p, &info);
	wg_peer_psk(p, psk);
	bool is_same =
		(!to->has_psk || secret_is_equal(psk, to->psk, KEY_LEN)) &&
		(!to->has_keepalive || to->keepalive_s == info.keepalive_s) &&
		(!to->has_endpoint || endpoint_is_same_remote(&to->endpoint, &info.endpoint)) &&
		(to->has_replace_allowed ? has_lines(p, w) : w->n == 0);
	secret_wipe(psk, sizeof(psk));
	return is_same;
}

/* Of a peer that has some, all are replaced in one hold of the device: in between, packets would
 * find no peer. Otherwise the device is let go of now and then. */
static enum weft_err
apply_lines(struct node *n, struct wg_device *d, struct wg_peer *p, const struct wish *w)
{
	struct wg_out *out;
	struct ip_prefix prefix;
	void *cursor = NULL;
	bool is_replacing =
		w->peer.has_replace_allowed && wg_peer_allowed_next(p, &cursor, &prefix);
	enum weft_err e = WEFT_OK;
	if (is_replacing) {
		wg_peer_disallow_all(d, p);
	}
	for (size_t i = 0; i < w->n && !e; i++) {
		if (i % PREFIXES_A_LOCK == PREFIXES_A_LOCK - 1 && !is_replacing) {
			node_unlock(n);
			d = node_lock(n, &out);
		}
		if (w->lines[i].is_removal) {
			(void)wg_peer_disallow(d, p, &w->lines[i].prefix);
		} else {
			e = wg_peer_allow(d, p, &w->lines[i].prefix);
		}
	}
	return e;
}

static enum weft_err
change_peer(struct node *n, struct wg_device *d, struct wg_out *out, const struct wish *w)
{
	const struct uapi_set_peer *to = &w->peer;
	struct wg_peer *p = wg_peer_find(d, to->public_key);
	if (to->is_removed) {
		if (p) {
			wg_peer_remove(d, p);
		}
		return WEFT_OK;
	}
	if (!p) {
		enum weft_err e =
			to->is_update_only ? WEFT_EINVAL : wg_peer_add(d, to->public_key, &p);
		if (e) {
			/* Our own key: passed over, as other implementations do. */
			return e == WEFT_EINVAL ? WEFT_OK : e;
		}
	}
	if (to->has_psk) {
		wg_peer_set_psk(p, to->psk);
	}
	if (to->has_endpoint) {
		wg_peer_set_endpoint(p, &to->endpoint);
	}
	enum weft_err e = apply_lines(n, d, p, w);
	if (!e && to->has_keepalive) {
		wg_peer_set_keepalive(d, p, to->keepalive_s, node_time(), out);
	}
	return e;
}

/* wg syncconf sends everything of all peers: what is right already is only looked at. */
static enum weft_err
apply_wish(struct node *n, const struct wish *w)
{
	struct wg_out *out;
	bool is_right = is_as_wished(wg_peer_find(node_lock_shared(n), w->peer.public_key), w);
	node_unlock_shared(n);
	if (is_right) {
		return WEFT_OK;
	}
	struct wg_device *d = node_lock(n, &out);
	enum weft_err e = change_peer(n, d, out, w);
	node_unlock(n);
	return e;
}

/* Their memory is given back when the device is free again. */
static enum weft_err
remove_all(struct node *n)
{
	struct node_peers all;
	struct wg_out *out;
	enum weft_err e = node_peers_take(n, &all);
	for (size_t i = 0; !e && i < all.n;) {
		struct wg_device *d = node_lock(n, &out);
		for (size_t k = 0; k < PEERS_A_LOCK && i < all.n; k++, i++) {
			if (!wg_peer_is_removed(all.v[i])) {
				wg_peer_remove(d, all.v[i]);
			}
		}
		node_unlock(n);
	}
	node_peers_fini(&all);
	return e;
}

static enum weft_err
apply_peers(struct node *n, struct scopes *scopes, struct uapi_set_cursor *cursor)
{
	struct wish w = {0};
	enum weft_err e = WEFT_OK;
	while (!e && uapi_set_peer(cursor, &w.peer)) {
		e = resolve_scope(scopes, &w.peer);
		e = e ? e : read_lines(&w);
		e = e ? e : apply_wish(n, &w);
	}
	wish_fini(&w);
	return e;
}

int
ctl_uapi_apply(struct node *n, const struct uapi_request *r)
{
	struct uapi_set_device device;
	struct uapi_set_cursor cursor;
	struct scopes scopes = {0};

	uapi_set_begin(r, &device, &cursor);
	enum weft_err e = check_peers(n, &scopes, &device, cursor);
	if (!e) {
		e = apply_sockets(n, &device);
	}
	if (!e && device.has_private_key) {
		apply_private_key(n, device.private_key);
	}
	if (!e && device.has_replace_peers) {
		e = remove_all(n);
	}
	if (!e) {
		e = apply_peers(n, &scopes, &cursor);
	}
	if (scopes.netlink) {
		os_netlink_close(scopes.netlink);
	}
	secret_wipe(&device, sizeof(device));
	return errno_of(e);
}

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
#include "os/netlink.h"

#define ERRNO_ENODEV 19
#define ERRNO_EOPNOTSUPP 95
/* An exclusive hold of the device, in peers and in prefixes: some 30 us. */
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

/* Does the peer have just these, in this order? */
static bool
has_allowed(const struct wg_peer *p, struct uapi_set_peer peer)
{
	void *cursor = NULL;
	struct ip_prefix wanted, has;
	bool is_removal;
	while (uapi_set_allowed(&peer, &wanted, &is_removal)) {
		if (is_removal || !wg_peer_allowed_next(p, &cursor, &has) ||
			has.bits != wanted.bits || !ip_addr_is_equal(&has.addr, &wanted.addr)) {
			return false;
		}
	}
	return !wg_peer_allowed_next(p, &cursor, &has);
}

/* Of a peer that has some, all are replaced in one hold of the device: in between, packets would
 * find no peer. Otherwise the device is let go of now and then. */
static enum weft_err
apply_allowed(struct node *n, struct wg_device *d, struct wg_peer *p, struct uapi_set_peer *peer)
{
	struct wg_out *out;
	struct ip_prefix prefix;
	bool is_removal, is_at_once = false;
	if (peer->has_replace_allowed) {
		void *cursor = NULL;
		/* wg syncconf sends all prefixes of all peers. */
		if (has_allowed(p, *peer)) {
			return WEFT_OK;
		}
		is_at_once = wg_peer_allowed_next(p, &cursor, &prefix);
		wg_peer_disallow_all(d, p);
	}
	for (size_t i = 1; uapi_set_allowed(peer, &prefix, &is_removal); i++) {
		if (i % PREFIXES_A_LOCK == 0 && !is_at_once) {
			node_unlock(n);
			d = node_lock(n, &out);
		}
		if (is_removal) {
			wg_peer_disallow(d, p, &prefix);
			continue;
		}
		enum weft_err e = wg_peer_allow(d, p, &prefix);
		if (e) {
			return e;
		}
	}
	return WEFT_OK;
}

static enum weft_err
apply_peer(struct node *n, struct wg_device *d, struct wg_out *out, struct uapi_set_peer *peer)
{
	struct wg_peer *p = wg_peer_find(d, peer->public_key);
	if (peer->is_removed) {
		if (p) {
			wg_peer_remove(d, p);
		}
		return WEFT_OK;
	}
	if (!p) {
		if (peer->is_update_only) {
			return WEFT_OK;
		}
		enum weft_err e = wg_peer_add(d, peer->public_key, &p);
		if (e) {
			/* Our own key: passed over, as other implementations do. */
			return e == WEFT_EINVAL ? WEFT_OK : e;
		}
	}
	if (peer->has_psk) {
		wg_peer_set_psk(p, peer->psk);
	}
	if (peer->has_endpoint) {
		wg_peer_set_endpoint(p, &peer->endpoint);
	}
	enum weft_err e = apply_allowed(n, d, p, peer);
	if (!e && peer->has_keepalive) {
		wg_peer_set_keepalive(d, p, peer->keepalive_s, node_time(), out);
	}
	return e;
}

static void
remove_all(struct node *n)
{
	struct wg_out *out;
	for (bool has_more = true; has_more;) {
		struct wg_device *d = node_lock(n, &out);
		struct wg_peer *p = NULL;
		for (size_t i = 0; i < PEERS_A_LOCK && (p = wg_peer_next(d, NULL)) != NULL; i++) {
			wg_peer_remove(d, p);
		}
		has_more = p != NULL;
		node_unlock(n);
	}
}

static enum weft_err
apply_peers(struct node *n, struct scopes *scopes, struct uapi_set_cursor *cursor)
{
	struct uapi_set_peer peer;
	enum weft_err e = WEFT_OK;
	while (!e && cursor->left > 0) {
		struct wg_out *out;
		struct wg_device *d = node_lock(n, &out);
		for (size_t i = 0; !e && i < PEERS_A_LOCK && uapi_set_peer(cursor, &peer); i++) {
			e = resolve_scope(scopes, &peer);
			if (peer.is_removed && out->events_n > 0) {
				/* News of a peer is told while there is the peer. */
				node_unlock(n);
				d = node_lock(n, &out);
			}
			if (!e) {
				e = apply_peer(n, d, out, &peer);
			}
		}
		node_unlock(n);
	}
	secret_wipe(&peer, sizeof(peer));
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
		remove_all(n);
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

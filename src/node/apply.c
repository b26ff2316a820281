/* SPDX-License-Identifier: Apache-2.0 */
#include "node/apply.h"

#include <stdlib.h>
#include <string.h>

#include "node/ally.h"
#include "node/device.h"
#include "node/policy.h"
#include "node/route.h"
#include "os/netlink.h"
#include "os/resolve.h"

/* Outer IPv6 header 40, UDP 8, WireGuard 32. */
#define OVERHEAD_MAX 80
#define MTU_MIN 576

uint16_t
apply_choose_mtu(const struct conf *c)
{
	if (c->interface.mtu) {
		return c->interface.mtu;
	}
	struct os_netlink *nl;
	if (os_netlink_open(&nl)) {
		return NODE_MTU_DEFAULT;
	}
	uint32_t best = 0;
	for (size_t i = 0; i < c->peers_n; i++) {
		const struct ip_addr *to = &c->peers[i].endpoint.addr;
		struct os_route r;
		struct os_link_info link;
		if (to->family == IP_FAMILY_NONE ||
			os_netlink_route_get(nl, to, c->interface.fwmark, &r)) {
			continue;
		}
		uint32_t mtu = r.mtu;
		if (mtu == 0 && os_netlink_link_by_index(nl, r.ifindex, &link) == WEFT_OK) {
			mtu = link.mtu;
		}
		best = mtu > best ? mtu : best;
	}
	os_netlink_close(nl);
	if (best < MTU_MIN + OVERHEAD_MAX || best > UINT16_MAX) {
		return NODE_MTU_DEFAULT;
	}
	return (uint16_t)(best - OVERHEAD_MAX);
}

/* The endpoint when it is known without the resolver. */
static bool
numeric_endpoint(const struct conf_peer *p, struct endpoint *out)
{
	if (p->endpoint.addr.family == IP_FAMILY_NONE) {
		return false;
	}
	*out = (struct endpoint){.addr = p->endpoint.addr, .port = p->endpoint.port};
	if (p->endpoint.scope[0]) {
		out->scope_id = os_resolve_scope(p->endpoint.scope);
	}
	return true;
}

static enum weft_err
apply_peer(struct node *n, struct wg_device *d, const struct conf_peer *p, struct wg_out *out)
{
	struct wg_peer *peer = wg_peer_find(d, p->public_key);
	bool is_new = !peer;
	enum weft_err e = is_new ? wg_peer_add(d, p->public_key, &peer) : WEFT_OK;
	/* Of 10,000 peers most have nothing of their own, and cost nothing. */
	if (!e && !(is_new && policy_is_default(&p->policy))) {
		struct ally_policy policy;
		policy_from_conf(&p->policy, &policy);
		e = node_set_policy(n, peer, &policy);
	}
	if (e) {
		return e;
	}
	if (p->has_psk) {
		wg_peer_set_psk(peer, p->psk);
	}
	struct endpoint at;
	if (numeric_endpoint(p, &at)) {
		wg_peer_set_endpoint(peer, &at);
	}
	for (size_t i = 0; i < p->allowed.n; i++) {
		e = wg_peer_allow(d, peer, &p->allowed.v[i].prefix);
		if (e) {
			return e;
		}
	}
	if (p->keepalive_s) {
		wg_peer_set_keepalive(d, peer, p->keepalive_s, node_time(), out);
	}
	return WEFT_OK;
}

static enum weft_err
apply_engine(struct node *n, const struct conf *c, const struct log *log)
{
	struct wg_out *out;
	struct wg_device *d = node_lock(n, &out);
	if (c->interface.has_private_key) {
		wg_device_set_private_key(d, c->interface.private_key);
	}
	enum weft_err e = WEFT_OK;
	for (size_t i = 0; i < c->peers_n && !e; i++) {
		e = apply_peer(n, d, &c->peers[i], out);
		if (e == WEFT_EINVAL) {
			log_warn(log, "line %u: this peer has our own public key and is left out",
				c->peers[i].pos.line);
			e = WEFT_OK;
		} else if (e) {
			log_error(log, "line %u: cannot add the peer: %s", c->peers[i].pos.line,
				weft_err_text(e));
		}
	}
	node_unlock(n);
	return e;
}

static enum weft_err
apply_sockets(struct node *n, const struct conf *c, const struct log *log)
{
	enum weft_err e;
	if (c->interface.fwmark) {
		e = node_set_fwmark(n, c->interface.fwmark);
		if (e == WEFT_EPERM && node_device_of(n)->is_private) {
			/* Without a default route outside there is no loop to keep it from. */
			log_warn(log, "FwMark needs CAP_NET_ADMIN: our packets go without it");
		} else if (e) {
			log_error(log, "FwMark: %s", weft_err_text(e));
			return e;
		}
	}
	if (c->interface.listen_port) {
		e = node_set_listen_port(n, c->interface.listen_port);
		if (e) {
			log_error(log, "ListenPort %u: %s", c->interface.listen_port,
				weft_err_text(e));
			return e;
		}
	}
	return WEFT_OK;
}

static enum weft_err
apply_addresses(struct node *n, const struct conf *c, const struct log *log)
{
	const struct node_device *dev = node_device_of(n);
	for (size_t i = 0; i < c->interface.addresses.n; i++) {
		const struct conf_prefix *a = &c->interface.addresses.v[i];
		enum weft_err e = os_netlink_addr_add(dev->netlink, dev->ifindex, &a->prefix);
		if (e == WEFT_EEXIST) {
			continue; /* given twice */
		}
		if (e) {
			char text[IP_PREFIX_TEXT_MAX];
			log_error(log, "cannot add address %s: %s",
				ip_prefix_format(&a->prefix, text),
				os_netlink_error_text(dev->netlink));
			return e;
		}
	}
	enum weft_err e = os_netlink_link_set_up(dev->netlink, dev->ifindex, true);
	if (e) {
		log_error(log, "cannot set the interface up: %s",
			os_netlink_error_text(dev->netlink));
		return e;
	}
	node_monitor(n); /* the engine learns of it before the first packet */
	return WEFT_OK;
}

void
apply_resolve(
	struct node *n, const struct conf *c, bool *is_set, const struct log *log, size_t *left)
{
	*left = 0;
	for (size_t i = 0; i < c->peers_n; i++) {
		const struct conf_peer *p = &c->peers[i];
		if (is_set[i] || !p->endpoint.host || p->endpoint.addr.family != IP_FAMILY_NONE) {
			continue;
		}
		struct endpoint at;
		enum weft_err e = os_resolve(p->endpoint.host, p->endpoint.port, &at);
		if (e) {
			log_warn(log, "cannot resolve %s: %s; it is tried again", p->endpoint.host,
				weft_err_text(e));
			(*left)++;
			continue;
		}
		is_set[i] = true;
		struct wg_out *out;
		struct wg_device *d = node_lock(n, &out);
		struct wg_peer *peer = wg_peer_find(d, p->public_key);
		if (peer && wg_peer_endpoint(peer).addr.family == IP_FAMILY_NONE) {
			wg_peer_set_endpoint(peer, &at);
			if (p->keepalive_s) {
				/* Off and on: a keepalive that waited for an endpoint leaves now.
				 */
				wg_peer_set_keepalive(d, peer, 0, node_time(), out);
				wg_peer_set_keepalive(d, peer, p->keepalive_s, node_time(), out);
			}
		}
		node_unlock(n);
	}
}

enum weft_err
apply_conf(struct node *n, const struct conf *c, bool *is_set, const struct log *log,
	struct apply_traces *out)
{
	*out = (struct apply_traces){.netlink = node_device_of(n)->netlink};
	enum weft_err e = apply_engine(n, c, log);
	if (!e) {
		e = apply_sockets(n, c, log);
	}
	if (!e) {
		/* Before the routes: a default route would send the questions into the tunnel,
		 * which does not know yet where it leads. */
		size_t left;
		apply_resolve(n, c, is_set, log, &left);
		e = apply_addresses(n, c, log);
	}
	if (!e) {
		e = route_apply(n, c, log, out);
	}
	if (e) {
		apply_undo(out, log);
	}
	return e;
}

void
apply_undo(struct apply_traces *t, const struct log *log)
{
	route_undo(t, log);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "node/apply.h"

#include <stdint.h>
#include <stdio.h>

#include "crypto/secret.h"
#include "node/census.h"
#include "node/device.h"
#include "node/match.h"
#include "node/route.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/netlink.h"

/* Outer IPv6 header 40, UDP 8, WireGuard 32. */
#define OVERHEAD_MAX 80
#define MTU_MIN 576
#define WAIT_TRIES 1000 /* of 1 ms */

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

void
apply_init(struct apply_traces *t, const struct node *n)
{
	const struct node_device *dev = node_device_of(n);
	*t = (struct apply_traces){.netlink = dev->netlink, .is_private = dev->is_private};
}

/* One change under way, with what it takes to go back. */
struct change {
	struct node *node;
	const struct conf *old; /* NULL: none */
	const struct conf *fresh;
	struct census before, after;
	const struct log *log;
	struct apply_traces *traces;
	struct node_facts facts; /* as they were */
	uint32_t mark;           /* wanted */
	uint16_t mtu;            /* wanted */
	bool has_matched;        /* peers were touched */
};

static bool
has_address(const struct conf *c, const struct ip_prefix *p)
{
	for (size_t i = 0; c && i < c->interface.addresses.n; i++) {
		const struct ip_prefix *a = &c->interface.addresses.v[i].prefix;
		if (a->bits == p->bits && ip_addr_is_equal(&a->addr, &p->addr)) {
			return true;
		}
	}
	return false;
}

/* Removes those of `of` that `but` does not have, up to number `until`. True: one of IPv4. */
static bool
remove_addresses(struct node *n, const struct conf *of, const struct conf *but, size_t until)
{
	const struct node_device *dev = node_device_of(n);
	bool had4 = false;
	for (size_t i = 0; of && i < of->interface.addresses.n && i < until; i++) {
		const struct ip_prefix *p = &of->interface.addresses.v[i].prefix;
		if (!has_address(but, p)) {
			enum weft_err e = os_netlink_addr_del(dev->netlink, dev->ifindex, p);
			(void)e; /* somebody else was faster */
			had4 |= p->addr.family == IP_FAMILY_V4;
		}
	}
	return had4;
}

/* Container runtimes like to switch IPv6 off. */
static const char *
why_no_address(const struct node_device *dev, const struct ip_prefix *p)
{
	char key[64], value[8] = "";
	if (p->addr.family != IP_FAMILY_V6 || dev->is_private) {
		return "";
	}
	snprintf(key, sizeof(key), "net/ipv6/conf/%s/disable_ipv6", dev->name);
	if (os_sysctl_read(key, value, sizeof(value))) {
		return ": this kernel has no IPv6; leave the address out";
	}
	return value[0] == '1' ? ": IPv6 is switched off here: sysctl -w "
				 "net.ipv6.conf.default.disable_ipv6=0 (Docker, Podman: --sysctl "
				 "net.ipv6.conf.default.disable_ipv6=0), or leave the address out"
			       : "";
}

static enum weft_err
add_addresses(const struct change *c)
{
	const struct node_device *dev = node_device_of(c->node);
	for (size_t i = 0; i < c->fresh->interface.addresses.n; i++) {
		const struct ip_prefix *p = &c->fresh->interface.addresses.v[i].prefix;
		if (has_address(c->old, p)) {
			continue;
		}
		enum weft_err e = os_netlink_addr_add(dev->netlink, dev->ifindex, p);
		if (e && e != WEFT_EEXIST) { /* it may be given twice */
			char text[IP_PREFIX_TEXT_MAX];
			log_error(c->log, "cannot add address %s: %s%s", ip_prefix_format(p, text),
				os_netlink_error_text(dev->netlink), why_no_address(dev, p));
			remove_addresses(c->node, c->fresh, c->old, i);
			return e;
		}
	}
	return WEFT_OK;
}

/* The kernel takes the other addresses of a network away with its first, and all routes with the
 * last of IPv4. */
static void
drop_addresses(const struct change *c)
{
	const struct node_device *dev = node_device_of(c->node);
	enum weft_err e = os_netlink_link_promote_secondaries(dev->netlink, dev->ifindex);
	if (!remove_addresses(c->node, c->old, c->fresh, SIZE_MAX)) {
		return;
	}
	for (size_t i = 0; i < c->fresh->interface.addresses.n; i++) {
		e = os_netlink_addr_add(
			dev->netlink, dev->ifindex, &c->fresh->interface.addresses.v[i].prefix);
	}
	(void)e; /* most are there */
	route_restore(c->node, c->traces);
}

static enum weft_err
set_mark(const struct change *c, uint32_t mark)
{
	struct node_facts facts;
	node_facts(c->node, &facts);
	enum weft_err e = mark == facts.fwmark ? WEFT_OK : node_set_fwmark(c->node, mark);
	if (e == WEFT_EPERM && node_device_of(c->node)->is_private) {
		/* Without a default route outside there is no loop to keep it from. */
		log_warn(c->log, "FwMark needs CAP_NET_ADMIN: our packets go without it");
		return WEFT_OK;
	}
	if (e) {
		log_error(c->log, "FwMark: %s", weft_err_text(e));
	}
	return e;
}

/* A port that was chosen by the kernel stays; one that was asked for, and is not any more, goes. */
static enum weft_err
set_port(const struct change *c)
{
	uint16_t port = c->fresh->interface.listen_port;
	bool was_fixed = c->old && c->old->interface.listen_port;
	if (port == 0 && !was_fixed) {
		return WEFT_OK;
	}
	enum weft_err e = node_set_listen_port(c->node, port);
	if (e) {
		log_error(c->log, "ListenPort %u: %s", port, weft_err_text(e));
	}
	return e;
}

static enum weft_err
set_mtu(const struct change *c, uint16_t mtu)
{
	const struct node_device *dev = node_device_of(c->node);
	struct os_link_change to = {.mtu = mtu};
	if (mtu == dev->mtu) {
		return WEFT_OK;
	}
	enum weft_err e = os_netlink_link_change(dev->netlink, dev->ifindex, &to);
	if (e) {
		log_error(c->log, "MTU %u: %s", mtu, os_netlink_error_text(dev->netlink));
	}
	node_monitor(c->node);
	return e;
}

static enum weft_err
set_up(const struct change *c)
{
	const struct node_device *dev = node_device_of(c->node);
	enum weft_err e = os_netlink_link_set_up(dev->netlink, dev->ifindex, true);
	if (e) {
		log_error(c->log, "cannot set the interface up: %s",
			os_netlink_error_text(dev->netlink));
	}
	node_device_wait(dev);
	node_monitor(c->node); /* the engine learns of it before the first packet */
	return e;
}

/* An IPv6 address is usable only when a kernel thread has been there; what comes before is thrown
 * away. */
static void
wait_for_address(const struct node_device *dev, const struct ip_addr *a)
{
	for (int i = 0; a->family == IP_FAMILY_V6 && i < WAIT_TRIES; i++) {
		struct os_route r;
		if (os_netlink_route_get(dev->netlink, a, 0, &r) == WEFT_OK &&
			r.table == OS_ROUTE_TABLE_LOCAL) {
			return;
		}
		os_clock_sleep_ns(WEFT_NS_PER_MS);
	}
}

static void
wait_for_addresses(const struct change *c)
{
	const struct node_device *dev = node_device_of(c->node);
	for (size_t i = 0; i < c->fresh->interface.addresses.n; i++) {
		const struct ip_prefix *p = &c->fresh->interface.addresses.v[i].prefix;
		if (!has_address(c->old, p)) {
			wait_for_address(dev, &p->addr);
		}
	}
}

/* The key that is there already ends no sessions. Returns whether it is another. */
static bool
set_key(const struct change *c)
{
	struct wg_out *out;
	uint8_t was[KEY_LEN] = {0};
	const struct conf_interface *i = &c->fresh->interface;
	struct wg_device *d = node_lock(c->node, &out);
	bool had_key = wg_device_private_key(d, was);
	bool is_new = had_key != i->has_private_key ||
		      (had_key && !secret_is_equal(was, i->private_key, KEY_LEN));
	if (is_new) {
		wg_device_set_private_key(d, i->has_private_key ? i->private_key : NULL);
	}
	node_unlock(c->node);
	secret_wipe(was, sizeof(was));
	return is_new;
}

static enum weft_err
check(struct change *c)
{
	enum weft_err e = route_check(c->fresh, c->traces, c->log);
	if (!e) {
		e = route_choose_mark(c->old, c->fresh, c->traces, c->log, &c->mark);
	}
	c->mtu = c->facts.mtu;
	/* Of a fresh node it was chosen already. */
	if (c->old && c->old->interface.mtu != c->fresh->interface.mtu) {
		c->mtu = apply_choose_mtu(c->fresh);
	}
	return e;
}

/* Sockets, MTU and peers: what is gone back on when the kernel refuses the rest. */
static enum weft_err
change_node(struct change *c)
{
	enum weft_err e = set_mark(c, c->mark);
	if (!e) {
		e = set_mtu(c, c->mtu);
	}
	if (!e) {
		e = set_port(c);
	}
	if (!e) {
		c->has_matched = true;
		e = match_peers(c->node, &c->before, &c->after, c->log);
	}
	return e;
}

static enum weft_err
change_kernel(const struct change *c, struct route_change *routes)
{
	enum weft_err e = add_addresses(c);
	if (e) {
		return e;
	}
	e = c->facts.is_up ? WEFT_OK : set_up(c);
	if (!e) {
		wait_for_addresses(c);
	}
	if (!e) {
		e = route_begin(c->node, c->fresh, c->mark, c->log, c->traces, routes);
	}
	if (e) {
		remove_addresses(c->node, c->fresh, c->old, SIZE_MAX);
	}
	return e;
}

/* What can fail here was so a moment ago. */
static void
go_back(const struct change *c)
{
	struct log silent = {0};
	struct node_facts now;
	node_facts(c->node, &now);
	/* The right to a mark may be missing, and then it was never changed. */
	enum weft_err e =
		now.fwmark == c->facts.fwmark ? WEFT_OK : node_set_fwmark(c->node, c->facts.fwmark);
	if (!e) {
		e = set_mtu(c, c->facts.mtu);
	}
	if (!e && now.listen_port != c->facts.listen_port) {
		e = node_set_listen_port(c->node, c->facts.listen_port);
	}
	if (!e && c->has_matched) {
		e = match_peers(c->node, &c->after, &c->before, &silent);
		match_prune(c->node, &c->before, c->log);
	}
	if (e) {
		log_error(c->log, "cannot go back to the old configuration in full: %s",
			weft_err_text(e));
	}
}

static enum weft_err
apply_change(struct change *c)
{
	struct route_change routes;
	enum weft_err e = check(c);
	if (e) {
		return e;
	}
	if (!c->old) {
		(void)set_key(c);
	}
	e = change_node(c);
	if (!e) {
		e = change_kernel(c, &routes);
	}
	if (e) {
		if (c->old) {
			go_back(c);
		}
		return e;
	}
	route_end(c->node, &routes, c->log, c->traces);
	if (c->old) {
		drop_addresses(c);
		match_prune(c->node, &c->after, c->log);
		if (set_key(c)) {
			/* A peer with the key that was ours was left out above. */
			enum weft_err late = match_peers(c->node, &c->after, &c->after, c->log);
			(void)late; /* logged */
		}
	}
	return WEFT_OK;
}

enum weft_err
apply_conf(struct node *n, const struct conf *old, const struct conf *c, const struct log *log,
	struct apply_traces *t)
{
	struct change change = {.node = n, .old = old, .fresh = c, .log = log, .traces = t};
	node_facts(n, &change.facts);
	enum weft_err e = old ? census_make(old, &change.before) : WEFT_OK;
	if (!e) {
		e = census_make(c, &change.after);
	}
	if (!e) {
		e = apply_change(&change);
	}
	census_fini(&change.before);
	census_fini(&change.after);
	return e;
}

void
apply_undo(struct apply_traces *t, const struct log *log)
{
	route_undo(t, log);
}

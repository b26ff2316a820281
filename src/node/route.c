/* SPDX-License-Identifier: Apache-2.0 */
#include "node/route.h"

#include <stdlib.h>
#include <string.h>

#include "node/device.h"
#include "os/file.h"
#include "os/netlink.h"

/* wg-quick's first candidate for the table and mark of a default route. */
#define TABLE_FIRST 51820u
#define TABLE_TRIES 1000u

static unsigned
family_slot(enum ip_family f)
{
	return f == IP_FAMILY_V4 ? 0 : 1;
}

static int
compare_prefixes(const void *a, const void *b)
{
	const struct ip_prefix *x = a, *y = b;
	if (x->addr.family != y->addr.family) {
		return x->addr.family < y->addr.family ? -1 : 1;
	}
	if (x->bits != y->bits) {
		return x->bits > y->bits ? -1 : 1; /* the most specific first */
	}
	return memcmp(x->addr.b, y->addr.b, sizeof(x->addr.b));
}

/* All peers' prefixes, sorted, each once. */
static enum weft_err
collect(const struct conf *c, struct ip_prefix **out, size_t *out_n)
{
	size_t n = 0;
	for (size_t i = 0; i < c->peers_n; i++) {
		n += c->peers[i].allowed.n;
	}
	struct ip_prefix *all = calloc(n ? n : 1, sizeof(*all));
	if (!all) {
		return WEFT_ENOMEM;
	}
	n = 0;
	for (size_t i = 0; i < c->peers_n; i++) {
		for (size_t k = 0; k < c->peers[i].allowed.n; k++) {
			all[n] = c->peers[i].allowed.v[k].prefix;
			ip_prefix_mask(&all[n]);
			n++;
		}
	}
	qsort(all, n, sizeof(*all), compare_prefixes);
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		if (kept == 0 || compare_prefixes(&all[kept - 1], &all[i]) != 0) {
			all[kept++] = all[i];
		}
	}
	*out = all;
	*out_n = kept;
	return WEFT_OK;
}

/* Is the prefix inside the network of one of our addresses, which has its own route? */
static bool
is_connected(const struct conf *c, const struct ip_prefix *p)
{
	for (size_t i = 0; i < c->interface.addresses.n; i++) {
		struct ip_prefix net = c->interface.addresses.v[i].prefix;
		struct ip_prefix cut = *p;
		if (net.addr.family != p->addr.family || p->bits < net.bits) {
			continue;
		}
		cut.bits = net.bits;
		ip_prefix_mask(&cut);
		ip_prefix_mask(&net);
		if (ip_addr_is_equal(&cut.addr, &net.addr)) {
			return true;
		}
	}
	return false;
}

static enum weft_err
add_route(const struct node_device *dev, const struct ip_prefix *p, uint32_t table,
	const struct log *log)
{
	struct os_route r = {.dst = *p, .ifindex = dev->ifindex, .table = table};
	enum weft_err e = os_netlink_route_add(dev->netlink, &r);
	if (e) {
		char text[IP_PREFIX_TEXT_MAX];
		log_error(log, "cannot add route %s: %s", ip_prefix_format(p, text),
			os_netlink_error_text(dev->netlink));
	}
	return e;
}

/* A table that holds no route of either family. */
static enum weft_err
find_table(struct os_netlink *nl, uint32_t *out)
{
	for (uint32_t t = TABLE_FIRST; t < TABLE_FIRST + TABLE_TRIES; t++) {
		bool has4 = false, has6 = false;
		enum weft_err e = os_netlink_table_has_route(nl, IP_FAMILY_V4, t, false, &has4);
		if (!e) {
			e = os_netlink_table_has_route(nl, IP_FAMILY_V6, t, false, &has6);
		}
		if (e) {
			return e;
		}
		if (!has4 && !has6) {
			*out = t;
			return WEFT_OK;
		}
	}
	return WEFT_ENOMEM;
}

struct find_rule {
	uint32_t table; /* looked for */
	bool has_ours, has_main;
};

static bool
note_rule(void *ctx, const struct os_rule *r)
{
	struct find_rule *f = ctx;
	f->has_ours |= r->table == f->table && r->fwmark == f->table && r->is_inverted;
	f->has_main |= r->table == OS_ROUTE_TABLE_MAIN && r->has_suppress &&
		       r->suppress_prefixlen == 0 && r->fwmark == 0;
	return true;
}

/* Everything without our mark goes to our table, unless the main table has something better
 * than its own default route. A rule that leads to our table before we have added one was left
 * by a daemon that was killed: it is adopted, together with its companion, and so goes when we
 * do. */
static enum weft_err
add_rules(struct apply_traces *t, enum ip_family family)
{
	unsigned slot = family_slot(family);
	struct find_rule found = {.table = t->table};
	enum weft_err e = os_netlink_rules(t->netlink, family, note_rule, &found);
	if (e) {
		return e;
	}
	if (!found.has_ours) {
		struct os_rule ours = {.family = family,
			.fwmark = t->table,
			.is_inverted = true,
			.table = t->table};
		e = os_netlink_rule_add(t->netlink, &ours);
		if (e) {
			return e;
		}
	}
	t->has_rules[slot] = true;
	/* One that others have made does not do: the kernel asks a later rule first, so ours of a
	 * moment ago would take what belongs to the local networks. */
	if (found.has_ours && found.has_main) {
		t->has_main_rule[slot] = true;
		return WEFT_OK;
	}
	struct os_rule main_rule = {
		.family = family, .table = OS_ROUTE_TABLE_MAIN, .has_suppress = true};
	e = os_netlink_rule_add(t->netlink, &main_rule);
	t->has_main_rule[slot] = e == WEFT_OK;
	return e;
}

static enum weft_err
add_default(
	struct node *n, const struct ip_prefix *p, const struct log *log, struct apply_traces *t)
{
	const struct node_device *dev = node_device_of(n);
	struct node_facts facts;
	enum weft_err e = WEFT_OK;
	if (t->table == 0) {
		node_facts(n, &facts);
		t->table = facts.fwmark;
		if (t->table == 0) {
			e = find_table(dev->netlink, &t->table);
			if (!e) {
				e = node_set_fwmark(n, t->table);
			}
			if (e) {
				log_error(log, "cannot prepare the default route: %s",
					weft_err_text(e));
				return e;
			}
		}
	}
	e = add_route(dev, p, t->table, log);
	if (e) {
		return e;
	}
	e = add_rules(t, p->addr.family);
	if (e) {
		log_error(log, "cannot add the rules of the default route: %s",
			os_netlink_error_text(dev->netlink));
		return e;
	}
	/* Replies to marked packets come in unmarked: strict reverse path filters must look at the
	 * mark of the connection. */
	if (p->addr.family == IP_FAMILY_V4 &&
		os_sysctl_write("net/ipv4/conf/all/src_valid_mark", "1")) {
		log_warn(log,
			"cannot set net.ipv4.conf.all.src_valid_mark: with a strict rp_filter the "
			"default route does not work");
	}
	return WEFT_OK;
}

/* Table says how to live beside the routes of others; there are none here. */
static enum weft_err
apply_private(const struct node_device *dev, const struct conf *c, const struct log *log)
{
	struct ip_prefix *all;
	size_t all_n;
	enum weft_err e = collect(c, &all, &all_n);
	if (e) {
		return e;
	}
	for (size_t i = 0; i < all_n && !e; i++) {
		if (!is_connected(c, &all[i])) {
			e = add_route(dev, &all[i], 0, log);
		}
	}
	free(all);
	return e;
}

enum weft_err
route_apply(struct node *n, const struct conf *c, const struct log *log, struct apply_traces *out)
{
	const struct node_device *dev = node_device_of(n);
	if (dev->is_private) {
		return apply_private(dev, c, log);
	}
	if (c->interface.table == CONF_TABLE_OFF) {
		return WEFT_OK;
	}
	if (c->interface.table == CONF_TABLE_NAME) {
		log_error(log, "Table = %s: names of tables are not supported; give its number",
			c->interface.table_name);
		return WEFT_ENOTSUP;
	}
	struct ip_prefix *all;
	size_t all_n;
	enum weft_err e = collect(c, &all, &all_n);
	if (e) {
		return e;
	}
	bool is_auto = c->interface.table == CONF_TABLE_AUTO;
	for (size_t i = 0; i < all_n && !e; i++) {
		if (is_auto && all[i].bits == 0) {
			e = add_default(n, &all[i], log, out);
		} else if (!is_auto || !is_connected(c, &all[i])) {
			e = add_route(dev, &all[i], is_auto ? 0 : c->interface.table_number, log);
		}
	}
	free(all);
	return e;
}

void
route_undo(struct apply_traces *t, const struct log *log)
{
	static const enum ip_family families[2] = {IP_FAMILY_V4, IP_FAMILY_V6};
	for (unsigned i = 0; i < 2; i++) {
		struct os_rule ours = {.family = families[i],
			.fwmark = t->table,
			.is_inverted = true,
			.table = t->table};
		struct os_rule main_rule = {
			.family = families[i], .table = OS_ROUTE_TABLE_MAIN, .has_suppress = true};
		if (t->has_rules[i] && os_netlink_rule_del(t->netlink, &ours)) {
			log_warn(log, "cannot remove the rule of table %u: %s", t->table,
				os_netlink_error_text(t->netlink));
		}
		if (t->has_main_rule[i] && os_netlink_rule_del(t->netlink, &main_rule)) {
			log_warn(log, "cannot remove the rule of the main table: %s",
				os_netlink_error_text(t->netlink));
		}
		t->has_rules[i] = false;
		t->has_main_rule[i] = false;
	}
}

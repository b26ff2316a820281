/* SPDX-License-Identifier: Apache-2.0 */
#include "node/route.h"

#include <stdlib.h>
#include <string.h>

#include "node/census.h"
#include "node/device.h"
#include "node/left.h"
#include "node/table.h"
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
compare_entries(const void *a, const void *b)
{
	const struct route_entry *x = a, *y = b;
	if (x->table != y->table) {
		return x->table < y->table ? -1 : 1;
	}
	return census_compare_prefixes(&x->dst, &y->dst);
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

/* Does a default route of the file need rules? Table says how to live beside the routes of others:
 * a private namespace has none. */
static bool
is_default(const struct apply_traces *t, const struct conf *c, const struct ip_prefix *p)
{
	return !t->is_private && c->interface.table == CONF_TABLE_AUTO && p->bits == 0;
}

static bool
wants_route(const struct apply_traces *t, const struct conf *c, const struct ip_prefix *p)
{
	if (t->is_private) {
		return !is_connected(c, p);
	}
	switch (c->interface.table) {
	case CONF_TABLE_AUTO:
		return p->bits == 0 || !is_connected(c, p);
	case CONF_TABLE_NUMBER:
	case CONF_TABLE_NAME:
		return true;
	case CONF_TABLE_OFF:
		break;
	}
	return false;
}

/* The table that the file gives; 0: none. WEFT_ENOENT: a name that nobody knows. */
static enum weft_err
find_given(const struct conf *c, const struct apply_traces *t, uint32_t *table)
{
	*table = 0;
	if (t->is_private) {
		return WEFT_OK;
	}
	if (c->interface.table == CONF_TABLE_NUMBER) {
		*table = c->interface.table_number;
	}
	return c->interface.table == CONF_TABLE_NAME
		       ? table_by_name("", c->interface.table_name, table)
		       : WEFT_OK;
}

/* All routes that the file asks for, sorted, each once. mark: the table of default routes. */
static enum weft_err
plan(const struct conf *c, uint32_t mark, struct apply_traces *to)
{
	uint32_t table;
	enum weft_err e = find_given(c, to, &table);
	if (e) {
		return e; /* the file of names has changed a moment ago */
	}
	size_t n = 0;
	for (size_t i = 0; i < c->peers_n; i++) {
		n += c->peers[i].allowed.n;
	}
	struct route_entry *all = calloc(n + 1, sizeof(*all));
	if (!all) {
		return WEFT_ENOMEM;
	}
	n = 0;
	for (size_t i = 0; i < c->peers_n; i++) {
		for (size_t k = 0; k < c->peers[i].allowed.n; k++) {
			struct ip_prefix p = c->peers[i].allowed.v[k].prefix;
			ip_prefix_mask(&p);
			if (is_default(to, c, &p)) {
				to->has_rules[family_slot(p.addr.family)] = true;
				to->table = mark;
			}
			if (wants_route(to, c, &p)) {
				all[n++] = (struct route_entry){
					p, is_default(to, c, &p) ? mark : table};
			}
		}
	}
	qsort(all, n, sizeof(*all), compare_entries);
	to->routes = all;
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || compare_entries(&all[i], &all[to->routes_n - 1]) != 0) {
			all[to->routes_n++] = all[i];
		}
	}
	return WEFT_OK;
}

static struct os_route
route_of(const struct node_device *dev, const struct route_entry *r)
{
	return (struct os_route){.dst = r->dst, .ifindex = dev->ifindex, .table = r->table};
}

static enum weft_err
add_route(const struct node_device *dev, const struct route_entry *entry, const struct log *log)
{
	struct os_route r = route_of(dev, entry);
	enum weft_err e = os_netlink_route_add(dev->netlink, &r);
	if (e) {
		char text[IP_PREFIX_TEXT_MAX];
		log_error(log, "cannot add route %s: %s", ip_prefix_format(&entry->dst, text),
			os_netlink_error_text(dev->netlink));
	}
	return e;
}

/* A walk over the entries of a that b lacks. */
struct walk {
	const struct apply_traces *a, *b;
	size_t i, k;
};

static const struct route_entry *
next_missing(struct walk *w)
{
	while (w->i < w->a->routes_n) {
		const struct route_entry *r = &w->a->routes[w->i++];
		int order = 1;
		while (w->k < w->b->routes_n &&
			(order = compare_entries(&w->b->routes[w->k], r)) < 0) {
			w->k++;
		}
		if (w->k == w->b->routes_n || order != 0) {
			return r;
		}
	}
	return NULL;
}

/* Removes what a has and b has not; up to `until`, which is NULL for all. Some have gone with an
 * address already. */
static void
remove_routes(const struct node_device *dev, const struct apply_traces *a,
	const struct apply_traces *b, const struct route_entry *until)
{
	struct walk w = {a, b, 0, 0};
	const struct route_entry *r;
	while ((r = next_missing(&w)) != NULL && r != until) {
		struct os_route gone = route_of(dev, r);
		enum weft_err e = os_netlink_route_del(dev->netlink, &gone);
		(void)e;
	}
}

static enum weft_err
add_routes(const struct node_device *dev, const struct apply_traces *t,
	const struct apply_traces *to, const struct log *log)
{
	struct walk w = {to, t, 0, 0};
	const struct route_entry *r;
	while ((r = next_missing(&w)) != NULL) {
		enum weft_err e = add_route(dev, r, log);
		if (e) {
			remove_routes(dev, to, t, r);
			return e;
		}
	}
	return WEFT_OK;
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
	uint32_t main_priority; /* of the one that is asked first */
};

static bool
note_rule(void *ctx, const struct os_rule *r)
{
	struct find_rule *f = ctx;
	f->has_ours |= r->table == f->table && r->fwmark == f->table && r->is_inverted;
	if (r->table == OS_ROUTE_TABLE_MAIN && r->has_suppress && r->suppress_prefixlen == 0 &&
		r->fwmark == 0) {
		if (!f->has_main || r->priority < f->main_priority) {
			f->main_priority = r->priority;
		}
		f->has_main = true;
	}
	return true;
}

static struct os_rule
our_rule(const struct apply_traces *t, enum ip_family family)
{
	return (struct os_rule){
		.family = family, .fwmark = t->table, .is_inverted = true, .table = t->table};
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
		struct os_rule ours = our_rule(t, family);
		e = os_netlink_rule_add(t->netlink, &ours);
		if (e) {
			return e;
		}
	}
	t->has_rules[slot] = true;
	/* One that others have made does not do: the kernel asks a later rule first, so ours of a
	 * moment ago would take what belongs to the local networks. */
	if (!found.has_ours || !found.has_main) {
		struct os_rule main_rule = {
			.family = family, .table = OS_ROUTE_TABLE_MAIN, .has_suppress = true};
		e = os_netlink_rule_add(t->netlink, &main_rule);
		found = (struct find_rule){.table = t->table};
		if (!e) {
			e = os_netlink_rules(t->netlink, family, note_rule, &found);
		}
	}
	t->has_main_rule[slot] = e == WEFT_OK;
	t->main_priority[slot] = found.main_priority;
	return e;
}

static void
remove_rules(const struct apply_traces *t, enum ip_family family, const struct log *log)
{
	unsigned slot = family_slot(family);
	struct os_rule ours = our_rule(t, family);
	struct os_rule main_rule = {.family = family,
		.table = OS_ROUTE_TABLE_MAIN,
		.has_suppress = true,
		.priority = t->main_priority[slot]};
	if (t->has_rules[slot] && os_netlink_rule_del(t->netlink, &ours)) {
		log_warn(log, "cannot remove the rule of table %u: %s", t->table,
			os_netlink_error_text(t->netlink));
	}
	if (t->has_main_rule[slot] && os_netlink_rule_del(t->netlink, &main_rule)) {
		log_warn(log, "cannot remove the rule of the main table: %s",
			os_netlink_error_text(t->netlink));
	}
}

static const enum ip_family families[2] = {IP_FAMILY_V4, IP_FAMILY_V6};

/* Of r->to: those of the same table are there already. */
static enum weft_err
begin_rules(struct route_change *r, const struct apply_traces *t, const struct log *log)
{
	for (unsigned i = 0; i < 2; i++) {
		bool is_wanted = r->to.has_rules[i];
		r->adds_rules[i] = is_wanted && !(t->has_rules[i] && t->table == r->to.table);
		if (is_wanted && !r->adds_rules[i]) {
			r->to.has_main_rule[i] = t->has_main_rule[i];
			r->to.main_priority[i] = t->main_priority[i];
		}
		r->to.has_rules[i] = is_wanted && !r->adds_rules[i];
	}
	if ((r->adds_rules[0] || r->adds_rules[1]) && t->left) {
		enum weft_err e = t->left->begin(t->left->ctx, r->to.table, r->adds_rules[0]);
		if (e) {
			log_error(log,
				"cannot note the rules of the default route in /run/weft: %s",
				weft_err_text(e));
			return e;
		}
	}
	for (unsigned i = 0; i < 2; i++) {
		enum weft_err e = r->adds_rules[i] ? add_rules(&r->to, families[i]) : WEFT_OK;
		if (e) {
			log_error(log, "cannot add the rules of the default route: %s",
				os_netlink_error_text(t->netlink));
			for (unsigned k = 0; k <= i; k++) {
				if (r->adds_rules[k]) {
					remove_rules(&r->to, families[k], log);
				}
			}
			return e;
		}
	}
	return WEFT_OK;
}

enum weft_err
route_check(const struct conf *c, const struct apply_traces *t, const struct log *log)
{
	uint32_t table;
	enum weft_err e = find_given(c, t, &table);
	if (e) {
		log_error(log,
			"Table = %s: no table is called that in " TABLE_FILES
			": add a line \"NUMBER %s\" there, or give the number here",
			c->interface.table_name, c->interface.table_name);
	}
	return e;
}

enum weft_err
route_choose_mark(const struct conf *old, const struct conf *c, const struct apply_traces *t,
	const struct log *log, uint32_t *mark)
{
	bool has_default = false;
	for (size_t i = 0; i < c->peers_n; i++) {
		for (size_t k = 0; k < c->peers[i].allowed.n; k++) {
			has_default |= is_default(t, c, &c->peers[i].allowed.v[k].prefix);
		}
	}
	if (c->interface.fwmark || !has_default) {
		*mark = c->interface.fwmark;
		return WEFT_OK;
	}
	if (t->table && !old->interface.fwmark) {
		*mark = t->table;
		return WEFT_OK;
	}
	enum weft_err e = find_table(t->netlink, mark);
	if (e) {
		log_error(log, "cannot prepare the default route: %s", weft_err_text(e));
	}
	return e;
}

enum weft_err
route_begin(struct node *n, const struct conf *c, uint32_t mark, const struct log *log,
	const struct apply_traces *t, struct route_change *out)
{
	const struct node_device *dev = node_device_of(n);
	*out = (struct route_change){
		.to = {.netlink = t->netlink, .left = t->left, .is_private = t->is_private}};
	enum weft_err e = plan(c, mark, &out->to);
	if (e) {
		return e;
	}
	e = add_routes(dev, t, &out->to, log);
	if (e) {
		goto undo_plan;
	}
	e = begin_rules(out, t, log);
	if (e) {
		goto undo_routes;
	}
	return WEFT_OK;

undo_routes:
	remove_routes(dev, &out->to, t, NULL);
undo_plan:
	free(out->to.routes);
	return e;
}

void
route_end(struct node *n, struct route_change *r, const struct log *log, struct apply_traces *t)
{
	for (unsigned i = 0; i < 2; i++) {
		if (t->has_rules[i] && (r->adds_rules[i] || !r->to.has_rules[i])) {
			remove_rules(t, families[i], log);
		}
	}
	remove_routes(node_device_of(n), t, &r->to, NULL);
	free(t->routes);
	*t = r->to;
}

void
route_restore(struct node *n, const struct apply_traces *t)
{
	const struct node_device *dev = node_device_of(n);
	for (size_t i = 0; i < t->routes_n; i++) {
		struct os_route r = route_of(dev, &t->routes[i]);
		enum weft_err e = os_netlink_route_add(dev->netlink, &r);
		(void)e; /* most are there */
	}
}

void
route_undo(struct apply_traces *t, const struct log *log)
{
	for (unsigned i = 0; i < 2; i++) {
		remove_rules(t, families[i], log);
	}
	if (t->left) {
		t->left->end(t->left->ctx);
	}
	free(t->routes);
	*t = (struct apply_traces){
		.netlink = t->netlink, .left = t->left, .is_private = t->is_private};
}

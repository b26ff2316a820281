/* SPDX-License-Identifier: Apache-2.0 */
/* Routes and policy rules of os/netlink.h. */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "os/error.h"
#include "os/netlink.h"
#include "os/netlink_msg.h"

#define MARK_MASK_ALL UINT32_MAX

static uint32_t
table_of(uint32_t table)
{
	return table ? table : OS_ROUTE_TABLE_MAIN;
}

/* --- routes --- */

static enum weft_err
change_route(struct os_netlink *n, uint16_t type, uint16_t flags, const struct os_route *r)
{
	struct ip_prefix dst = r->dst;
	ip_prefix_mask(&dst);
	struct rtmsg *t;
	struct nlmsghdr *m = os_netlink_begin(n, type, flags, sizeof(*t), &t);
	t->rtm_family = os_netlink_af(dst.addr.family);
	t->rtm_dst_len = dst.bits;
	t->rtm_table = RT_TABLE_UNSPEC; /* RTA_TABLE below holds any number */
	if (type == RTM_NEWROUTE) {
		t->rtm_protocol = RTPROT_BOOT;
		t->rtm_type = RTN_UNICAST;
		t->rtm_scope = dst.addr.family == IP_FAMILY_V4 ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
	} else {
		t->rtm_scope = RT_SCOPE_NOWHERE; /* any */
	}
	if (dst.bits > 0) {
		os_netlink_put_addr(m, RTA_DST, &dst.addr);
	}
	mnl_attr_put_u32(m, RTA_TABLE, table_of(r->table));
	mnl_attr_put_u32(m, RTA_OIF, r->ifindex);
	if (type == RTM_NEWROUTE && r->mtu) {
		struct nlattr *metrics = mnl_attr_nest_start(m, RTA_METRICS);
		mnl_attr_put_u32(m, RTAX_MTU, r->mtu);
		mnl_attr_nest_end(m, metrics);
	}
	return os_netlink_talk(n, m, NULL, NULL);
}

enum weft_err
os_netlink_route_add(struct os_netlink *n, const struct os_route *r)
{
	return change_route(n, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, r);
}

enum weft_err
os_netlink_route_del(struct os_netlink *n, const struct os_route *r)
{
	return change_route(n, RTM_DELROUTE, 0, r);
}

struct route_answer {
	uint8_t af;
	struct os_route r;
};

static int
metric_attr(const struct nlattr *a, void *data)
{
	struct os_route *r = data;
	if (mnl_attr_get_type(a) == RTAX_MTU) {
		r->mtu = os_netlink_u32(a);
	}
	return MNL_CB_OK;
}

static int
route_attr(const struct nlattr *a, void *data)
{
	struct route_answer *x = data;
	switch (mnl_attr_get_type(a)) {
	case RTA_DST:
		x->r.dst.addr = os_netlink_addr(a, x->af);
		break;
	case RTA_OIF:
		x->r.ifindex = os_netlink_u32(a);
		break;
	case RTA_TABLE:
		x->r.table = os_netlink_u32(a);
		break;
	case RTA_METRICS:
		(void)mnl_attr_parse_nested(a, metric_attr, &x->r);
		break;
	default:
		break;
	}
	return MNL_CB_OK;
}

/* False for what is no route of either family. */
static bool
decode_route(const struct nlmsghdr *m, struct os_route *out)
{
	const struct rtmsg *t = mnl_nlmsg_get_payload(m);
	if (m->nlmsg_type != RTM_NEWROUTE ||
		(t->rtm_family != AF_INET && t->rtm_family != AF_INET6)) {
		return false;
	}
	struct route_answer x = {.af = t->rtm_family};
	x.r.dst.addr.family = t->rtm_family == AF_INET ? IP_FAMILY_V4 : IP_FAMILY_V6;
	x.r.dst.bits = t->rtm_dst_len;
	x.r.table = t->rtm_table;
	x.r.is_local = t->rtm_type == RTN_LOCAL;
	(void)mnl_attr_parse(m, sizeof(*t), route_attr, &x);
	*out = x.r;
	return true;
}

struct route_walk {
	bool (*each)(void *ctx, const struct os_route *r);
	void *ctx;
	bool is_over; /* the rest of the dump is read, but not shown */
};

static void
on_dumped_route(void *ctx, const struct nlmsghdr *m)
{
	struct route_walk *w = ctx;
	const struct rtmsg *t = mnl_nlmsg_get_payload(m);
	struct os_route r;
	if (!w->is_over && decode_route(m, &r) && t->rtm_type == RTN_UNICAST &&
		!(t->rtm_flags & RTM_F_CLONED)) {
		w->is_over = !w->each(w->ctx, &r);
	}
}

enum weft_err
os_netlink_routes(struct os_netlink *n, enum ip_family family,
	bool (*each)(void *ctx, const struct os_route *r), void *ctx)
{
	struct rtmsg *t;
	struct nlmsghdr *m = os_netlink_begin(n, RTM_GETROUTE, NLM_F_DUMP, sizeof(*t), &t);
	t->rtm_family = os_netlink_af(family);
	struct route_walk w = {.each = each, .ctx = ctx};
	return os_netlink_talk(n, m, on_dumped_route, &w);
}

struct table_query {
	uint32_t table;
	bool is_default;
	bool is_found;
};

static bool
look_in_table(void *ctx, const struct os_route *r)
{
	struct table_query *q = ctx;
	if (r->table == q->table && (!q->is_default || r->dst.bits == 0)) {
		q->is_found = true;
	}
	return !q->is_found;
}

enum weft_err
os_netlink_table_has_route(
	struct os_netlink *n, enum ip_family family, uint32_t table, bool is_default, bool *out)
{
	struct table_query q = {.table = table_of(table), .is_default = is_default};
	enum weft_err err = os_netlink_routes(n, family, look_in_table, &q);
	if (!err) {
		*out = q.is_found;
	}
	return err;
}

struct get_answer {
	struct os_route r;
	bool is_there;
};

static void
on_got_route(void *ctx, const struct nlmsghdr *m)
{
	struct get_answer *a = ctx;
	if (decode_route(m, &a->r)) {
		a->is_there = true;
	}
}

static enum weft_err
get_route(struct os_netlink *n, const struct ip_addr *src, const struct ip_addr *dst, uint32_t mark,
	struct os_route *out)
{
	struct rtmsg *t;
	struct nlmsghdr *m = os_netlink_begin(n, RTM_GETROUTE, 0, sizeof(*t), &t);
	t->rtm_family = os_netlink_af(dst->family);
	t->rtm_dst_len = (uint8_t)(ip_family_len(dst->family) * 8);
	os_netlink_put_addr(m, RTA_DST, dst);
	if (src && src->family == dst->family) {
		t->rtm_src_len = t->rtm_dst_len;
		os_netlink_put_addr(m, RTA_SRC, src);
	}
	if (mark) {
		mnl_attr_put_u32(m, RTA_MARK, mark);
	}
	struct get_answer a = {0};
	enum weft_err err = os_netlink_talk(n, m, on_got_route, &a);
	if (err) {
		return err;
	}
	if (!a.is_there) {
		return os_netlink_fail(n, ENETUNREACH);
	}
	*out = a.r;
	return WEFT_OK;
}

enum weft_err
os_netlink_route_get(
	struct os_netlink *n, const struct ip_addr *dst, uint32_t mark, struct os_route *out)
{
	return get_route(n, NULL, dst, mark, out);
}

enum weft_err
os_netlink_route_get_from(struct os_netlink *n, const struct ip_addr *src,
	const struct ip_addr *dst, uint32_t mark, struct os_route *out)
{
	return get_route(n, src, dst, mark, out);
}

/* --- rules --- */

static enum weft_err
change_rule(struct os_netlink *n, uint16_t type, uint16_t flags, const struct os_rule *r)
{
	struct fib_rule_hdr *h;
	struct nlmsghdr *m = os_netlink_begin(n, type, flags, sizeof(*h), &h);
	h->family = os_netlink_af(r->family);
	h->action = FR_ACT_TO_TBL;
	h->table = RT_TABLE_UNSPEC;
	h->flags = r->is_inverted ? FIB_RULE_INVERT : 0;
	mnl_attr_put_u32(m, FRA_TABLE, table_of(r->table));
	if (r->fwmark) {
		mnl_attr_put_u32(m, FRA_FWMARK, r->fwmark);
		mnl_attr_put_u32(m, FRA_FWMASK, MARK_MASK_ALL);
	}
	if (r->has_suppress) {
		mnl_attr_put_u32(m, FRA_SUPPRESS_PREFIXLEN, r->suppress_prefixlen);
	}
	if (r->priority) {
		mnl_attr_put_u32(m, FRA_PRIORITY, r->priority);
	}
	if (type == RTM_NEWRULE) {
		mnl_attr_put_u8(m, FRA_PROTOCOL, RTPROT_BOOT);
	}
	return os_netlink_talk(n, m, NULL, NULL);
}

enum weft_err
os_netlink_rule_add(struct os_netlink *n, const struct os_rule *r)
{
	return change_rule(n, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, r);
}

enum weft_err
os_netlink_rule_del(struct os_netlink *n, const struct os_rule *r)
{
	return change_rule(n, RTM_DELRULE, 0, r);
}

static int
rule_attr(const struct nlattr *a, void *data)
{
	struct os_rule *r = data;
	switch (mnl_attr_get_type(a)) {
	case FRA_TABLE:
		r->table = os_netlink_u32(a);
		break;
	case FRA_FWMARK:
		r->fwmark = os_netlink_u32(a);
		break;
	case FRA_PRIORITY:
		r->priority = os_netlink_u32(a);
		break;
	case FRA_SUPPRESS_PREFIXLEN:
		/* All ones is how some kernels say "none". */
		r->suppress_prefixlen = os_netlink_u32(a);
		r->has_suppress = r->suppress_prefixlen != UINT32_MAX;
		break;
	default:
		break;
	}
	return MNL_CB_OK;
}

struct rule_walk {
	bool (*each)(void *ctx, const struct os_rule *r);
	void *ctx;
	bool is_over;
};

static void
on_dumped_rule(void *ctx, const struct nlmsghdr *m)
{
	struct rule_walk *w = ctx;
	const struct fib_rule_hdr *h = mnl_nlmsg_get_payload(m);
	if (w->is_over || m->nlmsg_type != RTM_NEWRULE || h->action != FR_ACT_TO_TBL) {
		return;
	}
	struct os_rule r = {.family = h->family == AF_INET6 ? IP_FAMILY_V6 : IP_FAMILY_V4,
		.is_inverted = (h->flags & FIB_RULE_INVERT) != 0,
		.table = h->table};
	(void)mnl_attr_parse(m, sizeof(*h), rule_attr, &r);
	w->is_over = !w->each(w->ctx, &r);
}

enum weft_err
os_netlink_rules(struct os_netlink *n, enum ip_family family,
	bool (*each)(void *ctx, const struct os_rule *r), void *ctx)
{
	struct fib_rule_hdr *h;
	struct nlmsghdr *m = os_netlink_begin(n, RTM_GETRULE, NLM_F_DUMP, sizeof(*h), &h);
	h->family = os_netlink_af(family);
	struct rule_walk w = {.each = each, .ctx = ctx};
	return os_netlink_talk(n, m, on_dumped_rule, &w);
}

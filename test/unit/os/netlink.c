/* SPDX-License-Identifier: Apache-2.0 */
/* What the netlink calls do, told by `ip -j`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "netns.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/netlink.h"
#include "os/netmon.h"
#include "os/tun.h"

static struct os_netlink *
open_fresh(void)
{
	struct os_netlink *n;
	netns_fresh();
	assert_int_equal(os_netlink_open(&n), WEFT_OK);
	return n;
}

static json_t *
ip_json(const char *args)
{
	char *text = netns_output("ip -j -d %s", args);
	json_error_t e;
	json_t *j = json_loads(text[0] ? text : "[]", 0, &e);
	assert_non_null(j);
	free(text);
	return j;
}

static struct ip_prefix
prefix(const char *text)
{
	struct ip_prefix p;
	assert_int_equal(ip_prefix_parse(text, strlen(text), &p), WEFT_OK);
	return p;
}

/* Number of objects of `ip ARGS` in which key is value (a string; NULL: all). */
static size_t
count_where(const char *args, const char *key, const char *value)
{
	json_t *j = ip_json(args);
	size_t i, n = 0;
	json_t *o;
	json_array_foreach(j, i, o)
	{
		const char *v = key ? json_string_value(json_object_get(o, key)) : NULL;
		n += !key || (v && strcmp(v, value) == 0);
	}
	json_decref(j);
	return n;
}

static int64_t
link_number(const char *dev, const char *key)
{
	char args[64];
	snprintf(args, sizeof(args), "link show %s", dev);
	json_t *j = ip_json(args);
	int64_t v = json_integer_value(json_object_get(json_array_get(j, 0), key));
	json_decref(j);
	return v;
}

static void
link_is_found_changed_and_deleted(void **state)
{
	(void)state;
	struct os_netlink *n = open_fresh();
	struct os_link_info i, by_index;
	netns_run("ip link add va type veth peer name vb");
	assert_int_equal(os_netlink_link_by_name(n, "nothing", &i), WEFT_ENOENT);
	assert_string_equal(os_netlink_error_text(n), "No such device");
	assert_int_equal(os_netlink_link_by_name(n, "a-name-that-is-too-long", &i), WEFT_ENOENT);
	assert_int_equal(os_netlink_link_by_name(n, "va", &i), WEFT_OK);
	assert_string_equal(i.name, "va");
	assert_string_equal(i.kind, "veth");
	assert_int_equal(i.mtu, 1500);
	assert_false(i.is_up);
	assert_int_equal(i.index, link_number("va", "ifindex"));
	assert_int_equal(os_netlink_link_by_index(n, i.index, &by_index), WEFT_OK);
	assert_string_equal(by_index.name, "va");
	assert_int_equal(os_netlink_link_by_index(n, 9999, &by_index), WEFT_ENOENT);

	struct os_link_change c = {.mtu = 1420,
		.txqueuelen = 77,
		.gso_max_size = 61000,
		.gso_max_segs = 128,
		.gro_max_size = 62000};
	assert_int_equal(os_netlink_link_change(n, i.index, &c), WEFT_OK);
	assert_int_equal(os_netlink_link_set_up(n, i.index, true), WEFT_OK);
	assert_int_equal(link_number("va", "mtu"), 1420);
	assert_int_equal(link_number("va", "txqlen"), 77);
	assert_int_equal(link_number("va", "gso_max_size"), 61000);
	assert_int_equal(link_number("va", "gro_max_size"), 62000);
	assert_int_equal(count_where("link show up", "ifname", "va"), 1);
	assert_int_equal(os_netlink_link_by_index(n, i.index, &i), WEFT_OK);
	assert_true(i.is_up);
	assert_int_equal(i.mtu, 1420);
	assert_int_equal(i.txqueuelen, 77);
	assert_int_equal(i.gso_max_size, 61000);
	assert_int_equal(i.gso_max_segs, 128);
	assert_int_equal(i.gro_max_size, 62000);
	/* 0: a kernel before 6.3, which has one value for both families. */
	assert_true(i.gso_ipv4_max_size == 61000 || i.gso_ipv4_max_size == 0);

	c = (struct os_link_change){.txqueuelen = 500};
	assert_int_equal(os_netlink_link_change(n, i.index, &c), WEFT_OK);
	assert_int_equal(link_number("va", "mtu"), 1420);
	c = (struct os_link_change){.mtu = 1};
	assert_int_equal(os_netlink_link_change(n, i.index, &c), WEFT_EINVAL);
	assert_string_equal(os_netlink_error_text(n), "mtu less than device minimum");

	assert_int_equal(os_netlink_link_set_up(n, i.index, false), WEFT_OK);
	assert_int_equal(count_where("link show up", "ifname", "va"), 0);
	assert_int_equal(os_netlink_link_delete(n, i.index), WEFT_OK);
	assert_int_equal(count_where("link show", "ifname", "va"), 0);
	assert_int_equal(os_netlink_link_delete(n, i.index), WEFT_ENOENT);
	os_netlink_close(n);
}

static void
addresses_come_and_go(void **state)
{
	(void)state;
	struct os_netlink *n = open_fresh();
	struct os_link_info i;
	netns_run("ip link add va type veth peer name vb && ip link set va up");
	assert_int_equal(os_netlink_link_by_name(n, "va", &i), WEFT_OK);
	static const char *const texts[] = {
		"10.7.0.2/24", "10.7.0.3/32", "fd07::2/64", "fd07::3/128"};
	for (size_t k = 0; k < WEFT_ARRAY_LEN(texts); k++) {
		struct ip_prefix p = prefix(texts[k]);
		assert_int_equal(os_netlink_addr_add(n, i.index, &p), WEFT_OK);
		assert_int_equal(os_netlink_addr_add(n, i.index, &p), WEFT_EEXIST);
		char *out = netns_output("ip -o addr show dev va");
		assert_non_null(strstr(out, texts[k]));
		assert_null(strstr(out, "tentative"));
		free(out);
	}
	for (size_t k = 0; k < WEFT_ARRAY_LEN(texts); k++) {
		struct ip_prefix p = prefix(texts[k]);
		assert_int_equal(os_netlink_addr_del(n, i.index, &p), WEFT_OK);
		assert_int_equal(os_netlink_addr_del(n, i.index, &p), WEFT_ENOENT);
		char *out = netns_output("ip -o addr show dev va");
		assert_null(strstr(out, texts[k]));
		free(out);
	}
	struct ip_prefix p = prefix("10.7.0.2/24");
	assert_int_equal(os_netlink_addr_add(n, 9999, &p), WEFT_ENOENT);
	os_netlink_close(n);
}

static void
first_address_of_a_network_goes_alone(void **state)
{
	(void)state;
	struct os_netlink *n = open_fresh();
	struct os_link_info i;
	netns_run("ip link add va type veth peer name vb && ip link set va up");
	assert_int_equal(os_netlink_link_by_name(n, "va", &i), WEFT_OK);
	struct ip_prefix first = prefix("10.7.0.2/24"), second = prefix("10.7.0.3/24");
	for (unsigned k = 0; k < 2; k++) {
		assert_int_equal(os_netlink_addr_add(n, i.index, &first), WEFT_OK);
		assert_int_equal(os_netlink_addr_add(n, i.index, &second), WEFT_OK);
		if (k == 1) {
			assert_int_equal(os_netlink_link_promote_secondaries(n, i.index), WEFT_OK);
		}
		assert_int_equal(os_netlink_addr_del(n, i.index, &first), WEFT_OK);
		char *out = netns_output("ip -4 -o addr show dev va");
		assert_int_equal(strstr(out, "10.7.0.3/24") != NULL, k == 1);
		free(out);
	}
	assert_int_equal(os_netlink_link_promote_secondaries(n, 9999), WEFT_ENOENT);
	os_netlink_close(n);
}

static void
routes_come_and_go_in_any_table(void **state)
{
	(void)state;
	struct os_netlink *n = open_fresh();
	struct os_link_info i;
	bool is_there;
	netns_run(
		"ip link add va type veth peer name vb && ip link set va up && ip link set vb up");
	assert_int_equal(os_netlink_link_by_name(n, "va", &i), WEFT_OK);
	static const struct {
		const char *dst;
		uint32_t table;
		const char *show;
		const char *shown;
	} cases[] = {{"10.20.0.0/16", 0, "route show", "10.20.0.0/16"},
		{"10.21.5.5/16", 0, "route show", "10.21.0.0/16"}, /* host bits */
		{"0.0.0.0/0", 51820, "route show table 51820", "default"},
		{"fd20::/64", 0, "-6 route show", "fd20::/64"},
		{"::/0", 51820, "-6 route show table 51820", "default"},
		{"10.22.0.1/32", 300000, "route show table 300000", "10.22.0.1"}};
	for (size_t k = 0; k < WEFT_ARRAY_LEN(cases); k++) {
		struct os_route r = {.dst = prefix(cases[k].dst),
			.ifindex = i.index,
			.table = cases[k].table,
			.mtu = 1300};
		enum ip_family family = r.dst.addr.family;
		bool is_default = r.dst.bits == 0;
		assert_int_equal(os_netlink_route_add(n, &r), WEFT_OK);
		assert_int_equal(os_netlink_route_add(n, &r), WEFT_EEXIST);
		assert_int_equal(count_where(cases[k].show, "dst", cases[k].shown), 1);
		assert_int_equal(
			os_netlink_table_has_route(n, family, r.table, is_default, &is_there),
			WEFT_OK);
		assert_true(is_there);
	}
	assert_int_equal(os_netlink_table_has_route(n, IP_FAMILY_V4, 0, true, &is_there), WEFT_OK);
	assert_false(is_there); /* the default routes are in another table */
	assert_int_equal(
		os_netlink_table_has_route(n, IP_FAMILY_V6, 51821, false, &is_there), WEFT_OK);
	assert_false(is_there);

	struct os_route got;
	struct ip_addr dst = prefix("10.20.1.1").addr;
	assert_int_equal(os_netlink_route_get(n, &dst, 0, &got), WEFT_OK);
	assert_int_equal(got.ifindex, i.index);
	assert_int_equal(got.mtu, 1300);
	dst = prefix("203.0.113.1").addr;
	assert_int_equal(os_netlink_route_get(n, &dst, 0, &got), WEFT_EUNREACH);
	dst = prefix("2001:db8::1").addr;
	assert_int_equal(os_netlink_route_get(n, &dst, 0, &got), WEFT_EUNREACH);
	struct ip_addr src = prefix("10.99.0.1").addr;
	dst = prefix("10.20.1.1").addr;
	assert_int_not_equal(os_netlink_route_get_from(n, &src, &dst, 0, &got), WEFT_OK);

	for (size_t k = 0; k < WEFT_ARRAY_LEN(cases); k++) {
		struct os_route r = {
			.dst = prefix(cases[k].dst), .ifindex = i.index, .table = cases[k].table};
		assert_int_equal(os_netlink_route_del(n, &r), WEFT_OK);
		assert_int_equal(os_netlink_route_del(n, &r), WEFT_ENOENT);
		assert_int_equal(count_where(cases[k].show, "dst", cases[k].shown), 0);
	}
	struct os_route r = {.dst = prefix("10.1.0.0/16"), .ifindex = 9999};
	assert_int_equal(os_netlink_route_add(n, &r), WEFT_ENOENT);
	os_netlink_close(n);
}

struct rule_search {
	struct os_rule want;
	unsigned hits;
	uint32_t priority;
};

static bool
match_rule(void *ctx, const struct os_rule *r)
{
	struct rule_search *s = ctx;
	if (r->table == s->want.table && r->fwmark == s->want.fwmark &&
		r->is_inverted == s->want.is_inverted && r->has_suppress == s->want.has_suppress &&
		(!r->has_suppress || r->suppress_prefixlen == s->want.suppress_prefixlen)) {
		s->hits++;
		s->priority = r->priority;
	}
	return true;
}

static unsigned
count_rules(struct os_netlink *n, const struct os_rule *want)
{
	struct rule_search s = {.want = *want};
	assert_int_equal(os_netlink_rules(n, want->family, match_rule, &s), WEFT_OK);
	return s.hits;
}

/* The two rules of wg-quick's Table = auto. */
static void
rules_of_policy_routing_come_and_go(void **state)
{
	(void)state;
	struct os_netlink *n = open_fresh();
	static const enum ip_family families[] = {IP_FAMILY_V4, IP_FAMILY_V6};
	for (size_t k = 0; k < WEFT_ARRAY_LEN(families); k++) {
		const char *six = families[k] == IP_FAMILY_V6 ? "-6" : "-4";
		struct os_rule mark = {.family = families[k],
			.fwmark = 51820,
			.is_inverted = true,
			.table = 51820};
		struct os_rule suppress = {
			.family = families[k], .table = OS_ROUTE_TABLE_MAIN, .has_suppress = true};
		assert_int_equal(os_netlink_rule_add(n, &mark), WEFT_OK);
		assert_int_equal(os_netlink_rule_add(n, &suppress), WEFT_OK);
		char *out = netns_output("ip %s rule show", six);
		assert_non_null(strstr(out, "not from all fwmark 0xca6c lookup 51820"));
		assert_non_null(strstr(out, "lookup main suppress_prefixlength 0"));
		free(out);
		assert_int_equal(count_rules(n, &mark), 1);
		assert_int_equal(count_rules(n, &suppress), 1);
		assert_int_equal(os_netlink_rule_del(n, &mark), WEFT_OK);
		assert_int_equal(os_netlink_rule_del(n, &suppress), WEFT_OK);
		assert_int_equal(os_netlink_rule_del(n, &mark), WEFT_ENOENT);
		out = netns_output("ip %s rule show", six);
		assert_null(strstr(out, "51820"));
		assert_null(strstr(out, "suppress"));
		free(out);
		/* The main table's own rule is still there. */
		suppress.has_suppress = false;
		assert_int_equal(count_rules(n, &suppress), 1);
	}
	os_netlink_close(n);
}

static void
sysctl_is_written_and_read(void **state)
{
	(void)state;
	struct os_netlink *n = open_fresh();
	char value[16];
	assert_int_equal(os_sysctl_write("net/ipv4/conf/all/src_valid_mark", "1"), WEFT_OK);
	assert_int_equal(
		os_sysctl_read("net/ipv4/conf/all/src_valid_mark", value, sizeof(value)), WEFT_OK);
	assert_string_equal(value, "1");
	assert_int_equal(os_sysctl_write("net/ipv4/no_such_key", "1"), WEFT_ENOENT);
	os_netlink_close(n);
}

/* --- news --- */

static bool
wait_for_event(
	struct os_netmon *m, enum os_netmon_kind kind, uint32_t index, struct os_netmon_event *e)
{
	struct mono deadline = mono_add_ns(os_clock_mono(), 2 * WEFT_NS_PER_S);
	for (;;) {
		enum weft_err err = os_netmon_next(m, e);
		if (err == WEFT_OK && e->kind == kind && (index == 0 || e->index == index)) {
			return true;
		}
		if (err == WEFT_EAGAIN && os_fd_wait(os_netmon_fd(m), false, deadline)) {
			return false;
		}
		assert_true(err == WEFT_OK || err == WEFT_EAGAIN);
	}
}

static void
monitor_tells_of_rename_down_address_and_deletion(void **state)
{
	(void)state;
	struct os_netlink *n = open_fresh();
	struct os_netmon *m;
	struct os_netmon_event e;
	struct os_link_info i;
	netns_run("ip link add va type veth peer name vb");
	assert_int_equal(os_netlink_link_by_name(n, "va", &i), WEFT_OK);
	assert_int_equal(os_netmon_open(&m), WEFT_OK);
	assert_int_equal(os_netmon_next(m, &e), WEFT_EAGAIN);

	netns_run("ip link set va name other");
	assert_true(wait_for_event(m, OS_NETMON_LINK, i.index, &e));
	assert_string_equal(e.name, "other");
	assert_false(e.is_up);
	netns_run("ip link set other up");
	do {
		assert_true(wait_for_event(m, OS_NETMON_LINK, i.index, &e));
	} while (!e.is_up);
	netns_run("ip link set other mtu 1400");
	do {
		assert_true(wait_for_event(m, OS_NETMON_LINK, i.index, &e));
	} while (e.mtu != 1400);

	char text[IP_PREFIX_TEXT_MAX];
	netns_run("ip addr add 10.6.0.1/24 dev other");
	assert_true(wait_for_event(m, OS_NETMON_ADDR, i.index, &e));
	assert_string_equal(ip_prefix_format(&e.addr, text), "10.6.0.1/24");
	/* The kernel adds the network's route with the link up; this one is always told. */
	netns_run("ip route add blackhole 10.66.0.0/16");
	assert_true(wait_for_event(m, OS_NETMON_ROUTE, 0, &e));
	netns_run("ip addr del 10.6.0.1/24 dev other");
	assert_true(wait_for_event(m, OS_NETMON_ADDR_DEL, i.index, &e));
	assert_string_equal(ip_prefix_format(&e.addr, text), "10.6.0.1/24");
	netns_run("ip addr add fd06::1/64 dev other nodad");
	do {
		assert_true(wait_for_event(m, OS_NETMON_ADDR, i.index, &e));
	} while (strcmp(ip_prefix_format(&e.addr, text), "fd06::1/64") != 0);

	netns_run("ip link set other down");
	do {
		assert_true(wait_for_event(m, OS_NETMON_LINK, i.index, &e));
	} while (e.is_up);
	netns_run("ip link del other");
	assert_true(wait_for_event(m, OS_NETMON_LINK_DEL, i.index, &e));
	os_netmon_close(m);
	os_netlink_close(n);
}

static void
monitor_says_when_news_was_lost(void **state)
{
	(void)state;
	struct os_netlink *n = open_fresh();
	struct os_netmon *m;
	struct os_netmon_event e;
	assert_int_equal(os_netmon_open(&m), WEFT_OK);
	netns_run("for i in $(seq 1 1500); do echo link set lo mtu $((2000 + i)); done |"
		  "ip -batch -");
	assert_true(wait_for_event(m, OS_NETMON_LOST, 0, &e));
	/* And works again afterwards. */
	while (os_netmon_next(m, &e) != WEFT_EAGAIN) {
	}
	netns_run("ip link set lo mtu 1999");
	assert_true(wait_for_event(m, OS_NETMON_LINK, 1, &e));
	assert_int_equal(e.mtu, 1999);
	os_netmon_close(m);
	os_netlink_close(n);
}

static void
port_leaving_a_bridge_is_no_deletion(void **state)
{
	(void)state;
	struct os_netlink *n = open_fresh();
	struct os_netmon *m;
	struct os_netmon_event e;
	struct os_link_info i;
	netns_run("ip link add va type veth peer name vb && ip link add b0 type bridge &&"
		  "ip link set va master b0");
	assert_int_equal(os_netlink_link_by_name(n, "va", &i), WEFT_OK);
	assert_int_equal(os_netmon_open(&m), WEFT_OK);
	netns_run("ip link set va nomaster && ip link set va mtu 1234");
	do {
		assert_true(wait_for_event(m, OS_NETMON_LINK, i.index, &e));
		assert_int_not_equal(e.kind, OS_NETMON_LINK_DEL);
	} while (e.mtu != 1234);
	os_netmon_close(m);
	os_netlink_close(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_is_found_changed_and_deleted),
		cmocka_unit_test(addresses_come_and_go),
		cmocka_unit_test(first_address_of_a_network_goes_alone),
		cmocka_unit_test(routes_come_and_go_in_any_table),
		cmocka_unit_test(rules_of_policy_routing_come_and_go),
		cmocka_unit_test(sysctl_is_written_and_read),
		cmocka_unit_test(monitor_tells_of_rename_down_address_and_deletion),
		cmocka_unit_test(monitor_says_when_news_was_lost),
		cmocka_unit_test(port_leaving_a_bridge_is_no_deletion),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

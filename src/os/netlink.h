/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces, addresses, routes and rules by rtnetlink; and news of them.
 *
 * One request at a time; calls wait for the kernel's answer. One handle for one thread. */
#ifndef WEFT_OS_NETLINK_H
#define WEFT_OS_NETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"

#define OS_NETLINK_NAME_MAX 16
#define OS_ROUTE_TABLE_MAIN 254u
#define OS_ROUTE_TABLE_LOCAL 255u /* our own addresses */

struct os_netlink;

WEFT_MUST_CHECK enum weft_err os_netlink_open(struct os_netlink **out);
/* The same for another namespace; ns NULL: the caller's. */
struct os_netns;
WEFT_MUST_CHECK enum weft_err os_netlink_open_in(struct os_netns *ns, struct os_netlink **out);
void os_netlink_close(struct os_netlink *n);
/* What the kernel said of the last call that failed: "File exists", or its own sentence. Valid
 * until the next call. */
const char *os_netlink_error_text(const struct os_netlink *n);

struct os_link_info {
	uint32_t index;
	char name[OS_NETLINK_NAME_MAX];
	bool is_up;
	bool is_running; /* and packets pass: an interface that was set up may need a moment */
	uint32_t mtu;
	uint32_t txqueuelen;
	uint32_t gso_max_size, gso_ipv4_max_size; /* 0: the kernel does not say */
	uint32_t gso_max_segs;
	uint32_t gro_max_size, gro_ipv4_max_size;
	char kind[OS_NETLINK_NAME_MAX]; /* "tun", "veth"; empty for hardware */
	uint64_t tx_dropped;            /* packets that the interface could not take */
};
WEFT_MUST_CHECK enum weft_err os_netlink_link_by_name(
	struct os_netlink *n, const char *name, struct os_link_info *out);
WEFT_MUST_CHECK enum weft_err os_netlink_link_by_index(
	struct os_netlink *n, uint32_t index, struct os_link_info *out);

/* 0 leaves a value as it is. */
struct os_link_change {
	uint32_t mtu;
	uint32_t txqueuelen;
	uint32_t gso_max_size; /* both families; Linux before 6.3 has one value for both */
	uint32_t gso_max_segs;
	uint32_t gro_max_size;
};
WEFT_MUST_CHECK enum weft_err os_netlink_link_change(
	struct os_netlink *n, uint32_t index, const struct os_link_change *c);
/* When the first IPv4 address of a network goes, its others stay (sysctl promote_secondaries). */
WEFT_MUST_CHECK enum weft_err os_netlink_link_promote_secondaries(
	struct os_netlink *n, uint32_t index);
WEFT_MUST_CHECK enum weft_err os_netlink_link_set_up(
	struct os_netlink *n, uint32_t index, bool is_up);
WEFT_MUST_CHECK enum weft_err os_netlink_link_delete(struct os_netlink *n, uint32_t index);

#define OS_NETLINK_MAC_LEN 6
/* One end of a veth pair. No neighbour is asked for on it: whatever is sent goes to its own
 * address, and to nobody but the other end. */
struct os_veth_end {
	const char *name;
	uint8_t mac[OS_NETLINK_MAC_LEN];
	uint32_t mtu;
};
/* Both ends down, without IPv6 addresses of the kernel's making. WEFT_EEXIST, WEFT_ENOTSUP
 * without veth. On failure there may be a pair. */
WEFT_MUST_CHECK enum weft_err os_netlink_veth_add(
	struct os_netlink *n, const struct os_veth_end *a, const struct os_veth_end *b);
/* No IPv6 address of the kernel's making, and so no router or neighbour messages. */
WEFT_MUST_CHECK enum weft_err os_netlink_link_set_silent(struct os_netlink *n, uint32_t index);

/* The prefix's address with its length, host bits kept. IPv6 without duplicate address
 * detection: no neighbour can answer on a tunnel. WEFT_EEXIST, WEFT_ENOENT. */
WEFT_MUST_CHECK enum weft_err os_netlink_addr_add(
	struct os_netlink *n, uint32_t index, const struct ip_prefix *p);
WEFT_MUST_CHECK enum weft_err os_netlink_addr_del(
	struct os_netlink *n, uint32_t index, const struct ip_prefix *p);

/* Every address of an interface, with its prefix length; false from each ends the walk. */
WEFT_MUST_CHECK enum weft_err os_netlink_addrs(struct os_netlink *n, uint32_t index,
	bool (*each)(void *ctx, const struct ip_prefix *p), void *ctx);

struct os_route {
	struct ip_prefix dst; /* host bits are cleared; 0 bits is a default route */
	uint32_t ifindex;
	uint32_t table; /* 0: main */
	uint32_t mtu;   /* RTAX_MTU; 0: that of the device */
	bool is_local;  /* of os_netlink_route_get(): dst is an address of ours */
};
/* Never replaces: WEFT_EEXIST. */
WEFT_MUST_CHECK enum weft_err os_netlink_route_add(struct os_netlink *n, const struct os_route *r);
WEFT_MUST_CHECK enum weft_err os_netlink_route_del(struct os_netlink *n, const struct os_route *r);
/* Every unicast route of a family; false from each ends the walk. */
WEFT_MUST_CHECK enum weft_err os_netlink_routes(struct os_netlink *n, enum ip_family family,
	bool (*each)(void *ctx, const struct os_route *r), void *ctx);
/* Does table (0: main) hold a route of that family? With is_default, one of 0 bits. */
WEFT_MUST_CHECK enum weft_err os_netlink_table_has_route(
	struct os_netlink *n, enum ip_family family, uint32_t table, bool is_default, bool *out);
/* The route that a packet to dst with that mark would take; WEFT_EUNREACH for none. */
WEFT_MUST_CHECK enum weft_err os_netlink_route_get(
	struct os_netlink *n, const struct ip_addr *dst, uint32_t mark, struct os_route *out);
/* The same for a packet that leaves from src; WEFT_EINVAL or WEFT_EUNREACH when src is not
 * ours (any more). */
WEFT_MUST_CHECK enum weft_err os_netlink_route_get_from(struct os_netlink *n,
	const struct ip_addr *src, const struct ip_addr *dst, uint32_t mark, struct os_route *out);

/* A policy rule, as far as wg-quick needs them. */
struct os_rule {
	enum ip_family family;
	uint32_t fwmark; /* 0: does not look at the mark */
	bool is_inverted;
	uint32_t table;
	bool has_suppress;
	uint32_t suppress_prefixlen; /* valid with has_suppress */
	uint32_t priority;           /* 0: the kernel chooses on add; any on del */
};
WEFT_MUST_CHECK enum weft_err os_netlink_rule_add(struct os_netlink *n, const struct os_rule *r);
WEFT_MUST_CHECK enum weft_err os_netlink_rule_del(struct os_netlink *n, const struct os_rule *r);
WEFT_MUST_CHECK enum weft_err os_netlink_rules(struct os_netlink *n, enum ip_family family,
	bool (*each)(void *ctx, const struct os_rule *r), void *ctx);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration put into a node, by its difference to the one before: keys and peers into the
 * engine, port and mark into the sockets, addresses and routes into the kernel. */
#ifndef WEFT_NODE_APPLY_H
#define WEFT_NODE_APPLY_H

#include "base/err.h"
#include "base/log.h"
#include "node/node.h"
#include "wire/conf.h"

struct left_keeper;

struct route_entry {
	struct ip_prefix dst;
	uint32_t table; /* 0: main */
};

/* What was added to the kernel. The rules do not vanish with the interface. */
struct apply_traces {
	struct os_netlink *netlink;     /* the node's */
	const struct left_keeper *left; /* NULL = nothing is noted */
	bool is_private;                /* as of struct node_device */
	struct route_entry *routes;     /* sorted */
	size_t routes_n;
	uint32_t table;            /* of the default route's rules; 0 = none */
	bool has_rules[2];         /* IPv4, IPv6 */
	bool has_main_rule[2];     /* "lookup main suppress_prefixlength 0" was added by us */
	uint32_t main_priority[2]; /* of that */
};

/* The MTU that the file asks for, or the path's to the peers less 80 (wg-quick's rule). */
uint16_t apply_choose_mtu(const struct conf *c);
/* Of a fresh node. */
void apply_init(struct apply_traces *t, const struct node *n);
/* Puts c in the place of old; NULL = there was none, and the interface is set up. Names of hosts
 * are left to node/names.h. On failure old is in force again, if there was one, and the log says
 * what failed. */
WEFT_MUST_CHECK enum weft_err apply_conf(struct node *n, const struct conf *old,
	const struct conf *c, const struct log *log, struct apply_traces *t);
/* Takes back what does not vanish with the interface. */
void apply_undo(struct apply_traces *t, const struct log *log);

#endif

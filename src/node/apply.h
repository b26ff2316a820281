/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration file put into a fresh node: keys and peers into the engine, port and mark
 * into the sockets, addresses and routes into the kernel. */
#ifndef WEFT_NODE_APPLY_H
#define WEFT_NODE_APPLY_H

#include "base/err.h"
#include "base/log.h"
#include "node/node.h"
#include "wire/conf.h"

/* What was added outside the interface, and so does not vanish with it. */
struct apply_traces {
	struct os_netlink *netlink; /* the node's */
	uint32_t table;             /* of the default route's rules; 0 = none */
	bool has_rules[2];          /* IPv4, IPv6 */
	bool has_main_rule[2];      /* "lookup main suppress_prefixlength 0" was added by us */
};

/* The MTU that the file asks for, or the path's to the peers less 80 (wg-quick's rule). */
uint16_t apply_choose_mtu(const struct conf *c);
/* On failure everything outside the interface is taken back, and the log says what failed. is_set
 * as in apply_resolve(), which is tried once: that some names do not resolve is no failure. */
WEFT_MUST_CHECK enum weft_err apply_conf(struct node *n, const struct conf *c, bool *is_set,
	const struct log *log, struct apply_traces *out);
void apply_undo(struct apply_traces *t, const struct log *log);
/* Sets the endpoints of peers whose host is a name. *left: how many could not be resolved yet.
 * Blocks for the resolver. is_set[i], one a peer of c, remembers which are done. */
void apply_resolve(
	struct node *n, const struct conf *c, bool *is_set, const struct log *log, size_t *left);

#endif

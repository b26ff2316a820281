/* SPDX-License-Identifier: Apache-2.0 */
/* Routes to the peers' AllowedIPs, and the policy routing that a default route needs: what
 * wg-quick does for Table = auto, off, a number or a name. In a private namespace all are plain
 * routes, whatever Table says. */
#ifndef WEFT_NODE_ROUTE_H
#define WEFT_NODE_ROUTE_H

#include "node/apply.h"

/* Can it be done? Else says in the log why not. */
WEFT_MUST_CHECK enum weft_err route_check(
	const struct conf *c, const struct apply_traces *t, const struct log *log);
/* The mark that the node's sockets need: the file's, or that of the default route's table. old:
 * NULL = none. */
WEFT_MUST_CHECK enum weft_err route_choose_mark(const struct conf *old, const struct conf *c,
	const struct apply_traces *t, const struct log *log, uint32_t *mark);

/* A change of routes under way. */
struct route_change {
	struct apply_traces to; /* what will be there */
	bool adds_rules[2];     /* IPv4, IPv6 */
};
/* Adds what c has more. On failure that is taken back. */
WEFT_MUST_CHECK enum weft_err route_begin(struct node *n, const struct conf *c, uint32_t mark,
	const struct log *log, const struct apply_traces *t, struct route_change *out);
/* Removes what c has not any more, and brings t up to date. */
void route_end(
	struct node *n, struct route_change *r, const struct log *log, struct apply_traces *t);
/* Adds again what the kernel has taken away on its own. */
void route_restore(struct node *n, const struct apply_traces *t);
void route_undo(struct apply_traces *t, const struct log *log);

#endif

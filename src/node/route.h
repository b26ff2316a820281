/* SPDX-License-Identifier: Apache-2.0 */
/* Routes to the peers' AllowedIPs, and the policy routing that a default route needs: what
 * wg-quick does for Table = auto, off or a number. In a private namespace all are plain routes,
 * whatever Table says. */
#ifndef WEFT_NODE_ROUTE_H
#define WEFT_NODE_ROUTE_H

#include "node/apply.h"

/* May set the node's fwmark. Adds to out what must be taken back later. */
WEFT_MUST_CHECK enum weft_err route_apply(
	struct node *n, const struct conf *c, const struct log *log, struct apply_traces *out);
void route_undo(struct apply_traces *t, const struct log *log);

#endif

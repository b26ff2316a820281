/* SPDX-License-Identifier: Apache-2.0 */
/* A list of all peers as they are now, so that whoever looks at many can let the device go in
 * between. A peer of it may be removed meanwhile: wg_peer_is_removed(). */
#ifndef WEFT_NODE_PEERS_H
#define WEFT_NODE_PEERS_H

#include <stddef.h>

#include "base/err.h"

struct node;
struct wg_peer;

/* Zero-initialised, it is empty. */
struct node_peers {
	struct wg_peer **v; /* with a reference each; whoever takes one over puts NULL there */
	size_t n;
};

/* In order of addition; a peer that is added or removed meanwhile may be there or not. Costs 8
 * bytes a peer. The device is shared for a few hundred at a time. */
WEFT_MUST_CHECK enum weft_err node_peers_take(struct node *n, struct node_peers *out);
void node_peers_fini(struct node_peers *p);

#endif

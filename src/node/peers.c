/* SPDX-License-Identifier: Apache-2.0 */
#include "node/peers.h"

#include <stdlib.h>

#include "node/node.h"

/* Peers that may be added between counting and taking. */
#define PEERS_SPARE 16

enum weft_err
node_peers_take(struct node *n, struct node_peers *out)
{
	size_t cap = wg_device_peer_count(node_lock_shared(n)) + PEERS_SPARE;
	node_unlock_shared(n);
	*out = (struct node_peers){.v = malloc(cap * sizeof(*out->v))};
	if (!out->v) {
		return WEFT_ENOMEM;
	}
	const struct wg_device *d = node_lock_shared(n);
	struct wg_peer *p = wg_peer_next(d, NULL);
	for (; p && out->n < cap; p = wg_peer_next(d, p)) {
		wg_peer_get(p);
		out->v[out->n++] = p;
	}
	node_unlock_shared(n);
	return WEFT_OK;
}

void
node_peers_fini(struct node_peers *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->v[i]) {
			wg_peer_put(p->v[i]);
		}
	}
	free(p->v);
	*p = (struct node_peers){0};
}

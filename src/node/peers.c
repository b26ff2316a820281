/* SPDX-License-Identifier: Apache-2.0 */
#include "node/peers.h"

#include <stdbool.h>
#include <stdlib.h>

#include "node/node.h"

/* Peers that may be added between counting and taking. */
#define PEERS_SPARE 16
/* A hold of the device: some 20 us. */
#define PEERS_A_LOCK 256

/* Goes on behind the last peer of the list that is still one of the device's. False: at the end. */
static bool
take_some(const struct wg_device *d, struct node_peers *out, size_t cap)
{
	size_t last = out->n;
	while (last > 0 && wg_peer_is_removed(out->v[last - 1])) {
		last--;
	}
	struct wg_peer *p = wg_peer_next(d, last > 0 ? out->v[last - 1] : NULL);
	for (size_t i = 0; p && out->n < cap && i < PEERS_A_LOCK; i++) {
		wg_peer_get(p);
		out->v[out->n++] = p;
		p = wg_peer_next(d, p);
	}
	return p && out->n < cap;
}

enum weft_err
node_peers_take(struct node *n, struct node_peers *out)
{
	size_t cap = wg_device_peer_count(node_lock_shared(n)) + PEERS_SPARE;
	node_unlock_shared(n);
	*out = (struct node_peers){.v = malloc(cap * sizeof(*out->v))};
	if (!out->v) {
		return WEFT_ENOMEM;
	}
	for (bool has_more = true; has_more;) {
		has_more = take_some(node_lock_shared(n), out, cap);
		node_unlock_shared(n);
	}
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

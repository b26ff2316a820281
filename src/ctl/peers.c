/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/peers.h"

#include <stdlib.h>

#include "crypto/secret.h"
#include "node/node.h"

/* Peers that may be added between counting and taking. */
#define PEERS_SPARE 16

static size_t
count_peers(struct node *n)
{
	size_t count = wg_device_peer_count(node_lock_shared(n));
	node_unlock_shared(n);
	return count;
}

enum weft_err
ctl_peers_take(struct node *n, struct ctl_peers *out)
{
	size_t cap = count_peers(n) + PEERS_SPARE;
	struct wg_peer **v = malloc(cap * sizeof(*v));
	if (!v) {
		return WEFT_ENOMEM;
	}
	size_t count = 0;
	const struct wg_device *d = node_lock_shared(n);
	for (struct wg_peer *p = wg_peer_next(d, NULL); p && count < cap; p = wg_peer_next(d, p)) {
		wg_peer_get(p);
		v[count++] = p;
	}
	node_unlock_shared(n);
	*out = (struct ctl_peers){v, count, 0};
	return WEFT_OK;
}

static enum weft_err
copy_allowed(const struct wg_peer *p, struct ctl_peer *out)
{
	void *cursor = NULL;
	struct ip_prefix prefix;
	out->allowed_n = 0;
	while (wg_peer_allowed_next(p, &cursor, &prefix)) {
		if (out->allowed_n == out->allowed_cap) {
			size_t cap = out->allowed_cap ? out->allowed_cap * 2 : 8;
			struct ip_prefix *v = realloc(out->allowed, cap * sizeof(*v));
			if (!v) {
				return WEFT_ENOMEM;
			}
			out->allowed = v;
			out->allowed_cap = cap;
		}
		out->allowed[out->allowed_n++] = prefix;
	}
	return WEFT_OK;
}

enum weft_err
ctl_peers_next(struct node *n, struct ctl_peers *peers, struct ctl_peer *out)
{
	while (peers->at < peers->n) {
		struct wg_peer *p = peers->v[peers->at++];
		enum weft_err e = WEFT_ENOENT;
		(void)node_lock_shared(n);
		if (!wg_peer_is_removed(p)) {
			wg_peer_info(p, &out->info);
			node_ally_info(p, &out->ally);
			wg_peer_psk(p, out->psk);
			e = copy_allowed(p, out);
		}
		node_unlock_shared(n);
		wg_peer_put(p);
		if (e != WEFT_ENOENT) {
			return e;
		}
	}
	return WEFT_ENOENT;
}

void
ctl_peers_fini(struct ctl_peers *p)
{
	while (p->at < p->n) {
		wg_peer_put(p->v[p->at++]);
	}
	free(p->v);
	*p = (struct ctl_peers){0};
}

void
ctl_peer_fini(struct ctl_peer *p)
{
	free(p->allowed);
	secret_wipe(p, sizeof(*p));
}

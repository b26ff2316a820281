/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/peers.h"

#include <stdlib.h>

#include "crypto/secret.h"
#include "node/node.h"

enum weft_err
ctl_peers_take(struct node *n, struct ctl_peers *out)
{
	*out = (struct ctl_peers){0};
	return node_peers_take(n, &out->all);
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
	while (peers->at < peers->all.n) {
		struct wg_peer *p = peers->all.v[peers->at];
		peers->all.v[peers->at++] = NULL;
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
	node_peers_fini(&p->all);
	p->at = 0;
}

void
ctl_peer_fini(struct ctl_peer *p)
{
	free(p->allowed);
	secret_wipe(p, sizeof(*p));
}

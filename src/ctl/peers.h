/* SPDX-License-Identifier: Apache-2.0 */
/* All peers of a device, one after the other, however long the reader takes.
 *
 * The list is taken in one go (node/peers.h). The device is locked for one peer at a time, so
 * that a reader of 10,000 peers stops nobody; peers that are removed meanwhile are passed over,
 * peers that are added are not seen. */
#ifndef WEFT_CTL_PEERS_H
#define WEFT_CTL_PEERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/err.h"
#include "node/ally.h"
#include "node/peers.h"
#include "wg/device.h"

struct node;

/* Zero-initialised, it is empty. */
struct ctl_peers {
	struct node_peers all; /* from at on */
	size_t at;
};

/* Zero-initialised, it is empty; used again for the next. */
struct ctl_peer {
	struct wg_peer_info info;
	struct ally_info ally;
	uint8_t psk[WG_KEY_LEN];
	struct ip_prefix *allowed;
	size_t allowed_n, allowed_cap;
};

WEFT_MUST_CHECK enum weft_err ctl_peers_take(struct node *n, struct ctl_peers *out);
/* WEFT_ENOENT at the end. */
WEFT_MUST_CHECK enum weft_err ctl_peers_next(
	struct node *n, struct ctl_peers *peers, struct ctl_peer *out);
void ctl_peers_fini(struct ctl_peers *p);
void ctl_peer_fini(struct ctl_peer *p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* All peers of a device: by public key, and in order of addition.
 *
 * Strangers choose public keys, so the hash is keyed. */
#ifndef WEFT_WG_ROSTER_H
#define WEFT_WG_ROSTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/siphash.h"

struct wg_peer;

struct wg_roster {
	struct siphash_key key;
	struct list peers;        /* by of_device */
	struct wg_peer **buckets; /* chains by next_in_bucket */
	size_t buckets_n;         /* a power of two */
	size_t n;
};

WEFT_MUST_CHECK enum weft_err wg_roster_init(
	struct wg_roster *r, const uint8_t key[SIPHASH_KEY_LEN]);
/* The roster is empty. */
void wg_roster_fini(struct wg_roster *r);
struct wg_peer *wg_roster_find(const struct wg_roster *r, const uint8_t *public_key);
/* No peer has its public key yet. Does not take a reference. */
void wg_roster_add(struct wg_roster *r, struct wg_peer *p);
void wg_roster_remove(struct wg_roster *r, struct wg_peer *p);

#endif

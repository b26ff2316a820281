/* SPDX-License-Identifier: Apache-2.0 */
/* Staged packets: what waits for a session, copied, oldest first.
 *
 * Bounded a peer and a device; what is too much pushes out the oldest. */
#ifndef WEFT_WG_STAGE_H
#define WEFT_WG_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/list.h"

#define WG_STAGE_PACKETS_MAX 128
#define WG_STAGE_BYTES_MAX 65536 /* of packets; the lists' own memory comes on top */

/* All of a device. */
struct wg_stage_pool {
	struct list packets; /* of all peers, oldest first */
	size_t bytes;
	size_t bytes_max;
};

/* One peer's. */
struct wg_stage {
	struct list packets; /* oldest first */
	uint32_t n;
	uint32_t bytes;
};

void wg_stage_pool_init(struct wg_stage_pool *pool, size_t bytes_max);
void wg_stage_init(struct wg_stage *s);
/* Copies a packet in. Returns how many packets were lost by it, its own loss included. */
WEFT_MUST_CHECK uint32_t wg_stage_push(
	struct wg_stage_pool *pool, struct wg_stage *s, const uint8_t *packet, size_t len);
/* Copies the oldest out; false when none is left. cap is at least its length. */
bool wg_stage_take(
	struct wg_stage_pool *pool, struct wg_stage *s, uint8_t *packet, size_t cap, size_t *len);
/* Drops everything, and returns how many packets that were. */
uint32_t wg_stage_clear(struct wg_stage_pool *pool, struct wg_stage *s);

#endif

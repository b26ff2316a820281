/* SPDX-License-Identifier: Apache-2.0 */
/* TAI64N stamps of our initiations: each is greater than all before it, over restarts and over
 * clocks that go backward, since a responder refuses what is not.
 *
 * What has to survive a restart is a whole second that lies above every stamp sent. It is
 * reserved ahead, so that one write is good for many handshakes. */
#ifndef WEFT_WG_STAMP_H
#define WEFT_WG_STAMP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "wire/wg.h"

struct wg_stamp {
	uint64_t last_s; /* TAI64 label of the last stamp */
	uint32_t last_ns;
	uint64_t reserved_s; /* persisted: stamps below it may be sent */
};

/* persisted_s: the last reservation of the former life; 0 = none. */
void wg_stamp_init(struct wg_stamp *s, uint64_t persisted_s);
/* Makes the next stamp. True when s->reserved_s has grown and must be persisted before the
 * stamp is sent. */
WEFT_MUST_CHECK bool wg_stamp_next(
	struct wg_stamp *s, int64_t wall_ns, uint8_t out[WIRE_WG_STAMP_LEN]);

#endif

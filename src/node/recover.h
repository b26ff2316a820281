/* SPDX-License-Identifier: Apache-2.0 */
/* Between the packet path and the allies: what leaves is shown to the encoder, what came is
 * shown to the decoder, and the frames of both, and HELLOs, get on their way. */
#ifndef WEFT_NODE_RECOVER_H
#define WEFT_NODE_RECOVER_H

#include "node/ally.h"
#include "node/worker.h"

/* Around the taking of a span's counters, with the device locked in either way: locks the peer's
 * ally. NULL: it has none. */
struct ally *recover_begin(const struct wg_peer *p);
/* The packets of the span have their counters, unless its session is NULL, and are not yet sealed.
 * May mark one CE. Unlocks the ally. */
void recover_end(struct worker *w, struct ally *a, struct egress_job *j, struct egress_span *s,
	struct wg_time now);
/* The frames of a run that were accepted, in order. Data is delivered through
 * ingress_take_packet(). With the device shared. */
void recover_received(
	struct worker *w, struct ingress_job *j, struct ingress_run *r, struct wg_time now);
/* Sends the frames that are due to a peer: after what they protect. Not under the lock. */
void recover_flush(struct worker *w, struct wg_peer *p, struct wg_time now);
/* What is due by time. Worker 0 alone; not under the lock. */
void recover_tick(struct worker *w, struct wg_time now);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Link to port: datagrams in, joined frames out. docs/architecture.md, inbound. */
#ifndef WEFT_NODE_INGRESS_H
#define WEFT_NODE_INGRESS_H

#include "node/worker.h"

void ingress_job_init(struct ingress_job *j);
/* Receives and sorts datagrams by session; handshake messages are handled on the spot, since
 * data behind them may need what they bring. Returns whether the job holds packets. */
bool ingress_fill(struct worker *w, struct ingress_job *j, struct wg_time now, bool *is_empty);
/* Any thread that has claimed the job. */
void ingress_open(struct aead *a, struct ingress_job *j);
/* Everything that is checked of an inner packet before it may leave through the port: it joins
 * w->pkts, or is dropped and counted. ecn: of the outer header. With the device shared. */
void ingress_take_packet(
	struct worker *w, const struct wg_peer *peer, uint8_t *data, size_t len, uint8_t ecn);
/* Joins and writes what is in w->pkts. */
void ingress_write(struct worker *w);
/* Replay window, source check, ECN, joining, writing. */
void ingress_deliver(struct worker *w, struct ingress_job *j, struct wg_time now);

#endif

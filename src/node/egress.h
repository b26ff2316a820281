/* SPDX-License-Identifier: Apache-2.0 */
/* Port to link: frames in, sealed datagrams out. docs/architecture.md, outbound. */
#ifndef WEFT_NODE_EGRESS_H
#define WEFT_NODE_EGRESS_H

#include "node/worker.h"

void egress_job_init(struct egress_job *j);
/* Reads frames until the job is full or the port is empty, and takes counters. What has no
 * session is staged. Returns whether the job holds packets; *is_empty: the port has no more. Both
 * are false when all that was read was dropped. */
bool egress_fill(struct worker *w, struct egress_job *j, struct wg_time now, bool *is_empty);
/* Any thread that has claimed the job. */
void egress_seal(struct aead *a, struct egress_job *j);
void egress_send(struct worker *w, struct egress_job *j, struct wg_time now);
/* Sends what waited for the sessions of w->ready. */
void egress_flush_ready(struct worker *w, struct wg_time now);

#endif

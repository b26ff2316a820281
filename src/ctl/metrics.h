/* SPDX-License-Identifier: Apache-2.0 */
/* Status as metrics, in the text format 0.0.4 of Prometheus.
 *
 * What a device or a peer does not have, or has as null, gives no sample; a metric without any is
 * left out. */
#ifndef WEFT_CTL_METRICS_H
#define WEFT_CTL_METRICS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct ctl_metrics;
struct ctl_peer;
struct wg_time;

/* NULL: out of memory. */
struct ctl_metrics *ctl_metrics_new(void);
void ctl_metrics_free(struct ctl_metrics *m);
/* What ctl_status_device() gives. Peers follow theirs. */
void ctl_metrics_add_device(struct ctl_metrics *m, const json_t *status);
void ctl_metrics_add_peer(struct ctl_metrics *m, const struct ctl_peer *p, struct wg_time now);
/* WEFT_ENOMEM: something of what was added is missing. Nothing is added afterwards. */
WEFT_MUST_CHECK enum weft_err ctl_metrics_end(struct ctl_metrics *m);
/* After the end: the text in pieces, from 0 on, some of them empty; false behind the last. They are
   m's. */
bool ctl_metrics_piece(const struct ctl_metrics *m, size_t i, const char **text, size_t *len);

/* statuses: an array of replies to "status" (docs/control.md). */
WEFT_MUST_CHECK enum weft_err ctl_metrics_write(const json_t *statuses,
	void (*put_out)(void *ctx, const char *text, size_t len), void *ctx);

#endif

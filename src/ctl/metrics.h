/* SPDX-License-Identifier: Apache-2.0 */
/* Status as metrics, in the text format 0.0.4 of Prometheus. */
#ifndef WEFT_CTL_METRICS_H
#define WEFT_CTL_METRICS_H

#include <jansson.h>
#include <stddef.h>

/* statuses: an array of replies to "status" (docs/control.md). put gets the text in pieces. What
 * a reply does not have, or has as null, gives no sample; a metric without any is left out. */
void ctl_metrics_write(
	const json_t *statuses, void (*put)(void *ctx, const char *text, size_t len), void *ctx);

#endif

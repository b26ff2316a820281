/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that wait for a reader who may be slow. What finds the queue full is counted, and the
 * reader is told how many in their place. */
#ifndef WEFT_CTL_QUEUE_H
#define WEFT_CTL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CTL_QUEUE_LINES 256
#define CTL_QUEUE_BYTES (128u << 10)

/* Zero-initialised, it is empty. */
struct ctl_queue {
	char *v[CTL_QUEUE_LINES];
	size_t first, n;
	size_t bytes;  /* of all lines */
	uint64_t lost; /* since the last line */
};

/* Copies a line, which ends with a newline; or loses it. */
void ctl_queue_put(struct ctl_queue *q, const char *line);
/* Lost before they came here. */
void ctl_queue_lose(struct ctl_queue *q, uint64_t n);
bool ctl_queue_has_line(const struct ctl_queue *q);
/* The oldest, to be freed; it may be one that tells of a loss. NULL: there is none, or no memory
 * to tell of the loss now. */
char *ctl_queue_take(struct ctl_queue *q);
void ctl_queue_fini(struct ctl_queue *q);

#endif

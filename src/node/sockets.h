/* SPDX-License-Identifier: Apache-2.0 */
/* The UDP sockets of all workers as one: opened on one port, changed together or not at all.
 *
 * Functions that take runners are the control thread's, and not called under the node's lock. */
#ifndef WEFT_NODE_SOCKETS_H
#define WEFT_NODE_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "link/link.h"
#include "node/runner.h"

struct sockets_config {
	unsigned n;    /* links wanted, one a worker */
	uint16_t port; /* 0 = any free one */
	uint32_t mark; /* 0 = none */
	bool has_offload;
};

/* One socket pair a worker on one port. On failure none stays open. */
WEFT_MUST_CHECK enum weft_err sockets_open(
	const struct sockets_config *c, const struct log *log, struct link *links[]);
/* On the runner's thread, or before its start. */
WEFT_MUST_CHECK enum weft_err sockets_watch(struct runner *r, const struct link *l);

/* Watches each link beside the one that its runner has. On failure all of them are closed. */
WEFT_MUST_CHECK enum weft_err sockets_watch_all(
	struct runner *runners, unsigned n, struct link *links[]);
/* The watched links take the place of those in use, which are closed. */
void sockets_swap_all(struct runner *runners, unsigned n, struct link *links[]);
/* On failure all have the mark before again. */
WEFT_MUST_CHECK enum weft_err sockets_set_mark(
	struct runner *runners, unsigned n, uint32_t mark, uint32_t before);

#endif

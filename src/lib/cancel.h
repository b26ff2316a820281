/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a socket, and what may end the wait: a deadline, weft_cancel_fire(), the end of the
 * node. */
#ifndef WEFT_LIB_CANCEL_H
#define WEFT_LIB_CANCEL_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mono.h"

struct weft_cancel;
struct weft_node;

struct wait {
	struct weft_node *n;
	struct weft_cancel *cancel; /* NULL = none */
	struct mono deadline;       /* MONO_NEVER = none */
};

/* timeout_ms 0 = none. */
struct mono wait_deadline(int64_t timeout_ms);
/* What is ready counts before what ends the wait. WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_ECLOSED. */
WEFT_MUST_CHECK enum weft_err wait_for(const struct wait *w, int fd, bool is_write);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* struct link in memory: two connected ends, for the simulator and `weft bench tx`. */
#ifndef WEFT_LINK_MEM_H
#define WEFT_LINK_MEM_H

#include <stddef.h>

#include "base/addr.h"
#include "base/err.h"
#include "link/link.h"

/* bytes: room a direction; a full ring drops and counts DROP_LINK_NOBUFS. at[i] is end i's
 * address: what end i sends comes from at[i], whatever the run's destination. Each end may
 * belong to another thread. The first close leaves the other end silent; the second frees. */
WEFT_MUST_CHECK enum weft_err link_mem_pair(
	size_t bytes, const struct endpoint at[2], struct link *out[2]);
/* Readable when something arrived while the reader slept. */
int link_mem_fd(const struct link *l);
/* What this end receives is looked for by a thread that never sleeps: link_mem_fd() stays quiet.
 * Before anything is sent. */
void link_mem_set_polled(struct link *l);

#endif

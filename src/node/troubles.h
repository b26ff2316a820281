/* SPDX-License-Identifier: Apache-2.0 */
/* Troubles that workers meet outside the engine: the table of wg/trouble.h behind a mutex.
 *
 * Noted where a packet is dropped, of floods a part: each worker once a millisecond and kind. */
#ifndef WEFT_NODE_TROUBLES_H
#define WEFT_NODE_TROUBLES_H

#include "os/thread.h"
#include "wg/trouble.h"

#define TROUBLES_PAUSE_NS (1 * WEFT_NS_PER_MS)

struct troubles {
	struct os_mutex mutex;
	struct wg_troubles table;
};

void troubles_init(struct troubles *t);
void troubles_fini(struct troubles *t);
/* --- any thread; t NULL: nobody wants to know --- */
void troubles_note(struct troubles *t, const struct wg_trouble *what, struct mono now);
void troubles_copy(struct troubles *t, struct wg_troubles *out);

#endif

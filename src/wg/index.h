/* SPDX-License-Identifier: Apache-2.0 */
/* Index table: from the 32-bit indices that we chose to what they stand for.
 *
 * Indices are random (WireGuard paper, section 5.4.2: they tell a stranger nothing), so an
 * index is its own hash. Open addressing with linear probing, at most half full. Lookups may
 * run in several threads while nothing else runs. */
#ifndef WEFT_WG_INDEX_H
#define WEFT_WG_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/entropy.h"
#include "base/err.h"

enum wg_index_kind {
	WG_INDEX_NONE,    /* empty place */
	WG_INDEX_PENDING, /* what: struct wg_peer whose initiation has no answer yet */
	WG_INDEX_SESSION, /* what: struct wg_session */
};

struct wg_index_entry {
	uint32_t index;
	enum wg_index_kind kind;
	void *what; /* not owned */
};

struct wg_index {
	struct wg_index_entry *places;
	uint32_t mask; /* places - 1, a power of two less one */
	uint32_t used;
};

WEFT_MUST_CHECK enum weft_err wg_index_init(struct wg_index *t);
void wg_index_fini(struct wg_index *t);
/* Chooses an unused index for what. */
WEFT_MUST_CHECK enum weft_err wg_index_add(struct wg_index *t, const struct entropy *entropy,
	enum wg_index_kind kind, void *what, uint32_t *out);
/* index is in the table: from now on it stands for something else. */
void wg_index_change(struct wg_index *t, uint32_t index, enum wg_index_kind kind, void *what);
/* Harmless when index is not in the table. */
void wg_index_remove(struct wg_index *t, uint32_t index);

/* NULL when nothing has that index. */
static inline const struct wg_index_entry *
wg_index_find(const struct wg_index *t, uint32_t index)
{
	for (uint32_t i = index & t->mask;; i = (i + 1) & t->mask) {
		const struct wg_index_entry *e = &t->places[i];
		if (e->kind == WG_INDEX_NONE) {
			return NULL;
		}
		if (e->index == index) {
			return e;
		}
	}
}

#endif

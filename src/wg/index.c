/* SPDX-License-Identifier: Apache-2.0 */
#include "wg/index.h"

#include <stdlib.h>

#include "base/assert.h"

#define PLACES_MIN 16u
/* Half of it is more than three sessions and a handshake for each of WG_PEERS_MAX peers. */
#define PLACES_MAX (1u << 24)

enum weft_err
wg_index_init(struct wg_index *t)
{
	t->places = calloc(PLACES_MIN, sizeof(*t->places));
	if (!t->places) {
		return WEFT_ENOMEM;
	}
	t->mask = PLACES_MIN - 1;
	t->used = 0;
	return WEFT_OK;
}

void
wg_index_fini(struct wg_index *t)
{
	free(t->places);
	t->places = NULL;
}

/* The place of index, or the empty one where it would go. */
static struct wg_index_entry *
place_of(struct wg_index *t, uint32_t index)
{
	uint32_t i = index & t->mask;
	while (t->places[i].kind != WG_INDEX_NONE && t->places[i].index != index) {
		i = (i + 1) & t->mask;
	}
	return &t->places[i];
}

static enum weft_err
grow(struct wg_index *t)
{
	uint32_t n = t->mask + 1;
	if (n >= PLACES_MAX) {
		return WEFT_ENOMEM;
	}
	struct wg_index_entry *old = t->places;
	struct wg_index_entry *places = calloc((size_t)n * 2, sizeof(*places));
	if (!places) {
		return WEFT_ENOMEM;
	}
	t->places = places;
	t->mask = n * 2 - 1;
	for (uint32_t i = 0; i < n; i++) {
		if (old[i].kind != WG_INDEX_NONE) {
			*place_of(t, old[i].index) = old[i];
		}
	}
	free(old);
	return WEFT_OK;
}

enum weft_err
wg_index_add(struct wg_index *t, const struct entropy *entropy, enum wg_index_kind kind, void *what,
	uint32_t *out)
{
	if ((t->used + 1) * 2 > t->mask + 1) {
		enum weft_err e = grow(t);
		if (e) {
			return e;
		}
	}
	/* At most 2^23 of 2^32 values are taken, so this ends at once. */
	for (;;) {
		uint32_t index;
		entropy->fill(entropy->ctx, &index, sizeof(index));
		struct wg_index_entry *place = place_of(t, index);
		if (place->kind == WG_INDEX_NONE) {
			*place = (struct wg_index_entry){index, kind, what};
			t->used++;
			*out = index;
			return WEFT_OK;
		}
	}
}

void
wg_index_change(struct wg_index *t, uint32_t index, enum wg_index_kind kind, void *what)
{
	struct wg_index_entry *place = place_of(t, index);
	weft_assert(place->kind != WG_INDEX_NONE);
	place->kind = kind;
	place->what = what;
}

void
wg_index_remove(struct wg_index *t, uint32_t index)
{
	struct wg_index_entry *place = place_of(t, index);
	if (place->kind == WG_INDEX_NONE) {
		return;
	}
	t->used--;
	/* Closes the gap: whatever follows and may stand in the gap moves there, so that no
	 * search meets an empty place too early and no tombstones pile up. */
	uint32_t gap = (uint32_t)(place - t->places);
	for (uint32_t i = (gap + 1) & t->mask; t->places[i].kind != WG_INDEX_NONE;
		i = (i + 1) & t->mask) {
		uint32_t home = t->places[i].index & t->mask;
		if (((i - home) & t->mask) >= ((i - gap) & t->mask)) {
			t->places[gap] = t->places[i];
			gap = i;
		}
	}
	t->places[gap] = (struct wg_index_entry){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "wg/trouble.h"

#include <stdbool.h>
#include <string.h>

static bool
is_same(const struct wg_trouble *a, const struct wg_trouble *b)
{
	return a->kind == b->kind && a->errnum == b->errnum &&
	       endpoint_is_same_remote(&a->at, &b->at) &&
	       memcmp(a->key, b->key, sizeof(a->key)) == 0;
}

/* The place of the quietest: of its kind when that has its share, else of all. */
static struct wg_trouble *
quietest(struct wg_troubles *t, enum wg_trouble_kind kind, bool is_of_kind)
{
	struct wg_trouble *least = NULL;
	for (size_t i = 0; i < t->n; i++) {
		struct wg_trouble *e = &t->v[i];
		if ((!is_of_kind || e->kind == kind) &&
			(!least || mono_is_before(e->latest, least->latest))) {
			least = e;
		}
	}
	return least;
}

void
wg_troubles_note(struct wg_troubles *t, const struct wg_trouble *what, struct mono now)
{
	size_t of_kind = 0;
	for (size_t i = 0; i < t->n; i++) {
		struct wg_trouble *e = &t->v[i];
		if (is_same(e, what)) {
			e->latest = now;
			e->n++;
			return;
		}
		of_kind += e->kind == what->kind;
	}
	struct wg_trouble *e;
	if (of_kind >= WG_TROUBLES_OF_KIND) {
		e = quietest(t, what->kind, true);
	} else if (t->n < WG_TROUBLES_MAX) {
		e = &t->v[t->n++];
	} else {
		e = quietest(t, what->kind, false);
	}
	*e = *what;
	e->first = e->latest = now;
	e->n = 1;
}

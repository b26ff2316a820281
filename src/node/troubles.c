/* SPDX-License-Identifier: Apache-2.0 */
#include "node/troubles.h"

void
troubles_init(struct troubles *t)
{
	*t = (struct troubles){0};
	os_mutex_init(&t->mutex);
}

void
troubles_fini(struct troubles *t)
{
	os_mutex_fini(&t->mutex);
}

void
troubles_note(struct troubles *t, const struct wg_trouble *what, struct mono now)
{
	if (!t) {
		return;
	}
	os_mutex_lock(&t->mutex);
	wg_troubles_note(&t->table, what, now);
	os_mutex_unlock(&t->mutex);
}

void
troubles_copy(struct troubles *t, struct wg_troubles *out)
{
	os_mutex_lock(&t->mutex);
	*out = t->table;
	os_mutex_unlock(&t->mutex);
}

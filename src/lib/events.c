/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/events.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/detail.h"
#include "lib/node.h"

enum weft_err
events_init(struct events *q)
{
	*q = (struct events){.v = calloc(EVENTS_MAX, sizeof(*q->v))};
	if (!q->v) {
		return WEFT_ENOMEM;
	}
	enum weft_err e = os_wake_init(&q->ready);
	if (e) {
		free(q->v);
		return e;
	}
	os_mutex_init(&q->mutex);
	return WEFT_OK;
}

void
events_fini(struct events *q)
{
	os_mutex_fini(&q->mutex);
	os_wake_fini(&q->ready);
	free(q->v);
}

void
events_push(struct events *q, const struct weft_event *e)
{
	os_mutex_lock(&q->mutex);
	if (q->n == EVENTS_MAX) {
		q->lost++;
	} else {
		q->v[(q->head + q->n++) % EVENTS_MAX] = *e;
		if (q->n == 1) {
			os_wake_signal(&q->ready);
		}
	}
	os_mutex_unlock(&q->mutex);
}

uint64_t
events_lost(struct events *q)
{
	os_mutex_lock(&q->mutex);
	uint64_t lost = q->lost;
	os_mutex_unlock(&q->mutex);
	return lost;
}

void
events_error(struct weft_node *n, enum weft_err code, const char *text)
{
	struct weft_event e = {.kind = WEFT_EVENT_ERROR, .code = code};
	snprintf(e.text, sizeof(e.text), "%s", text);
	events_push(&n->events, &e);
}

int
weft_event_fd(const struct weft_node *n)
{
	return n->events.ready.fd;
}

enum weft_err
weft_event_next(struct weft_node *n, struct weft_event *out)
{
	if (!n || !out) {
		return WEFT_EINVAL;
	}
	struct events *q = &n->events;
	enum weft_err e = WEFT_OK;
	os_mutex_lock(&q->mutex);
	if (q->n == 0) {
		e = WEFT_EAGAIN;
	} else if (!record_give(out, &q->v[q->head], sizeof(*out), sizeof(*out))) {
		e = WEFT_EINVAL;
	} else {
		q->head = (q->head + 1) % EVENTS_MAX;
		if (--q->n == 0) {
			os_wake_clear(&q->ready);
		}
	}
	os_mutex_unlock(&q->mutex);
	return e;
}

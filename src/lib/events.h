/* SPDX-License-Identifier: Apache-2.0 */
/* The queue between the control thread, which has news, and the program, which takes them. */
#ifndef WEFT_LIB_EVENTS_H
#define WEFT_LIB_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "os/thread.h"
#include "weft/event.h"

#define EVENTS_MAX 256

struct events {
	struct os_wake ready;  /* readable while n > 0 */
	struct os_mutex mutex; /* guards the rest */
	struct weft_event *v;  /* EVENTS_MAX, from head on */
	size_t head, n;
	uint64_t lost;
};

WEFT_MUST_CHECK enum weft_err events_init(struct events *q);
void events_fini(struct events *q);
/* A full queue counts it as lost. */
void events_push(struct events *q, const struct weft_event *e);
uint64_t events_lost(struct events *q);

struct weft_node;
/* Something is wrong that no call can tell of. */
void events_error(struct weft_node *n, enum weft_err code, const char *text);
/* What the node has noticed since the last call. On the control thread. */
void events_take_news(struct weft_node *n);

#endif

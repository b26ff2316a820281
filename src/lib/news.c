/* SPDX-License-Identifier: Apache-2.0 */
/* News of the node as events of the program. */
#include "node/news.h"

#include <stdio.h>
#include <string.h>

#include "lib/node.h"
#include "node/node.h"

#define NEWS_AT_ONCE 32

/* False: no event of the library. */
static bool
find_kind(enum node_news_kind kind, enum weft_event_kind *out)
{
	switch (kind) {
	case NODE_NEWS_PEER_UP:
		*out = WEFT_EVENT_PEER_UP;
		return true;
	case NODE_NEWS_PEER_DOWN:
		*out = WEFT_EVENT_PEER_DOWN;
		return true;
	case NODE_NEWS_ENDPOINT_MOVED:
		*out = WEFT_EVENT_ENDPOINT_MOVED;
		return true;
	case NODE_NEWS_ERROR:
		*out = WEFT_EVENT_ERROR;
		return true;
	case NODE_NEWS_NAME_FOUND:
	case NODE_NEWS_NAME_FAILED:
	case NODE_NEWS_PORT:
		break;
	}
	return false;
}

static void
tell(struct weft_node *n, const struct node_news *v)
{
	struct weft_event e = {.code = v->code};
	if (!find_kind(v->kind, &e.kind)) {
		return;
	}
	char text[ENDPOINT_TEXT_MAX];
	memcpy(e.public_key, v->public_key, WEFT_KEY_LEN);
	if (v->to.addr.family != IP_FAMILY_NONE) {
		snprintf(e.endpoint, sizeof(e.endpoint), "%s", endpoint_format(&v->to, text));
	}
	snprintf(e.text, sizeof(e.text), "%s", v->kind == NODE_NEWS_ERROR ? v->text : "");
	os_mutex_lock(&n->mutex);
	snprintf(e.name, sizeof(e.name), "%s", lib_names_of(&n->names, v->public_key));
	os_mutex_unlock(&n->mutex);
	events_push(&n->events, &e);
}

void
events_take_news(struct weft_node *n)
{
	struct node_news v[NEWS_AT_ONCE];
	size_t count;
	do {
		count = node_take_news(n->inner, v, NEWS_AT_ONCE);
		for (size_t i = 0; i < count; i++) {
			tell(n, &v[i]);
		}
	} while (count == NEWS_AT_ONCE);
}

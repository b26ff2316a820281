/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine's events mean to those above: lines in the log, and values in a ring until
 * somebody takes them. What finds the ring full is counted and lost. */
#ifndef WEFT_NODE_NEWS_H
#define WEFT_NODE_NEWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/log.h"
#include "os/thread.h"
#include "wg/device.h"

#define NEWS_MAX 256
#define NEWS_TEXT_MAX 256

enum node_news_kind {
	NODE_NEWS_PEER_UP,        /* a session was made where none was usable */
	NODE_NEWS_PEER_DOWN,      /* handshakes have no answer, or the session has run out */
	NODE_NEWS_ENDPOINT_MOVED, /* an authenticated packet came from another address */
	NODE_NEWS_ERROR,          /* code and text say what */
	NODE_NEWS_NAME_FOUND,     /* an endpoint's name, text, is another address: to */
	NODE_NEWS_NAME_FAILED,    /* an endpoint's name, text, cannot be resolved any more */
	NODE_NEWS_PORT,           /* the port to listen on is another: that of to */
};

struct node_news {
	enum node_news_kind kind;
	int64_t wall_ns;                /* when it happened; 0: set by node_put_news() */
	uint8_t public_key[WG_KEY_LEN]; /* of the peer; zeros: none is meant */
	struct endpoint from;           /* of ENDPOINT_MOVED: where it was */
	struct endpoint to;             /* where the peer is now; IP_FAMILY_NONE: not known */
	enum weft_err code;             /* of ERROR */
	char text[NEWS_TEXT_MAX];       /* of ERROR and of NAME_ */
};

struct news {
	struct log log;
	_Atomic bool is_kept;                     /* else the log is all */
	struct log_limit stale_limit, many_limit; /* under the device's lock */
	struct os_mutex mutex;                    /* guards the rest */
	struct node_news *ring;                   /* NEWS_MAX; NULL until the first comes */
	size_t first, n;
	uint64_t lost;
};

void news_init(struct news *s, const struct log *log, bool is_kept);
void news_fini(struct news *s);
/* An event of a peer, but for WG_EVENT_STAMP. With the device alone: notes by wg_peer_set_user()
 * what was told of the peer last. device: its name. True: somebody may have to be woken. */
bool news_tell(struct news *s, const char *device, const struct wg_event *e, struct wg_time now);
/* Was it told of as up, and not as down since? With the device alone. */
bool news_is_up(const struct wg_peer *p);
/* --- any thread --- */
/* True: the ring was empty. */
bool news_put(struct news *s, const struct node_news *v);
/* The oldest, at most cap; returns how many. */
size_t news_take(struct news *s, struct node_news *v, size_t cap);
uint64_t news_lost(struct news *s);
/* From now on they are kept, beginning with none; or not any more. */
void news_keep(struct news *s, bool is_kept);

#endif

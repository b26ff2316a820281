/* SPDX-License-Identifier: Apache-2.0 */
/* News of a node: a queue of events, and a descriptor to wait for them with others. */
#ifndef WEFT_EVENT_H
#define WEFT_EVENT_H

#include "weft/node.h"

#ifdef __cplusplus
extern "C" {
#endif

enum weft_event_kind {
	WEFT_EVENT_PEER_UP,   /* a session was made where none was usable */
	WEFT_EVENT_PEER_DOWN, /* handshakes are not answered any more, the session ran out, or the
				 peer was removed by weft_node_reload() */
	WEFT_EVENT_ENDPOINT_MOVED, /* an authenticated packet came from another address */
	WEFT_EVENT_ERROR,          /* code and text say what; the node goes on if it can */
};

/* An event, as weft_event_next() writes it; all texts end with a NUL. */
struct weft_event {
	size_t size;
	enum weft_event_kind kind;
	uint8_t public_key[WEFT_KEY_LEN]; /* of the peer; zeros where none is meant */
	char name[WEFT_NAME_LEN];
	char endpoint[WEFT_ADDR_LEN];
	enum weft_err code; /* of WEFT_EVENT_ERROR */
	char text[256];     /* of WEFT_EVENT_ERROR */
};

/* Readable while events wait. Owned by the node: do not read or close it. Valid from
 * weft_node_new() to weft_node_free(). Threads: any. Blocks: no. Since: 0.1 */
WEFT_API int weft_event_fd(const struct weft_node *n);
/* Takes the oldest; out->size must be set. The queue holds 256; what finds it full is counted in
 * events_lost. WEFT_EAGAIN: none; WEFT_EINVAL: size. Threads: any. Blocks: no. Since: 0.1 */
WEFT_API enum weft_err weft_event_next(struct weft_node *n, struct weft_event *out);

#ifdef __cplusplus
}
#endif
#endif

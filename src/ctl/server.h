/* SPDX-License-Identifier: Apache-2.0 */
/* One local socket and the clients on it, whatever they speak.
 *
 * Clients are independent: nothing waits for one that sends half a request or does not read its
 * reply. Each has buffers of fixed size; a client whose reply has not left is not read from.
 * There are at most CTL_CLIENTS_MAX; one more takes the place of the one that has been quiet
 * for longest, so that sleeping clients lock nobody out.
 *
 * Threads: the loop's own. */
#ifndef WEFT_CTL_SERVER_H
#define WEFT_CTL_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct ctl_server;
struct log;
struct os_loop;
struct writer;

/* Also the watches, with one for the listener, that a server needs of its loop. */
#define CTL_CLIENTS_MAX 64
/* The room that produce() finds at least. */
#define CTL_ROOM_MIN 8192

enum ctl_step {
	CTL_STEP_MORE,  /* receive: more bytes are needed; produce: there is more to come */
	CTL_STEP_REPLY, /* receive: a request is complete, produce() its reply */
	CTL_STEP_DONE,  /* produce: the reply is complete */
	CTL_STEP_CLOSE, /* produce: the same, and the connection ends behind it */
};

struct ctl_protocol {
	size_t state_bytes; /* of a client, zeroed before the first call */
	/* Takes bytes up to the end of one request. */
	enum ctl_step (*receive)(
		void *ctx, void *state, const char *data, size_t len, size_t *used);
	/* Writes a piece of the reply; writing nothing is allowed. Never fails the writer. */
	enum ctl_step (*produce)(void *ctx, void *state, struct writer *w);
	/* The whole reply is with the kernel. Must not close the server. */
	void (*sent)(void *ctx, void *state);
	/* The connection ends. Must not close the server. */
	void (*fini)(void *ctx, void *state);
	/* NULL: nothing is said unasked. Else: is there something to say now? produce() then makes
	 * it as it makes a reply. */
	bool (*has_word)(void *ctx, const void *state);
	/* With has_word: may there be something later, though the client sends no more? */
	bool (*may_speak)(void *ctx, const void *state);
};

struct ctl_server_config {
	struct os_loop *loop;
	const char *path;     /* of the socket */
	unsigned folder_mode; /* of its folder, if that must be made */
	unsigned mode;        /* of the socket */
	const struct ctl_protocol *protocol;
	void *ctx;
	const struct log *log;
};

/* WEFT_EADDRINUSE: somebody serves there. */
WEFT_MUST_CHECK enum weft_err ctl_server_open(
	const struct ctl_server_config *c, struct ctl_server **out);
/* Some has_word() may be true by now. Their turn comes with the loop's next round. */
void ctl_server_wake(struct ctl_server *s);
/* Drops the clients whose state keep() does not want. What there is to say unasked is written as
 * far as the socket has room. */
void ctl_server_sift(struct ctl_server *s, bool (*keep)(const void *state));
/* Whoever may, removes the socket: ctl_server_close() leaves it. */
void ctl_server_leave_file(struct ctl_server *s);
/* Drops every client and removes the socket. NULL is allowed. */
void ctl_server_close(struct ctl_server *s);

#endif

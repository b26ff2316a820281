/* SPDX-License-Identifier: Apache-2.0 */
/* Connections with the identity of who made them.
 *
 * accept(2) of a socket that blocks can be interrupted by nothing but a connection. So it is
 * called when one waits, and by one thread at a time, since another could take it in between. */
#include <stdio.h>

#include "lib/cancel.h"
#include "lib/detail.h"
#include "lib/dial.h"
#include "lib/node.h"
#include "os/fd.h"
#include "os/inet.h"

/* WEFT_EAGAIN: another thread was faster. */
static enum weft_err
accept_ready(struct weft_node *n, int listen_fd, bool is_nonblocking, int *fd)
{
	struct wait now = {.n = n, .deadline = {.ns = 0}};
	int errnum = 0;
	os_mutex_lock(&n->accepting);
	enum weft_err e = wait_for(&now, listen_fd, false);
	if (!e) {
		e = os_inet_accept(listen_fd, is_nonblocking, fd, &errnum);
	}
	os_mutex_unlock(&n->accepting);
	return e == WEFT_ETIMEDOUT ? WEFT_EAGAIN : e;
}

static enum weft_err
accept_started(struct weft_node *n, int listen_fd, const struct weft_dial_options *o, int *fd)
{
	struct wait w = {.n = n, .cancel = o->cancel, .deadline = wait_deadline(o->timeout_ms)};
	bool is_blocking;
	enum weft_err e = os_inet_is_blocking(listen_fd, &is_blocking);
	while (!e) {
		e = accept_ready(n, listen_fd, o->flags & WEFT_NONBLOCK, fd);
		if (e != WEFT_EAGAIN || !is_blocking) {
			break;
		}
		e = wait_for(&w, listen_fd, false);
	}
	return e;
}

static void
identify(struct weft_node *n, int fd, struct weft_identity *out)
{
	struct endpoint at = {0};
	char text[ENDPOINT_TEXT_MAX];
	if (os_inet_peer(fd, &at.addr, &at.port)) {
		return; /* reset meanwhile: reading from it tells */
	}
	(void)whois_find(n, &at.addr, out);
	snprintf(out->overlay, sizeof(out->overlay), "%s", endpoint_format(&at, text));
}

enum weft_err
weft_accept(struct weft_node *n, int listen_fd, const struct weft_dial_options *o, int *fd,
	struct weft_identity *who)
{
	struct weft_dial_options own;
	struct weft_identity id = {0};
	if (!n || !fd || (who && !record_give(who, &id, sizeof(id), sizeof(id))) ||
		dial_options(o, &own, NULL)) {
		return WEFT_EINVAL;
	}
	enum weft_err e = lib_node_enter(n);
	if (e) {
		return e;
	}
	int got;
	e = accept_started(n, listen_fd, &own, &got);
	if (!e) {
		if (who) {
			identify(n, got, &id);
			(void)record_give(who, &id, sizeof(id), sizeof(id));
		}
		*fd = got;
	}
	lib_node_leave(n);
	return e;
}

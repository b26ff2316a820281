/* SPDX-License-Identifier: Apache-2.0 */
/* A device's metrics over HTTP: GET /metrics gives what `weft status --prometheus NAME` prints.
 *
 * libmicrohttpd is loaded when a server is opened: it brings a TLS library of 2.6 MB along that
 * devices without metrics need not carry. It runs on the control loop. What is served is made at
 * most once a second, however many ask; connections are few and have their time. */
#ifndef WEFT_CTL_HTTP_H
#define WEFT_CTL_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mono.h"

struct ctl_http;
struct endpoint;
struct log;
struct node;
struct os_loop;

#define CTL_HTTP_PORT 9586
#define CTL_HTTP_CLIENTS_MAX 16
#define CTL_HTTP_TIMEOUT_S 10 /* of a connection on which nothing moves */

struct ctl_http_config {
	struct node *node;
	struct os_loop *loop;
	const struct endpoint *at;
	const char *version;
	const struct log *log;
};

/* WEFT_ENOTSUP: the library is not there, WEFT_EADDRINUSE and others; the log has the words.
 * Threads: the loop's. */
WEFT_MUST_CHECK enum weft_err ctl_http_open(const struct ctl_http_config *c, struct ctl_http **out);
/* When ctl_http_turn() has something to do, whatever the loop sees. NULL: never. */
struct mono ctl_http_deadline(const struct ctl_http *h);
void ctl_http_turn(struct ctl_http *h, struct mono now);
/* Drops every connection. NULL is allowed. */
void ctl_http_close(struct ctl_http *h);

#endif

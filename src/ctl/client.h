/* SPDX-License-Identifier: Apache-2.0 */
/* The asking side of both sockets, for the command line. Every call has a deadline. */
#ifndef WEFT_CTL_CLIENT_H
#define WEFT_CTL_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mono.h"

#define CTL_REPLY_MAX (512u << 20) /* bytes that a client takes of one reply */

/* Sends a request and collects the reply until is_whole says so. WEFT_ENOENT: nobody is there;
 * WEFT_ETIMEDOUT; WEFT_ECLOSED: the other side went away before the end; WEFT_EMSGSIZE: over
 * CTL_REPLY_MAX. The reply ends with a NUL that *reply_len does not count, may hold keys, and
 * is the caller's: ctl_client_free(). */
WEFT_MUST_CHECK enum weft_err ctl_client_ask(const char *path, const char *request,
	struct mono deadline, bool (*is_whole)(const char *text, size_t len), char **reply,
	size_t *reply_len);
/* Wipes and frees. */
void ctl_client_free(char *reply, size_t reply_len);

/* "get=1" over the UAPI. */
WEFT_MUST_CHECK enum weft_err ctl_client_get(
	const char *path, struct mono deadline, char **reply, size_t *reply_len);
/* One request over the control socket. WEFT_EPARSE: the reply is not an object. *out may be an
 * "error". */
WEFT_MUST_CHECK enum weft_err ctl_client_request(
	const char *path, const json_t *request, struct mono deadline, json_t **out);
/* The same with an operation that takes no arguments. */
WEFT_MUST_CHECK enum weft_err ctl_client_op(
	const char *path, const char *op, struct mono deadline, json_t **out);
/* Asks the device to end, and waits until the connection does: then its interface is gone.
 * WEFT_EIO: it answered with an error. */
WEFT_MUST_CHECK enum weft_err ctl_client_stop(const char *path, struct mono deadline);

#endif

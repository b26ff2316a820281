/* SPDX-License-Identifier: Apache-2.0 */
/* The UAPI socket of a device: what wg(8) shows and sets. */
#ifndef WEFT_CTL_UAPI_H
#define WEFT_CTL_UAPI_H

#include "base/err.h"
#include "wire/uapi.h"

struct ctl_uapi;
struct log;
struct node;
struct os_loop;

/* Bytes of unfinished and unapplied requests of all clients together. */
#define CTL_UAPI_HELD_MAX (128u << 20)

/* Makes the folder of path if need be. Threads: the loop's, which calls everything of node. */
WEFT_MUST_CHECK enum weft_err ctl_uapi_open(struct node *n, struct os_loop *loop, const char *path,
	const struct log *log, struct ctl_uapi **out);
/* As ctl_server_leave_file(). */
void ctl_uapi_leave_file(struct ctl_uapi *u);
void ctl_uapi_close(struct ctl_uapi *u);

/* Applies a checked set. The device is locked for a few peers at a time. Returns an errno; when
 * it is not 0 nothing was changed, unless memory ran out half-way. */
int ctl_uapi_apply(struct node *n, const struct uapi_request *r);

#endif

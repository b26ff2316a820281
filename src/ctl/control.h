/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket of a device: requests and replies in JSON, one a line (docs/control.md).
 *
 * No private and no preshared key leaves by it. */
#ifndef WEFT_CTL_CONTROL_H
#define WEFT_CTL_CONTROL_H

#include <stddef.h>

#include "base/err.h"

struct ctl_control;
struct log;
struct node;
struct os_loop;

#define CTL_REQUEST_MAX (64u << 10) /* bytes of a line */

struct ctl_control_config {
	struct node *node;
	struct os_loop *loop;
	const char *path;
	const char *version;
	const struct log *log;
	/* Somebody asked the device to end, and has got the answer. Must not close the control
	 * socket: only note it. */
	void (*stop)(void *ctx);
	/* Reads the configuration again: file, or the one at hand for NULL. why has cap bytes for
	 * what is wrong. NULL: the device has no configuration to read. */
	enum weft_err (*reload)(void *ctx, const char *file, char *why, size_t cap);
	/* Writes what runs into the configuration file; NULL: there is none. */
	enum weft_err (*save)(void *ctx, char *why, size_t cap);
	void *ctx;
};

/* Makes the folder of path if need be. Threads: the loop's, which calls everything of node. */
WEFT_MUST_CHECK enum weft_err ctl_control_open(
	const struct ctl_control_config *c, struct ctl_control **out);
/* Drops every client but those that asked for the end, and with them all references to peers.
 * Those learn of the end by ctl_control_close(), which may follow when the node is gone. The
 * loop is not run in between. */
void ctl_control_drain(struct ctl_control *c);
void ctl_control_close(struct ctl_control *c);

#endif

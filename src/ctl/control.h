/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket of a device: requests and replies in JSON, one a line (docs/control.md).
 *
 * No private and no preshared key leaves by it. */
#ifndef WEFT_CTL_CONTROL_H
#define WEFT_CTL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mono.h"

struct conf;
struct ctl_control;
struct keeper;
struct log;
struct node;
struct os_loop;

#define CTL_REQUEST_MAX (64u << 10) /* bytes of a line */

/* What the process has given up. */
struct ctl_sandbox {
	bool is_on;
	bool has_filter; /* of system calls */
	char user[33];   /* that it has become; "" = it is who it was */
};

struct ctl_control_config {
	struct node *node;
	const struct keeper *keeper; /* of the node; NULL: it has none */
	struct os_loop *loop;
	const char *path;
	const char *version;
	const struct log *log;
	const struct ctl_sandbox *sandbox; /* NULL: none; may change meanwhile */
	/* Somebody asked the device to end, and has got the answer. Must not close the control
	 * socket: only note it. */
	void (*stop)(void *ctx);
	/* Reads the configuration again: file, or the one at hand for NULL. why has cap bytes for
	 * what is wrong. NULL: the device has no configuration to read. */
	enum weft_err (*reload)(void *ctx, const char *file, char *why, size_t cap);
	/* Writes what runs into the configuration file; NULL: there is none. */
	enum weft_err (*save)(void *ctx, char *why, size_t cap);
	/* The configuration in force, for the names of peers, or NULL; may be NULL. */
	const struct conf *(*conf)(void *ctx);
	void *ctx;
};

/* Makes the folder of path if need be. Threads: the loop's, which calls everything of node. */
WEFT_MUST_CHECK enum weft_err ctl_control_open(
	const struct ctl_control_config *c, struct ctl_control **out);
/* When ctl_control_turn() is due; also after each round of the loop: the node may have news. */
struct mono ctl_control_deadline(const struct ctl_control *c);
void ctl_control_turn(struct ctl_control *c, struct mono now);
/* For those who watch. A reload of file, or of the one at hand for NULL, was refused for a reason;
 * NULL: it is in force. */
void ctl_control_reloaded(struct ctl_control *c, const char *file, const char *why);
/* The device is about to end. */
void ctl_control_stopping(struct ctl_control *c);
/* As ctl_server_leave_file(). */
void ctl_control_leave_file(struct ctl_control *c);
/* Drops every client but those that asked for the end, and with them all references to peers.
 * Those learn of the end by ctl_control_close(), which may follow when the node is gone. The
 * loop is not run in between. */
void ctl_control_drain(struct ctl_control *c);
void ctl_control_close(struct ctl_control *c);

#endif

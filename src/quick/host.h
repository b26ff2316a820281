/* SPDX-License-Identifier: Apache-2.0 */
/* What wg-quick does around a device needs this of the process that runs it. */
#ifndef WEFT_QUICK_HOST_H
#define WEFT_QUICK_HOST_H

#include <stdbool.h>

#include "base/log.h"
#include "base/mono.h"

struct os_loop;

struct quick_host {
	struct os_loop *loop;
	const struct log *log;
	const char *name;       /* of the interface */
	const char *path;       /* of the configuration file, for messages */
	const char *sockets[2]; /* of the device; those that nobody serves any more are removed */
	/* Waits for the loop until then at the longest, and does what is due: the device answers
	 * `wg` while a hook runs. */
	void (*turn)(void *ctx, struct mono until);
	/* Shall we not go on? NULL: never. */
	bool (*is_over)(void *ctx);
	void *ctx;
	bool is_attached;    /* programs may use the standard streams */
	bool is_at_terminal; /* they are in our process group, for the terminal's signals */
};

#endif

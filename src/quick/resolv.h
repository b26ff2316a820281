/* SPDX-License-Identifier: Apache-2.0 */
/* /etc/resolv.conf as text, where weft writes it itself: one block for each device, the newest
 * first, since resolvers ask the servers in their order.
 *
 * The first line says that the file is ours, and holds a sum of the rest: a file that somebody
 * has edited is not ours any more. No I/O. */
#ifndef WEFT_QUICK_RESOLV_H
#define WEFT_QUICK_RESOLV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

enum resolv_kind {
	RESOLV_FOREIGN, /* without our mark */
	RESOLV_OURS,
	RESOLV_CHANGED, /* ours, and edited since */
};

enum resolv_kind resolv_look(const char *text, size_t len);
/* Was there a file before? Of RESOLV_OURS. */
bool resolv_has_before(const char *text, size_t len);
bool resolv_has_device(const char *text, size_t len, const char *name);
/* A text of ours, with lines (which end with a newline) as the block of the device, or without its
 * block for NULL. text: one of ours, or NULL. *blocks: how many there are. The caller frees.
 * NULL: no memory. */
char *resolv_edit(const char *text, size_t len, const char *name, const char *lines,
	bool has_before, size_t *blocks);

#endif

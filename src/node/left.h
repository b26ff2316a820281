/* SPDX-License-Identifier: Apache-2.0 */
/* What a device has changed in the kernel that outlives a killed process, noted in a file before it
 * is done: the policy rules of a default route, and net.ipv4.conf.all.src_valid_mark. */
#ifndef WEFT_NODE_LEFT_H
#define WEFT_NODE_LEFT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct log;
struct os_netlink;

/* Who keeps the note: the process itself, or the one that may. */
struct left_keeper {
	enum weft_err (*begin)(void *ctx, uint32_t table, bool has_v4);
	void (*end)(void *ctx);
	void *ctx;
};

/* Notes that rules to the table are going to be added, and with has_v4 what src_valid_mark was,
 * which is set then. path ends in ".left"; those of other devices are in the same folder. */
WEFT_MUST_CHECK enum weft_err left_begin(
	const char *path, uint32_t table, bool has_v4, const struct log *log);
/* The rules are gone: src_valid_mark is set back, unless others need it, and the note removed; with
 * has_more it stays, without them, since there is more that the next start is to clean up. Nothing
 * is done without a note. */
void left_end(const char *path, struct os_netlink *nl, bool has_more, const struct log *log);
/* Removes the rules, too, for a process that was killed. */
void left_clean(const char *path, bool has_more, const struct log *log);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* SaveConfig: what a device runs with, written into its file. */
#ifndef WEFT_QUICK_SAVE_H
#define WEFT_QUICK_SAVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct conf;
struct log;
struct node;

/* The file as it was when it came into force. */
struct save_base {
	uint64_t sum;  /* conf_text_sum() */
	uint32_t mark; /* of the sockets then: not worth saving when the file names none */
};

/* Edits the file in place: comments, order and names of hosts stay. A file that was changed since
 * is left alone, and what would have been written goes to PATH.weft-save beside it: WEFT_EEXIST.
 * why has cap bytes for what failed. After success base is that of the new file. */
WEFT_MUST_CHECK enum weft_err save_write(
	struct node *n, const char *path, struct save_base *base, char *why, size_t cap);

#endif

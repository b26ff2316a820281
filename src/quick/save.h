/* SPDX-License-Identifier: Apache-2.0 */
/* SaveConfig: what a device runs with, written into its file. */
#ifndef WEFT_QUICK_SAVE_H
#define WEFT_QUICK_SAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/conf_edit.h"

struct node;

/* A copy of what runs; it holds keys. */
struct save_copy {
	struct conf_state state;
	struct conf_state_peer *peers;
	struct ip_prefix *prefixes;
	size_t prefixes_n;
};

/* mark: of the sockets when the file came into force, not worth saving where the file names none.
 * save_copy_fini() is due in any case. */
WEFT_MUST_CHECK enum weft_err save_copy_take(struct node *n, uint32_t mark, struct save_copy *out);
void save_copy_fini(struct save_copy *c);

/* Edits the file in place: comments, order and names of hosts stay. *sum is conf_text_sum() of the
 * file as it was when it came into force, and after success that of the new one. A file that was
 * changed since is left alone, and what would have been written goes to PATH.weft-save beside it:
 * WEFT_EEXIST. why has cap bytes for what failed. */
WEFT_MUST_CHECK enum weft_err save_write(
	const struct conf_state *state, const char *path, uint64_t *sum, char *why, size_t cap);
/* Removes what a killed process had begun to write; true: there was something. path: without
 * symbolic links. */
bool save_clean(const char *path);

#endif

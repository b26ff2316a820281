/* SPDX-License-Identifier: Apache-2.0 */
/* The file that remembers the last handshake timestamp a device sent, so that a clock that was
 * set back does not shut it out. Never a condition for running: a disk that
 * cannot be written is said once. */
#ifndef WEFT_NODE_STAMP_H
#define WEFT_NODE_STAMP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

#define STAMP_PATH_MAX 128

/* The file is opened once, so that a process may give up the right to do so. */
struct stamp {
	char path[STAMP_PATH_MAX]; /* empty: not persisted */
	int fd;                    /* -1: it cannot be written */
	uint64_t seconds;          /* TAI64N seconds; 0 = none known */
	bool has_warned;
};

void stamp_load(struct stamp *s, const char *state_dir, const char *name, const struct log *log);
/* Under the node's lock. Does not wait for the disk, since packets wait meanwhile: stamp_sync()
 * does, on the control thread, right after. Until then a loss of power, and of nothing less, undoes
 * it. */
void stamp_save(struct stamp *s, uint64_t seconds, const struct log *log);
void stamp_fini(struct stamp *s);
/* Any thread. */
void stamp_sync(const struct stamp *s, const struct log *log);

#endif

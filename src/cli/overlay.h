/* SPDX-License-Identifier: Apache-2.0 */
/* The node of libweft behind the commands that need no root. */
#ifndef WEFT_CLI_OVERLAY_H
#define WEFT_CLI_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "cli/options.h"
#include "weft/node.h"

struct conf;

struct overlay {
	struct weft_node *node;           /* started */
	struct conf *conf;                /* the same, for what the library leaves alone: DNS */
	char path[OPTIONS_PATH_MAX];      /* of its file */
	char state_dir[OPTIONS_PATH_MAX]; /* for the time of the last handshake; empty: nowhere */
};

/* "error", "warn", "info", "debug". False: another text. */
bool overlay_level_parse(const char *text, enum weft_log_level *out);
/* what: FILE or NAME, as `weft up` has it. Says what is wrong, and returns an exit status. */
int overlay_open(struct overlay *o, const char *what, enum weft_log_level level);
/* Reads the file again. On failure nothing has changed. */
int overlay_reload(struct overlay *o);
void overlay_close(struct overlay *o);
/* Speaks to every peer whose endpoint the file has and who is not kept alive: who listens must be
 * found, and peers may know another endpoint from an earlier run. Once, right after the start. */
void overlay_announce(struct overlay *o);
/* The names of its peers, "a, b, c", for messages; "" without. Returns out. */
char *overlay_names(const struct overlay *o, char *out, size_t cap);

#endif

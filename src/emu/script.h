/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a link over time.
 *
 * A script is statements, ended by newline or semicolon; # begins a comment:
 *
 *     at 5s loss 15%                  # both directions
 *     at 10s loss 0% ab.rate 20mbit   # only a to b
 *     at 20s rebind                   # UDP relay: new source ports
 *
 * Times count from the start. Statements may stand in any order; equal times keep the order
 * of the text. */
#ifndef WEFT_EMU_SCRIPT_H
#define WEFT_EMU_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "emu/settings.h"

struct emu_error;

#define EMU_SCRIPT_STEPS_MAX 4096

struct emu_step {
	int64_t at_ns;
	bool is_rebind; /* then assign means nothing */
	struct emu_assign assign;
};

struct emu_script {
	struct emu_step *steps; /* sorted by at_ns */
	size_t n;
};

/* WEFT_EPARSE with error filled, or WEFT_ENOMEM. On success the script is the caller's, to be
 * ended by emu_script_fini(). */
WEFT_MUST_CHECK enum weft_err emu_script_parse(
	const char *text, size_t len, struct emu_script *out, struct emu_error *error);
/* A zeroed script is allowed. */
void emu_script_fini(struct emu_script *s);

#endif

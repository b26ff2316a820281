/* SPDX-License-Identifier: Apache-2.0 */
/* A picture of lines for a terminal: each cut to its width, all together to its height. */
#ifndef WEFT_CLI_SCREEN_H
#define WEFT_CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

#define SCREEN_LINE_MAX 1024 /* bytes of a line before it is cut */

/* Written around all pictures: a screen of its own without a cursor; and back. */
#define SCREEN_BEGIN "\x1b[?1049h\x1b[?25l"
#define SCREEN_END "\x1b[?25h\x1b[?1049l"

struct screen {
	unsigned rows, columns;
	bool is_utf8;  /* of the terminal: what sparklines are made of */
	unsigned used; /* lines so far */
	char *text;    /* freed by screen_fini() */
	size_t len, cap;
	bool has_failed; /* no memory: the picture is not whole */
};

/* Begins the next picture. */
void screen_begin(struct screen *s, unsigned rows, unsigned columns);
unsigned screen_rows_left(const struct screen *s);
/* One line; below the last row nothing. Control characters in it become '?'. */
WEFT_PRINTF(2, 3) void screen_line(struct screen *s, const char *fmt, ...);
/* The same over the whole width in reverse. */
WEFT_PRINTF(2, 3) void screen_title(struct screen *s, const char *fmt, ...);
/* The rest of the terminal is cleared. */
void screen_finish(struct screen *s);
void screen_fini(struct screen *s);

#endif

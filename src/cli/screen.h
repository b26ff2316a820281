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

enum screen_style {
	SCREEN_PLAIN,
	SCREEN_TITLE, /* reverse, over the whole width */
	SCREEN_HEAD,  /* bold */
	SCREEN_FAINT,
	SCREEN_WARN, /* yellow, where there are colours */
	SCREEN_BAD,  /* red, likewise */
};

struct screen {
	unsigned rows, columns;
	bool is_utf8; /* of the terminal: what sparklines are made of */
	bool has_colors;
	unsigned used; /* lines so far */
	bool is_cut;   /* there was no row for a line */
	char *text;    /* freed by screen_fini() */
	size_t len, cap;
	bool has_failed; /* no memory: the picture is not whole */
};

/* Begins the next picture. */
void screen_begin(struct screen *s, unsigned rows, unsigned columns);
unsigned screen_rows_left(const struct screen *s);
/* Lines from here on can be taken back. */
struct screen_mark {
	unsigned used;
	size_t len;
};
struct screen_mark screen_mark(const struct screen *s);
void screen_take_back(struct screen *s, const struct screen_mark *m);
/* One line; below the last row nothing. Control characters in it become '?'. */
WEFT_PRINTF(2, 3) void screen_line(struct screen *s, const char *fmt, ...);
WEFT_PRINTF(3, 4)
void screen_styled(struct screen *s, enum screen_style style, const char *fmt, ...);
/* As many lines as it takes, broken at blanks; the further ones are indented. */
WEFT_PRINTF(4, 5)
void screen_wrapped(
	struct screen *s, enum screen_style style, unsigned indent, const char *fmt, ...);
/* The rest of the terminal is cleared. */
void screen_finish(struct screen *s);
void screen_fini(struct screen *s);

#endif

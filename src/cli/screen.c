/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REVERSE "\x1b[7m"
#define PLAIN "\x1b[0m"
#define CLEAR_LINE "\x1b[K"
#define CLEAR_BELOW "\x1b[J"
#define HOME "\x1b[H"

static void
append(struct screen *s, const char *text, size_t len)
{
	if (s->cap - s->len < len) {
		size_t cap = (s->cap + len) * 2;
		char *bigger = realloc(s->text, cap);
		if (!bigger) {
			s->has_failed = true;
			return;
		}
		s->text = bigger;
		s->cap = cap;
	}
	memcpy(s->text + s->len, text, len);
	s->len += len;
}

static void
append_text(struct screen *s, const char *text)
{
	append(s, text, strlen(text));
}

void
screen_begin(struct screen *s, unsigned rows, unsigned columns)
{
	s->rows = rows;
	s->columns = columns;
	s->used = 0;
	s->len = 0;
	s->has_failed = false;
	append_text(s, HOME);
}

unsigned
screen_rows_left(const struct screen *s)
{
	return s->rows - s->used;
}

/* Bytes that fit into so many columns; one column a character, which holds for what is shown.
 * Names of interfaces and of peers may hold anything. */
static size_t
cut(char *text, unsigned columns, unsigned *used)
{
	size_t at = 0;
	*used = 0;
	for (; text[at]; at++) {
		unsigned char c = (unsigned char)text[at];
		bool is_continuation = (c & 0xc0) == 0x80;
		if (!is_continuation && *used == columns) {
			break;
		}
		*used += !is_continuation;
		if (c < 0x20 || c == 0x7f) {
			text[at] = '?';
		}
	}
	return at;
}

WEFT_PRINTF(3, 0)
static void
put_line(struct screen *s, bool is_title, const char *fmt, va_list ap)
{
	char text[SCREEN_LINE_MAX];
	unsigned used;
	if (s->used == s->rows) {
		return;
	}
	vsnprintf(text, sizeof(text), fmt, ap);
	size_t len = cut(text, s->columns, &used);
	/* The last line has no end, which would move the picture up. */
	append_text(s, s->used > 0 ? "\r\n" : "");
	append_text(s, is_title ? REVERSE : "");
	append(s, text, len);
	for (; is_title && used < s->columns; used++) {
		append_text(s, " ");
	}
	append_text(s, is_title ? PLAIN : "");
	if (used < s->columns) {
		append_text(s, CLEAR_LINE);
	}
	s->used++;
}

void
screen_line(struct screen *s, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	put_line(s, false, fmt, ap);
	va_end(ap);
}

void
screen_title(struct screen *s, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	put_line(s, true, fmt, ap);
	va_end(ap);
}

void
screen_finish(struct screen *s)
{
	if (s->used < s->rows) {
		append_text(s, "\r\n" CLEAR_BELOW);
	}
}

void
screen_fini(struct screen *s)
{
	free(s->text);
	*s = (struct screen){0};
}

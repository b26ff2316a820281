/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	s->is_cut = false;
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

static const char *
begin_of(const struct screen *s, enum screen_style style)
{
	switch (style) {
	case SCREEN_TITLE:
		return "\x1b[7m";
	case SCREEN_HEAD:
		return "\x1b[1m";
	case SCREEN_FAINT:
		return "\x1b[2m";
	case SCREEN_WARN:
		return s->has_colors ? "\x1b[33m" : "";
	case SCREEN_BAD:
		return s->has_colors ? "\x1b[31m" : "";
	case SCREEN_PLAIN:
		break;
	}
	return "";
}

static void
put_line(struct screen *s, enum screen_style style, char *text)
{
	const char *begin = begin_of(s, style);
	unsigned used;
	if (s->used == s->rows) {
		s->is_cut = true;
		return;
	}
	size_t len = cut(text, s->columns, &used);
	/* The last line has no end, which would move the picture up. */
	append_text(s, s->used > 0 ? "\r\n" : "");
	append_text(s, begin);
	append(s, text, len);
	for (; style == SCREEN_TITLE && used < s->columns; used++) {
		append_text(s, " ");
	}
	append_text(s, begin[0] ? PLAIN : "");
	if (used < s->columns) {
		append_text(s, CLEAR_LINE);
	}
	s->used++;
}

struct screen_mark
screen_mark(const struct screen *s)
{
	return (struct screen_mark){s->used, s->len};
}

void
screen_take_back(struct screen *s, const struct screen_mark *m)
{
	s->used = m->used;
	s->len = m->len;
}

void
screen_line(struct screen *s, const char *fmt, ...)
{
	char text[SCREEN_LINE_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	put_line(s, SCREEN_PLAIN, text);
}

void
screen_styled(struct screen *s, enum screen_style style, const char *fmt, ...)
{
	char text[SCREEN_LINE_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	put_line(s, style, text);
}

/* Bytes of a line that has so many columns at most, and where the next one begins. */
static size_t
find_break(char *text, unsigned columns, size_t *next)
{
	unsigned used;
	size_t len = cut(text, columns, &used), at = len;
	*next = len;
	if (!text[len]) {
		return len;
	}
	while (at > 0 && text[at] != ' ') {
		at--;
	}
	/* Two blanks part what belongs together: a break there is the better one. */
	for (size_t pair = at; pair > len / 2; pair--) {
		if (text[pair] == ' ' && text[pair - 1] == ' ') {
			at = pair;
			break;
		}
	}
	/* A word that is longer than the line is broken. */
	if (strspn(text, " ") >= at) {
		return len;
	}
	*next = at + strspn(text + at, " ");
	while (text[at - 1] == ' ') {
		at--;
	}
	return at;
}

void
screen_wrapped(struct screen *s, enum screen_style style, unsigned indent, const char *fmt, ...)
{
	char text[SCREEN_LINE_MAX], line[SCREEN_LINE_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	unsigned used = 0;
	size_t at = 0, next;
	do {
		unsigned room = s->columns > used ? s->columns - used : 1;
		size_t len = find_break(text + at, room, &next);
		snprintf(line, sizeof(line), "%*s%.*s", (int)used, "", (int)len, text + at);
		put_line(s, style, line);
		at += next;
		used = indent;
	} while (text[at] && !s->is_cut);
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

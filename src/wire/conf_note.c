/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the configuration reader: collected, bounded, sorted, printed. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wire/conf_internal.h"

/* Places that warnings leave for errors. */
#define NOTES_FOR_ERRORS 20

/* A longer run of base64 characters may be a piece of a key that was pasted to a wrong place,
 * and is not repeated in a message. */
#define BASE64_RUN_MAX 15

void
conf_note_add(struct conf_report *r, enum conf_severity severity, struct conf_pos pos,
	uint32_t line2, const char *key, const char *fmt, ...)
{
	size_t cap = CONF_NOTES_MAX;
	if (severity == CONF_SEVERITY_ERROR) {
		r->errors++;
	} else {
		r->warnings++;
		cap -= NOTES_FOR_ERRORS;
	}
	if (r->n >= cap) {
		return;
	}
	struct conf_note *n = &r->notes[r->n++];
	*n = (struct conf_note){.severity = severity, .pos = pos, .line2 = line2};
	snprintf(n->key, sizeof(n->key), "%s", key ? key : "");
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(n->text, sizeof(n->text), fmt, ap);
	va_end(ap);
}

WEFT_PRINTF(4, 0)
static void
note_value(struct conf_report *r, enum conf_severity severity, const struct conf_value *v,
	const char *fmt, va_list ap)
{
	char text[sizeof(r->notes[0].text)];
	vsnprintf(text, sizeof(text), fmt, ap);
	conf_note_add(r, severity, v->pos, 0, v->key ? v->key->name : NULL, "%s", text);
}

bool
conf_value_refuse(struct conf_report *r, const struct conf_value *v, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	note_value(r, CONF_SEVERITY_ERROR, v, fmt, ap);
	va_end(ap);
	return false;
}

void
conf_value_warn(struct conf_report *r, const struct conf_value *v, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	note_value(r, CONF_SEVERITY_WARNING, v, fmt, ap);
	va_end(ap);
}

static bool
is_base64(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '+' || c == '/';
}

/* Blanks and the like do not end a run: a key that was cut is a key. */
static bool
is_printable(const struct conf_value *v, size_t run_max)
{
	size_t run = 0;
	bool ok = v->len > 0 && !(v->key && (v->key->traits & CONF_TRAIT_SECRET));
	for (size_t i = 0; ok && i < v->len; i++) {
		char c = v->p[i];
		bool is_between = c != 0 && strchr(" \t,;=-_", c);
		run = is_base64(c) ? run + 1 : is_between ? run : 0;
		ok = run <= run_max && c >= 0x20 && c < 0x7f;
	}
	return ok;
}

char *
conf_value_quote(const struct conf_value *v, char out[CONF_QUOTE_MAX])
{
	out[0] = 0;
	if (v->len <= CONF_QUOTE_MAX - 4 && is_printable(v, BASE64_RUN_MAX)) {
		snprintf(out, CONF_QUOTE_MAX, "\"%.*s\" ", (int)v->len, v->p);
	}
	return out;
}

char *
conf_value_name(
	const struct conf_value *v, const struct conf_key *near, char out[CONF_NOTE_KEY_MAX])
{
	/* Not much longer than the name that was meant. */
	bool is_near = near && v->len * 3 <= strlen(near->name) * 4;
	out[0] = 0;
	if (v->len < CONF_NOTE_KEY_MAX && is_printable(v, is_near ? SIZE_MAX : BASE64_RUN_MAX)) {
		snprintf(out, CONF_NOTE_KEY_MAX, "%.*s", (int)v->len, v->p);
	}
	return out;
}

static bool
is_after(const struct conf_note *a, const struct conf_note *b)
{
	return a->pos.line != b->pos.line ? a->pos.line > b->pos.line
					  : a->pos.column > b->pos.column;
}

void
conf_report_sort(struct conf_report *r)
{
	/* Nearly sorted and at most CONF_NOTES_MAX long; equal ones keep their order. */
	for (size_t i = 1; i < r->n; i++) {
		for (size_t j = i; j > 0 && is_after(&r->notes[j - 1], &r->notes[j]); j--) {
			struct conf_note t = r->notes[j];
			r->notes[j] = r->notes[j - 1];
			r->notes[j - 1] = t;
		}
	}
}

char *
conf_note_format(const struct conf_note *n, const char *file, char *out, size_t cap)
{
	snprintf(out, cap, "%s:%u:%u: %s: %s%s%s", file, n->pos.line, n->pos.column,
		n->severity == CONF_SEVERITY_ERROR ? "error" : "warning", n->key,
		n->key[0] ? ": " : "", n->text);
	return out;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reading settings and scripts: a cursor over text whose failure is sticky and knows its line
 * and column, and the quantities that settings are made of. */
#ifndef WEFT_EMU_TEXT_H
#define WEFT_EMU_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EMU_ERROR_TEXT_MAX 200

struct emu_error {
	unsigned line, column;         /* both from 1; column counts bytes */
	char text[EMU_ERROR_TEXT_MAX]; /* what was expected, and what stands there */
};

/* Not NUL-terminated text. After a failure every read yields zero and moves nothing. */
struct emu_text {
	const char *p, *end;
	const char *line_start;
	unsigned line;
	bool failed;
	struct emu_error *error; /* set at the first failure */
};

void emu_text_init(struct emu_text *t, const char *text, size_t len, struct emu_error *error);

/* Fails at `at`, which lies in the current line of t. */
void emu_text_fail(struct emu_text *t, const char *at, const char *expected);
/* Fails at `at` with a sentence of its own instead of "expected ..., found ...". */
void emu_text_refuse(struct emu_text *t, const char *at, const char *sentence);

/* Skips spaces and tabs, and a comment from # up to the end of its line. */
void emu_text_skip_blank(struct emu_text *t);
/* Says whether a statement ends here: newline, semicolon or end of text. */
bool emu_text_is_end_of_statement(const struct emu_text *t);
/* Passes newlines, semicolons, blanks and comments up to the next statement. */
void emu_text_skip_to_statement(struct emu_text *t);
/* Passes c, or passes nothing and says so. */
bool emu_text_has_char(struct emu_text *t, char c);
/* The next run of bytes that are neither blank nor one of "=;#" nor a line end, as a cursor of
 * its own that reports into the same error. Empty where there is none. */
struct emu_text emu_text_take_token(struct emu_text *t);
/* Passes the word when it is all that is left, or all up to a comma. */
bool emu_text_has_word(struct emu_text *t, const char *word);
/* Fails unless everything is read. */
void emu_text_finish(struct emu_text *t, const char *expected);

/* "5%", "0.25%" or "0", as a number from 0 to 1. */
double emu_text_share(struct emu_text *t);
/* "0", or a decimal with ns, us, ms, s or m; at most an hour. In nanoseconds. */
int64_t emu_text_duration(struct emu_text *t);
/* A decimal with bit, kbit, mbit or gbit (powers of 1000; "/s" may follow), 1 bit/s to
 * 1000 gbit/s. In bits a second. */
uint64_t emu_text_rate(struct emu_text *t);
/* A decimal alone (bytes) or with B, kB, MB, GB, KiB, MiB, GiB; 1 B to 1 GiB. In bytes. */
uint64_t emu_text_size(struct emu_text *t);
/* Whether the number that stands here has a unit of time behind it. */
bool emu_text_is_duration(const struct emu_text *t);
/* A whole number in min..max. */
uint64_t emu_text_count(struct emu_text *t, uint64_t min, uint64_t max, const char *expected);
/* A decimal in min..max. */
double emu_text_decimal(struct emu_text *t, double min, double max, const char *expected);

#endif

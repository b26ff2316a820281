/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "cli/screen.h"

/* The picture with its end. */
static const char *
text_of(struct screen *s)
{
	static char text[4096];
	screen_finish(s);
	assert_false(s->has_failed);
	assert_true(s->len < sizeof(text));
	memcpy(text, s->text, s->len);
	text[s->len] = 0;
	return text;
}

static void
screen_cuts_lines_to_the_width_in_characters(void **state)
{
	(void)state;
	struct screen s = {0};
	screen_begin(&s, 5, 4);
	screen_line(&s, "abcdef");
	screen_line(&s, "\xe2\x96\x81\xe2\x96\x82\xe2\x96\x83\xe2\x96\x84\xe2\x96\x85");
	screen_line(&s, "ab");
	screen_styled(&s, SCREEN_TITLE, "%d", 7);
	assert_string_equal(text_of(&s),
		"\x1b[Habcd\r\n\xe2\x96\x81\xe2\x96\x82\xe2\x96\x83\xe2\x96\x84\r\nab\x1b[K\r\n"
		"\x1b[7m7   \x1b[0m\r\n\x1b[J");
	screen_fini(&s);
}

static void
screen_that_is_full_takes_no_more_and_does_not_scroll(void **state)
{
	(void)state;
	struct screen s = {0};
	screen_begin(&s, 2, 4);
	screen_line(&s, "a");
	assert_int_equal(screen_rows_left(&s), 1);
	screen_line(&s, "b");
	screen_line(&s, "c");
	screen_styled(&s, SCREEN_TITLE, "d");
	assert_int_equal(screen_rows_left(&s), 0);
	assert_string_equal(text_of(&s), "\x1b[Ha\x1b[K\r\nb\x1b[K");
	/* The next picture begins afresh. */
	screen_begin(&s, 2, 4);
	screen_line(&s, "e");
	assert_string_equal(text_of(&s), "\x1b[He\x1b[K\r\n\x1b[J");
	screen_fini(&s);
}

static void
screen_lets_no_control_character_through(void **state)
{
	(void)state;
	struct screen s = {0};
	screen_begin(&s, 3, 20);
	screen_line(&s, "%s", "a\x1b[2Jb\nc\x7f");
	assert_string_equal(text_of(&s), "\x1b[Ha?[2Jb?c?\x1b[K\r\n\x1b[J");
	screen_fini(&s);
}

/* The words of a picture with one blank between them, its lines checked for their width. */
static size_t
words_of(const char *picture, size_t columns, char *out)
{
	size_t used = 0, n = 0;
	for (const char *p = picture; *p; p++) {
		if (*p == '\x1b') {
			p += strcspn(p, "HKJm");
		} else if (*p == '\n') {
			used = 0;
		}
		if (*p == ' ' || *p == '\r' || *p == '\n') {
			if (n > 0 && out[n - 1] != ' ') {
				out[n++] = ' ';
			}
		} else if (*p > ' ' && !(p > picture && strchr("HKJm", *p) && p[-1] == '[')) {
			out[n++] = *p;
		}
		used += *p != '\r' && *p != '\n' && !(p > picture && p[-1] == '[');
		assert_true(used <= columns);
	}
	while (n > 0 && out[n - 1] == ' ') {
		n--;
	}
	out[n] = 0;
	return n;
}

static void
wrapped_lines_lose_nothing_and_fit(void **state)
{
	(void)state;
	char text[256], got[4096], want[256];
	struct screen s = {0};
	for (uint64_t seed = 1; seed <= 2000; seed++) {
		struct rng rng;
		size_t n = 0;
		rng_init(&rng, seed);
		while (n < 100) {
			size_t len = 1 + (size_t)rng_below(&rng, 9);
			memset(text + n, 'a' + (int)rng_below(&rng, 7), len);
			n += len;
			text[n++] = ' ';
			if (rng_below(&rng, 3) == 0) {
				text[n++] = ' ';
			}
		}
		text[n] = 0;
		size_t columns = 15 + (size_t)rng_below(&rng, 60);
		screen_begin(&s, 60, (unsigned)columns);
		screen_wrapped(&s, SCREEN_PLAIN, 4, "%s", text);
		(void)words_of(text_of(&s), columns, got);
		(void)words_of(text, sizeof(text), want);
		if (strcmp(got, want) != 0) {
			fail_msg("seed %u, %zu columns:\n%s\n%s", (unsigned)seed, columns, got,
				want);
		}
	}
	screen_fini(&s);
}

static void
wrapped_lines_break_where_two_blanks_are(void **state)
{
	(void)state;
	struct screen s = {0};
	screen_begin(&s, 9, 20);
	screen_wrapped(&s, SCREEN_PLAIN, 2, "peer x  at home  a b c");
	screen_wrapped(&s, SCREEN_PLAIN, 2, "a word of thisislongerthananyline");
	assert_string_equal(text_of(&s),
		"\x1b[Hpeer x  at home\x1b[K\r\n  a b c\x1b[K\r\na word of\x1b[K\r\n"
		"  thisislongerthanan\r\n  yline\x1b[K\r\n\x1b[J");
	screen_fini(&s);
}

static void
lines_can_be_taken_back(void **state)
{
	(void)state;
	struct screen s = {0};
	screen_begin(&s, 2, 9);
	screen_line(&s, "a");
	const struct screen_mark mark = screen_mark(&s);
	screen_line(&s, "b");
	assert_false(s.is_cut);
	screen_line(&s, "c");
	assert_true(s.is_cut);
	screen_take_back(&s, &mark);
	screen_line(&s, "d");
	assert_string_equal(text_of(&s), "\x1b[Ha\x1b[K\r\nd\x1b[K");
	screen_fini(&s);
}

static void
colours_are_left_out_unless_wanted(void **state)
{
	(void)state;
	struct screen s = {0};
	screen_begin(&s, 2, 9);
	screen_styled(&s, SCREEN_BAD, "a");
	assert_string_equal(text_of(&s), "\x1b[Ha\x1b[K\r\n\x1b[J");
	s.has_colors = true;
	screen_begin(&s, 2, 9);
	screen_styled(&s, SCREEN_BAD, "a");
	assert_string_equal(text_of(&s), "\x1b[H\x1b[31ma\x1b[0m\x1b[K\r\n\x1b[J");
	screen_fini(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(screen_cuts_lines_to_the_width_in_characters),
		cmocka_unit_test(screen_that_is_full_takes_no_more_and_does_not_scroll),
		cmocka_unit_test(screen_lets_no_control_character_through),
		cmocka_unit_test(wrapped_lines_lose_nothing_and_fit),
		cmocka_unit_test(wrapped_lines_break_where_two_blanks_are),
		cmocka_unit_test(lines_can_be_taken_back),
		cmocka_unit_test(colours_are_left_out_unless_wanted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(screen_cuts_lines_to_the_width_in_characters),
		cmocka_unit_test(screen_that_is_full_takes_no_more_and_does_not_scroll),
		cmocka_unit_test(screen_lets_no_control_character_through),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"

struct heard {
	int lines;
	enum log_level level;
	char text[1024];
};

static void
listen(void *ctx, enum log_level level, const char *text)
{
	struct heard *h = ctx;
	h->lines++;
	h->level = level;
	strncpy(h->text, text, sizeof(h->text) - 1);
}

static void
line_reaches_the_sink_with_its_level_and_text(void **state)
{
	(void)state;
	struct heard h = {0};
	struct log l = {.sink = listen, .ctx = &h, .level = LOG_LEVEL_INFO};
	log_warn(&l, "peer %s moved %d times", "abc", 3);
	assert_int_equal(h.lines, 1);
	assert_int_equal(h.level, LOG_LEVEL_WARN);
	assert_string_equal(h.text, "peer abc moved 3 times");
}

static void
lines_above_the_level_and_without_sink_are_dropped(void **state)
{
	(void)state;
	struct heard h = {0};
	struct log l = {.sink = listen, .ctx = &h, .level = LOG_LEVEL_WARN};
	log_info(&l, "%s", "no");
	log_debug(&l, "%s", "no");
	assert_int_equal(h.lines, 0);
	log_error(&l, "%s", "yes");
	assert_int_equal(h.lines, 1);
	l.sink = NULL;
	log_error(&l, "%s", "nobody listens");
}

static void
long_line_is_cut_not_overrun(void **state)
{
	(void)state;
	struct heard h = {0};
	struct log l = {.sink = listen, .ctx = &h, .level = LOG_LEVEL_DEBUG};
	char text[2000];
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	log_debug(&l, "%s", text);
	assert_int_equal(h.lines, 1);
	assert_in_range(strlen(h.text), 100, sizeof(h.text) - 1);
}

static void
limit_lets_a_burst_pass_each_period_and_counts_the_rest(void **state)
{
	(void)state;
	struct log_limit ll = {.period_ns = WEFT_NS_PER_S, .burst = 3};
	struct mono now = {5 * WEFT_NS_PER_S};
	for (int period = 0; period < 3; period++) {
		for (int i = 0; i < 3; i++) {
			assert_true(log_limit_take(&ll, now));
		}
		for (uint32_t i = 1; i <= 10; i++) {
			assert_false(log_limit_take(&ll, now));
			assert_int_equal(ll.suppressed, i);
		}
		assert_false(log_limit_take(&ll, mono_add_ns(now, WEFT_NS_PER_S - 1)));
		now = mono_add_ns(now, WEFT_NS_PER_S);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_reaches_the_sink_with_its_level_and_text),
		cmocka_unit_test(lines_above_the_level_and_without_sink_are_dropped),
		cmocka_unit_test(long_line_is_cut_not_overrun),
		cmocka_unit_test(limit_lets_a_burst_pass_each_period_and_counts_the_rest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

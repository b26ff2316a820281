/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/mono.h"
#include "emu/script.h"
#include "emu/text.h"

static void
script_sorts_steps_and_keeps_equal_times_in_order(void **state)
{
	(void)state;
	static const char text[] = "# a link that gets worse, then a roaming client\n"
				   "at 10s loss 0% rate 20mbit\n"
				   "\n"
				   "  at 5s ab.loss=15% ; at 0 delay 5ms # from the start\n"
				   "at 10s rebind delay none";
	struct emu_script s;
	struct emu_error e;
	assert_int_equal(emu_script_parse(text, strlen(text), &s, &e), WEFT_OK);
	assert_int_equal(s.n, 6);
	static const struct {
		int64_t at_s;
		int key; /* -1: rebind */
		unsigned dirs;
	} want[] = {{0, EMU_KEY_DELAY, EMU_BOTH}, {5, EMU_KEY_LOSS, EMU_AB},
		{10, EMU_KEY_LOSS, EMU_BOTH}, {10, EMU_KEY_RATE, EMU_BOTH}, {10, -1, 0},
		{10, EMU_KEY_DELAY, EMU_BOTH}};
	for (size_t i = 0; i < s.n; i++) {
		assert_int_equal(s.steps[i].at_ns, want[i].at_s * WEFT_NS_PER_S);
		assert_int_equal(s.steps[i].is_rebind, want[i].key == -1);
		if (want[i].key >= 0) {
			assert_int_equal(s.steps[i].assign.key, want[i].key);
			assert_int_equal(s.steps[i].assign.dirs, want[i].dirs);
		}
	}
	emu_script_fini(&s);
}

static void
script_of_nothing_has_no_steps(void **state)
{
	(void)state;
	static const char *const texts[] = {"", "\n\n", "# only words", ";;\r\n ; # x\n"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(texts); i++) {
		struct emu_script s;
		struct emu_error e;
		assert_int_equal(emu_script_parse(texts[i], strlen(texts[i]), &s, &e), WEFT_OK);
		assert_int_equal(s.n, 0);
		emu_script_fini(&s);
	}
}

static void
script_names_line_and_column_of_what_is_wrong(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		unsigned line, column;
		const char *words;
	} cases[] = {
		{"loss 5%", 1, 1, "expected \"at\" and a time, found \"loss\""},
		{"at", 1, 3, "found nothing"},
		{"at 5 loss 5%", 1, 4, "found \"5\""},
		{"at 5s", 1, 6, "a setting and its value"},
		{"at 5s\nloss 5%", 1, 6, "a setting and its value"},
		{"at 1s delay 3ms\nat 2s; loss 5%", 2, 6, "a setting and its value"},
		{"at 1s delay 3ms\n# x\n at 2s loss 5", 3, 13, "such as 5%"},
		{"at 1s rebin", 1, 7, "found \"rebin\""},
		{"at 1s loss 5% at 2s loss 6%", 1, 15, "found \"at\""},
	};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		struct emu_script s;
		struct emu_error e;
		if (emu_script_parse(cases[i].text, strlen(cases[i].text), &s, &e) != WEFT_EPARSE) {
			fail_msg("accepted: %s", cases[i].text);
		}
		if (e.line != cases[i].line || e.column != cases[i].column ||
			!strstr(e.text, cases[i].words)) {
			fail_msg("%s: %u:%u: %s", cases[i].text, e.line, e.column, e.text);
		}
	}
}

static void
script_has_a_limit_of_steps(void **state)
{
	(void)state;
	size_t cap = (EMU_SCRIPT_STEPS_MAX + 1) * 16, len = 0;
	char *text = malloc(cap);
	assert_non_null(text);
	for (int i = 0; i < EMU_SCRIPT_STEPS_MAX; i++) {
		len += (size_t)snprintf(text + len, cap - len, "at 1s mtu 1400\n");
	}
	struct emu_script s;
	struct emu_error e;
	assert_int_equal(emu_script_parse(text, len, &s, &e), WEFT_OK);
	assert_int_equal(s.n, EMU_SCRIPT_STEPS_MAX);
	emu_script_fini(&s);
	len += (size_t)snprintf(text + len, cap - len, "at 1s rebind\n");
	assert_int_equal(emu_script_parse(text, len, &s, &e), WEFT_EPARSE);
	assert_int_equal(e.line, EMU_SCRIPT_STEPS_MAX + 1);
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(script_sorts_steps_and_keeps_equal_times_in_order),
		cmocka_unit_test(script_of_nothing_has_no_steps),
		cmocka_unit_test(script_names_line_and_column_of_what_is_wrong),
		cmocka_unit_test(script_has_a_limit_of_steps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

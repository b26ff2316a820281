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
#include "cli/number.h"

static void
number_rate_has_three_digits_and_a_decimal_unit(void **state)
{
	(void)state;
	static const struct {
		double v;
		const char *text;
	} cases[] = {{0, "0 bit/s"}, {-5, "0 bit/s"}, {0.4, "0 bit/s"}, {7, "7 bit/s"},
		{999, "999 bit/s"}, {999.6, "1.00 kbit/s"}, {1000, "1.00 kbit/s"},
		{9990, "9.99 kbit/s"}, {9996, "10.0 kbit/s"}, {99940, "99.9 kbit/s"},
		{99960, "100 kbit/s"}, {999499, "999 kbit/s"}, {999501, "1.00 Mbit/s"},
		{12345678, "12.3 Mbit/s"}, {912.3e6, "912 Mbit/s"}, {1e9, "1.00 Gbit/s"},
		{2.5e12, "2.50 Tbit/s"}, {5e15, "5000 Tbit/s"}};
	char text[NUMBER_TEXT_MAX];
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		assert_string_equal(number_rate(cases[i].v, text), cases[i].text);
	}
}

static void
number_share_tells_nothing_from_little(void **state)
{
	(void)state;
	static const struct {
		double v;
		const char *text;
	} cases[] = {{0, "0"}, {-0.1, "0"}, {1e-9, "<0.01 %"}, {0.00004999, "<0.01 %"},
		{0.00005001, "0.01 %"}, {0.0032, "0.32 %"}, {0.00996, "1.0 %"}, {0.01, "1.0 %"},
		{0.049, "4.9 %"}, {0.123, "12.3 %"}, {0.9994, "99.9 %"}, {0.9996, "100 %"},
		{1, "100 %"}, {1.35, "135 %"}};
	char text[NUMBER_TEXT_MAX];
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		assert_string_equal(number_share(cases[i].v, text), cases[i].text);
	}
}

static void
number_count_groups_by_three(void **state)
{
	(void)state;
	static const struct {
		uint64_t v;
		const char *text;
	} cases[] = {{0, "0"}, {56, "56"}, {999, "999"}, {1000, "1,000"}, {1234, "1,234"},
		{123456, "123,456"}, {1234567, "1,234,567"},
		{UINT64_MAX, "18,446,744,073,709,551,615"}};
	char text[NUMBER_TEXT_MAX];
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		assert_string_equal(number_count(cases[i].v, text), cases[i].text);
	}
}

static void
number_ms_and_age_are_short(void **state)
{
	(void)state;
	char text[NUMBER_TEXT_MAX];
	assert_string_equal(number_ms(0, text), "0");
	assert_string_equal(number_ms(0.001, text), "<0.01 ms");
	assert_string_equal(number_ms(0.5, text), "0.50 ms");
	assert_string_equal(number_ms(1.234, text), "1.2 ms");
	assert_string_equal(number_ms(150.4, text), "150 ms");
	assert_string_equal(number_age(-3, text), "0 s");
	assert_string_equal(number_age(0, text), "0 s");
	assert_string_equal(number_age(119, text), "119 s");
	assert_string_equal(number_age(120, text), "2 min");
	assert_string_equal(number_age(7199, text), "119 min");
	assert_string_equal(number_age(7200, text), "2 h");
	assert_string_equal(number_age(172800, text), "2 d");
	assert_string_equal(number_age(INT64_MAX, text), "106751991167300 d");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(number_rate_has_three_digits_and_a_decimal_unit),
		cmocka_unit_test(number_share_tells_nothing_from_little),
		cmocka_unit_test(number_count_groups_by_three),
		cmocka_unit_test(number_ms_and_age_are_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

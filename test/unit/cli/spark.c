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
#include "cli/spark.h"

static void
spark_has_a_bar_a_value_with_the_newest_on_the_right(void **state)
{
	(void)state;
	static const float v[] = {9, 0, 1, 2, 4, 8};
	char text[SPARK_TEXT_MAX];
	assert_string_equal(spark_draw(v, 6, 6, false, text), "#_.:-*");
	/* The greatest of those shown is the measure. */
	assert_string_equal(spark_draw(v, 6, 5, false, text), "_.:=#");
	assert_string_equal(spark_draw(v, 6, 8, false, text), "  #_.:-*");
	assert_string_equal(spark_draw(v, 6, 0, false, text), "");
	assert_string_equal(spark_draw(NULL, 0, 3, false, text), "   ");
}

static void
spark_shows_nothing_lowest_and_a_little_above_it(void **state)
{
	(void)state;
	static const float none[] = {0, 0}, little[] = {0, 1e-6F, 1e9F};
	char text[SPARK_TEXT_MAX];
	assert_string_equal(spark_draw(none, 2, 2, false, text), "__");
	assert_string_equal(spark_draw(little, 3, 3, false, text), "_.#");
	assert_string_equal(
		spark_draw(little, 3, 3, true, text), "\xe2\x96\x81\xe2\x96\x82\xe2\x96\x88");
}

static void
spark_fills_its_room_and_no_more(void **state)
{
	(void)state;
	float v[200];
	struct {
		char text[SPARK_TEXT_MAX];
		char guard;
	} out = {.guard = 'x'};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(v); i++) {
		v[i] = (float)i;
	}
	spark_draw(v, WEFT_ARRAY_LEN(v), SPARK_WIDTH_MAX, true, out.text);
	assert_int_equal(strlen(out.text), SPARK_TEXT_MAX - 1);
	assert_int_equal(out.guard, 'x');
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spark_has_a_bar_a_value_with_the_newest_on_the_right),
		cmocka_unit_test(spark_shows_nothing_lowest_and_a_little_above_it),
		cmocka_unit_test(spark_fills_its_room_and_no_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "pkt/drop.h"

static void
drop_name_is_the_table_name_in_lower_case(void **state)
{
	(void)state;
	static const char *const names[] = {
#define X(name, text) #name,
		DROP_TABLE(X)
#undef X
	};
	for (int r = 0; r < DROP_COUNT; r++) {
		const char *got = drop_name((enum drop_reason)r);
		assert_int_equal(strlen(got), strlen(names[r]));
		for (size_t i = 0; got[i]; i++) {
			assert_int_equal(got[i], tolower((unsigned char)names[r][i]));
		}
		for (int q = 0; q < r; q++) {
			assert_string_not_equal(got, drop_name((enum drop_reason)q));
		}
	}
	assert_string_equal(drop_name(DROP_RX_SHORT), "rx_short");
	assert_string_equal(drop_name(DROP_LINK_RX_OVERFLOW), "link_rx_overflow");
}

static void
drop_out_of_range_is_unknown(void **state)
{
	(void)state;
	assert_string_equal(drop_name(DROP_COUNT), "unknown");
	assert_string_equal(drop_text((enum drop_reason) - 1), "unknown");
	assert_string_equal(drop_text(DROP_RX_AUTH), "authentication tag is wrong");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drop_name_is_the_table_name_in_lower_case),
		cmocka_unit_test(drop_out_of_range_is_unknown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

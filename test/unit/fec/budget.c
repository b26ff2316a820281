/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void
budget_gives_each_use_its_share_and_not_a_byte_more(void **state)
{
	(void)state;
	struct fec_budget b = {.bytes_max = 1000};
	assert_false(fec_budget_take(&b, 501, FEC_BUDGET_CALM));
	assert_true(fec_budget_take(&b, 500, FEC_BUDGET_CALM));
	assert_false(fec_budget_take(&b, 1, FEC_BUDGET_CALM));
	assert_true(fec_budget_take(&b, 250, FEC_BUDGET_GROWTH));
	assert_false(fec_budget_take(&b, 1, FEC_BUDGET_GROWTH));
	assert_false(fec_budget_take(&b, 251, FEC_BUDGET_NEED));
	assert_true(fec_budget_take(&b, 250, FEC_BUDGET_NEED));
	assert_false(fec_budget_take(&b, 1, FEC_BUDGET_NEED));
	assert_false(fec_budget_take(&b, UINT64_MAX, FEC_BUDGET_NEED));
	assert_int_equal(b.bytes, 1000);
	fec_budget_give(&b, 600);
	assert_true(fec_budget_take(&b, 100, FEC_BUDGET_CALM));
	fec_budget_give(&b, 500);
	assert_int_equal(b.bytes, 0);
}

static void
budget_is_no_bound_where_there_is_none(void **state)
{
	(void)state;
	assert_true(fec_budget_take(NULL, UINT64_MAX, FEC_BUDGET_CALM));
	fec_budget_give(NULL, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(budget_gives_each_use_its_share_and_not_a_byte_more),
		cmocka_unit_test(budget_is_no_bound_where_there_is_none),
	};
	return cmocka_run_group_tests_name("fec/budget", tests, NULL, NULL);
}

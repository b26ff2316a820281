/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "node/gap.h"

static struct mono
at(double s)
{
	return (struct mono){(int64_t)(s * 1e9)};
}

static void
gap_is_what_lies_after_the_deadline(void **state)
{
	(void)state;
	struct gap g;
	struct mono since = {-1};
	gap_init(&g, 0);
	gap_expect(&g, at(100), at(110));
	assert_false(gap_check(&g, at(115), 0, &since));
	assert_int_equal(since.ns, -1);
	gap_expect(&g, at(115), at(120));
	assert_true(gap_check(&g, at(125.1), 0, &since));
	assert_int_equal(since.ns, at(120).ns);
	/* Once. */
	assert_false(gap_check(&g, at(125.1), 0, &since));
}

static void
idle_loop_may_sleep_for_ever(void **state)
{
	(void)state;
	struct gap g;
	struct mono since;
	gap_init(&g, 0);
	assert_false(gap_check(&g, at(50), 0, &since));
	gap_expect(&g, at(50), MONO_NEVER);
	assert_false(gap_check(&g, at(1e6), 0, &since));
	gap_expect(&g, at(1e6), at(2e6));
	assert_false(gap_check(&g, at(1.5e6), 0, &since));
}

static void
deadline_that_has_passed_counts_from_the_turn(void **state)
{
	(void)state;
	struct gap g;
	struct mono since;
	gap_init(&g, 0);
	gap_expect(&g, at(100), (struct mono){0});
	assert_false(gap_check(&g, at(100.1), 0, &since));
	gap_expect(&g, at(100), at(99));
	assert_true(gap_check(&g, at(106), 0, &since));
	assert_int_equal(since.ns, at(100).ns);
}

static void
suspend_is_seen_though_nothing_was_due(void **state)
{
	(void)state;
	struct gap g;
	struct mono since;
	gap_init(&g, at(1000).ns); /* suspended before it started: no matter */
	gap_expect(&g, at(2000), MONO_NEVER);
	assert_false(gap_check(&g, at(2100), at(1004).ns, &since));
	gap_expect(&g, at(2100), MONO_NEVER);
	assert_false(gap_check(&g, at(2200), at(1008).ns, &since));
	gap_expect(&g, at(2200), at(5000));
	assert_true(gap_check(&g, at(3000), at(1608).ns, &since));
	assert_int_equal(since.ns, at(2400).ns);
	assert_false(gap_check(&g, at(3000), at(1608).ns, &since));
}

static void
longer_of_late_and_suspended_counts(void **state)
{
	(void)state;
	struct gap g;
	struct mono since;
	gap_init(&g, 0);
	gap_expect(&g, at(100), at(110));
	assert_true(gap_check(&g, at(200), at(95).ns, &since));
	assert_int_equal(since.ns, at(105).ns);
	gap_expect(&g, at(200), at(210));
	assert_true(gap_check(&g, at(300), at(101).ns, &since));
	assert_int_equal(since.ns, at(210).ns);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gap_is_what_lies_after_the_deadline),
		cmocka_unit_test(idle_loop_may_sleep_for_ever),
		cmocka_unit_test(deadline_that_has_passed_counts_from_the_turn),
		cmocka_unit_test(suspend_is_seen_though_nothing_was_due),
		cmocka_unit_test(longer_of_late_and_suspended_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

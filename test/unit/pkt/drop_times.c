/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pkt/drop_times.h"

static struct mono
at_s(int64_t s)
{
	return (struct mono){s * WEFT_NS_PER_S};
}

static void
expect(const struct drop_times *t, enum drop_reason r, uint64_t n, int64_t first_s,
	int64_t latest_s)
{
	assert_int_equal(t->of[r].n, n);
	assert_int_equal(t->of[r].first.ns, at_s(first_s).ns);
	assert_int_equal(t->of[r].latest.ns, at_s(latest_s).ns);
}

static void
drop_times_dates_what_has_grown_alone(void **state)
{
	(void)state;
	struct drop_times t = {0};
	struct drop_counts c = {0};
	drop_times_look(&t, &c, at_s(1));
	expect(&t, DROP_RX_AUTH, 0, 0, 0);
	c.n[DROP_RX_AUTH] = 3;
	drop_times_look(&t, &c, at_s(10));
	c.n[DROP_RX_AUTH] = 5;
	drop_times_look(&t, &c, at_s(12));
	drop_times_look(&t, &c, at_s(100));
	expect(&t, DROP_RX_AUTH, 5, 10, 12);
	expect(&t, DROP_RX_SHORT, 0, 0, 0);
}

static void
drop_times_begins_a_spell_after_a_pause(void **state)
{
	(void)state;
	struct drop_times t = {0};
	struct drop_counts c = {0};
	c.n[DROP_LINK_PERM] = 100;
	drop_times_look(&t, &c, at_s(10));
	c.n[DROP_LINK_PERM] = 107;
	drop_times_look(&t, &c, at_s(70));
	expect(&t, DROP_LINK_PERM, 107, 10, 70);
	c.n[DROP_LINK_PERM] = 109;
	drop_times_look(&t, &c, at_s(131));
	expect(&t, DROP_LINK_PERM, 2, 131, 131);
}

static void
drop_times_merge_joins_spells_and_keeps_the_later(void **state)
{
	(void)state;
	struct drop_times a = {0}, b = {0}, old = {0};
	struct drop_counts c = {0};
	c.n[DROP_RX_AUTH] = 4;
	drop_times_look(&a, &c, at_s(100));
	drop_times_look(&b, &c, at_s(120));
	drop_times_look(&old, &c, at_s(10));
	struct drop_times sum = {0};
	drop_times_merge(&sum, &old);
	drop_times_merge(&sum, &a);
	expect(&sum, DROP_RX_AUTH, 4, 100, 100);
	drop_times_merge(&sum, &b);
	expect(&sum, DROP_RX_AUTH, 8, 100, 120);
	drop_times_merge(&sum, &old);
	expect(&sum, DROP_RX_AUTH, 8, 100, 120);
	assert_int_equal(sum.seen.n[DROP_RX_AUTH], 16);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drop_times_dates_what_has_grown_alone),
		cmocka_unit_test(drop_times_begins_a_spell_after_a_pause),
		cmocka_unit_test(drop_times_merge_joins_spells_and_keeps_the_later),
	};
	return cmocka_run_group_tests_name(WEFT_TEST_NAME, tests, NULL, NULL);
}

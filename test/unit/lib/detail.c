/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/detail.h"
#include "weft/dial.h"
#include "weft/event.h"

/* What a library of one version knows, and the same of a later one. */
struct first {
	size_t size;
	int a;
	int b;
};
struct later {
	struct first old;
	int c[4];
};

/* What programs of version 0.1 were compiled with. When a struct grows, its calls of record_take()
 * and record_give() must go on to take this size as the least. */
#if UINTPTR_MAX == UINT64_MAX
_Static_assert(sizeof(struct weft_config) == 120, "as in 0.1");
_Static_assert(sizeof(struct weft_peer_config) == 64, "as in 0.1");
_Static_assert(sizeof(struct weft_detail) == 536, "as in 0.1");
_Static_assert(sizeof(struct weft_dial_options) == 48, "as in 0.1");
_Static_assert(sizeof(struct weft_identity) == 232, "as in 0.1");
_Static_assert(sizeof(struct weft_event) == 432, "as in 0.1");
_Static_assert(sizeof(struct weft_stats) == 80, "as in 0.1");
_Static_assert(sizeof(struct weft_peer) == 200, "as in 0.1");
#endif

static void
record_of_an_older_program_is_completed_with_zeros(void **state)
{
	(void)state;
	struct first theirs = {.size = sizeof(theirs), .a = 1, .b = 2};
	struct later ours;
	memset(&ours, 0xff, sizeof(ours));
	assert_true(record_take(&ours, sizeof(ours), &theirs, sizeof(theirs)));
	assert_int_equal(ours.old.b, 2);
	assert_int_equal(ours.c[0], 0);
	assert_int_equal(ours.c[3], 0);
}

static void
record_of_a_newer_program_is_taken_when_it_asks_for_nothing_unknown(void **state)
{
	(void)state;
	struct later theirs = {.old = {.size = sizeof(theirs), .a = 1, .b = 2}};
	struct first ours;
	assert_true(record_take(&ours, sizeof(ours), &theirs, sizeof(ours)));
	assert_int_equal(ours.b, 2);
	theirs.c[3] = 1;
	assert_false(record_take(&ours, sizeof(ours), &theirs, sizeof(ours)));
	theirs.old.size = sizeof(ours) - 1;
	assert_false(record_take(&ours, sizeof(ours), &theirs, sizeof(ours)));
}

static void
record_given_stays_within_the_callers_size(void **state)
{
	(void)state;
	struct later ours = {.old = {.a = 1, .b = 2}, .c = {3, 3, 3, 3}};
	struct later theirs = {.old = {.size = sizeof(struct first)}, .c = {9, 9, 9, 9}};
	assert_true(record_give(&theirs, &ours, sizeof(ours), sizeof(struct first)));
	assert_int_equal(theirs.old.size, sizeof(struct first));
	assert_int_equal(theirs.old.b, 2);
	assert_int_equal(theirs.c[0], 9);
	struct first less = {.a = 4, .b = 5};
	theirs.old.size = sizeof(theirs);
	assert_true(record_give(&theirs, &less, sizeof(less), sizeof(less)));
	assert_int_equal(theirs.old.b, 5);
	assert_int_equal(theirs.c[0] | theirs.c[1] | theirs.c[2] | theirs.c[3], 0);
	theirs.old.size = SIZE_MAX; /* of a struct that was never set */
	assert_false(record_give(&theirs, &less, sizeof(less), sizeof(less)));
	assert_false(record_take(&less, sizeof(less), &theirs, sizeof(less)));
	theirs.old.size = 4;
	assert_false(record_give(&theirs, &ours, sizeof(ours), sizeof(struct first)));
}

static void
detail_says_what_failed_where(void **state)
{
	(void)state;
	struct weft_detail d = {.size = sizeof(d)};
	assert_int_equal(detail_set(NULL, WEFT_EPERM, 1, "x"), WEFT_EPERM);
	assert_int_equal(detail_set(&d, WEFT_EPERM, 1, "%s %d", "x", 7), WEFT_EPERM);
	assert_int_equal(d.code, WEFT_EPERM);
	assert_int_equal(d.os_errno, 1);
	assert_string_equal(d.text, "x 7");
	assert_int_equal(detail_set_at(&d, WEFT_EPARSE, 3, 4, "y"), WEFT_EPARSE);
	assert_int_equal(d.os_errno, 0);
	assert_int_equal(d.line, 3);
	assert_int_equal(d.column, 4);
	assert_int_equal(d.size, sizeof(d));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_of_an_older_program_is_completed_with_zeros),
		cmocka_unit_test(
			record_of_a_newer_program_is_taken_when_it_asks_for_nothing_unknown),
		cmocka_unit_test(record_given_stays_within_the_callers_size),
		cmocka_unit_test(detail_says_what_failed_where),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

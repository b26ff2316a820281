/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fec/mark.h"

static const struct mono start = {WEFT_NS_PER_S};

static struct mono
after_ms(int64_t ms)
{
	return mono_add_ns(start, ms * WEFT_NS_PER_MS);
}

static unsigned
take_all(struct fec_marks *m, struct mono now)
{
	unsigned n = 0;
	while (fec_marks_take(m, now)) {
		n++;
	}
	return n;
}

static void
each_hidden_loss_of_a_queue_is_one_mark(void **state)
{
	(void)state;
	struct fec_marks m = {0};
	assert_false(fec_marks_take(&m, start));
	fec_marks_report(&m, start, 3, 3, 1);
	assert_int_equal(take_all(&m, start), 3);
	/* They need not be reported lost and recovered by the same FEEDBACK. */
	fec_marks_report(&m, start, 2, 0, 1);
	assert_int_equal(take_all(&m, start), 0);
	fec_marks_report(&m, start, 0, 2, 1);
	assert_int_equal(take_all(&m, start), 2);
	assert_int_equal(m.taken, 5);
}

static void
a_loss_of_the_line_is_none(void **state)
{
	(void)state;
	struct fec_marks m = {0};
	for (int i = 0; i < 100; i++) {
		fec_marks_report(&m, start, 10, 10, 0);
	}
	assert_int_equal(take_all(&m, start), 0);
	/* A quarter of them the queue's. */
	unsigned n = 0;
	for (int i = 0; i < 100; i++) {
		fec_marks_report(&m, start, 1, 1, 0.25);
		n += take_all(&m, start);
	}
	assert_int_equal(n, 25);
}

static void
a_few_are_saved_and_none_for_long(void **state)
{
	(void)state;
	struct fec_marks m = {0};
	fec_marks_report(&m, start, 1000, 1000, 1);
	assert_int_equal(take_all(&m, start), (int)FEC_MARKS_MAX);
	fec_marks_report(&m, start, 5, 5, 1);
	assert_true(fec_marks_take(&m, after_ms(200)));
	assert_false(fec_marks_take(&m, after_ms(201)));
	assert_false(fec_marks_take(&m, start));
}

static void
losses_that_stay_need_no_mark(void **state)
{
	(void)state;
	struct fec_marks m = {0};
	for (int i = 0; i < 20; i++) {
		fec_marks_report(&m, start, 10, 1, 1); /* a ping among what TCP lost */
		assert_int_equal(take_all(&m, start), 0);
	}
	for (int i = 0; i < 40; i++) {
		fec_marks_report(&m, start, 10, 10, 1);
	}
	assert_true(take_all(&m, start) > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_hidden_loss_of_a_queue_is_one_mark),
		cmocka_unit_test(a_loss_of_the_line_is_none),
		cmocka_unit_test(a_few_are_saved_and_none_for_long),
		cmocka_unit_test(losses_that_stay_need_no_mark),
	};
	return cmocka_run_group_tests_name("mark", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/events.h"
#include "lib/node.h"
#include "os/fd.h"

static void
events_come_in_order_and_what_finds_the_queue_full_is_counted(void **state)
{
	(void)state;
	static struct weft_node n; /* the queue of it alone */
	assert_int_equal(events_init(&n.events), WEFT_OK);
	struct weft_event e = {.size = sizeof(e)}, old = {.size = 8};
	assert_int_equal(weft_event_next(&n, &e), WEFT_EAGAIN);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < EVENTS_MAX + 5; i++) {
			struct weft_event in = {
				.kind = WEFT_EVENT_ENDPOINT_MOVED, .code = (enum weft_err)i};
			events_push(&n.events, &in);
		}
		assert_int_equal(events_lost(&n.events), 5 * (round + 1));
		/* One that cannot be given stays. */
		assert_int_equal(weft_event_next(&n, &old), WEFT_EINVAL);
		for (int i = 0; i < EVENTS_MAX; i++) {
			assert_int_equal(
				os_fd_wait(weft_event_fd(&n), false, (struct mono){0}), WEFT_OK);
			assert_int_equal(weft_event_next(&n, &e), WEFT_OK);
			assert_int_equal(e.size, sizeof(e));
			assert_int_equal(e.code, i);
		}
		assert_int_equal(weft_event_next(&n, &e), WEFT_EAGAIN);
		assert_int_equal(
			os_fd_wait(weft_event_fd(&n), false, (struct mono){0}), WEFT_ETIMEDOUT);
	}
	events_error(&n, WEFT_ECLOSED, "gone");
	assert_int_equal(weft_event_next(&n, &e), WEFT_OK);
	assert_int_equal(e.kind, WEFT_EVENT_ERROR);
	assert_int_equal(e.code, WEFT_ECLOSED);
	assert_string_equal(e.text, "gone");
	events_fini(&n.events);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_come_in_order_and_what_finds_the_queue_full_is_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

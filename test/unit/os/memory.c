/* SPDX-License-Identifier: Apache-2.0 */
#include "os/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "os/process.h"

static int written = 41; /* in a page that is ours: must survive */

static void
memory_trim_shrinks_the_process_and_changes_nothing_in_it(void **state)
{
	(void)state;
	written++;
	char *heap = malloc(1u << 20);
	assert_non_null(heap);
	memset(heap, 7, 1u << 20);
	struct os_process_stats before, after;
	assert_int_equal(os_process_stats(0, &before), WEFT_OK);
	os_memory_trim();
	assert_int_equal(os_process_stats(0, &after), WEFT_OK);
	assert_true(after.rss_bytes < before.rss_bytes);
	assert_int_equal(written, 42);
	for (size_t i = 0; i < 1u << 20; i++) {
		assert_int_equal(heap[i], 7);
	}
	free(heap);
	char text[16];
	snprintf(text, sizeof(text), "%d", written);
	assert_string_equal(text, "42");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_trim_shrinks_the_process_and_changes_nothing_in_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

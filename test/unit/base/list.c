/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/list.h"
#include "base/rng.h"

struct thing {
	int number;
	struct list link;
};

static int
number_of(const struct list *l)
{
	return WEFT_CONTAINER_OF(l, struct thing, link)->number;
}

static void
list_keeps_the_order_of_pushes(void **state)
{
	(void)state;
	struct list head;
	struct thing things[5];
	int n = 0;
	list_init(&head);
	assert_true(list_is_empty(&head));
	for (int i = 0; i < 5; i++) {
		things[i].number = i;
		list_push_back(&head, &things[i].link);
	}
	assert_false(list_is_empty(&head));
	LIST_FOR_EACH(it, &head)
	{
		assert_int_equal(number_of(it), n++);
	}
	assert_int_equal(n, 5);
}

static void
removing_twice_is_harmless(void **state)
{
	(void)state;
	struct list head;
	struct thing a, b;
	list_init(&head);
	list_push_back(&head, &a.link);
	list_push_back(&head, &b.link);
	list_remove(&a.link);
	list_remove(&a.link);
	assert_ptr_equal(head.next, &b.link);
	assert_ptr_equal(head.prev, &b.link);
	list_remove(&b.link);
	assert_true(list_is_empty(&head));
}

static void
safe_walk_survives_removal_of_the_element_it_stands_at(void **state)
{
	(void)state;
	struct list head;
	struct thing things[20];
	struct rng rng;
	rng_init(&rng, 2);
	for (int round = 0; round < 200; round++) {
		int left = 0, seen = 0;
		bool stays[20];
		list_init(&head);
		for (int i = 0; i < 20; i++) {
			things[i].number = i;
			stays[i] = rng_is_hit(&rng, 0.5);
			left += stays[i];
			list_push_back(&head, &things[i].link);
		}
		LIST_FOR_EACH_SAFE(it, next, &head)
		{
			if (!stays[number_of(it)]) {
				list_remove(it);
			}
		}
		LIST_FOR_EACH(it, &head)
		{
			assert_true(stays[number_of(it)]);
			seen++;
		}
		assert_int_equal(seen, left);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_keeps_the_order_of_pushes),
		cmocka_unit_test(removing_twice_is_harmless),
		cmocka_unit_test(safe_walk_survives_removal_of_the_element_it_stands_at),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

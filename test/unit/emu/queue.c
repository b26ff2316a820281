/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "emu/queue.h"

#define CAP 64u

/* The naive model: an unsorted list, searched for the least (due, rank). */
struct model {
	struct {
		int64_t due;
		uint64_t rank;
		uint32_t slot;
	} item[CAP];
	size_t n;
	uint64_t rank_next;
};

static size_t
model_first(const struct model *m)
{
	size_t best = 0;
	for (size_t i = 1; i < m->n; i++) {
		if (m->item[i].due < m->item[best].due ||
			(m->item[i].due == m->item[best].due &&
				m->item[i].rank < m->item[best].rank)) {
			best = i;
		}
	}
	return best;
}

static void
step_add(struct emu_queue *q, struct model *m, int64_t due)
{
	uint32_t slot = emu_queue_add(q, (struct mono){due});
	if (m->n == CAP) {
		assert_int_equal(slot, EMU_SLOT_NONE);
		return;
	}
	assert_true(slot < CAP);
	m->item[m->n].due = due;
	m->item[m->n].rank = m->rank_next++;
	m->item[m->n].slot = slot;
	m->n++;
}

static void
step_remove(struct emu_queue *q, struct model *m, uint64_t seed)
{
	if (m->n == 0) {
		assert_true(emu_queue_first_due(q).ns == MONO_NEVER.ns);
		return;
	}
	size_t i = model_first(m);
	if (emu_queue_first_due(q).ns != m->item[i].due || emu_queue_first(q) != m->item[i].slot) {
		fail_msg("seed %lu: wrong first", (unsigned long)seed);
	}
	emu_queue_remove_first(q);
	m->item[i] = m->item[--m->n];
}

static void
queue_gives_the_order_of_a_naive_list(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct rng rng;
		struct emu_queue q;
		struct model m = {0};
		rng_init(&rng, seed);
		assert_int_equal(emu_queue_init(&q, CAP), WEFT_OK);
		for (int step = 0; step < 3000; step++) {
			/* Few distinct times, so that ties are common. */
			int64_t due = (int64_t)rng_below(&rng, 20);
			switch (rng_below(&rng, 5)) {
			case 0:
			case 1:
				step_add(&q, &m, due);
				break;
			case 2:
				if (m.n > 0) {
					size_t i = rng_below(&rng, m.n);
					m.item[i].due = due;
					m.item[i].rank = m.rank_next++;
					emu_queue_advance(&q, m.item[i].slot, (struct mono){due});
				}
				break;
			default:
				step_remove(&q, &m, seed);
			}
			assert_int_equal(q.n, m.n);
		}
		emu_queue_fini(&q);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue_gives_the_order_of_a_naive_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

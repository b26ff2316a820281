/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wg/engine.h"
#include "world.h"

static struct endpoint nowhere;

static bool
lose_what_goes_nowhere(struct world *w, struct world_datagram *g)
{
	(void)w;
	return !endpoint_is_same_remote(&g->to, &nowhere);
}

static void
rival_gets_the_initiation_after_250_ms_and_wins_by_its_answer(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 2, 40);
	nowhere = world_endpoint(200, 9);
	w.filter = lose_what_goes_nowhere;
	struct wg_peer *p = world_meet(&w, 0, 1, false);
	world_meet(&w, 1, 0, false);
	wg_peer_set_endpoint(p, &nowhere);
	wg_peer_set_rival(p, &w.sides[1].at);
	world_send(&w, 0, 1, "hello");
	world_run_s(&w, 0.249);
	assert_int_equal(world_initiations(&w, 0), 1);
	assert_int_equal(w.sides[1].sent[WIRE_WG_TYPE_RESPONSE], 0);
	world_run_s(&w, 0.2);
	assert_int_equal(world_initiations(&w, 0), 2);
	assert_int_equal(w.sides[1].delivered, 1);
	struct endpoint at = wg_peer_endpoint(p);
	assert_true(endpoint_is_same_remote(&at, &w.sides[1].at));
	assert_null(p->rival);
	assert_int_equal(world_info(&w, 0, 1).handshake_tries, 1);
	world_fini(&w);
}

static void
rival_hears_nothing_when_the_endpoint_answers_in_time(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 2, 41);
	struct wg_peer *p = world_meet(&w, 0, 1, true);
	world_meet(&w, 1, 0, false);
	nowhere = world_endpoint(200, 9);
	wg_peer_set_rival(p, &nowhere);
	world_send(&w, 0, 1, "hello");
	world_run_s(&w, 5);
	assert_int_equal(world_initiations(&w, 0), 1);
	assert_null(p->rival);
	world_fini(&w);
}

static void
answer_of_the_endpoint_counts_also_after_the_rival_was_asked(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 2, 42);
	w.delay_ns = 200 * WEFT_NS_PER_MS; /* 400 ms there and back */
	nowhere = world_endpoint(200, 9);
	w.filter = lose_what_goes_nowhere;
	struct wg_peer *p = world_meet(&w, 0, 1, true);
	world_meet(&w, 1, 0, false);
	wg_peer_set_rival(p, &nowhere);
	world_send(&w, 0, 1, "hello");
	world_run_s(&w, 0.9);
	assert_int_equal(world_initiations(&w, 0), 2);
	assert_int_equal(w.sides[1].delivered, 1);
	struct endpoint at = wg_peer_endpoint(p);
	assert_true(endpoint_is_same_remote(&at, &w.sides[1].at));
	world_fini(&w);
}

static void
each_attempt_asks_the_rival_until_one_of_both_answers(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 2, 43);
	nowhere = world_endpoint(200, 9);
	w.filter = lose_what_goes_nowhere;
	struct wg_peer *p = world_meet(&w, 0, 1, false);
	world_meet(&w, 1, 0, false);
	wg_peer_set_endpoint(p, &nowhere);
	wg_peer_set_rival(p, &w.sides[1].at);
	w.sides[1].is_deaf = true;
	world_send(&w, 0, 1, "hello");
	world_run_s(&w, 11.5);
	assert_int_equal(world_initiations(&w, 0), 6);
	w.sides[1].is_deaf = false;
	world_run_s(&w, 5.5);
	assert_int_equal(w.sides[1].delivered, 1);
	world_fini(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rival_gets_the_initiation_after_250_ms_and_wins_by_its_answer),
		cmocka_unit_test(rival_hears_nothing_when_the_endpoint_answers_in_time),
		cmocka_unit_test(answer_of_the_endpoint_counts_also_after_the_rival_was_asked),
		cmocka_unit_test(each_attempt_asks_the_rival_until_one_of_both_answers),
	};
	return cmocka_run_group_tests_name("agenda_rival", tests, NULL, NULL);
}

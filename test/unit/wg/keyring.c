/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "wg/engine.h"
#include "world.h"

static void
setup(struct world *w, uint64_t seed)
{
	world_init(w, 2, seed);
	world_meet(w, 0, 1, true);
	world_meet(w, 1, 0, true);
}

/* Do both send with the two ends of one session? */
static bool
agree(struct world *w)
{
	const struct wg_session *a = world_peer(w, 0, 1)->current;
	const struct wg_session *b = world_peer(w, 1, 0)->current;
	return a && b && a->local_index == b->remote_index && b->local_index == a->remote_index &&
	       a->is_initiator != b->is_initiator;
}

static uint64_t
initiations(const struct world *w)
{
	return w->sides[0].sent[WIRE_WG_TYPE_INITIATION] +
	       w->sides[1].sent[WIRE_WG_TYPE_INITIATION];
}

/* Both have a packet at the same time, or up to a millisecond apart. */
static void
collide(uint64_t seed, int64_t delay_ns)
{
	struct world w;
	setup(&w, seed);
	w.delay_ns = delay_ns;
	world_send(&w, 0, 1, "from 0");
	world_run_ns(&w, (int64_t)rng_below(&w.rng, WEFT_NS_PER_MS));
	world_send(&w, 1, 0, "from 1");
	world_run_s(&w, 2);
	if (w.sides[0].delivered != 1 || w.sides[1].delivered != 1 || initiations(&w) > 2 ||
		!agree(&w)) {
		fail_msg("seed %llu delay %lld ms: delivered %llu %llu, initiations %llu",
			(unsigned long long)seed, (long long)(delay_ns / WEFT_NS_PER_MS),
			(unsigned long long)w.sides[0].delivered,
			(unsigned long long)w.sides[1].delivered,
			(unsigned long long)initiations(&w));
	}
	world_fini(&w);
}

static void
crossing_initiations_end_in_one_session_and_lose_nothing(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		collide(seed, 0);
		collide(seed, 50 * WEFT_NS_PER_MS);
		collide(seed, 200 * WEFT_NS_PER_MS);
	}
}

static bool
lose_some(struct world *w, struct world_datagram *g)
{
	(void)g;
	return !rng_is_hit(&w->rng, 0.2);
}

static void
crossing_initiations_with_loss_and_reordering_converge(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct world w;
		setup(&w, seed);
		w.filter = lose_some;
		world_send(&w, 0, 1, "from 0");
		world_send(&w, 1, 0, "from 1");
		for (int i = 0; i < 300; i++) {
			w.delay_ns = (int64_t)rng_below(&w.rng, 100 * WEFT_NS_PER_MS);
			world_run_ns(&w, 100 * WEFT_NS_PER_MS);
		}
		w.filter = NULL;
		w.delay_ns = WEFT_NS_PER_MS;
		for (int i = 0; i < 4; i++) {
			world_send(&w, 0, 1, "x");
			world_send(&w, 1, 0, "y");
			world_run_s(&w, 6);
		}
		uint64_t a = w.sides[0].delivered, b = w.sides[1].delivered;
		world_send(&w, 0, 1, "last");
		world_send(&w, 1, 0, "last");
		world_run_s(&w, 1);
		bool is_through = w.sides[0].delivered == a + 1 && w.sides[1].delivered == b + 1;
		/* Where reordering left each with a session of its own, renewal ends that. */
		for (int i = 0; i < 400 && is_through; i++) {
			world_send(&w, 0, 1, "x");
			world_send(&w, 1, 0, "y");
			world_run_s(&w, 1);
		}
		if (!is_through || !agree(&w)) {
			fail_msg("seed %llu: through %d", (unsigned long long)seed, is_through);
		}
		world_fini(&w);
	}
}

static void
restart_within_a_second_of_a_handshake_is_no_collision(void **state)
{
	(void)state;
	/* Whoever has the greater key, whoever starts anew, whoever began. */
	for (uint64_t seed = 1; seed <= 8; seed++) {
		for (size_t again = 0; again < 2; again++) {
			struct world w;
			setup(&w, seed);
			world_connect(&w, 0, 1);
			world_restart(&w, again, w.sides[again].values[WG_EVENT_STAMP]);
			world_meet(&w, again, 1 - again, true);
			world_connect(&w, again, 1 - again);
			assert_true(agree(&w));
			world_fini(&w);
		}
	}
}

static void
steady_traffic_both_ways_takes_one_handshake_in_120_s(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct world w;
		setup(&w, seed);
		w.delay_ns = (int64_t)(seed % 3) * 50 * WEFT_NS_PER_MS;
		uint64_t sent = 0;
		for (int i = 0; i < 12020; i++) {
			world_send(&w, 0, 1, "x");
			world_send(&w, 1, 0, "y");
			sent++;
			world_run_ns(&w, 50 * WEFT_NS_PER_MS);
		}
		world_run_s(&w, 1);
		/* In 601 s: the first two, crossed, and a renewal every 120 s and a round trip. */
		if (initiations(&w) < 2 + 4 || initiations(&w) > 2 + 5 || !agree(&w)) {
			fail_msg("seed %llu: %llu initiations", (unsigned long long)seed,
				(unsigned long long)initiations(&w));
		}
		assert_int_equal(w.sides[0].delivered, sent);
		assert_int_equal(w.sides[1].delivered, sent);
		world_fini(&w);
	}
}

static bool
lose_data_of_side_0(struct world *w, struct world_datagram *g)
{
	return !(wire_wg_type(g->bytes, g->len) == WIRE_WG_TYPE_DATA &&
		 endpoint_is_same_remote(&g->from, &w->sides[0].at));
}

static void
unfinished_handshakes_push_no_live_session_out(void **state)
{
	(void)state;
	struct world w;
	setup(&w, 1);
	world_connect(&w, 0, 1);
	const struct wg_session *live = world_peer(&w, 1, 0)->current;
	/* Side 0 starts again and again, and what would confirm its sessions is lost. */
	w.filter = lose_data_of_side_0;
	for (int i = 0; i < 20; i++) {
		world_restart(&w, 0, w.sides[0].values[WG_EVENT_STAMP]);
		world_meet(&w, 0, 1, true);
		world_send(&w, 0, 1, "x");
		world_run_s(&w, 1);
		assert_ptr_equal(world_peer(&w, 1, 0)->current, live);
	}
	assert_true(w.sides[1].sent[WIRE_WG_TYPE_RESPONSE] > 20);
	assert_int_equal(world_info(&w, 1, 0).handshakes, 1);
	/* Entries in the index table: current and next. */
	assert_int_equal(w.sides[1].device->index.used, 2);
	world_fini(&w);
}

static void
responder_does_not_send_on_a_session_before_it_is_confirmed(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 2, 2);
	world_meet(&w, 0, 1, true);
	world_meet(&w, 1, 0, false);
	w.filter = lose_data_of_side_0;
	world_send(&w, 0, 1, "x");
	world_run_s(&w, 1);
	assert_non_null(world_peer(&w, 1, 0)->next);
	assert_null(world_peer(&w, 1, 0)->current);
	world_send(&w, 1, 0, "too early");
	world_run_s(&w, 1);
	assert_int_equal(w.sides[1].sent[WIRE_WG_TYPE_DATA], 0);
	assert_int_equal(world_info(&w, 1, 0).staged_packets, 1);
	w.filter = NULL;
	world_send(&w, 0, 1, "y");
	world_run_s(&w, 1);
	assert_int_equal(w.sides[0].delivered, 1);
	world_fini(&w);
}

static bool
delay_data(struct world *w, struct world_datagram *g)
{
	if (wire_wg_type(g->bytes, g->len) == WIRE_WG_TYPE_DATA && w->filter_ctx) {
		memcpy(w->filter_ctx, g, sizeof(*g));
		w->filter_ctx = NULL;
		return false;
	}
	return true;
}

static void
previous_session_still_opens_what_was_under_way(void **state)
{
	(void)state;
	struct world w;
	struct world_datagram late = {0};
	setup(&w, 3);
	world_connect(&w, 0, 1);
	w.filter = delay_data;
	w.filter_ctx = &late;
	const struct wg_session *before = world_peer(&w, 1, 0)->current;
	world_send(&w, 0, 1, "late");
	world_run_s(&w, 20); /* no answer: side 0 makes a new session */
	assert_ptr_not_equal(world_peer(&w, 1, 0)->current, before);
	assert_ptr_equal(world_peer(&w, 1, 0)->previous, before);
	world_arrive(&w, 1, &late.from, late.bytes, late.len);
	assert_string_equal(w.sides[1].last, "late");
	assert_ptr_not_equal(world_peer(&w, 1, 0)->current, before);
	world_fini(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crossing_initiations_end_in_one_session_and_lose_nothing),
		cmocka_unit_test(crossing_initiations_with_loss_and_reordering_converge),
		cmocka_unit_test(restart_within_a_second_of_a_handshake_is_no_collision),
		cmocka_unit_test(steady_traffic_both_ways_takes_one_handshake_in_120_s),
		cmocka_unit_test(unfinished_handshakes_push_no_live_session_out),
		cmocka_unit_test(responder_does_not_send_on_a_session_before_it_is_confirmed),
		cmocka_unit_test(previous_session_still_opens_what_was_under_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

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

/* A session that p got in some way, in the index table, with its times in milliseconds. */
static struct wg_session *
make(struct world *w, bool is_initiator, int64_t initiated_ms, int64_t born_ms)
{
	static const struct wg_noise_keys keys;
	struct wg_device *d = w->sides[0].device;
	struct wg_session *s;
	assert_int_equal(wg_session_new(world_peer(w, 0, 1), (struct mono){born_ms * 1000000},
				 is_initiator, &keys, &s),
		WEFT_OK);
	s->initiated.ns = initiated_ms * 1000000;
	struct entropy entropy = world_entropy(w);
	assert_int_equal(
		wg_index_add(&d->index, &entropy, WG_INDEX_SESSION, s, &s->local_index), WEFT_OK);
	return s;
}

/* Seeds whose side 0 has the greater, or the smaller public key. */
static uint64_t
seed_with(bool is_greater)
{
	for (uint64_t seed = 1;; seed++) {
		struct world w;
		world_init(&w, 2, seed);
		bool is = memcmp(w.sides[0].public_key, w.sides[1].public_key, 32) > 0;
		world_fini(&w);
		if (is == is_greater) {
			return seed;
		}
	}
}

/* Ours was initiated at 100 and complete at 200 ms; theirs was answered at `answered_ms`, and
 * is used by them before or after ours is complete. Which one do we send with? */
static void
check_choice(int64_t answered_ms, bool is_used_first, bool is_greater, bool want_ours)
{
	struct world w;
	setup(&w, seed_with(is_greater));
	struct wg_device *d = w.sides[0].device;
	struct wg_peer *p = world_peer(&w, 0, 1);
	struct wg_session *ours = make(&w, true, 100, 200);
	struct wg_session *theirs = make(&w, false, 0, answered_ms);
	wg_keyring_add_answered(d, p, theirs);
	if (is_used_first) {
		assert_true(wg_keyring_confirm(d, p, theirs));
		wg_keyring_add_initiated(d, p, ours);
	} else {
		wg_keyring_add_initiated(d, p, ours);
		assert_true(wg_keyring_confirm(d, p, theirs));
	}
	if (p->current != (want_ours ? ours : theirs)) {
		fail_msg("answered at %lld, used first %d, greater %d", (long long)answered_ms,
			is_used_first, is_greater);
	}
	assert_false(wg_keyring_confirm(d, p, theirs)); /* that is no news any more */
	/* Whatever the choice, both open. */
	assert_ptr_equal(wg_device_session(d, ours->local_index), ours);
	assert_ptr_equal(wg_device_session(d, theirs->local_index), theirs);
	world_fini(&w);
}

static void
greater_key_decides_only_between_sessions_that_crossed(void **state)
{
	(void)state;
	for (int greater = 0; greater < 2; greater++) {
		/* Answered before our initiation: ours is newer, whenever theirs is used. */
		check_choice(99, true, greater, true);
		check_choice(99, false, greater, true);
		/* Crossed: the key decides, in every order. */
		static const int64_t crossed_ms[] = {100, 150, 200};
		for (size_t i = 0; i < 3; i++) {
			check_choice(crossed_ms[i], true, greater, greater);
			check_choice(crossed_ms[i], false, greater, greater);
		}
		/* Answered after ours was complete: theirs is newer. */
		check_choice(201, false, greater, false);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crossing_initiations_end_in_one_session_and_lose_nothing),
		cmocka_unit_test(crossing_initiations_with_loss_and_reordering_converge),
		cmocka_unit_test(greater_key_decides_only_between_sessions_that_crossed),
		cmocka_unit_test(restart_within_a_second_of_a_handshake_is_no_collision),
		cmocka_unit_test(steady_traffic_both_ways_takes_one_handshake_in_120_s),
		cmocka_unit_test(unfinished_handshakes_push_no_live_session_out),
		cmocka_unit_test(responder_does_not_send_on_a_session_before_it_is_confirmed),
		cmocka_unit_test(previous_session_still_opens_what_was_under_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

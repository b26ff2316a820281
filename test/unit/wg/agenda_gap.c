/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "wg/engine.h"
#include "world.h"

/* Side 0 does not run for so long; the other side and the network do, but send it nothing. */
static void
stop_for(struct world *w, int64_t ns)
{
	struct mono since = w->now;
	w->now.ns += ns;
	wg_device_wake(w->sides[0].device, since, world_time(w, 0), &w->out);
	world_flush(w, 0);
}

static void
peer_in_use_gets_a_new_session_when_the_device_wakes(void **state)
{
	(void)state;
	/* Past REKEY_AFTER_TIME, past REJECT_AFTER_TIME, and when the keys are wiped as well. */
	static const int64_t stops_s[] = {115, 200, 600};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(stops_s); i++) {
		struct world w;
		world_init_connected(&w, 60 + i);
		uint64_t seq = w.sides[0].sent[WIRE_WG_TYPE_DATA];
		stop_for(&w, stops_s[i] * WEFT_NS_PER_S);
		assert_int_equal(world_initiations(&w, 0), 2);
		world_run_s(&w, 0.5);
		assert_true(world_info(&w, 0, 1).has_session);
		assert_true(mono_diff_ns(w.now, world_info(&w, 0, 1).session_born) < WEFT_NS_PER_S);
		/* The first packet needs no handshake any more. */
		world_send(&w, 0, 1, "awake");
		world_run_s(&w, 0.5);
		assert_string_equal(w.sides[1].last, "awake");
		assert_int_equal(world_initiations(&w, 0), 2);
		assert_true(w.sides[0].sent[WIRE_WG_TYPE_DATA] > seq);
		world_fini(&w);
	}
}

static void
young_session_survives_a_gap_without_a_handshake(void **state)
{
	(void)state;
	struct world w;
	world_init_connected(&w, 64);
	stop_for(&w, 6 * WEFT_NS_PER_S);
	world_run_s(&w, 20);
	assert_int_equal(world_initiations(&w, 0), 1);
	world_fini(&w);
}

static void
peer_that_was_idle_before_the_gap_is_left_alone(void **state)
{
	(void)state;
	struct world w;
	world_init_connected(&w, 65);
	world_run_s(&w, 175); /* its session has run out, and nobody minded */
	stop_for(&w, 200 * WEFT_NS_PER_S);
	world_run_s(&w, 20);
	assert_int_equal(world_initiations(&w, 0), 1);
	world_fini(&w);
}

static void
peer_with_a_persistent_keepalive_is_called_whatever_it_had_before(void **state)
{
	(void)state;
	struct world w;
	world_init_connected(&w, 66);
	wg_peer_set_keepalive(
		w.sides[0].device, world_peer(&w, 0, 1), 1000, world_time(&w, 0), &w.out);
	wg_device_set_up(w.sides[0].device, true, world_time(&w, 0), &w.out);
	world_flush(&w, 0);
	world_run_s(&w, 300); /* without a session that can send */
	uint64_t before = world_initiations(&w, 0);
	stop_for(&w, 6 * WEFT_NS_PER_S);
	assert_int_equal(world_initiations(&w, 0), before + 1);
	world_run_s(&w, 0.5);
	assert_true(world_info(&w, 0, 1).has_session);
	world_fini(&w);
}

static void
attempts_under_way_begin_anew_after_a_gap(void **state)
{
	(void)state;
	struct world w;
	world_init_connected(&w, 67);
	w.sides[1].is_deaf = true;
	world_run_s(&w, 110);
	world_send(&w, 0, 1, "x"); /* renews */
	world_run_s(&w, 1);
	stop_for(&w, 200 * WEFT_NS_PER_S);
	assert_int_equal(w.sides[0].events[WG_EVENT_GAVE_UP], 0);
	w.sides[1].is_deaf = false;
	world_run_s(&w, 6);
	assert_true(wg_peer_can_send(world_peer(&w, 0, 1), w.now));
	world_fini(&w);
}

static void
renewed_session_replaces_a_good_one_as_soon_as_an_initiation_may_leave(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 2, 71);
	world_meet(&w, 0, 1, true);
	world_meet(&w, 1, 0, true);
	struct wg_device *d = w.sides[0].device;
	/* Without a session there is nothing to renew. */
	wg_peer_renew(d, world_peer(&w, 0, 1), world_time(&w, 0), &w.out);
	world_flush(&w, 0);
	assert_int_equal(w.sides[0].sent[WIRE_WG_TYPE_INITIATION], 0);
	world_connect(&w, 0, 1);
	/* Right behind the first initiation it waits; wanted twice it is sent once. */
	wg_peer_renew(d, world_peer(&w, 0, 1), world_time(&w, 0), &w.out);
	wg_peer_renew(d, world_peer(&w, 0, 1), world_time(&w, 0), &w.out);
	world_flush(&w, 0);
	world_run_s(&w, 4);
	assert_int_equal(world_info(&w, 0, 1).handshakes, 1);
	world_run_s(&w, 2);
	assert_int_equal(world_info(&w, 0, 1).handshakes, 2);
	world_run_s(&w, 20);
	assert_int_equal(world_info(&w, 0, 1).handshakes, 2);
	wg_peer_renew(d, world_peer(&w, 0, 1), world_time(&w, 0), &w.out);
	world_flush(&w, 0);
	world_run_s(&w, 0.1);
	assert_int_equal(world_info(&w, 0, 1).handshakes, 3);
	assert_int_equal(world_info(&w, 1, 0).handshakes, 3);
	world_fini(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_in_use_gets_a_new_session_when_the_device_wakes),
		cmocka_unit_test(young_session_survives_a_gap_without_a_handshake),
		cmocka_unit_test(peer_that_was_idle_before_the_gap_is_left_alone),
		cmocka_unit_test(peer_with_a_persistent_keepalive_is_called_whatever_it_had_before),
		cmocka_unit_test(attempts_under_way_begin_anew_after_a_gap),
		cmocka_unit_test(
			renewed_session_replaces_a_good_one_as_soon_as_an_initiation_may_leave),
	};
	return cmocka_run_group_tests_name("agenda_gap", tests, NULL, NULL);
}

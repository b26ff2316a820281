/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "wg/engine.h"
#include "world.h"

/* What opened messages hold: its first byte alone is looked at, and says IPv4. */
static uint8_t packet[100] = {0x45};

static void
setup(struct world *w, uint64_t seed)
{
	world_init(w, 3, seed);
	world_meet(w, 0, 1, true);
	world_meet(w, 1, 0, false);
	world_connect(w, 0, 1);
}

static struct endpoint
endpoint_at(struct world *w, size_t i, size_t other)
{
	return wg_peer_endpoint(world_peer(w, i, other));
}

static void
authenticated_data_moves_the_peer(void **state)
{
	(void)state;
	struct world w;
	setup(&w, 1);
	w.sides[0].at = world_endpoint(50, 5000);
	world_send(&w, 0, 1, "from elsewhere");
	world_run_s(&w, 0.1);
	struct endpoint e = endpoint_at(&w, 1, 0);
	assert_true(endpoint_is_same_remote(&e, &w.sides[0].at));
	assert_int_equal(w.sides[1].events[WG_EVENT_ENDPOINT], 2); /* at first, and now */
	world_send(&w, 1, 0, "answer");
	world_run_s(&w, 0.1);
	assert_string_equal(w.sides[0].last, "answer");
	assert_int_equal(world_info(&w, 1, 0).rejected_moves, 0);
	world_fini(&w);
}

static bool
keep_copy(struct world *w, struct world_datagram *g)
{
	if (wire_wg_type(g->bytes, g->len) == WIRE_WG_TYPE_DATA) {
		memcpy(w->filter_ctx, g, sizeof(*g));
	}
	return true;
}

static void
replayed_data_moves_nothing_and_is_counted(void **state)
{
	(void)state;
	struct world w;
	struct world_datagram copy = {0};
	setup(&w, 2);
	w.filter = keep_copy;
	w.filter_ctx = &copy;
	world_send(&w, 0, 1, "x");
	world_run_s(&w, 0.1);
	struct endpoint thief = world_endpoint(66, 6);
	uint64_t delivered = w.sides[1].delivered;
	for (int i = 0; i < 3; i++) {
		world_arrive(&w, 1, &thief, copy.bytes, copy.len);
	}
	assert_int_equal(world_drops(&w, 1, DROP_RX_REPLAY), 3);
	assert_int_equal(w.sides[1].delivered, delivered);
	struct endpoint e = endpoint_at(&w, 1, 0);
	assert_true(endpoint_is_same_remote(&e, &w.sides[0].at));
	assert_int_equal(world_info(&w, 1, 0).rejected_moves, 3);
	/* From its own address it is a replay as well, but no attempt to move. */
	world_arrive(&w, 1, &copy.from, copy.bytes, copy.len);
	assert_int_equal(world_drops(&w, 1, DROP_RX_REPLAY), 4);
	assert_int_equal(world_info(&w, 1, 0).rejected_moves, 3);
	/* Forged data does not even get that far. */
	copy.bytes[20] ^= 1;
	world_arrive(&w, 1, &thief, copy.bytes, copy.len);
	assert_int_equal(world_drops(&w, 1, DROP_RX_AUTH), 1);
	world_fini(&w);
}

static void
data_recorded_before_a_restart_opens_nowhere(void **state)
{
	(void)state;
	struct world w;
	struct world_datagram copy = {0};
	setup(&w, 3);
	w.filter = keep_copy;
	w.filter_ctx = &copy;
	world_send(&w, 0, 1, "x");
	world_run_s(&w, 0.1);
	struct world_datagram old = copy;
	world_restart(&w, 1, 0);
	world_meet(&w, 1, 0, true);
	struct endpoint thief = world_endpoint(66, 6);
	world_arrive(&w, 1, &thief, old.bytes, old.len);
	assert_int_equal(world_drops(&w, 1, DROP_RX_INDEX), 1);
	struct endpoint e = endpoint_at(&w, 1, 0);
	assert_true(endpoint_is_same_remote(&e, &w.sides[0].at));
	world_fini(&w);
}

static void
peer_is_answered_from_the_address_that_it_used(void **state)
{
	(void)state;
	struct world w;
	setup(&w, 4);
	struct wg_session *s = world_peer(&w, 1, 0)->current;
	struct wg_device *d = w.sides[1].device;
	struct endpoint from = endpoint_at(&w, 1, 0);
	from.src = (struct ip_addr){.family = IP_FAMILY_V4, .b = {192, 0, 2, 99}};
	from.src_ifindex = 7;
	struct aead_op op = {NULL, 0, true, 1000};
	uint64_t replays = 0, events = w.sides[1].events[WG_EVENT_ENDPOINT];
	struct wg_note note;
	wg_session_accept(d, s, w.now, &op, 1, &from, &replays, &note);
	assert_int_equal(note.needs, WG_NEED_ENDPOINT);
	wg_device_settle(d, world_time(&w, 1), &note, 1, &w.out);
	world_flush(&w, 1);
	assert_int_equal(endpoint_at(&w, 1, 0).src_ifindex, 7);
	assert_int_equal(endpoint_at(&w, 1, 0).src.b[3], 99);
	/* The peer itself has not moved. */
	assert_int_equal(w.sides[1].events[WG_EVENT_ENDPOINT], events);
	wg_peer_clear_src(d, world_peer(&w, 1, 0));
	assert_int_equal(endpoint_at(&w, 1, 0).src.family, IP_FAMILY_NONE);
	world_fini(&w);
}

static void
accept_passes_each_counter_of_a_batch_once(void **state)
{
	(void)state;
	struct world w;
	setup(&w, 5);
	struct wg_peer *p = world_peer(&w, 1, 0);
	struct endpoint from = wg_peer_endpoint(p);
	struct aead_op ops[8] = {{packet, 100, true, 500}, {packet, 100, true, 501},
		{packet, 100, true, 500}, {packet, 100, false, 502}, {NULL, 0, true, 503},
		{packet, 100, true, 20000}, {packet, 100, true, 20000 - 8192},
		{packet, 100, true, 20000 - 8191}};
	uint64_t replays = 10;
	struct wg_note note;
	struct wg_peer_info before = world_info(&w, 1, 0), after;
	wg_session_accept(w.sides[1].device, p->current, w.now, ops, 8, &from, &replays, &note);
	static const bool want[] = {true, true, false, false, true, true, false, true};
	for (int i = 0; i < 8; i++) {
		assert_int_equal(ops[i].ok, want[i]);
	}
	assert_int_equal(replays, 12); /* added to what was there */
	after = world_info(&w, 1, 0);
	assert_int_equal(after.rx_packets - before.rx_packets, 5);
	assert_int_equal(after.rx_bytes - before.rx_bytes, 4 * 132 + 32);
	if (note.needs) {
		wg_device_settle(w.sides[1].device, world_time(&w, 1), &note, 1, &w.out);
	}
	world_fini(&w);
}

static void
counters_at_the_end_of_a_session(void **state)
{
	(void)state;
	struct world w;
	setup(&w, 6);
	struct wg_device *d = w.sides[0].device;
	struct wg_peer *p = world_peer(&w, 0, 1);
	struct wg_session *s = p->current;
	struct wg_note note;
	uint64_t first;
	world_run_s(&w, 6); /* an initiation is possible again */
	atomic_store(&s->next_counter, (UINT64_C(1) << 60) - 10);
	assert_ptr_equal(wg_peer_begin_send(d, p, w.now, 10, 1000, &first, &note), s);
	assert_int_equal(note.needs & WG_NEED_HANDSHAKE, 0);
	wg_device_settle(d, world_time(&w, 0), &note, 1, &w.out);
	assert_ptr_equal(wg_peer_begin_send(d, p, w.now, 1, 100, &first, &note), s);
	assert_int_equal(note.needs & WG_NEED_HANDSHAKE, WG_NEED_HANDSHAKE);
	wg_device_settle(d, world_time(&w, 0), &note, 1, &w.out);
	assert_int_equal(w.out.msgs_n, 1);
	/* REJECT_AFTER_MESSAGES counters, 0 .. 2^64 - 2^13 - 2, and none more, however asked. */
	uint64_t last = UINT64_MAX - 8192 - 1;
	atomic_store(&s->next_counter, last - 4);
	assert_null(wg_peer_begin_send(d, p, w.now, 6, 100, &first, &note));
	wg_device_settle(d, world_time(&w, 0), &note, 1, &w.out);
	assert_non_null(wg_peer_begin_send(d, p, w.now, 5, 100, &first, &note));
	assert_true(first == last - 4);
	wg_device_settle(d, world_time(&w, 0), &note, 1, &w.out);
	for (int i = 0; i < 20000; i++) {
		assert_null(wg_peer_begin_send(d, p, w.now, 65536, 100, &first, &note));
		wg_device_settle(d, world_time(&w, 0), &note, 1, &w.out);
	}
	/* And the receiver takes none above. */
	struct endpoint from = wg_peer_endpoint(p);
	struct aead_op ops[2] = {{packet, 16, true, last + 1}, {packet, 16, true, last}};
	uint64_t replays = 0;
	wg_session_accept(d, s, w.now, ops, 2, &from, &replays, &note);
	assert_false(ops[0].ok);
	assert_true(ops[1].ok);
	wg_device_settle(d, world_time(&w, 0), &note, 1, &w.out);
	world_flush(&w, 0);
	world_fini(&w);
}

static void
route_and_source_follow_the_longest_prefix(void **state)
{
	(void)state;
	struct world w;
	setup(&w, 7);
	struct wg_device *d = w.sides[0].device;
	struct wg_peer *one = world_peer(&w, 0, 1), *two = world_meet(&w, 0, 2, true);
	struct ip_prefix all = {.addr = {.family = IP_FAMILY_V4}, .bits = 0};
	assert_int_equal(wg_peer_allow(d, two, &all), WEFT_OK);
	struct ip_addr dst = {.family = IP_FAMILY_V4, .b = {10, 0, 0, 1}};
	assert_ptr_equal(wg_device_route(d, &dst), one);
	assert_true(wg_peer_may_source(d, one, IP_FAMILY_V4, dst.b));
	assert_false(wg_peer_may_source(d, two, IP_FAMILY_V4, dst.b));
	dst.b[0] = 11;
	assert_ptr_equal(wg_device_route_raw(d, IP_FAMILY_V4, dst.b), two);
	dst.family = IP_FAMILY_V6;
	assert_null(wg_device_route(d, &dst));
	/* A prefix belongs to one peer: the last that asked. */
	struct ip_prefix host = {.addr = {.family = IP_FAMILY_V4, .b = {10, 0, 0, 1}}, .bits = 32};
	assert_int_equal(wg_peer_allow(d, two, &host), WEFT_OK);
	assert_ptr_equal(wg_device_route(d, &host.addr), two);
	assert_false(wg_peer_disallow(d, one, &host));
	assert_true(wg_peer_disallow(d, two, &host));
	wg_peer_remove(d, two);
	assert_null(wg_device_route(d, &host.addr));
	world_fini(&w);
}

static void
stale_notes_do_no_harm(void **state)
{
	(void)state;
	struct world w;
	setup(&w, 8);
	struct wg_device *d = w.sides[1].device;
	struct wg_peer *p = world_peer(&w, 1, 0);
	struct endpoint thief = world_endpoint(66, 6);
	/* Notes of two batches that crossed a removal. */
	struct aead_op op = {packet, 16, true, 900};
	uint64_t replays = 0;
	struct wg_note notes[2];
	wg_session_accept(d, p->current, w.now, &op, 1, &thief, &replays, &notes[0]);
	assert_int_equal(notes[0].needs & WG_NEED_ENDPOINT, WG_NEED_ENDPOINT);
	notes[1] = (struct wg_note){0};
	wg_peer_remove(d, p);
	assert_true(wg_peer_is_removed(notes[0].peer));
	wg_device_settle(d, world_time(&w, 1), notes, 2, &w.out);
	assert_int_equal(w.out.msgs_n + w.out.events_n, 0);
	assert_null(notes[0].peer);
	assert_int_equal(wg_device_deadline(d).ns, INT64_MAX);
	world_fini(&w);
}

static void
session_outlives_its_peer_while_referenced(void **state)
{
	(void)state;
	struct world w;
	setup(&w, 9);
	struct wg_device *d = w.sides[0].device;
	struct wg_peer *p = world_peer(&w, 0, 1);
	struct wg_session *s = p->current;
	uint32_t index = s->local_index;
	uint8_t key[32];
	wg_session_get(s);
	wg_peer_get(p);
	memcpy(key, wg_session_send_key(s)->bytes, 32);
	wg_peer_remove(d, p);
	assert_true(wg_peer_is_removed(p));
	assert_null(wg_device_session(d, index));
	assert_ptr_equal(wg_session_peer(s), p);
	assert_memory_equal(wg_session_send_key(s)->bytes, key, 32);
	wg_peer_put(p);
	assert_true(wg_peer_is_removed(wg_session_peer(s)));
	wg_session_put(s);
	/* The same key may come back meanwhile. */
	world_meet(&w, 0, 1, true);
	world_connect(&w, 0, 1);
	world_fini(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(authenticated_data_moves_the_peer),
		cmocka_unit_test(replayed_data_moves_nothing_and_is_counted),
		cmocka_unit_test(data_recorded_before_a_restart_opens_nowhere),
		cmocka_unit_test(peer_is_answered_from_the_address_that_it_used),
		cmocka_unit_test(accept_passes_each_counter_of_a_batch_once),
		cmocka_unit_test(counters_at_the_end_of_a_session),
		cmocka_unit_test(route_and_source_follow_the_longest_prefix),
		cmocka_unit_test(stale_notes_do_no_harm),
		cmocka_unit_test(session_outlives_its_peer_while_referenced),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

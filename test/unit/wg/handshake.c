/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "crypto/crypto.h"
#include "wg/cookie.h"
#include "world.h"

/* Side 0 initiates, side 1 answers; both know each other, only 0 knows where 1 is. */
static void
setup(struct world *w, uint64_t seed)
{
	world_init(w, 3, seed);
	world_meet(w, 0, 1, true);
	world_meet(w, 1, 0, false);
}

/* Keeps a copy of the last datagram of one type that went to one port. */
struct tap {
	enum wire_wg_type type;
	bool is_lost; /* and it does not arrive */
	size_t n;
	struct world_datagram copy;
};

static bool
tap_filter(struct world *w, struct world_datagram *g)
{
	struct tap *t = w->filter_ctx;
	if (wire_wg_type(g->bytes, g->len) != t->type) {
		return true;
	}
	t->copy = *g;
	t->n++;
	return !t->is_lost;
}

static void
tap(struct world *w, struct tap *t, enum wire_wg_type type, bool is_lost)
{
	*t = (struct tap){.type = type, .is_lost = is_lost};
	w->filter = tap_filter;
	w->filter_ctx = t;
}

static uint64_t
sent_by(const struct world *w, size_t i)
{
	uint64_t n = 0;
	for (size_t k = 0; k < WEFT_ARRAY_LEN(w->sides[i].sent); k++) {
		n += w->sides[i].sent[k];
	}
	return n;
}

static void
sign_for(struct world *w, size_t i, uint8_t *msg, size_t len)
{
	struct crypto *c;
	struct wg_cookie_jar jar = {0};
	assert_int_equal(crypto_new(&c), WEFT_OK);
	wg_cookie_jar_sign(c, &jar, w->sides[i].public_key, w->now, msg, len);
	crypto_free(c);
}

static void
strangers_and_garbage_meet_silence(void **state)
{
	(void)state;
	struct world w;
	setup(&w, 1);
	struct endpoint from = world_endpoint(9, 9);
	uint8_t msg[WORLD_DATAGRAM_MAX] = {0};
	for (size_t len = 0; len < 200; len++) {
		for (uint32_t type = 0; type < 6; type++) {
			store_le32(msg, type);
			if (!wire_wg_data_is_well_formed(msg, len)) {
				world_arrive(&w, 1, &from, msg, len);
			}
		}
	}
	/* A configured side that does not know the stranger. */
	world_meet(&w, 2, 1, true);
	world_send(&w, 2, 1, "hello");
	world_run_s(&w, 1);
	assert_int_equal(world_drops(&w, 1, DROP_HS_PEER), 1);
	/* Right mac1, but all else is zero: a zero ephemeral as well. */
	store_le32(msg, WIRE_WG_TYPE_INITIATION);
	sign_for(&w, 1, msg, WIRE_WG_INITIATION_LEN);
	world_arrive(&w, 1, &from, msg, WIRE_WG_INITIATION_LEN);
	assert_int_equal(world_drops(&w, 1, DROP_HS_AUTH), 1);
	assert_int_equal(sent_by(&w, 1), 0);
	/* Every datagram has left exactly one trace. */
	uint64_t n = 0;
	for (int i = 0; i < DROP_COUNT; i++) {
		n += w.sides[1].drops.n[i];
	}
	assert_int_equal(n, 200 * 6 - 168 + 2);
	assert_int_equal(world_drops(&w, 1, DROP_HS_MAC1), 2);
	assert_int_equal(world_drops(&w, 1, DROP_HS_INDEX), 1);
	world_fini(&w);
}

static void
reserved_bytes_must_be_zero(void **state)
{
	(void)state;
	struct world w;
	struct tap t;
	setup(&w, 2);
	tap(&w, &t, WIRE_WG_TYPE_INITIATION, true);
	world_send(&w, 0, 1, "x");
	world_run_s(&w, 1);
	t.copy.bytes[2] = 1;
	sign_for(&w, 1, t.copy.bytes, t.copy.len);
	world_arrive(&w, 1, &t.copy.from, t.copy.bytes, t.copy.len);
	assert_int_equal(world_drops(&w, 1, DROP_RX_TYPE), 1);
	world_fini(&w);
}

static void
different_psks_never_agree(void **state)
{
	(void)state;
	struct world w;
	setup(&w, 3);
	uint8_t psk[32] = {1};
	wg_peer_set_psk(world_peer(&w, 0, 1), psk);
	world_send(&w, 0, 1, "x");
	world_run_s(&w, 30);
	assert_int_equal(w.sides[1].delivered, 0);
	assert_true(world_drops(&w, 0, DROP_HS_AUTH) >= 5);
	assert_false(world_info(&w, 0, 1).has_session);
	wg_peer_set_psk(world_peer(&w, 1, 0), psk);
	world_run_s(&w, 6);
	assert_int_equal(w.sides[1].delivered, 1);
	assert_true(world_info(&w, 1, 0).has_psk);
	world_fini(&w);
}

static void
replayed_initiation_is_counted_and_moves_nothing(void **state)
{
	(void)state;
	struct world w;
	struct tap t;
	setup(&w, 4);
	tap(&w, &t, WIRE_WG_TYPE_INITIATION, false);
	world_connect(&w, 0, 1);
	struct endpoint thief = world_endpoint(66, 6);
	uint64_t sent = sent_by(&w, 1);
	world_run_s(&w, 1);
	world_arrive(&w, 1, &thief, t.copy.bytes, t.copy.len);
	assert_int_equal(world_drops(&w, 1, DROP_HS_STALE), 1);
	assert_int_equal(w.sides[1].events[WG_EVENT_STALE], 1);
	assert_int_equal(sent_by(&w, 1), sent);
	struct wg_peer_info info = world_info(&w, 1, 0);
	assert_true(endpoint_is_same_remote(&info.endpoint, &w.sides[0].at));
	assert_int_equal(info.stale_initiations, 1);
	assert_int_equal(info.rejected_moves, 1);
	world_connect(&w, 0, 1);
	world_fini(&w);
}

static void
initiation_replayed_after_our_restart_does_not_move_the_peer(void **state)
{
	(void)state;
	struct world w;
	struct tap t;
	setup(&w, 5);
	tap(&w, &t, WIRE_WG_TYPE_INITIATION, false);
	world_connect(&w, 0, 1);
	struct world_datagram old = t.copy;
	world_restart(&w, 1, 0);
	world_meet(&w, 1, 0, true);
	struct endpoint thief = world_endpoint(66, 6);
	world_arrive(&w, 1, &thief, old.bytes, old.len);
	struct wg_peer_info info = world_info(&w, 1, 0);
	assert_true(endpoint_is_same_remote(&info.endpoint, &w.sides[0].at));
	assert_false(info.has_session);
	/* Our data goes to the true peer, and the handshake that it asks for works. */
	world_run_s(&w, 1);
	world_send(&w, 1, 0, "after the restart");
	world_run_s(&w, 1);
	assert_string_equal(w.sides[0].last, "after the restart");
	world_fini(&w);
}

static void
initiations_replayed_in_their_order_after_our_restart_do_not_move_the_peer(void **state)
{
	(void)state;
	struct world w;
	struct tap t;
	struct world_datagram old[3];
	setup(&w, 6);
	for (int i = 0; i < 3; i++) {
		tap(&w, &t, WIRE_WG_TYPE_INITIATION, false);
		world_restart(&w, 0, w.sides[0].values[WG_EVENT_STAMP]);
		world_meet(&w, 0, 1, true);
		world_connect(&w, 0, 1);
		old[i] = t.copy;
	}
	world_restart(&w, 1, 0);
	world_meet(&w, 1, 0, true);
	struct endpoint thief = world_endpoint(66, 6);
	for (int i = 0; i < 3; i++) {
		world_arrive(&w, 1, &thief, old[i].bytes, old[i].len);
		world_run_s(&w, 0.1);
		struct wg_peer_info info = world_info(&w, 1, 0);
		assert_true(endpoint_is_same_remote(&info.endpoint, &w.sides[0].at));
	}
	/* Once the true peer has come, its next initiation moves it at once. */
	for (int i = 0; i < 2; i++) {
		world_restart(&w, 0, w.sides[0].values[WG_EVENT_STAMP]);
		world_meet(&w, 0, 1, true);
		if (i == 0) {
			world_connect(&w, 0, 1);
		}
	}
	w.sides[0].at = world_endpoint(50, 5000);
	tap(&w, &t, WIRE_WG_TYPE_RESPONSE, true);
	world_send(&w, 0, 1, "from elsewhere");
	world_run_s(&w, 1);
	struct wg_peer_info info = world_info(&w, 1, 0);
	assert_true(endpoint_is_same_remote(&info.endpoint, &w.sides[0].at));
	world_fini(&w);
}

static void
replayed_response_moves_nothing(void **state)
{
	(void)state;
	struct world w;
	struct tap t;
	setup(&w, 6);
	tap(&w, &t, WIRE_WG_TYPE_RESPONSE, false);
	world_connect(&w, 0, 1);
	struct endpoint thief = world_endpoint(66, 6);
	world_arrive(&w, 0, &thief, t.copy.bytes, t.copy.len);
	assert_int_equal(world_drops(&w, 0, DROP_HS_INDEX), 1);
	struct wg_peer_info info = world_info(&w, 0, 1);
	assert_true(endpoint_is_same_remote(&info.endpoint, &w.sides[1].at));
	assert_int_equal(info.handshakes, 1);
	world_fini(&w);
}

static void
cookie_reply_from_anywhere_moves_nothing(void **state)
{
	(void)state;
	struct world w;
	struct tap t;
	setup(&w, 7);
	tap(&w, &t, WIRE_WG_TYPE_INITIATION, true);
	world_send(&w, 0, 1, "x");
	world_run_s(&w, 1);
	/* A true cookie reply to it, as side 1 would make it. */
	struct crypto *c;
	struct wg_cookie_checker k = {0};
	uint8_t reply[WIRE_WG_COOKIE_REPLY_LEN];
	struct entropy entropy = world_entropy(&w);
	struct wg_cookie_claim claim = {t.copy.bytes, t.copy.len, &t.copy.from};
	assert_int_equal(crypto_new(&c), WEFT_OK);
	wg_cookie_checker_set_key(c, &k, w.sides[1].public_key);
	wg_cookie_reply(c, &k, &entropy, &claim, w.now, reply);
	crypto_free(c);
	struct endpoint thief = world_endpoint(66, 6);
	uint64_t sent = sent_by(&w, 0);
	world_arrive(&w, 0, &thief, reply, sizeof(reply));
	world_arrive(&w, 0, &thief, reply, sizeof(reply)); /* replayed */
	assert_int_equal(world_drops(&w, 0, DROP_HS_AUTH), 1);
	assert_int_equal(sent_by(&w, 0), sent); /* and sends nothing sooner */
	struct wg_peer_info info = world_info(&w, 0, 1);
	assert_true(endpoint_is_same_remote(&info.endpoint, &w.sides[1].at));
	world_run_s(&w, 6);
	static const uint8_t zeros[16];
	assert_memory_not_equal(t.copy.bytes + t.copy.len - 16, zeros, 16);
	world_fini(&w);
}

static void
initiations_of_one_peer_are_20_ms_apart(void **state)
{
	(void)state;
	struct world w;
	struct tap t;
	setup(&w, 8);
	tap(&w, &t, WIRE_WG_TYPE_INITIATION, true);
	struct world_datagram all[3];
	for (int i = 0; i < 3; i++) {
		world_send(&w, 0, 1, "x");
		world_run_s(&w, 5.4);
		all[i] = t.copy;
	}
	world_arrive(&w, 1, &w.sides[0].at, all[0].bytes, all[0].len);
	world_run_ns(&w, 19 * WEFT_NS_PER_MS);
	world_arrive(&w, 1, &w.sides[0].at, all[1].bytes, all[1].len);
	assert_int_equal(world_drops(&w, 1, DROP_HS_FLOOD), 1);
	assert_int_equal(w.sides[1].sent[WIRE_WG_TYPE_RESPONSE], 1);
	world_run_ns(&w, 1 * WEFT_NS_PER_MS);
	world_arrive(&w, 1, &w.sides[0].at, all[1].bytes, all[1].len);
	assert_int_equal(w.sides[1].sent[WIRE_WG_TYPE_RESPONSE], 2);
	assert_int_equal(world_drops(&w, 1, DROP_HS_STALE), 0);
	world_fini(&w);
}

static void
initiator_whose_clock_went_back_is_heard_thanks_to_its_persisted_stamp(void **state)
{
	(void)state;
	struct world w;
	setup(&w, 9);
	world_connect(&w, 0, 1);
	uint64_t stamp_s = w.sides[0].values[WG_EVENT_STAMP];
	assert_true(stamp_s > 0);
	w.sides[0].wall_skew_ns = -w.wall_ns; /* 1970 */
	world_restart(&w, 0, stamp_s);
	world_meet(&w, 0, 1, true);
	world_connect(&w, 0, 1);
	assert_int_equal(world_drops(&w, 1, DROP_HS_STALE), 0);
	/* And again: what was persisted meanwhile is above what it sent meanwhile. */
	assert_true(w.sides[0].values[WG_EVENT_STAMP] > stamp_s);
	world_restart(&w, 0, w.sides[0].values[WG_EVENT_STAMP]);
	world_meet(&w, 0, 1, true);
	world_connect(&w, 0, 1);
	assert_int_equal(world_drops(&w, 1, DROP_HS_STALE), 0);
	world_fini(&w);
}

static void
responder_reports_an_initiator_whose_clock_went_back(void **state)
{
	(void)state;
	struct world w;
	setup(&w, 10);
	world_connect(&w, 0, 1);
	w.sides[0].wall_skew_ns = -3600 * WEFT_NS_PER_S;
	world_restart(&w, 0, 0);
	world_meet(&w, 0, 1, true);
	world_send(&w, 0, 1, "lost");
	world_run_s(&w, 1);
	assert_int_equal(w.sides[1].events[WG_EVENT_STALE], 1);
	assert_int_equal(world_info(&w, 1, 0).stale_initiations, 1);
	assert_int_equal(world_info(&w, 1, 0).rejected_moves, 0);
	world_fini(&w);
}

static void
stamp_is_persisted_before_the_first_initiation_and_once_a_minute(void **state)
{
	(void)state;
	struct world w;
	setup(&w, 11);
	w.sides[1].is_deaf = true;
	for (int i = 0; i < 100; i++) {
		world_send(&w, 0, 1, "x");
		if (i == 0) {
			assert_int_equal(w.sides[0].events[WG_EVENT_STAMP], 1);
		}
		world_run_s(&w, 6);
	}
	assert_true(w.sides[0].sent[WIRE_WG_TYPE_INITIATION] >= 99);
	assert_in_range(w.sides[0].events[WG_EVENT_STAMP], 10, 11);
	world_fini(&w);
}

static void
forged_response_does_not_spoil_the_true_one(void **state)
{
	(void)state;
	struct world w;
	struct tap t;
	setup(&w, 12);
	tap(&w, &t, WIRE_WG_TYPE_RESPONSE, true);
	world_send(&w, 0, 1, "x");
	world_run_s(&w, 1);
	struct world_datagram forged = t.copy;
	for (int i = 0; i < 3; i++) {
		forged.bytes[50] = t.copy.bytes[50] ^ (uint8_t)(i + 1);
		sign_for(&w, 0, forged.bytes, forged.len);
		world_arrive(&w, 0, &t.copy.from, forged.bytes, forged.len);
	}
	assert_int_equal(world_drops(&w, 0, DROP_HS_AUTH), 3);
	w.filter = NULL;
	world_arrive(&w, 0, &t.copy.from, t.copy.bytes, t.copy.len);
	world_run_s(&w, 1);
	assert_int_equal(w.sides[1].delivered, 1);
	world_fini(&w);
}

static void
without_a_private_key_nothing_is_sent_or_answered(void **state)
{
	(void)state;
	struct world w;
	setup(&w, 13);
	wg_device_set_private_key(w.sides[1].device, NULL);
	world_send(&w, 0, 1, "x");
	world_run_s(&w, 1);
	assert_int_equal(world_drops(&w, 1, DROP_HS_MAC1), 1);
	wg_peer_set_endpoint(world_peer(&w, 1, 0), &w.sides[0].at);
	world_send(&w, 1, 0, "y");
	world_run_s(&w, 1);
	assert_int_equal(sent_by(&w, 1), 0);
	wg_device_set_private_key(w.sides[1].device, w.sides[1].private_key);
	world_run_s(&w, 6);
	assert_int_equal(w.sides[1].delivered, 1);
	world_fini(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strangers_and_garbage_meet_silence),
		cmocka_unit_test(reserved_bytes_must_be_zero),
		cmocka_unit_test(different_psks_never_agree),
		cmocka_unit_test(replayed_initiation_is_counted_and_moves_nothing),
		cmocka_unit_test(initiation_replayed_after_our_restart_does_not_move_the_peer),
		cmocka_unit_test(
			initiations_replayed_in_their_order_after_our_restart_do_not_move_the_peer),
		cmocka_unit_test(replayed_response_moves_nothing),
		cmocka_unit_test(cookie_reply_from_anywhere_moves_nothing),
		cmocka_unit_test(initiations_of_one_peer_are_20_ms_apart),
		cmocka_unit_test(
			initiator_whose_clock_went_back_is_heard_thanks_to_its_persisted_stamp),
		cmocka_unit_test(responder_reports_an_initiator_whose_clock_went_back),
		cmocka_unit_test(stamp_is_persisted_before_the_first_initiation_and_once_a_minute),
		cmocka_unit_test(forged_response_does_not_spoil_the_true_one),
		cmocka_unit_test(without_a_private_key_nothing_is_sent_or_answered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

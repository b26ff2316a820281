/* SPDX-License-Identifier: Apache-2.0 */
/* The two ciphers of a session. */
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

/* Side 0 has initiated a session with side 1. */
static void
setup(struct world *w, uint64_t seed)
{
	world_init(w, 2, seed);
	world_meet(w, 0, 1, true);
	world_meet(w, 1, 0, false);
	world_connect(w, 0, 1);
}

static struct wg_session *
session_of(struct world *w, size_t i)
{
	return world_peer(w, i, 1 - i)->current;
}

static void
agree_on_aes(struct world *w)
{
	for (size_t i = 0; i < 2; i++) {
		wg_session_allow_cipher(session_of(w, i), AEAD_CIPHER_AES_256_GCM);
		wg_session_set_send_cipher(session_of(w, i), AEAD_CIPHER_AES_256_GCM);
	}
}

/* A data message for side 1 under side 0's key of that cipher, whatever the counters say. */
static size_t
seal(struct world *w, enum aead_cipher cipher, uint64_t counter, const char *text, uint8_t *out)
{
	struct wg_session *s = session_of(w, 0);
	struct aead_op op = {.data = out + WG_HEADER_LEN, .len = 16, .counter = counter};
	wire_wg_data_write_header(out, cipher, wg_session_remote_index(s), counter);
	memset(op.data, 0, 16);
	memcpy(op.data, text, strlen(text));
	aead_seal(w->aead, &s->send[cipher], &op, 1);
	return 16 + WG_OVERHEAD;
}

static void
arrive(struct world *w, const uint8_t *bytes, size_t len)
{
	world_arrive(w, 1, &w->sides[0].at, bytes, len);
}

static uint64_t
next_counter(struct world *w)
{
	return atomic_load(&session_of(w, 0)->next_counter);
}

struct seen {
	size_t data[256]; /* data messages by their second byte */
};

static bool
see(struct world *w, struct world_datagram *g)
{
	struct seen *s = w->filter_ctx;
	if (wire_wg_type(g->bytes, g->len) == WIRE_WG_TYPE_DATA) {
		s->data[g->bytes[1]]++;
	}
	return true;
}

static void
sessions_begin_with_chacha_and_stay_with_it(void **state)
{
	(void)state;
	struct world w;
	struct seen seen = {{0}};
	world_init(&w, 2, 1);
	w.filter = see;
	w.filter_ctx = &seen;
	world_meet(&w, 0, 1, true);
	world_meet(&w, 1, 0, false);
	world_connect(&w, 0, 1);
	world_send(&w, 0, 1, "plain");
	world_run_s(&w, 200);
	assert_true(seen.data[0] >= 3);
	for (size_t i = 1; i < 256; i++) {
		assert_int_equal(seen.data[i], 0);
	}
	world_fini(&w);
}

static void
both_ends_speak_aes_once_it_is_set(void **state)
{
	(void)state;
	struct world w;
	struct seen seen = {{0}};
	setup(&w, 2);
	agree_on_aes(&w);
	w.filter = see;
	w.filter_ctx = &seen;
	for (int i = 0; i < 20; i++) {
		char text[16];
		snprintf(text, sizeof(text), "packet %d", i);
		world_send(&w, (size_t)i % 2, 1 - (size_t)i % 2, text);
		world_run_s(&w, 0.1);
		assert_string_equal(w.sides[1 - i % 2].last, text);
	}
	assert_int_equal(seen.data[1], 20);
	assert_int_equal(seen.data[0], 0);
	world_fini(&w);
}

static void
one_direction_may_speak_aes_alone(void **state)
{
	(void)state;
	struct world w;
	struct seen seen = {{0}};
	setup(&w, 3);
	wg_session_allow_cipher(session_of(&w, 1), AEAD_CIPHER_AES_256_GCM);
	wg_session_set_send_cipher(session_of(&w, 0), AEAD_CIPHER_AES_256_GCM);
	w.filter = see;
	w.filter_ctx = &seen;
	world_send(&w, 0, 1, "there");
	world_send(&w, 1, 0, "back");
	world_run_s(&w, 0.1);
	assert_string_equal(w.sides[1].last, "there");
	assert_string_equal(w.sides[0].last, "back");
	assert_int_equal(seen.data[0], 1);
	assert_int_equal(seen.data[1], 1);
	world_fini(&w);
}

static void
a_marked_message_is_refused_where_it_is_not_allowed(void **state)
{
	(void)state;
	struct world w;
	uint8_t msg[64];
	setup(&w, 4);
	uint64_t counter = next_counter(&w), delivered = w.sides[1].delivered;
	size_t len = seal(&w, AEAD_CIPHER_AES_256_GCM, counter, "early", msg);
	struct endpoint thief = world_endpoint(66, 6);
	uint64_t sent = w.sides[1].sent[WIRE_WG_TYPE_DATA];
	for (int i = 0; i < 3; i++) {
		world_arrive(&w, 1, &thief, msg, len);
	}
	assert_int_equal(world_drops(&w, 1, DROP_RX_TYPE), 3);
	assert_int_equal(w.sides[1].delivered, delivered);
	assert_int_equal(w.sides[1].sent[WIRE_WG_TYPE_DATA], sent); /* silent */
	struct endpoint e = wg_peer_endpoint(world_peer(&w, 1, 0));
	assert_true(endpoint_is_same_remote(&e, &w.sides[0].at));
	/* The counter is not used up. */
	wg_session_allow_cipher(session_of(&w, 1), AEAD_CIPHER_AES_256_GCM);
	arrive(&w, msg, len);
	assert_string_equal(w.sides[1].last, "early");
	world_fini(&w);
}

static void
a_changed_mark_spoils_the_message(void **state)
{
	(void)state;
	struct world w;
	uint8_t msg[64];
	setup(&w, 5);
	agree_on_aes(&w);
	uint64_t counter = next_counter(&w), delivered = w.sides[1].delivered;
	for (int i = 0; i < AEAD_CIPHER_COUNT; i++) {
		size_t len = seal(&w, (enum aead_cipher)i, counter, "x", msg);
		msg[1] ^= 1;
		arrive(&w, msg, len);
		assert_int_equal(world_drops(&w, 1, DROP_RX_AUTH), i + 1);
	}
	assert_int_equal(w.sides[1].delivered, delivered);
	world_fini(&w);
}

static void
a_counter_passes_once_whatever_it_is_sealed_with(void **state)
{
	(void)state;
	struct world w;
	uint8_t msg[64];
	setup(&w, 6);
	agree_on_aes(&w);
	uint64_t counter = next_counter(&w), delivered = w.sides[1].delivered;
	for (uint64_t i = 0; i < 10; i++) {
		enum aead_cipher first = (enum aead_cipher)(i % 2);
		enum aead_cipher other = (enum aead_cipher)(1 - i % 2);
		arrive(&w, msg, seal(&w, first, counter + i, "first", msg));
		assert_int_equal(w.sides[1].delivered, delivered + i + 1);
		arrive(&w, msg, seal(&w, first, counter + i, "again", msg));
		arrive(&w, msg, seal(&w, other, counter + i, "other", msg));
		assert_int_equal(w.sides[1].delivered, delivered + i + 1);
		assert_int_equal(world_drops(&w, 1, DROP_RX_REPLAY), 2 * (i + 1));
	}
	assert_string_equal(w.sides[1].last, "first");
	world_fini(&w);
}

/* Every counter of a stretch in random order, with a random cipher, some twice. */
static void
mixed_ciphers_share_one_window(void **state)
{
	(void)state;
	enum { COUNT = 500 };
	const uint64_t seed = 7;
	struct world w;
	struct rng r;
	uint8_t msg[64];
	uint64_t order[COUNT];
	setup(&w, seed);
	agree_on_aes(&w);
	rng_init(&r, seed);
	uint64_t delivered = w.sides[1].delivered, twice = 0;
	for (uint64_t i = 0; i < COUNT; i++) {
		uint64_t at = rng_below(&r, i + 1);
		order[i] = order[at];
		order[at] = next_counter(&w) + i;
	}
	for (size_t i = 0; i < COUNT; i++) {
		for (uint64_t times = 1 + rng_below(&r, 2); times > 0; times--) {
			enum aead_cipher c = (enum aead_cipher)rng_below(&r, AEAD_CIPHER_COUNT);
			twice += times == 2;
			arrive(&w, msg, seal(&w, c, order[i], "mixed", msg));
		}
	}
	assert_int_equal(w.sides[1].delivered, delivered + COUNT);
	assert_int_equal(world_drops(&w, 1, DROP_RX_REPLAY), twice);
	world_fini(&w);
}

static void
the_peer_roams_by_aes_as_well(void **state)
{
	(void)state;
	struct world w;
	setup(&w, 8);
	agree_on_aes(&w);
	w.sides[0].at = world_endpoint(50, 5000);
	world_send(&w, 0, 1, "from elsewhere");
	world_run_s(&w, 0.1);
	struct endpoint e = wg_peer_endpoint(world_peer(&w, 1, 0));
	assert_true(endpoint_is_same_remote(&e, &w.sides[0].at));
	world_fini(&w);
}

static void
the_next_session_agrees_anew(void **state)
{
	(void)state;
	struct world w;
	struct seen seen = {{0}};
	setup(&w, 9);
	agree_on_aes(&w);
	struct wg_session *old = session_of(&w, 0);
	for (int i = 0; i < 130 && session_of(&w, 0) == old; i++) {
		world_send(&w, 0, 1, "renews");
		world_run_s(&w, 1);
	}
	assert_ptr_not_equal(session_of(&w, 0), old);
	w.filter = see;
	w.filter_ctx = &seen;
	world_send(&w, 0, 1, "new");
	world_run_s(&w, 0.1);
	assert_string_equal(w.sides[1].last, "new");
	assert_int_equal(seen.data[1], 0);
	assert_null(wg_session_recv_key(session_of(&w, 1), AEAD_CIPHER_AES_256_GCM));
	assert_non_null(wg_session_recv_key(session_of(&w, 1), AEAD_CIPHER_CHACHA20_POLY1305));
	world_fini(&w);
}

static void
keepalives_of_the_engine_stay_chacha(void **state)
{
	(void)state;
	struct world w;
	struct seen seen = {{0}};
	setup(&w, 10);
	agree_on_aes(&w);
	w.filter = see;
	w.filter_ctx = &seen;
	world_send(&w, 0, 1, "no answer but a keepalive");
	uint64_t keepalives = w.sides[0].keepalives;
	world_run_s(&w, 11);
	assert_int_equal(w.sides[0].keepalives, keepalives + 1);
	assert_int_equal(seen.data[0], 1);
	assert_int_equal(seen.data[1], 1);
	world_fini(&w);
}

static void
each_cipher_has_keys_of_its_own(void **state)
{
	(void)state;
	struct world w;
	setup(&w, 11);
	const struct wg_session *s = session_of(&w, 0);
	for (int i = 0; i < AEAD_CIPHER_COUNT; i++) {
		assert_int_equal(s->send[i].cipher, i);
		assert_int_equal(s->recv[i].cipher, i);
	}
	assert_memory_not_equal(s->send[0].bytes, s->send[1].bytes, AEAD_KEY_LEN);
	assert_memory_not_equal(s->recv[0].bytes, s->recv[1].bytes, AEAD_KEY_LEN);
	world_fini(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sessions_begin_with_chacha_and_stay_with_it),
		cmocka_unit_test(both_ends_speak_aes_once_it_is_set),
		cmocka_unit_test(one_direction_may_speak_aes_alone),
		cmocka_unit_test(a_marked_message_is_refused_where_it_is_not_allowed),
		cmocka_unit_test(a_changed_mark_spoils_the_message),
		cmocka_unit_test(a_counter_passes_once_whatever_it_is_sealed_with),
		cmocka_unit_test(mixed_ciphers_share_one_window),
		cmocka_unit_test(the_peer_roams_by_aes_as_well),
		cmocka_unit_test(the_next_session_agrees_anew),
		cmocka_unit_test(keepalives_of_the_engine_stay_chacha),
		cmocka_unit_test(each_cipher_has_keys_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

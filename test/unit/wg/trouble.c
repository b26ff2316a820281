/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "wg/engine.h"
#include "world.h"

static struct wg_trouble
trouble(enum wg_trouble_kind kind, unsigned who)
{
	struct wg_trouble t = {.kind = kind};
	memcpy(t.key, &who, sizeof(who));
	return t;
}

static struct mono
at_s(int64_t s)
{
	return (struct mono){s * WEFT_NS_PER_S};
}

static const struct wg_trouble *
find(const struct wg_troubles *t, const struct wg_trouble *what)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->v[i].kind == what->kind &&
			memcmp(t->v[i].key, what->key, sizeof(what->key)) == 0) {
			return &t->v[i];
		}
	}
	return NULL;
}

static void
troubles_count_the_same_once_and_keep_times(void **state)
{
	(void)state;
	struct wg_troubles t = {0};
	struct wg_trouble one = trouble(WG_TROUBLE_STALE, 1), two = one;
	two.at.port = 7;
	wg_troubles_note(&t, &one, at_s(1));
	wg_troubles_note(&t, &one, at_s(5));
	wg_troubles_note(&t, &two, at_s(6));
	assert_int_equal(t.n, 2);
	assert_int_equal(t.v[0].n, 2);
	assert_int_equal(t.v[0].first.ns, at_s(1).ns);
	assert_int_equal(t.v[0].latest.ns, at_s(5).ns);
}

static void
troubles_of_one_kind_push_out_no_other(void **state)
{
	(void)state;
	struct wg_troubles t = {0};
	struct wg_trouble quiet = trouble(WG_TROUBLE_RESPONSE, 1);
	struct wg_trouble old = trouble(WG_TROUBLE_STRANGER, 0);
	wg_troubles_note(&t, &quiet, at_s(1));
	wg_troubles_note(&t, &old, at_s(2));
	for (unsigned i = 1; i < 1000; i++) {
		struct wg_trouble flood = trouble(WG_TROUBLE_STRANGER, i);
		wg_troubles_note(&t, &flood, at_s(2 + i));
	}
	assert_int_equal(t.n, 1 + WG_TROUBLES_OF_KIND);
	assert_non_null(find(&t, &quiet));
	assert_null(find(&t, &old));
	struct wg_trouble last = trouble(WG_TROUBLE_STRANGER, 999);
	assert_non_null(find(&t, &last));
}

static void
troubles_of_all_kinds_stay_within_the_table(void **state)
{
	(void)state;
	struct wg_troubles t = {0};
	for (unsigned i = 0; i < 5000; i++) {
		struct wg_trouble x = trouble((enum wg_trouble_kind)(i % 10), i);
		wg_troubles_note(&t, &x, at_s(i));
		assert_true(t.n <= WG_TROUBLES_MAX);
		assert_non_null(find(&t, &x));
	}
}

/* The latest of a kind at side i; NULL: none. */
static const struct wg_trouble *
last_of(const struct world *w, size_t i, enum wg_trouble_kind kind)
{
	const struct wg_troubles *t = wg_device_troubles(w->sides[i].device);
	const struct wg_trouble *last = NULL;
	for (size_t k = 0; k < t->n; k++) {
		if (t->v[k].kind == kind && (!last || last->latest.ns <= t->v[k].latest.ns)) {
			last = &t->v[k];
		}
	}
	return last;
}

static void
engine_notes_keys_that_are_not_configured(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 2, 1);
	world_meet(&w, 0, 1, true);
	world_send(&w, 0, 1, "hello");
	world_run_s(&w, 1);
	const struct wg_trouble *t = last_of(&w, 1, WG_TROUBLE_STRANGER);
	assert_non_null(t);
	assert_memory_equal(t->key, w.sides[0].public_key, 32);
	assert_true(endpoint_is_same_remote(&t->at, &w.sides[0].at));
	world_fini(&w);
}

static void
engine_notes_answers_with_another_preshared_key(void **state)
{
	(void)state;
	static const uint8_t psk[32] = {1};
	struct world w;
	struct wg_peer_trail trail;
	world_init(&w, 2, 2);
	world_meet(&w, 0, 1, true);
	wg_peer_set_psk(world_meet(&w, 1, 0, false), psk);
	world_send(&w, 0, 1, "hello");
	world_run_s(&w, 12);
	const struct wg_trouble *t = last_of(&w, 0, WG_TROUBLE_RESPONSE);
	assert_non_null(t);
	assert_memory_equal(t->key, w.sides[1].public_key, 32);
	assert_true(t->n >= 2);
	wg_peer_trail(world_peer(&w, 0, 1), &trail);
	assert_true(trail.trying_since.ns != 0 && trail.trying_since.ns < t->first.ns);
	assert_true(trail.tried.ns > trail.trying_since.ns);
	/* The other side sees calls that lead to nothing. */
	wg_peer_trail(world_peer(&w, 1, 0), &trail);
	assert_true(trail.calls_unused >= 2 && trail.called.ns != 0);
	world_fini(&w);
}

static void
trail_tells_of_both_directions_and_of_arrivals(void **state)
{
	(void)state;
	struct world w;
	struct wg_peer_trail trail;
	world_init(&w, 2, 3);
	world_meet(&w, 0, 1, true);
	world_meet(&w, 1, 0, true);
	world_send(&w, 0, 1, "hello");
	world_run_s(&w, 1);
	wg_peer_trail(world_peer(&w, 1, 0), &trail);
	assert_true(trail.received.ns != 0 && trail.calls_unused == 0);
	uint64_t before = trail.expected;
	assert_int_equal(trail.expected, trail.arrived);
	w.sides[1].is_deaf = true;
	for (int i = 0; i < 4; i++) {
		world_send(&w, 0, 1, "lost");
	}
	world_run_s(&w, 1);
	w.sides[1].is_deaf = false;
	world_send(&w, 0, 1, "seen");
	world_run_s(&w, 1);
	wg_peer_trail(world_peer(&w, 1, 0), &trail);
	assert_int_equal(trail.expected, before + 5);
	assert_int_equal(trail.arrived, before + 1);
	world_fini(&w);
}

static void
trail_tells_when_it_was_given_up(void **state)
{
	(void)state;
	struct world w;
	struct wg_peer_trail trail;
	world_init(&w, 2, 4);
	world_meet(&w, 0, 1, true);
	w.sides[1].is_deaf = true;
	world_send(&w, 0, 1, "hello");
	world_run_s(&w, 200);
	wg_peer_trail(world_peer(&w, 0, 1), &trail);
	assert_true(trail.gave_up.ns != 0 && trail.gave_up_tries >= 15);
	assert_int_equal(trail.trying_since.ns, 0);
	world_fini(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(troubles_count_the_same_once_and_keep_times),
		cmocka_unit_test(troubles_of_one_kind_push_out_no_other),
		cmocka_unit_test(troubles_of_all_kinds_stay_within_the_table),
		cmocka_unit_test(engine_notes_keys_that_are_not_configured),
		cmocka_unit_test(engine_notes_answers_with_another_preshared_key),
		cmocka_unit_test(trail_tells_of_both_directions_and_of_arrivals),
		cmocka_unit_test(trail_tells_when_it_was_given_up),
	};
	return cmocka_run_group_tests_name(WEFT_TEST_NAME, tests, NULL, NULL);
}

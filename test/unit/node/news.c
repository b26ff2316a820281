/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "node/news.h"

struct fixture {
	struct rng rng;
	struct wg_device *device;
	struct wg_peer *peer;
	uint8_t key[WG_KEY_LEN];
	struct news news;
};

static void
fill(void *ctx, void *out, size_t len)
{
	rng_fill(ctx, out, len);
}

static int
set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	rng_init(&f->rng, 1);
	const struct wg_device_config c = {.entropy = {fill, &f->rng}};
	const struct log silent = {0};
	f->key[0] = 7;
	assert_int_equal(wg_device_new(&c, &f->device), WEFT_OK);
	assert_int_equal(wg_peer_add(f->device, f->key, &f->peer), WEFT_OK);
	news_init(&f->news, &silent, true);
	*state = f;
	return 0;
}

static int
tear_down(void **state)
{
	struct fixture *f = *state;
	news_fini(&f->news);
	wg_device_free(f->device);
	free(f);
	return 0;
}

static bool
tell(struct fixture *f, enum wg_event_kind kind)
{
	const struct wg_event e = {.kind = kind, .peer = f->peer};
	return news_tell(&f->news, "wg0", &e, (struct wg_time){.mono = {1}});
}

static void
up_and_down_are_told_when_they_change(void **state)
{
	struct fixture *f = *state;
	struct node_news v[8];
	assert_false(news_is_up(f->peer));
	assert_true(tell(f, WG_EVENT_GAVE_UP)); /* never was up: news all the same */
	assert_false(news_is_up(f->peer));
	assert_false(tell(f, WG_EVENT_GAVE_UP));
	tell(f, WG_EVENT_SESSION);
	tell(f, WG_EVENT_HANDSHAKE);
	tell(f, WG_EVENT_SESSION); /* a new key for the old one */
	assert_true(news_is_up(f->peer));
	tell(f, WG_EVENT_EXPIRED);
	tell(f, WG_EVENT_GAVE_UP);
	assert_false(news_is_up(f->peer));
	tell(f, WG_EVENT_SESSION);
	static const enum node_news_kind want[] = {
		NODE_NEWS_PEER_DOWN, NODE_NEWS_PEER_UP, NODE_NEWS_PEER_DOWN, NODE_NEWS_PEER_UP};
	assert_int_equal(news_take(&f->news, v, 8), 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(v[i].kind, want[i]);
		assert_memory_equal(v[i].public_key, f->key, WG_KEY_LEN);
	}
	assert_true(tell(f, WG_EVENT_EXPIRED)); /* the ring was empty again */
}

static void
move_has_both_places(void **state)
{
	struct fixture *f = *state;
	struct node_news v;
	const struct endpoint at = {.addr = {IP_FAMILY_V4, {192, 0, 2, 1}}, .port = 9};
	wg_peer_set_endpoint(f->peer, &at);
	assert_true(tell(f, WG_EVENT_ENDPOINT));
	assert_int_equal(news_take(&f->news, &v, 1), 1);
	assert_int_equal(v.kind, NODE_NEWS_ENDPOINT_MOVED);
	assert_true(endpoint_is_same_remote(&v.to, &at));
	assert_int_equal(v.from.addr.family, IP_FAMILY_NONE);
}

static void
full_ring_keeps_the_oldest_and_counts_the_rest(void **state)
{
	struct fixture *f = *state;
	struct node_news v = {.kind = NODE_NEWS_ERROR};
	struct node_news *all = calloc(NEWS_MAX, sizeof(*all));
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < NEWS_MAX + 5; i++) {
			v.code = (enum weft_err)(i % 7);
			v.to.port = (uint16_t)i;
			assert_int_equal(news_put(&f->news, &v), i == 0);
		}
		assert_int_equal(news_lost(&f->news), 5 * (round + 1));
		assert_int_equal(news_take(&f->news, all, 100), 100);
		assert_int_equal(news_take(&f->news, all + 100, NEWS_MAX), NEWS_MAX - 100);
		for (unsigned i = 0; i < NEWS_MAX; i++) {
			assert_int_equal(all[i].to.port, i);
		}
		assert_int_equal(news_take(&f->news, all, 1), 0);
	}
	free(all);
}

static void
nobody_who_listens_costs_nothing(void **state)
{
	struct fixture *f = *state;
	f->news.is_kept = false;
	assert_false(tell(f, WG_EVENT_SESSION));
	assert_null(f->news.ring);
	assert_int_equal(news_lost(&f->news), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			up_and_down_are_told_when_they_change, set_up, tear_down),
		cmocka_unit_test_setup_teardown(move_has_both_places, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			full_ring_keeps_the_oldest_and_counts_the_rest, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			nobody_who_listens_costs_nothing, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

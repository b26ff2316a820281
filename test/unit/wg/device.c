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

static void
new_key(struct world *w, uint8_t key[32])
{
	rng_fill(&w->rng, key, 32);
}

static void
staged_packet_arrives_after_the_handshake(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 2, 1);
	world_meet(&w, 0, 1, true);
	world_meet(&w, 1, 0, false);
	world_send(&w, 0, 1, "first");
	assert_int_equal(w.sides[0].sent[WIRE_WG_TYPE_INITIATION], 1);
	world_run_s(&w, 0.1);
	assert_int_equal(w.sides[1].delivered, 1);
	assert_string_equal(w.sides[1].last, "first");
	world_send(&w, 1, 0, "second");
	world_run_s(&w, 0.1);
	assert_string_equal(w.sides[0].last, "second");
	assert_int_equal(w.sides[0].sent[WIRE_WG_TYPE_INITIATION], 1);
	assert_int_equal(w.sides[1].sent[WIRE_WG_TYPE_INITIATION], 0);
	world_fini(&w);
}

static void
traffic_is_counted_as_datagrams(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 2, 2);
	world_meet(&w, 0, 1, true);
	world_meet(&w, 1, 0, false);
	world_connect(&w, 0, 1); /* one padded packet each way */
	struct wg_peer_info a = world_info(&w, 0, 1), b = world_info(&w, 1, 0);
	assert_int_equal(a.tx_bytes, 148 + 48);
	assert_int_equal(a.rx_bytes, 92 + 48);
	assert_int_equal(b.rx_bytes, a.tx_bytes);
	assert_int_equal(b.tx_bytes, a.rx_bytes);
	assert_int_equal(a.tx_packets, 2);
	assert_int_equal(a.handshakes, 1);
	assert_int_equal(a.handshake_tries, 1);
	assert_int_equal(b.handshakes, 1);
	assert_int_equal(b.handshake_tries, 0);
	assert_true(a.last_handshake_wall_ns > w.wall_ns);
	assert_true(a.has_session && b.has_session);
	world_fini(&w);
}

static void
private_key_is_clamped_and_can_be_read_back(void **state)
{
	(void)state;
	struct world w;
	uint8_t key[32], out[32];
	world_init(&w, 1, 3);
	memset(key, 0xff, sizeof(key));
	wg_device_set_private_key(w.sides[0].device, key);
	assert_true(wg_device_private_key(w.sides[0].device, out));
	assert_int_equal(out[0], 0xf8);
	assert_int_equal(out[31], 0x7f);
	wg_device_set_private_key(w.sides[0].device, NULL);
	assert_false(wg_device_private_key(w.sides[0].device, out));
	assert_false(wg_device_public_key(w.sides[0].device, out));
	world_fini(&w);
}

static void
own_key_is_no_peer(void **state)
{
	(void)state;
	struct world w;
	struct wg_peer *p;
	world_init(&w, 2, 4);
	struct wg_device *d = w.sides[0].device;
	assert_int_equal(wg_peer_add(d, w.sides[0].public_key, &p), WEFT_EINVAL);
	assert_int_equal(wg_peer_add(d, w.sides[1].public_key, &p), WEFT_OK);
	assert_int_equal(wg_peer_add(d, w.sides[1].public_key, &p), WEFT_EEXIST);
	/* We take the peer's key: it is removed. */
	wg_device_set_private_key(d, w.sides[1].private_key);
	assert_int_equal(wg_device_peer_count(d), 0);
	assert_null(wg_peer_find(d, w.sides[1].public_key));
	world_fini(&w);
}

static void
new_private_key_ends_sessions_and_handshakes_start_anew(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 3, 5);
	world_meet(&w, 0, 1, true);
	world_meet(&w, 1, 0, false);
	world_connect(&w, 0, 1);
	wg_device_set_private_key(w.sides[0].device, w.sides[2].private_key);
	assert_false(world_info(&w, 0, 1).has_session);
	assert_int_equal(w.sides[0].device->index.used, 0);
	/* Side 1 knows side 0 by its new key. */
	memcpy(w.sides[0].public_key, w.sides[2].public_key, 32);
	world_meet(&w, 1, 0, false);
	world_connect(&w, 0, 1);
	world_fini(&w);
}

static void
peers_are_walked_in_order_of_addition(void **state)
{
	(void)state;
	struct world w;
	struct wg_peer *added[100];
	world_init(&w, 1, 6);
	struct wg_device *d = w.sides[0].device;
	for (int i = 0; i < 100; i++) {
		uint8_t key[32];
		new_key(&w, key);
		assert_int_equal(wg_peer_add(d, key, &added[i]), WEFT_OK);
	}
	for (int i = 0; i < 100; i += 3) {
		wg_peer_remove(d, added[i]);
		added[i] = NULL;
	}
	struct wg_peer *p = NULL;
	for (int i = 0; i < 100; i++) {
		if (added[i]) {
			p = wg_peer_next(d, p);
			assert_ptr_equal(p, added[i]);
		}
	}
	assert_null(wg_peer_next(d, p));
	world_fini(&w);
}

static void
thousands_of_peers_come_and_go(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1, 7);
	struct wg_device *d = w.sides[0].device;
	enum { N = 1 << 14 };
	uint8_t(*keys)[32] = malloc((size_t)N * 32);
	assert_non_null(keys);
	for (uint32_t i = 0; i < N; i++) {
		struct wg_peer *p;
		new_key(&w, keys[i]);
		assert_int_equal(wg_peer_add(d, keys[i], &p), WEFT_OK);
		wg_peer_set_user(p, keys[i]);
		struct ip_prefix prefix = {.addr = {.family = IP_FAMILY_V4}, .bits = 32};
		store_be32(prefix.addr.b, i);
		assert_int_equal(wg_peer_allow(d, p, &prefix), WEFT_OK);
	}
	assert_int_equal(wg_device_peer_count(d), N);
	for (uint32_t i = 0; i < N; i++) {
		struct ip_addr dst = {.family = IP_FAMILY_V4};
		store_be32(dst.b, i);
		struct wg_peer *p = wg_device_route(d, &dst);
		assert_ptr_equal(p, wg_peer_find(d, keys[i]));
		assert_ptr_equal(wg_peer_user(p), keys[i]);
		if (i % 2) {
			wg_peer_remove(d, p);
		}
	}
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(wg_peer_find(d, keys[i]) != NULL, i % 2 == 0);
	}
	assert_int_equal(wg_device_peer_count(d), N / 2);
	free(keys);
	world_fini(&w);
}

static void
idle_peer_takes_less_than_1536_bytes(void **state)
{
	(void)state;
	/* 16 bytes of the allocator, 16 of the key table, and two AllowedIPs. */
	struct world w;
	world_init(&w, 1, 8);
	struct wg_device *d = w.sides[0].device;
	uint64_t before = allowed_bytes(d->allowed);
	enum { N = 4096 };
	for (uint32_t i = 0; i < N; i++) {
		uint8_t key[32];
		struct wg_peer *p;
		new_key(&w, key);
		assert_int_equal(wg_peer_add(d, key, &p), WEFT_OK);
		struct ip_prefix v4 = {.addr = {.family = IP_FAMILY_V4, .b = {10}}, .bits = 32};
		struct ip_prefix v6 = {.addr = {.family = IP_FAMILY_V6, .b = {0xfd}}, .bits = 128};
		store_be16(v4.addr.b + 2, (uint16_t)i);
		store_be16(v6.addr.b + 14, (uint16_t)i);
		assert_int_equal(wg_peer_allow(d, p, &v4), WEFT_OK);
		assert_int_equal(wg_peer_allow(d, p, &v6), WEFT_OK);
	}
	uint64_t prefixes = (allowed_bytes(d->allowed) - before) / N;
	print_message("peer %zu, session %zu, device %zu, two prefixes %llu bytes\n",
		sizeof(struct wg_peer), sizeof(struct wg_session), sizeof(struct wg_device),
		(unsigned long long)prefixes);
	assert_true(sizeof(struct wg_peer) + 16 + 16 + prefixes < 1536);
	world_fini(&w);
}

static void
staged_packets_are_bounded_and_counted(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 3, 9);
	struct wg_device *d = w.sides[0].device;
	struct wg_peer *p = world_meet(&w, 0, 1, true), *q = world_meet(&w, 0, 2, false);
	static uint8_t packet[1500];
	w.out.drops = &w.sides[0].drops;
	for (int i = 0; i < 200; i++) {
		wg_peer_stage(d, p, packet, 100, &w.out);
	}
	assert_int_equal(world_drops(&w, 0, DROP_TX_STAGED), 72);
	assert_int_equal(world_info(&w, 0, 1).staged_packets, 128);
	assert_int_equal(world_info(&w, 0, 1).staged_bytes, 12800);
	wg_peer_stage(d, q, packet, 100, &w.out);
	assert_int_equal(world_drops(&w, 0, DROP_TX_ENDPOINT), 1);
	/* What waits for a removed peer is counted, too. */
	wg_peer_remove(d, p);
	wg_device_tick(d, world_time(&w, 0), &w.out);
	assert_int_equal(world_drops(&w, 0, DROP_TX_NO_SESSION), 128);
	world_fini(&w);
}

static void
device_dies_with_everything_under_way(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 2, 10);
	world_meet(&w, 0, 1, true);
	world_meet(&w, 1, 0, true);
	world_connect(&w, 0, 1);
	world_restart(&w, 1, 0);
	world_meet(&w, 1, 0, true);
	struct wg_peer *p = world_peer(&w, 1, 0);
	wg_peer_get(p);
	world_send(&w, 1, 0, "never arrives");
	world_restart(&w, 1, 0);
	assert_true(wg_peer_is_removed(p));
	wg_peer_put(p);
	world_fini(&w);
}

static enum weft_err
add_under_pressure(struct world *w, uint32_t n)
{
	struct wg_device *d = w->sides[0].device;
	for (uint32_t i = 0; i < n; i++) {
		uint8_t key[32] = {1};
		struct wg_peer *p;
		store_be32(key + 4, i);
		enum weft_err e = wg_peer_add(d, key, &p);
		if (e) {
			return e;
		}
	}
	return WEFT_OK;
}

static void
peers_have_a_ceiling(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1, 11);
	struct wg_device *d = w.sides[0].device;
	assert_int_equal(add_under_pressure(&w, 1000), WEFT_OK);
	/* Adding a million takes a gigabyte; the count alone is enough to meet the ceiling. */
	size_t n = d->roster.n;
	d->roster.n = WG_PEERS_MAX;
	struct wg_peer *p;
	uint8_t key[32] = {2};
	assert_int_equal(wg_peer_add(d, key, &p), WEFT_ENOMEM);
	d->roster.n = n;
	assert_int_equal(wg_peer_add(d, key, &p), WEFT_OK);
	world_fini(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(staged_packet_arrives_after_the_handshake),
		cmocka_unit_test(traffic_is_counted_as_datagrams),
		cmocka_unit_test(private_key_is_clamped_and_can_be_read_back),
		cmocka_unit_test(own_key_is_no_peer),
		cmocka_unit_test(new_private_key_ends_sessions_and_handshakes_start_anew),
		cmocka_unit_test(peers_are_walked_in_order_of_addition),
		cmocka_unit_test(thousands_of_peers_come_and_go),
		cmocka_unit_test(idle_peer_takes_less_than_1536_bytes),
		cmocka_unit_test(staged_packets_are_bounded_and_counted),
		cmocka_unit_test(device_dies_with_everything_under_way),
		cmocka_unit_test(peers_have_a_ceiling),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Handshake pressure on one device, with clients that are no more than the handshake. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "crypto/crypto.h"
#include "wg/cookie.h"
#include "wg/noise.h"
#include "wg/timer.h"
#include "world.h"

/* A stock client: sends, waits 5 s and jitter, sends again, with a cookie when it got one. */
struct client {
	struct wg_noise_identity identity;
	struct wg_noise_remote server;
	struct wg_noise_pending pending;
	struct wg_cookie_jar jar;
	struct endpoint at;
	int64_t next_ns; /* when it sends (again); INT64_MAX = connected */
	int64_t connected_ns;
	uint32_t sent;
};

struct flood {
	struct world w;
	struct crypto *crypto;
	struct client *clients;
	uint32_t n;
	uint32_t connected;
	uint64_t replies; /* cookie replies to nobody we know */
};

static void
flood_init(struct flood *f, uint32_t n, uint64_t seed)
{
	memset(f, 0, sizeof(*f));
	world_init(&f->w, 2, seed);
	world_meet(&f->w, 0, 1, true);
	world_meet(&f->w, 1, 0, false);
	assert_int_equal(crypto_new(&f->crypto), WEFT_OK);
	f->clients = calloc(n, sizeof(*f->clients));
	assert_non_null(f->clients);
	f->n = n;
	for (uint32_t i = 0; i < n; i++) {
		struct client *c = &f->clients[i];
		uint8_t key[32];
		struct wg_peer *p;
		rng_fill(&f->w.rng, key, sizeof(key));
		assert_int_equal(wg_noise_identity_set(f->crypto, &c->identity, key), WEFT_OK);
		memcpy(c->server.public_key, f->w.sides[1].public_key, 32);
		assert_int_equal(
			wg_peer_add(f->w.sides[1].device, c->identity.public_key, &p), WEFT_OK);
		c->next_ns = INT64_MAX;
	}
}

static void
flood_fini(struct flood *f)
{
	free(f->clients);
	crypto_free(f->crypto);
	world_fini(&f->w);
}

/* What side 1 sends in answer to one datagram, to whom it may concern. */
static void
deliver(struct flood *f, struct client *c, const uint8_t *bytes, size_t len)
{
	struct wire_wg_response r;
	struct wire_wg_cookie_reply reply;
	struct wg_noise_keys keys;
	if (wire_wg_cookie_reply_decode(bytes, len, &reply)) {
		assert_true(wg_cookie_jar_take(
			f->crypto, &c->jar, c->server.public_key, f->w.now, &reply));
	} else if (wire_wg_response_decode(bytes, len, &r)) {
		assert_int_equal(wg_noise_open_response(f->crypto, &c->identity, &c->server,
					 &c->pending, &r, &keys),
			WEFT_OK);
		c->next_ns = INT64_MAX;
		c->connected_ns = f->w.now.ns;
		f->connected++;
	}
}

/* A datagram straight into side 1; what comes out goes to c, or to nobody. */
static void
shoot(struct flood *f, struct client *c, const struct endpoint *from, const uint8_t *msg)
{
	struct world *w = &f->w;
	w->out.drops = &w->sides[1].drops;
	wg_device_handle(
		w->sides[1].device, world_time(w, 1), msg, WIRE_WG_INITIATION_LEN, from, &w->out);
	for (size_t i = 0; i < w->out.msgs_n; i++) {
		const struct wg_msg *m = &w->out.msgs[i];
		if (c && endpoint_is_same_remote(&m->to, from)) {
			deliver(f, c, m->bytes, m->len);
		} else {
			f->replies++;
		}
	}
	w->out.msgs_n = 0;
	w->out.events_n = 0;
}

static void
client_send(struct flood *f, struct client *c)
{
	struct world *w = &f->w;
	uint8_t bytes[WIRE_WG_INITIATION_LEN], stamp[WIRE_WG_STAMP_LEN] = {0x40};
	struct wire_wg_initiation m = {.sender = (uint32_t)rng_u64(&w->rng)};
	store_be64(stamp + 4, (uint64_t)w->now.ns);
	rng_fill(&w->rng, c->pending.ephemeral_private, 32);
	assert_int_equal(
		wg_noise_initiate(f->crypto, &c->identity, &c->server, &c->pending, stamp, &m),
		WEFT_OK);
	wire_wg_initiation_encode(&m, bytes);
	wg_cookie_jar_sign(f->crypto, &c->jar, c->server.public_key, w->now, bytes, sizeof(bytes));
	c->next_ns = w->now.ns + WG_REKEY_TIMEOUT_NS +
		     (int64_t)rng_below(&w->rng, WG_REKEY_TIMEOUT_JITTER_NS);
	c->sent++;
	shoot(f, c, &c->at, bytes);
}

/* An initiation with a right mac1 and rubbish inside. */
static void
forge(struct flood *f, const struct endpoint *from)
{
	uint8_t bytes[WIRE_WG_INITIATION_LEN];
	struct wg_cookie_jar jar = {0};
	rng_fill(&f->w.rng, bytes, sizeof(bytes));
	store_le32(bytes, WIRE_WG_TYPE_INITIATION);
	wg_cookie_jar_sign(
		f->crypto, &jar, f->w.sides[1].public_key, f->w.now, bytes, sizeof(bytes));
	shoot(f, NULL, from, bytes);
}

static struct endpoint
random_source(struct rng *rng)
{
	uint64_t r = rng_u64(rng);
	struct endpoint e = {.addr = {.family = IP_FAMILY_V4}, .port = (uint16_t)(r >> 32)};
	store_be32(e.addr.b, (uint32_t)r);
	return e;
}

/* Every client that is due sends; the others' time is found by looking, there are few. */
static void
run_clients_until(struct flood *f, int64_t end_ns)
{
	for (;;) {
		struct client *first = NULL;
		for (uint32_t i = 0; i < f->n; i++) {
			struct client *c = &f->clients[i];
			if (c->next_ns <= end_ns && (!first || c->next_ns < first->next_ns)) {
				first = c;
			}
		}
		if (!first) {
			break;
		}
		f->w.now.ns = first->next_ns;
		client_send(f, first);
	}
	f->w.now.ns = end_ns;
}

static void
two_thousand_clients_behind_one_address_connect_within_30_s(void **state)
{
	(void)state;
	struct flood f;
	flood_init(&f, 2000, 1);
	int64_t start = f.w.now.ns;
	for (uint32_t i = 0; i < f.n; i++) {
		f.clients[i].at = world_endpoint(200, (uint16_t)(1024 + i));
		f.clients[i].next_ns =
			start + (int64_t)rng_below(&f.w.rng, (uint64_t)WEFT_NS_PER_S);
	}
	run_clients_until(&f, start + 11 * WEFT_NS_PER_S);
	uint32_t most = 0;
	for (uint32_t i = 0; i < f.n; i++) {
		most = f.clients[i].sent > most ? f.clients[i].sent : most;
	}
	print_message("2000 clients: connected %u after 11 s, at most %u initiations\n",
		f.connected, most);
	assert_int_equal(f.connected, f.n);
	/* It was too much at once, or this tests nothing. */
	assert_true(world_drops(&f.w, 1, DROP_HS_MAC2) > 100);
	flood_fini(&f);
}

/* 50,000 forged initiations a second, from one port, from one address, or from anywhere. */
enum attacker { ONE_PORT, ONE_ADDRESS, ANYWHERE };

static void
flood_with(enum attacker attacker)
{
	struct flood f;
	flood_init(&f, 20, 2 + (uint64_t)attacker);
	struct world *w = &f.w;
	world_connect(w, 0, 1);
	int64_t start = w->now.ns;
	uint64_t delivered = w->sides[1].delivered, sent = 0;
	for (uint32_t i = 0; i < f.n; i++) {
		/* Clients live behind the attacker's own address. */
		f.clients[i].at = world_endpoint(200, (uint16_t)(1024 + i));
		f.clients[i].next_ns = start + (int64_t)(i + 1) * 100 * WEFT_NS_PER_MS;
	}
	/* 7.5 s, long enough for a second attempt of everybody. */
	for (int ms = 0; ms < 7500; ms++) {
		for (int k = 0; k < 50; k++) {
			struct endpoint from = world_endpoint(200, 1);
			if (attacker == ONE_ADDRESS) {
				from.port = (uint16_t)rng_u64(&w->rng);
			} else if (attacker == ANYWHERE) {
				from = random_source(&w->rng);
			}
			w->now.ns = start + ms * WEFT_NS_PER_MS + k * 20 * WEFT_NS_PER_US;
			forge(&f, &from);
		}
		run_clients_until(&f, start + (ms + 1) * WEFT_NS_PER_MS);
		if (ms % 10 == 0) {
			world_send(w, 0, 1, "through the flood");
			sent++;
		}
		world_run_ns(w, 0);
	}
	world_run_s(w, 0.1);
	print_message("attacker %d: %u of %u connected, %llu cookie replies to forgers, %llu curve "
		      "operations wasted\n",
		attacker, f.connected, f.n, (unsigned long long)f.replies,
		(unsigned long long)world_drops(w, 1, DROP_HS_AUTH));
	assert_true(wg_device_is_under_load(w->sides[1].device, w->now));
	assert_int_equal(w->sides[1].delivered, delivered + sent);
	assert_int_equal(f.connected, f.n);
	assert_true(world_drops(w, 1, DROP_HS_AUTH) < 500);
	if (attacker == ONE_PORT) {
		assert_true(f.replies < 20 + 20 * 8 + 10);
	}
	flood_fini(&f);
}

static void
flood_from_one_port_shuts_nobody_out(void **state)
{
	(void)state;
	flood_with(ONE_PORT);
}

static void
flood_from_all_ports_of_a_clients_address_shuts_nobody_out(void **state)
{
	(void)state;
	flood_with(ONE_ADDRESS);
}

static void
flood_from_forged_addresses_shuts_nobody_out(void **state)
{
	(void)state;
	flood_with(ANYWHERE);
}

static void
cookie_holders_are_limited_too(void **state)
{
	(void)state;
	struct flood f;
	flood_init(&f, 1, 9);
	struct world *w = &f.w;
	struct client *c = &f.clients[0];
	c->at = world_endpoint(200, 7);
	while (!wg_device_is_under_load(w->sides[1].device, w->now)) {
		struct endpoint from = random_source(&w->rng);
		forge(&f, &from);
	}
	client_send(&f, c); /* gets a cookie */
	assert_true(c->jar.has_cookie);
	uint64_t before = world_drops(w, 1, DROP_HS_AUTH);
	for (int i = 0; i < 10000; i++) {
		uint8_t bytes[WIRE_WG_INITIATION_LEN];
		rng_fill(&w->rng, bytes, sizeof(bytes));
		store_le32(bytes, WIRE_WG_TYPE_INITIATION);
		wg_cookie_jar_sign(
			f.crypto, &c->jar, c->server.public_key, w->now, bytes, sizeof(bytes));
		shoot(&f, NULL, &c->at, bytes);
		w->now.ns += 20 * WEFT_NS_PER_US;
	}
	assert_in_range(world_drops(w, 1, DROP_HS_AUTH) - before, 200, 225);
	assert_true(world_drops(w, 1, DROP_HS_RATE) > 9000);
	flood_fini(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_thousand_clients_behind_one_address_connect_within_30_s),
		cmocka_unit_test(flood_from_one_port_shuts_nobody_out),
		cmocka_unit_test(flood_from_all_ports_of_a_clients_address_shuts_nobody_out),
		cmocka_unit_test(flood_from_forged_addresses_shuts_nobody_out),
		cmocka_unit_test(cookie_holders_are_limited_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/endian.h"
#include "crypto/aead_backend.h"
#include "os/clock.h"
#include "os/thread.h"
#include "node/troubles.h"
#include "pair.h"
#include "wg/engine.h"

static struct wg_time
at_s(int64_t s)
{
	return (struct wg_time){{s * WEFT_NS_PER_S}, (1700000000 + s) * WEFT_NS_PER_S};
}

static void
worker_delivers_what_waited_for_the_handshake_in_order(void **state)
{
	(void)state;
	struct pair p;
	pair_init(&p, 1, 1);
	for (uint32_t seq = 0; seq < 100; seq++) {
		assert_true(pair_inject(&p, 0, 0, 1, seq, 36 + seq));
	}
	pair_run(&p, at_s(1), 20);
	for (uint32_t want = 0; want < 100; want++) {
		uint16_t flow;
		uint32_t seq, len;
		assert_true(pair_take(&p, 1, 0, &flow, &seq, &len));
		assert_int_equal(seq, want);
		assert_int_equal(len, 36 + want);
	}
	pair_fini(&p);
}

static void
worker_dates_drops_by_the_turn_that_made_them(void **state)
{
	(void)state;
	struct pair p;
	struct troubles troubles;
	struct wg_troubles noted;
	pair_init(&p, 1, 7);
	troubles_init(&troubles);
	struct worker *w = p.node[0].w[0];
	w->env.troubles = &troubles;
	uint8_t nowhere[20] = {0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 9, 9, 9};
	struct frame frame = {.data = nowhere, .len = 20};
	for (int i = 0; i < 3; i++) {
		assert_true(port_mem_inject(w->port, &frame));
	}
	worker_turn(w, at_s(5), WORKER_READY_PORT);
	worker_turn(w, at_s(100), WORKER_READY_PORT); /* an hour or a moment later is the same */
	const struct drop_time *t = &w->dropped.of[DROP_TX_ROUTE];
	assert_int_equal(t->n, 3);
	assert_int_equal(t->latest.ns, at_s(5).mono.ns);
	/* Of three in a turn one is noted in particular. */
	troubles_copy(&troubles, &noted);
	assert_int_equal(noted.n, 1);
	assert_int_equal(noted.v[0].kind, WG_TROUBLE_ROUTE);
	assert_int_equal(noted.v[0].n, 1);
	assert_memory_equal(noted.v[0].at.addr.b, nowhere + 16, 4);
	pair_fini(&p);
	troubles_fini(&troubles);
}

static void
worker_counts_what_it_cannot_route_or_parse(void **state)
{
	(void)state;
	struct pair p;
	pair_init(&p, 1, 2);
	struct worker *w = p.node[0].w[0];
	uint8_t nowhere[20] = {0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 9, 9, 9};
	uint8_t garbage[40] = {0x75};
	struct frame frames[] = {{.data = nowhere, .len = 20}, {.data = garbage, .len = 40},
		{.data = nowhere, .len = 1}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(frames); i++) {
		assert_true(port_mem_inject(w->port, &frames[i]));
	}
	pair_run(&p, at_s(1), 2);
	assert_int_equal(w->stats.drops.n[DROP_TX_ROUTE], 1);
	assert_int_equal(w->stats.drops.n[DROP_TX_INNER], 2);
	pair_fini(&p);
}

static void
send_raw(struct pair *p, unsigned from, uint8_t *data, uint32_t len, uint16_t seg)
{
	struct endpoint to = {.addr = {IP_FAMILY_V4, {192, 0, 2, 9}}, .port = 1};
	struct link_run r = {.to = &to, .data = data, .len = len, .seg = seg};
	struct link *l = p->node[from].w[0]->link;
	l->ops->send(l, &r, 1);
}

static void
worker_counts_every_malformed_datagram_and_opens_the_rest_of_the_batch(void **state)
{
	(void)state;
	struct pair p;
	pair_init(&p, 1, 3);
	assert_true(pair_inject(&p, 0, 0, 1, 0, 100));
	pair_run(&p, at_s(1), 20);
	uint16_t flow;
	uint32_t seq, len;
	assert_true(pair_take(&p, 1, 0, &flow, &seq, &len));

	uint8_t bytes[64] = {0};
	send_raw(&p, 0, bytes, 3, 3);   /* too short for a type */
	send_raw(&p, 0, bytes, 40, 40); /* type 0 */
	bytes[0] = 4;
	send_raw(&p, 0, bytes, 20, 20); /* data without room for its tag */
	send_raw(&p, 0, bytes, 48, 48); /* data for an index that nobody has */
	bytes[1] = 1;
	send_raw(&p, 0, bytes, 48, 48); /* the same, marked as of the other cipher */
	bytes[1] = 2;
	send_raw(&p, 0, bytes, 48, 48); /* reserved bits */
	bytes[0] = 1;
	bytes[1] = 0;
	send_raw(&p, 0, bytes, 64, 64); /* initiation of a wrong length */
	assert_true(pair_inject(&p, 0, 0, 1, 1, 100));
	pair_run(&p, at_s(1), 4);
	assert_true(pair_take(&p, 1, 0, &flow, &seq, &len));
	assert_int_equal(seq, 1);
	const struct drop_counts *d = &p.node[1].w[0]->stats.drops;
	assert_int_equal(d->n[DROP_RX_SHORT], 3);
	assert_int_equal(d->n[DROP_RX_TYPE], 2);
	assert_int_equal(d->n[DROP_RX_INDEX], 2);
	pair_fini(&p);
}

static struct wg_session *
session_at(struct pair *p, unsigned i)
{
	return wg_peer_next(p->node[i].device, NULL)->current;
}

static void
worker_seals_with_the_cipher_that_is_set_and_opens_both_in_one_batch(void **state)
{
	(void)state;
	enum { PACKETS = 100 };
	struct pair p;
	uint16_t flow;
	uint32_t seq, len;
	pair_init(&p, 1, 13);
	assert_true(pair_inject(&p, 0, 0, 1, 0, 100));
	pair_run(&p, at_s(1), 20);
	assert_true(pair_take(&p, 1, 0, &flow, &seq, &len));

	struct worker *from = p.node[0].w[0];
	const struct drop_counts *d = &p.node[1].w[0]->stats.drops;
	wg_session_set_send_cipher(session_at(&p, 0), AEAD_CIPHER_AES_256_GCM);
	assert_true(pair_inject(&p, 0, 0, 1, 1, 100));
	pair_run(&p, at_s(1), 4);
	assert_false(pair_take(&p, 1, 0, &flow, &seq, &len));
	assert_int_equal(d->n[DROP_RX_TYPE], 1); /* it is not allowed yet */

	/* 1 to 5 packets a cipher, and all on the wire before the other node looks. */
	wg_session_allow_cipher(session_at(&p, 1), AEAD_CIPHER_AES_256_GCM);
	for (uint32_t i = 0, run = 0; i < PACKETS; run++) {
		wg_session_set_send_cipher(session_at(&p, 0),
			run % 2 == 0 ? AEAD_CIPHER_AES_256_GCM : AEAD_CIPHER_CHACHA20_POLY1305);
		for (uint32_t k = 0; k <= run % 5 && i < PACKETS; k++, i++) {
			assert_true(pair_inject(&p, 0, 0, 1, 2 + i, 36 + i));
		}
		worker_turn(from, at_s(1), WORKER_READY_PORT);
	}
	pair_run(&p, at_s(1), 20);
	for (uint32_t i = 0; i < PACKETS; i++) {
		assert_true(pair_take(&p, 1, 0, &flow, &seq, &len));
		assert_int_equal(seq, 2 + i);
		assert_int_equal(len, 36 + i);
	}
	assert_int_equal(d->n[DROP_RX_AUTH], 0);
	assert_int_equal(d->n[DROP_RX_REPLAY], 0);
	pair_fini(&p);
}

/* Sealed, the longest packets are longer than the length of a datagram can say. */
static void
worker_counts_packets_that_no_datagram_can_carry(void **state)
{
	(void)state;
	static const uint32_t lens[] = {100, 65488, 65489, 65504, 65535, 100};
	struct pair p;
	pair_init(&p, 1, 6);
	struct worker *w = p.node[0].w[0];
	w->port->mtu = UINT16_MAX;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(lens); i++) {
		uint8_t packet[65535] = {
			0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2};
		store_be16(packet + 2, (uint16_t)lens[i]);
		struct frame f = {.data = packet, .len = lens[i]};
		assert_true(port_mem_inject(w->port, &f));
		pair_run(&p, at_s(1), 20);
	}
	assert_int_equal(w->stats.drops.n[DROP_LINK_MSGSIZE], 3);
	assert_int_equal(p.node[1].w[0]->port->stats.tx_frames, 3);
	for (size_t i = 0; i < DROP_COUNT; i++) {
		assert_int_equal(p.node[1].w[0]->stats.drops.n[i], 0);
	}
	pair_fini(&p);
}

static void
worker_drops_its_own_outer_packets_that_are_routed_into_the_tunnel(void **state)
{
	(void)state;
	struct pair p;
	pair_init(&p, 1, 4);
	struct worker *w = p.node[0].w[0];
	/* The peer's endpoint inside its own AllowedIPs: the classic loop. */
	uint8_t key[WG_KEY_LEN];
	assert_true(wg_device_public_key(p.node[1].device, key));
	struct ip_prefix all = {{IP_FAMILY_V4, {0}}, 0};
	assert_int_equal(wg_peer_allow(p.node[0].device, wg_peer_find(p.node[0].device, key), &all),
		WEFT_OK);
	uint8_t packet[60] = {0x45, 0, 0, 60, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2};
	store_be16(packet + 20, 51820);
	store_be16(packet + 22, 51820);
	store_be16(packet + 24, 40);
	packet[28] = 4;
	struct frame f = {.data = packet, .len = 60};
	assert_true(port_mem_inject(w->port, &f));
	store_be16(packet + 20, 40000); /* another program's packet to the same place is not ours */
	assert_true(port_mem_inject(w->port, &f));
	pair_run(&p, at_s(1), 2);
	assert_int_equal(w->stats.drops.n[DROP_TX_LOOP], 1);
	pair_fini(&p);
}

/* Node 1 answers an initiation, and loses sight of its maker before it can answer a packet. */
static void
worker_asks_for_a_handshake_though_packets_wait_already(void **state)
{
	(void)state;
	struct pair p;
	pair_init(&p, 1, 5);
	uint8_t key[WG_KEY_LEN];
	assert_true(wg_device_public_key(p.node[0].device, key));
	struct wg_peer *peer = wg_peer_find(p.node[1].device, key);
	struct endpoint at = wg_peer_endpoint(peer);
	wg_peer_set_endpoint(peer, &(struct endpoint){0});
	assert_true(pair_inject(&p, 0, 0, 1, 0, 100));
	pair_run(&p, at_s(1), 1);
	assert_true(pair_inject(&p, 1, 0, 1, 0, 100)); /* waits for the session's first use */
	struct link *l = p.node[0].w[0]->link;
	struct link_rx rx;
	size_t n;
	worker_turn(p.node[1].w[0], at_s(1), WORKER_READY_PORT);
	assert_int_equal(l->ops->receive(l, &rx, 1, &n), WEFT_OK); /* the response is lost */
	wg_peer_set_endpoint(peer, &at);
	pair_run(&p, at_s(2), 4);
	assert_true(pair_inject(&p, 1, 0, 1, 1, 100));
	pair_run(&p, at_s(2), 4);
	for (uint32_t want = 0; want < 2; want++) {
		uint16_t flow;
		uint32_t seq, len;
		assert_true(pair_take(&p, 0, 0, &flow, &seq, &len));
		assert_int_equal(seq, want);
	}
	pair_fini(&p);
}

struct mail {
	struct wg_out out;
	struct wg_msg msgs[4];
	struct wg_event events[8];
	struct drop_counts drops;
};

static void
mail_init(struct mail *m, struct worker *w)
{
	memset(m, 0, sizeof(*m));
	m->out = (struct wg_out){.msgs = m->msgs,
		.msgs_cap = WEFT_ARRAY_LEN(m->msgs),
		.events = m->events,
		.events_cap = WEFT_ARRAY_LEN(m->events),
		.drops = &m->drops};
	w->env.mail = &m->out;
}

static void
mail_leaves_with_whoever_has_the_lock_next(void **state)
{
	(void)state;
	struct pair p;
	struct mail m;
	pair_init(&p, 1, 7);
	struct worker *w = p.node[0].w[0];
	mail_init(&m, w);
	m.msgs[0] = (struct wg_msg){
		.to = {.addr = {IP_FAMILY_V4, {192, 0, 2, 2}}, .port = 51820}, .len = 40};
	m.out.msgs_n = 1;
	assert_true(pair_inject(&p, 0, 0, 1, 0, 100)); /* asks for a handshake, under the lock */
	worker_turn(w, at_s(1), WORKER_READY_PORT);
	assert_int_equal(m.out.msgs_n, 0);
	assert_int_equal(w->link->stats.tx_datagrams, 2);
	pair_fini(&p);
}

/* The response is handled by control, whose news of the session is all there is. */
static void
session_in_the_mail_sends_what_waited_for_it(void **state)
{
	(void)state;
	struct pair p;
	struct mail m;
	pair_init(&p, 1, 8);
	struct worker *w = p.node[0].w[0];
	mail_init(&m, w);
	assert_true(pair_inject(&p, 0, 0, 1, 0, 100));
	worker_turn(w, at_s(1), WORKER_READY_PORT);
	worker_turn(p.node[1].w[0], at_s(1), WORKER_READY_LINK);
	struct link_rx rx;
	size_t n;
	assert_int_equal(w->link->ops->receive(w->link, &rx, 1, &n), WEFT_OK);
	wg_device_handle(p.node[0].device, at_s(1), rx.data, rx.len, &rx.from, &m.out);
	assert_int_equal(m.out.events_n, 1);
	assert_int_equal(m.events[0].kind, WG_EVENT_SESSION);
	wg_peer_get(m.events[0].peer);
	atomic_store(&p.node[0].deadline_ns, 0);
	pair_run(&p, at_s(1), 2);
	uint16_t flow;
	uint32_t seq, len;
	assert_true(pair_take(&p, 1, 0, &flow, &seq, &len));
	pair_fini(&p);
}

/* A port that looks where a peer is when the packet is handed over. */
struct probe_port {
	struct port base;
	const struct wg_peer *peer;
	struct endpoint seen;
};

static enum weft_err
probe_receive(struct port *p, uint8_t *buf, size_t cap, struct frame *f)
{
	(void)p;
	(void)buf;
	(void)cap;
	(void)f;
	return WEFT_EAGAIN;
}

static void
probe_send(struct port *p, const struct gro_out *out)
{
	struct probe_port *probe = WEFT_CONTAINER_OF(p, struct probe_port, base);
	assert_int_equal(out->frames_n, 1);
	probe->seen = wg_peer_endpoint(probe->peer);
}

/* The sender's second worker has another address. */
static void
peer_has_moved_before_its_packet_can_be_answered(void **state)
{
	(void)state;
	struct pair p;
	pair_init(&p, 2, 9);
	uint8_t key[WG_KEY_LEN];
	assert_true(wg_device_public_key(p.node[0].device, key));
	const struct port_ops ops = {.receive = probe_receive, .send = probe_send};
	struct probe_port probe = {
		.base = {.ops = &ops, .mtu = 1420}, .peer = wg_peer_find(p.node[1].device, key)};
	assert_true(pair_inject(&p, 0, 0, 1, 0, 100));
	pair_run(&p, at_s(1), 20);
	struct endpoint was = wg_peer_endpoint(probe.peer);
	struct worker *w = p.node[1].w[1];
	struct port *old_port = w->port;
	w->port = &probe.base;
	assert_true(pair_inject(&p, 0, 1, 1, 1, 100));
	pair_run(&p, at_s(2), 4);
	w->port = old_port;
	assert_int_equal(probe.seen.addr.family, IP_FAMILY_V4);
	assert_false(endpoint_is_same_remote(&probe.seen, &was));
	struct endpoint is = wg_peer_endpoint(probe.peer);
	assert_true(endpoint_is_same_remote(&probe.seen, &is));
	pair_fini(&p);
}

/* A port and a link that never run dry of what is dropped. */
#define JUNK_MAX 200000u

struct junk_port {
	struct port base;
	unsigned frames;
};

struct junk_link {
	struct link base;
	unsigned datagrams;
	uint8_t data[1000];
};

static enum weft_err
junk_frame(struct port *p, uint8_t *buf, size_t cap, struct frame *f)
{
	static const uint8_t nowhere[20] = {
		0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 9, 9, 9};
	struct junk_port *j = WEFT_CONTAINER_OF(p, struct junk_port, base);
	assert_true(cap >= sizeof(nowhere));
	memcpy(buf, nowhere, sizeof(nowhere));
	*f = (struct frame){.data = buf, .len = sizeof(nowhere)};
	return j->frames++ < JUNK_MAX ? WEFT_OK : WEFT_EAGAIN;
}

static enum weft_err
junk_datagrams(struct link *l, struct link_rx *rx, size_t cap, size_t *n)
{
	struct junk_link *j = WEFT_CONTAINER_OF(l, struct junk_link, base);
	for (size_t i = 0; i < cap; i++) {
		rx[i] = (struct link_rx){.data = j->data, .len = sizeof(j->data), .seg = 20};
		j->datagrams += sizeof(j->data) / 20;
	}
	*n = cap;
	return j->datagrams < JUNK_MAX ? WEFT_OK : WEFT_EAGAIN;
}

static void
check_turn_ends_under_junk(unsigned workers)
{
	struct pair p;
	pair_init(&p, workers, 6);
	const struct port_ops port_ops = {.receive = junk_frame};
	const struct link_ops link_ops = {.receive = junk_datagrams};
	struct junk_port port = {.base = {.ops = &port_ops, .mtu = 1420}};
	struct junk_link link = {.base = {.ops = &link_ops}};
	struct worker *w = p.node[0].w[0];
	struct port *old_port = w->port;
	struct link *old_link = w->link;
	w->port = &port.base;
	w->link = &link.base;
	unsigned more = worker_turn(w, at_s(1), WORKER_READY_LINK | WORKER_READY_PORT);
	assert_int_equal(more, WORKER_READY_LINK | WORKER_READY_PORT);
	assert_in_range(port.frames, 1, 5000);
	assert_in_range(link.datagrams, 1, 10000);
	assert_int_equal(w->stats.drops.n[DROP_TX_ROUTE], port.frames);
	w->port = old_port;
	w->link = old_link;
	pair_fini(&p);
}

static void
turn_ends_while_junk_keeps_coming(void **state)
{
	(void)state;
	check_turn_ends_under_junk(1);
}

static void
turn_of_a_crew_ends_while_junk_keeps_coming(void **state)
{
	(void)state;
	check_turn_ends_under_junk(2);
}

static unsigned forgotten; /* calls of the spy */

static void
count_forget(struct aead *a)
{
	(void)a;
	forgotten++;
}

static void
worker_lets_go_of_keys_that_were_idle_for_ten_seconds(void **state)
{
	(void)state;
	struct pair p;
	pair_init(&p, 1, 8);
	struct worker *w = p.node[0].w[0];
	const struct aead_backend_ops *real = w->aead->ops;
	struct aead_backend_ops spy = *real;
	spy.forget = count_forget;
	w->aead->ops = &spy;
	forgotten = 0;
	assert_int_equal(worker_rest(w, at_s(1).mono).ns, MONO_NEVER.ns);
	assert_true(pair_inject(&p, 0, 0, 1, 0, 100));
	pair_run(&p, at_s(1), 20);
	assert_int_equal(worker_rest(w, at_s(1).mono).ns, at_s(11).mono.ns);
	assert_true(pair_inject(&p, 0, 0, 1, 1, 100));
	pair_run(&p, at_s(4), 20);
	assert_int_equal(worker_rest(w, at_s(4).mono).ns, at_s(11).mono.ns);
	assert_int_equal(worker_rest(w, at_s(11).mono).ns, at_s(14).mono.ns);
	assert_int_equal(forgotten, 0);
	assert_int_equal(worker_rest(w, at_s(14).mono).ns, MONO_NEVER.ns);
	assert_int_equal(forgotten, 1);
	w->aead->ops = real;
	pair_fini(&p);
}

struct turner {
	struct os_thread thread;
	struct pair_node *node;
	unsigned index;
	_Atomic bool *stop;
};

static void
turn(void *arg)
{
	struct turner *t = arg;
	struct worker *w = t->node->w[t->index];
	while (!atomic_load_explicit(t->stop, memory_order_relaxed)) {
		struct wg_time now = {os_clock_mono(), os_clock_wall_ns()};
		if (t->index == 0 && atomic_load(&t->node->deadline_ns) <= now.mono.ns) {
			worker_tick(w, now);
		}
		if (worker_turn(w, now, WORKER_READY_LINK | WORKER_READY_PORT) == 0) {
			os_thread_yield();
		}
	}
}

/* Flows spread over `ports` of the four workers' ports; every one arrives whole and in order. */
static void
check_order(unsigned ports, uint64_t seed, uint32_t packets)
{
	struct pair p;
	pair_init(&p, 4, seed);
	_Atomic bool stop = false;
	struct turner turners[2][4];
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < 4; k++) {
			turners[i][k] =
				(struct turner){.node = &p.node[i], .index = k, .stop = &stop};
			assert_int_equal(os_thread_start(&turners[i][k].thread, "turn", 0, turn,
						 &turners[i][k]),
				WEFT_OK);
		}
	}
	uint32_t sent[4] = {0}, got[4] = {0};
	uint32_t total = 0;
	struct mono give_up = mono_add_ns(os_clock_mono(), 120 * WEFT_NS_PER_S);
	struct rng r;
	rng_init(&r, seed);
	while (total < packets * ports && mono_is_before(os_clock_mono(), give_up)) {
		for (uint16_t f = 0; f < ports; f++) {
			/* What waits for the session leaves by whichever worker brings it up, and
			 * here, unlike between sockets of one port, each worker has a path of its
			 * own. So one packet of each flow goes first. */
			while (sent[f] < packets &&
				sent[f] - got[f] < (total < ports ? 1u : 400u) &&
				pair_inject(
					&p, 0, f, f, sent[f], 36 + (uint32_t)rng_below(&r, 1384))) {
				sent[f]++;
			}
		}
		for (unsigned k = 0; k < 4; k++) {
			uint16_t flow;
			uint32_t seq, len;
			while (pair_take(&p, 1, k, &flow, &seq, &len)) {
				if (seq != got[flow]) {
					fail_msg("seed %llu flow %u: packet %u came in place of %u",
						(unsigned long long)seed, flow, seq, got[flow]);
				}
				got[flow]++;
				total++;
			}
		}
		os_thread_yield();
	}
	atomic_store(&stop, true);
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < 4; k++) {
			os_thread_join(&turners[i][k].thread);
		}
	}
	assert_int_equal(total, packets * ports);
	pair_fini(&p);
}

static void
crew_of_four_never_reorders_one_flow(void **state)
{
	(void)state;
	check_order(1, 11, 20000);
}

static void
crew_of_four_never_reorders_any_of_four_flows(void **state)
{
	(void)state;
	check_order(4, 12, 5000);
}

/* A link on which something always comes: runs of datagrams of an unknown type. */
struct endless_link {
	struct link link;
	uint64_t given;
	uint8_t bytes[16 * 100];
};

static enum weft_err
endless_receive(struct link *l, struct link_rx *rx, size_t cap, size_t *n)
{
	struct endless_link *e = WEFT_CONTAINER_OF(l, struct endless_link, link);
	for (size_t i = 0; i < cap; i++) {
		rx[i] = (struct link_rx){.data = e->bytes, .len = sizeof(e->bytes) - 1, .seg = 16};
	}
	*n = cap;
	e->given += cap * 100;
	return WEFT_OK;
}

static void
endless_close(struct link *l)
{
	(void)l;
}

static void
swapped_link_is_emptied_first(void **state)
{
	(void)state;
	for (unsigned workers = 1; workers <= 2; workers++) {
		struct pair p;
		pair_init(&p, workers, 20 + workers);
		assert_true(pair_inject(&p, 0, 0, 1, 0, 100));
		pair_run(&p, at_s(1), 20);
		uint16_t flow;
		uint32_t seq, len, want = 1;
		assert_true(pair_take(&p, 1, 0, &flow, &seq, &len));
		/* Two jobs and a half lie unread at node 1. */
		for (; want <= 640; want++) {
			assert_true(pair_inject(&p, 0, 0, 1, want, 100));
			worker_turn(p.node[0].w[0], at_s(1), WORKER_READY_PORT);
		}
		const struct endpoint at[2] = {{.port = 1}, {.port = 2}};
		struct link *fresh[2];
		assert_int_equal(link_mem_pair(1 << 16, at, fresh), WEFT_OK);
		struct worker *w = p.node[1].w[0];
		struct link *old = worker_swap_link(w, fresh[0], at_s(1));
		assert_ptr_equal(w->link, fresh[0]);
		assert_int_equal(w->stats.drops.n[DROP_RX_REBIND], 0);
		for (seq = 0, want = 1; want <= 640; want++) {
			assert_true(pair_take(&p, 1, 0, &flow, &seq, &len));
			assert_int_equal(seq, want);
		}
		old->ops->close(old);
		fresh[1]->ops->close(fresh[1]);
		pair_fini(&p);
	}
}

static void
swap_under_a_flood_ends_and_counts_what_it_had_in_hand(void **state)
{
	(void)state;
	static const struct link_ops ops = {.receive = endless_receive, .close = endless_close};
	struct pair p;
	pair_init(&p, 1, 23);
	struct endless_link flood = {.link.ops = &ops};
	memset(flood.bytes, 0x77, sizeof(flood.bytes));
	struct worker *w = p.node[0].w[0];
	struct link *good = worker_swap_link(w, &flood.link, at_s(1));
	assert_ptr_equal(worker_swap_link(w, good, at_s(1)), &flood.link);
	assert_ptr_equal(w->link, good);
	assert_true(w->stats.drops.n[DROP_RX_REBIND] > 0);
	assert_int_equal(
		w->stats.drops.n[DROP_RX_TYPE] + w->stats.drops.n[DROP_RX_REBIND], flood.given);
	pair_fini(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mail_leaves_with_whoever_has_the_lock_next),
		cmocka_unit_test(peer_has_moved_before_its_packet_can_be_answered),
		cmocka_unit_test(session_in_the_mail_sends_what_waited_for_it),
		cmocka_unit_test(turn_ends_while_junk_keeps_coming),
		cmocka_unit_test(turn_of_a_crew_ends_while_junk_keeps_coming),
		cmocka_unit_test(worker_delivers_what_waited_for_the_handshake_in_order),
		cmocka_unit_test(worker_counts_what_it_cannot_route_or_parse),
		cmocka_unit_test(worker_dates_drops_by_the_turn_that_made_them),
		cmocka_unit_test(
			worker_counts_every_malformed_datagram_and_opens_the_rest_of_the_batch),
		cmocka_unit_test(
			worker_seals_with_the_cipher_that_is_set_and_opens_both_in_one_batch),
		cmocka_unit_test(worker_counts_packets_that_no_datagram_can_carry),
		cmocka_unit_test(
			worker_drops_its_own_outer_packets_that_are_routed_into_the_tunnel),
		cmocka_unit_test(worker_asks_for_a_handshake_though_packets_wait_already),
		cmocka_unit_test(worker_lets_go_of_keys_that_were_idle_for_ten_seconds),
		cmocka_unit_test(crew_of_four_never_reorders_one_flow),
		cmocka_unit_test(crew_of_four_never_reorders_any_of_four_flows),
		cmocka_unit_test(swapped_link_is_emptied_first),
		cmocka_unit_test(swap_under_a_flood_ends_and_counts_what_it_had_in_hand),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

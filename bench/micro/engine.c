/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol engine without I/O: handshakes step by step, what a packet costs besides its
 * AEAD, and what peers and sessions take. Two devices under virtual time. */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "crypto/crypto.h"
#include "crypto/dh.h"
#include "wg/engine.h"

#define PACKETS 1024                  /* accepted in one step */
#define PACKET_LEN 1420               /* of the inner packets */
#define PEERS 10000                   /* for the memory of one */
#define LIFE_NS (200 * WEFT_NS_PER_S) /* a session is past its time after so long */
#define OUT_MSGS 8
#define OUT_EVENTS 16

static const unsigned batches[] = {1, 16, 64};

struct engine_side {
	struct wg_device *device;
	struct wg_peer *peer; /* the other side */
	struct endpoint at;
	uint8_t public_key[WG_KEY_LEN];
	struct wg_out out;
	struct wg_msg msgs[OUT_MSGS];
	struct wg_event events[OUT_EVENTS];
	struct drop_counts drops;
};

struct engine_work {
	struct rng rng;
	struct wg_time now;
	struct engine_side sides[2]; /* 0 initiates */
	struct wg_note note;
	struct wg_msg msg; /* under way */
	unsigned failed;   /* steps that did not give what they must */

	/* The data path of side 0. */
	struct wg_session *session;
	unsigned batch;
	uint64_t counter; /* of the next packet to accept */
	uint64_t replays;
	uint32_t needs;
	uint8_t packet[PACKET_LEN]; /* what every op holds */
	struct aead_op ops[PACKETS];

	/* Single primitives. */
	struct crypto *crypto;
	struct wg_cookie_checker checker;
	uint8_t scalar[DH_LEN], point[DH_LEN];
};

static void
fill(void *ctx, void *out, size_t len)
{
	rng_fill(ctx, out, len);
}

/* Takes the first message of side i, and forgets the rest and the news. */
static bool
take_msg(struct engine_work *w, unsigned i)
{
	struct wg_out *out = &w->sides[i].out;
	bool has_msg = out->msgs_n > 0;
	if (has_msg) {
		w->msg = out->msgs[0];
	}
	out->msgs_n = 0;
	out->events_n = 0;
	return has_msg;
}

/* --- handshakes --- */

/* Side 0 has a packet, and its session is past its time. */
static void
prepare_initiate(void *ctx)
{
	struct engine_work *w = ctx;
	uint64_t counter;
	w->now.mono.ns += LIFE_NS;
	w->now.wall_ns += LIFE_NS;
	for (unsigned i = 0; i < 2; i++) {
		wg_device_tick(w->sides[i].device, w->now, &w->sides[i].out);
		(void)take_msg(w, i);
	}
	struct engine_side *a = &w->sides[0];
	if (w->note.needs == 0) {
		w->failed += wg_peer_begin_send(a->device, a->peer, w->now.mono, 1, PACKET_LEN,
				     &counter, &w->note) != NULL;
	}
}

static void
initiate(void *ctx)
{
	struct engine_work *w = ctx;
	wg_device_settle(w->sides[0].device, w->now, &w->note, 1, &w->sides[0].out);
}

static void
prepare_respond(void *ctx)
{
	struct engine_work *w = ctx;
	prepare_initiate(w);
	initiate(w);
	w->failed += !take_msg(w, 0);
}

static void
handle(struct engine_work *w, unsigned i)
{
	struct engine_side *s = &w->sides[i];
	wg_device_handle(s->device, w->now, w->msg.bytes, w->msg.len, &w->sides[1 - i].at, &s->out);
}

static void
respond(void *ctx)
{
	handle(ctx, 1);
}

static void
prepare_finish(void *ctx)
{
	struct engine_work *w = ctx;
	prepare_respond(w);
	respond(w);
	w->failed += !take_msg(w, 1);
}

static void
finish(void *ctx)
{
	handle(ctx, 0);
}

static void
run_handshakes(struct bench *b, struct engine_work *w)
{
	static const struct {
		const char *name;
		struct bench_steps steps;
	} steps[] = {
		{"initiation is made", {prepare_initiate, initiate}},
		{"initiation is answered", {prepare_respond, respond}},
		{"response completes it, keepalive included", {prepare_finish, finish}},
	};
	struct bench_label l = {.plot = "handshake", .unit = "us"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(steps); i++) {
		l.series = steps[i].name;
		bench_time_steps(b, &l, &steps[i].steps, w, 1000);
	}
	w->failed += !wg_peer_can_send(w->sides[0].peer, w->now.mono);
	for (unsigned i = 0; i < 2; i++) {
		(void)take_msg(w, i);
		for (unsigned r = 0; r < DROP_COUNT; r++) {
			w->failed += w->sides[i].drops.n[r] != 0;
		}
	}
	if (w->failed) {
		bench_fail(b, "%u handshakes did not go as they must", w->failed);
	}
}

/* --- primitives --- */

static void
multiply(void *ctx, uint64_t n)
{
	struct engine_work *w = ctx;
	for (uint64_t i = 0; i < n; i++) {
		w->failed += dh_x25519(w->crypto, w->point, w->scalar, w->point) != WEFT_OK;
	}
}

/* Of the initiation that prepare_respond() has left. */
static void
check_mac1(void *ctx, uint64_t n)
{
	struct engine_work *w = ctx;
	struct wg_cookie_claim claim = {w->msg.bytes, w->msg.len, &w->sides[0].at};
	for (uint64_t i = 0; i < n; i++) {
		w->failed += !wg_cookie_check_mac1(w->crypto, &w->checker, &claim);
	}
}

static void
run_primitives(struct bench *b, struct engine_work *w)
{
	struct bench_label l = {.plot = "handshake", .unit = "us"};
	w->failed = 0;
	rng_fill(&w->rng, w->scalar, sizeof(w->scalar));
	rng_fill(&w->rng, w->point, sizeof(w->point));
	wg_cookie_checker_set_key(w->crypto, &w->checker, w->sides[1].public_key);
	prepare_respond(w);
	l.series = "X25519, one multiplication";
	bench_time(b, &l, multiply, w, 1000);
	l.series = "mac1 of an initiation is checked";
	bench_time(b, &l, check_mac1, w, 1000);
	bench_use(b, w->point[0]);
	if (w->failed) {
		bench_fail(b, "%u primitives gave a wrong result", w->failed);
	}
}

/* --- data path --- */

static void
begin_send(void *ctx, uint64_t n)
{
	struct engine_work *w = ctx;
	struct engine_side *a = &w->sides[0];
	struct wg_note note;
	uint64_t counter;
	for (uint64_t i = 0; i < n; i++) {
		w->session = wg_peer_begin_send(a->device, a->peer, w->now.mono, w->batch,
			(uint64_t)w->batch * (PACKET_LEN + WG_OVERHEAD), &counter, &note);
		w->needs |= note.needs;
	}
}

static void
receive(void *ctx)
{
	struct engine_work *w = ctx;
	w->packet[0] = 0x45; /* IPv4: accepting looks no further */
	for (size_t i = 0; i < PACKETS; i++) {
		w->ops[i] = (struct aead_op){
			.data = w->packet, .len = PACKET_LEN, .counter = w->counter++, .ok = true};
	}
}

static void
accept_all(void *ctx)
{
	struct engine_work *w = ctx;
	struct wg_note note;
	for (size_t i = 0; i < PACKETS; i += w->batch) {
		wg_session_accept(w->sides[0].device, w->session, w->now.mono, w->ops + i, w->batch,
			&w->sides[1].at, &w->replays, &note);
		w->needs |= note.needs;
	}
}

/* A session. The first packets each way arm timers, which others do not. */
static void
warm_up(struct engine_work *w)
{
	struct engine_side *a = &w->sides[0];
	struct wg_note note;
	uint64_t counter;
	prepare_finish(w);
	finish(w);
	(void)take_msg(w, 0);
	w->session =
		wg_peer_begin_send(a->device, a->peer, w->now.mono, 1, PACKET_LEN, &counter, &note);
	wg_device_settle(a->device, w->now, &note, 1, &a->out);
	receive(w);
	wg_session_accept(a->device, w->session, w->now.mono, w->ops, PACKETS, &w->sides[1].at,
		&w->replays, &note);
	wg_device_settle(a->device, w->now, &note, 1, &a->out);
}

static void
run_data(struct bench *b, struct engine_work *w)
{
	static const struct bench_steps accept = {receive, accept_all};
	struct bench_label l = {.x_name = "packets a run"};
	warm_up(w);
	if (!w->session) {
		bench_fail(b, "there is no session");
		return;
	}
	for (size_t i = 0; i < WEFT_ARRAY_LEN(batches); i++) {
		w->batch = batches[i];
		l.x = w->batch;
		l.plot = "counters for a run are taken";
		l.series = "wg_peer_begin_send()";
		l.unit = "ns/run";
		bench_time(b, &l, begin_send, w, 1);
		l.plot = "opened packets are accepted";
		l.series = "wg_session_accept()";
		l.unit = "ns/packet";
		bench_time_steps(b, &l, &accept, w, PACKETS);
	}
	if (w->needs || w->replays) {
		bench_fail(b, "packets were refused, or asked for more than their counters");
	}
}

/* --- memory --- */

static void
add_size(struct bench *b, const char *what, double bytes)
{
	struct bench_label l = {.plot = "memory", .series = what, .unit = "bytes"};
	bench_add(b, &l, &bytes, 1);
}

/* PEERS peers with two AllowedIPs each, as their tables have grown. */
static enum weft_err
fill_device(struct engine_work *w, struct wg_device *d)
{
	enum weft_err e = WEFT_OK;
	for (unsigned i = 0; i < PEERS && !e; i++) {
		uint8_t key[WG_KEY_LEN];
		struct wg_peer *p;
		struct ip_prefix v4 = {{IP_FAMILY_V4, {10, (uint8_t)(i >> 8), (uint8_t)i}}, 32};
		struct ip_prefix v6 = {
			{IP_FAMILY_V6, {0xfd, 0, (uint8_t)(i >> 8), (uint8_t)i}}, 128};
		rng_fill(&w->rng, key, sizeof(key));
		e = wg_peer_add(d, key, &p);
		e = e ? e : wg_peer_allow(d, p, &v4);
		e = e ? e : wg_peer_allow(d, p, &v6);
	}
	return e;
}

static void
run_memory(struct bench *b, struct engine_work *w)
{
	struct wg_device_config c = {.entropy = {fill, &w->rng}};
	struct wg_device *d;
	if (wg_device_new(&c, &d)) {
		bench_fail(b, "out of memory");
		return;
	}
	size_t empty = allowed_bytes(d->allowed);
	if (fill_device(w, d)) {
		bench_fail(b, "out of memory");
	} else {
		size_t tables = allowed_bytes(d->allowed) - empty +
				d->roster.buckets_n * sizeof(d->roster.buckets[0]);
		add_size(b, "a configured peer with two AllowedIPs, its share of tables included",
			(double)sizeof(struct wg_peer) + (double)tables / PEERS);
		add_size(b, "a session", sizeof(struct wg_session));
		add_size(b, "a device without peers, tables excluded", sizeof(struct wg_device));
		bench_note(b, "memory: without what the allocator adds to each piece");
	}
	wg_device_free(d);
}

/* --- setting up --- */

static enum weft_err
meet(struct engine_work *w, unsigned i)
{
	struct engine_side *s = &w->sides[i], *other = &w->sides[1 - i];
	enum weft_err e = wg_peer_add(s->device, other->public_key, &s->peer);
	if (!e) {
		wg_peer_set_endpoint(s->peer, &other->at);
	}
	return e;
}

static enum weft_err
set_up(struct engine_work *w)
{
	enum weft_err e = crypto_new(&w->crypto);
	rng_init(&w->rng, 1);
	w->now = (struct wg_time){{LIFE_NS}, INT64_C(1700000000) * WEFT_NS_PER_S};
	for (unsigned i = 0; i < 2 && !e; i++) {
		struct engine_side *s = &w->sides[i];
		struct wg_device_config c = {.entropy = {fill, &w->rng}};
		uint8_t key[WG_KEY_LEN];
		s->at = (struct endpoint){
			.addr = {IP_FAMILY_V4, {192, 0, 2, (uint8_t)(1 + i)}}, .port = 51820};
		s->out = (struct wg_out){.msgs = s->msgs,
			.msgs_cap = OUT_MSGS,
			.events = s->events,
			.events_cap = OUT_EVENTS,
			.drops = &s->drops};
		e = wg_device_new(&c, &s->device);
		if (!e) {
			rng_fill(&w->rng, key, sizeof(key));
			wg_device_set_private_key(s->device, key);
			e = wg_device_public_key(s->device, s->public_key) ? WEFT_OK : WEFT_ECRYPTO;
		}
	}
	e = e ? e : meet(w, 0);
	return e ? e : meet(w, 1);
}

void
bench_engine(struct bench *b)
{
	struct engine_work *w = calloc(1, sizeof(*w));
	enum weft_err e = w ? set_up(w) : WEFT_ENOMEM;
	if (e) {
		bench_fail(b, "%s", weft_err_text(e));
	} else {
		run_handshakes(b, w);
		run_primitives(b, w);
		run_data(b, w);
		run_memory(b, w);
		/* The reference of a note that was not settled. */
		wg_device_settle(w->sides[0].device, w->now, &w->note, 1, &w->sides[0].out);
	}
	if (w) {
		wg_device_free(w->sides[0].device);
		wg_device_free(w->sides[1].device);
		crypto_free(w->crypto);
	}
	free(w);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void
fill(void *ctx, void *out, size_t len)
{
	struct world *w = ctx;
	rng_fill(&w->rng, out, len);
}

struct entropy
world_entropy(struct world *w)
{
	return (struct entropy){fill, w};
}

struct endpoint
world_endpoint(uint8_t host, uint16_t port)
{
	return (struct endpoint){
		.addr = {.family = IP_FAMILY_V4, .b = {192, 0, 2, host}}, .port = port};
}

struct wg_time
world_time(const struct world *w, size_t i)
{
	return (struct wg_time){w->now, w->wall_ns + w->now.ns + w->sides[i].wall_skew_ns};
}

void
world_restart(struct world *w, size_t i, uint64_t stamp_s)
{
	struct world_side *s = &w->sides[i];
	wg_device_free(s->device);
	struct wg_device_config c = {.entropy = world_entropy(w), .stamp_s = stamp_s};
	assert_int_equal(wg_device_new(&c, &s->device), WEFT_OK);
	wg_device_set_private_key(s->device, s->private_key);
	assert_true(wg_device_public_key(s->device, s->public_key));
	wg_device_set_up(s->device, true, world_time(w, i), &w->out);
	world_flush(w, i);
}

void
world_init(struct world *w, size_t n, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	rng_init(&w->rng, seed);
	w->n = n;
	w->now = (struct mono){1000};
	w->wall_ns = INT64_C(1700000000) * WEFT_NS_PER_S;
	w->delay_ns = 10 * WEFT_NS_PER_MS;
	w->out = (struct wg_out){.msgs = w->msgs,
		.msgs_cap = WEFT_ARRAY_LEN(w->msgs),
		.events = w->events,
		.events_cap = WEFT_ARRAY_LEN(w->events)};
	assert_int_equal(aead_new(AEAD_BACKEND_LIBCRYPTO, &w->aead), WEFT_OK);
	for (size_t i = 0; i < n; i++) {
		w->sides[i].at = world_endpoint((uint8_t)(i + 1), 51820);
		rng_fill(&w->rng, w->sides[i].private_key, 32);
		w->out.drops = &w->sides[i].drops;
		world_restart(w, i, 0);
	}
}

void
world_fini(struct world *w)
{
	for (size_t i = 0; i < w->n; i++) {
		wg_device_free(w->sides[i].device);
	}
	for (size_t i = 0; i < w->flight_n; i++) {
		free(w->flight[i]);
	}
	aead_free(w->aead);
}

struct wg_peer *
world_peer(struct world *w, size_t i, size_t other)
{
	return wg_peer_find(w->sides[i].device, w->sides[other].public_key);
}

struct wg_peer *
world_meet(struct world *w, size_t i, size_t other, bool with_endpoint)
{
	struct wg_peer *p;
	struct wg_device *d = w->sides[i].device;
	assert_int_equal(wg_peer_add(d, w->sides[other].public_key, &p), WEFT_OK);
	struct ip_prefix prefix = {
		.addr = {.family = IP_FAMILY_V4, .b = {10, 0, 0, (uint8_t)other}}, .bits = 32};
	assert_int_equal(wg_peer_allow(d, p, &prefix), WEFT_OK);
	if (with_endpoint) {
		wg_peer_set_endpoint(p, &w->sides[other].at);
	}
	return p;
}

struct wg_peer_info
world_info(struct world *w, size_t i, size_t other)
{
	struct wg_peer_info info;
	wg_peer_info(world_peer(w, i, other), &info);
	return info;
}

uint64_t
world_drops(const struct world *w, size_t i, enum drop_reason r)
{
	return w->sides[i].drops.n[r];
}

static void
launch(struct world *w, size_t i, const struct endpoint *to, const uint8_t *bytes, size_t len)
{
	struct world_datagram *g = malloc(sizeof(*g));
	assert_non_null(g);
	assert_true(w->flight_n < WORLD_FLIGHT_MAX && len <= WORLD_DATAGRAM_MAX);
	g->from = w->sides[i].at;
	g->to = *to;
	g->to.src = (struct ip_addr){0};
	g->len = len;
	g->due_ns = w->now.ns + w->delay_ns;
	g->seq = w->seq++;
	memcpy(g->bytes, bytes, len);
	w->flight[w->flight_n++] = g;
	w->sides[i].sent[bytes[0] <= 4 ? bytes[0] : 0]++;
}

/* Seals text as a packet and sends it; false when there is no session. */
static bool
seal_and_send(struct world *w, size_t i, struct wg_peer *p, const uint8_t *text, size_t len,
	struct wg_note *note)
{
	uint8_t buf[WORLD_DATAGRAM_MAX] = {0};
	size_t padded = (len + 15) / 16 * 16;
	uint64_t counter;
	struct wg_session *s = wg_peer_begin_send(
		w->sides[i].device, p, w->now, 1, padded + WG_OVERHEAD, &counter, note);
	if (!s) {
		return false;
	}
	const struct aead_key *key = wg_session_send_key(s);
	wire_wg_data_write_header(buf, key->cipher, wg_session_remote_index(s), counter);
	memcpy(buf + WG_HEADER_LEN, text, len);
	struct aead_op op = {buf + WG_HEADER_LEN, (uint32_t)padded, false, counter};
	aead_seal(w->aead, key, &op, 1);
	struct endpoint to = wg_peer_endpoint(p);
	launch(w, i, &to, buf, padded + WG_OVERHEAD);
	return true;
}

static void
settle(struct world *w, size_t i, struct wg_note *note)
{
	if (note->needs) {
		wg_device_settle(w->sides[i].device, world_time(w, i), note, 1, &w->out);
	}
	world_flush(w, i);
}

/* Like the node on WG_EVENT_SESSION. */
static void
send_staged(struct world *w, size_t i, struct wg_peer *p)
{
	uint8_t packet[65536];
	size_t len;
	while (wg_peer_unstage(w->sides[i].device, p, packet, sizeof(packet), &len)) {
		struct wg_note note;
		if (!seal_and_send(w, i, p, packet, len, &note)) {
			fail_msg("no session for staged packets");
		}
		if (note.needs) {
			struct wg_event events[16];
			struct wg_msg msgs[8];
			struct wg_out out = {msgs, 8, 0, events, 16, 0, &w->sides[i].drops};
			wg_device_settle(w->sides[i].device, world_time(w, i), &note, 1, &out);
			for (size_t m = 0; m < out.msgs_n; m++) {
				launch(w, i, &msgs[m].to, msgs[m].bytes, msgs[m].len);
			}
		}
	}
}

void
world_flush(struct world *w, size_t i)
{
	struct world_side *s = &w->sides[i];
	for (;;) {
		for (size_t m = 0; m < w->out.msgs_n; m++) {
			launch(w, i, &w->out.msgs[m].to, w->out.msgs[m].bytes, w->out.msgs[m].len);
		}
		w->out.msgs_n = 0;
		for (size_t e = 0; e < w->out.events_n; e++) {
			const struct wg_event *event = &w->out.events[e];
			s->events[event->kind]++;
			s->values[event->kind] = event->value;
			if (event->kind == WG_EVENT_SESSION) {
				send_staged(w, i, event->peer);
			}
		}
		w->out.events_n = 0;
		if (wg_device_deadline(s->device).ns > w->now.ns) {
			return;
		}
		w->out.drops = &s->drops;
		wg_device_tick(s->device, world_time(w, i), &w->out);
	}
}

static void
arrive_data(struct world *w, size_t i, const struct endpoint *from, uint8_t *data, size_t len)
{
	struct world_side *side = &w->sides[i];
	struct wg_session *s = wg_device_session(side->device, wire_wg_data_receiver(data));
	if (!s) {
		side->drops.n[DROP_RX_INDEX]++;
		return;
	}
	if (!wg_session_can_open(s, w->now)) {
		side->drops.n[DROP_RX_EXPIRED]++;
		return;
	}
	const struct aead_key *key = wg_session_recv_key(s, wire_wg_data_cipher(data));
	if (!key) {
		side->drops.n[DROP_RX_TYPE]++;
		return;
	}
	struct aead_op op = {data + WG_HEADER_LEN, (uint32_t)(len - WG_OVERHEAD), false,
		wire_wg_data_counter(data)};
	if (!aead_open(w->aead, key, &op, 1)) {
		side->drops.n[DROP_RX_AUTH]++;
		return;
	}
	struct wg_note note;
	wg_session_accept(
		side->device, s, w->now, &op, 1, from, &side->drops.n[DROP_RX_REPLAY], &note);
	if (op.ok && op.len == 0) {
		side->keepalives++;
	} else if (op.ok) {
		side->delivered++;
		snprintf(side->last, sizeof(side->last), "%.*s", (int)op.len, (char *)op.data);
	}
	settle(w, i, &note);
}

void
world_arrive(
	struct world *w, size_t i, const struct endpoint *from, const uint8_t *data, size_t len)
{
	struct world_side *s = &w->sides[i];
	uint8_t copy[WORLD_DATAGRAM_MAX];
	memcpy(copy, data, len);
	w->out.drops = &s->drops;
	if (wire_wg_data_is_well_formed(copy, len)) {
		arrive_data(w, i, from, copy, len);
		return;
	}
	wg_device_handle(s->device, world_time(w, i), copy, len, from, &w->out);
	world_flush(w, i);
}

void
world_send(struct world *w, size_t i, size_t other, const char *text)
{
	struct world_side *s = &w->sides[i];
	struct wg_peer *p = world_peer(w, i, other);
	struct wg_note note;
	w->out.drops = &s->drops;
	if (!seal_and_send(w, i, p, (const uint8_t *)text, strlen(text), &note)) {
		wg_peer_stage(s->device, p, (const uint8_t *)text, strlen(text), &w->out);
	}
	settle(w, i, &note);
}

static void
land(struct world *w, size_t at)
{
	struct world_datagram *g = w->flight[at];
	w->flight[at] = w->flight[--w->flight_n];
	bool arrives = !w->filter || w->filter(w, g);
	for (size_t i = 0; arrives && i < w->n; i++) {
		if (endpoint_is_same_remote(&w->sides[i].at, &g->to) && !w->sides[i].is_deaf) {
			world_arrive(w, i, &g->from, g->bytes, g->len);
		}
	}
	free(g);
}

void
world_run_ns(struct world *w, int64_t ns)
{
	int64_t end = w->now.ns + ns;
	for (;;) {
		int64_t next = INT64_MAX;
		size_t flight = SIZE_MAX, side = SIZE_MAX;
		uint64_t seq = UINT64_MAX;
		for (size_t k = 0; k < w->flight_n; k++) {
			const struct world_datagram *g = w->flight[k];
			if (g->due_ns < next || (g->due_ns == next && g->seq < seq)) {
				next = g->due_ns;
				seq = g->seq;
				flight = k;
			}
		}
		for (size_t i = 0; i < w->n; i++) {
			int64_t due = wg_device_deadline(w->sides[i].device).ns;
			if (due < next) {
				next = due;
				side = i;
			}
		}
		if (next > end) {
			break;
		}
		w->now.ns = next > w->now.ns ? next : w->now.ns;
		if (side != SIZE_MAX) {
			w->out.drops = &w->sides[side].drops;
			wg_device_tick(w->sides[side].device, world_time(w, side), &w->out);
			world_flush(w, side);
		} else {
			land(w, flight);
		}
	}
	w->now.ns = end;
}

void
world_run_s(struct world *w, double seconds)
{
	world_run_ns(w, (int64_t)(seconds * 1e9));
}

void
world_connect(struct world *w, size_t i, size_t other)
{
	uint64_t there = w->sides[other].delivered, here = w->sides[i].delivered;
	world_send(w, i, other, "hello");
	world_run_s(w, 0.5);
	assert_int_equal(w->sides[other].delivered, there + 1);
	world_send(w, other, i, "hello yourself");
	world_run_s(w, 0.5);
	assert_int_equal(w->sides[i].delivered, here + 1);
}

void
world_init_connected(struct world *w, uint64_t seed)
{
	world_init(w, 2, seed);
	world_meet(w, 0, 1, true);
	world_meet(w, 1, 0, false);
	world_connect(w, 0, 1);
	world_run_s(w, 11); /* the last passive keepalive is through */
}

uint64_t
world_initiations(const struct world *w, size_t i)
{
	return w->sides[i].sent[WIRE_WG_TYPE_INITIATION];
}

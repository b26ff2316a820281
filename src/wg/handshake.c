/* SPDX-License-Identifier: Apache-2.0 */
/* Handshake messages in and out: WireGuard paper, sections 5.3 and 5.4.
 *
 * Nothing is answered before its mac1 is right; curve arithmetic is spent on strangers only as
 * long as load is low or they have shown by mac2 that they receive at their address; and
 * nothing of a peer changes before its message has authenticated and is fresh. */
#include "wg/engine.h"

#include <string.h>

#include "crypto/secret.h"

/* Replies to all sources together. Above every flood that can be answered at all: a client
 * under a flood with forged addresses must still get its cookie. */
static const struct wg_rate cookie_reply_rate = {
	.interval_ns = 10 * WEFT_NS_PER_US, .burst = 10000};
/* Responses that may fail before the true one needs a cookie under load: they carry our random
 * index, so only somebody on the path can forge one at all. */
#define RESPONSE_FAILURES_MAX 3

static void
count(struct wg_out *out, enum drop_reason r)
{
	out->drops->n[r]++;
}

static void
count_rx(struct wg_peer *p, size_t len)
{
	atomic_fetch_add_explicit(&p->rx_bytes, len, memory_order_relaxed);
	atomic_fetch_add_explicit(&p->rx_packets, 1, memory_order_relaxed);
}

static void
count_tx(struct wg_peer *p, size_t len)
{
	atomic_fetch_add_explicit(&p->tx_bytes, len, memory_order_relaxed);
	atomic_fetch_add_explicit(&p->tx_packets, 1, memory_order_relaxed);
}

static void
fill_private(struct wg_device *d, uint8_t key[WG_NOISE_KEY_LEN])
{
	d->entropy.fill(d->entropy.ctx, key, WG_NOISE_KEY_LEN);
}

void
wg_handshake_initiate(
	struct wg_device *d, struct wg_peer *p, struct wg_time now, struct wg_out *out)
{
	/* Whatever fails below fails until the next attempt. */
	p->initiation_ns = now.mono.ns;
	p->series_ns = p->timers.attempts ? p->series_ns : now.mono.ns;
	p->handshake_tries++;
	wg_timers_initiation_sent(&p->timers, now.mono, wg_device_jitter_ns(d));
	wg_peer_arm(d, p);
	wg_keyring_drop_pending(d, p);
	if (wg_index_add(&d->index, &d->entropy, WG_INDEX_PENDING, p, &p->pending_index)) {
		return;
	}
	p->has_pending = true;
	p->pending_failures = 0;
	fill_private(d, p->pending.ephemeral_private);
	uint8_t stamp[WIRE_WG_STAMP_LEN];
	if (wg_stamp_next(&d->stamp, now.wall_ns, stamp)) {
		wg_out_event(out, WG_EVENT_STAMP, NULL, d->stamp.reserved_s);
	}
	struct wire_wg_initiation m = {.sender = p->pending_index};
	if (wg_noise_initiate(d->crypto, &d->identity, &p->remote, &p->pending, stamp, &m)) {
		wg_keyring_drop_pending(d, p);
		return;
	}
	uint8_t *bytes = wg_out_msg(out, &p->endpoint, WIRE_WG_INITIATION_LEN);
	wire_wg_initiation_encode(&m, bytes);
	wg_cookie_jar_sign(
		d->crypto, &p->jar, p->remote.public_key, now.mono, bytes, WIRE_WG_INITIATION_LEN);
	count_tx(p, WIRE_WG_INITIATION_LEN);
	if (p->rival) {
		memcpy(p->rival->initiation, bytes, WIRE_WG_INITIATION_LEN);
		p->rival->due = mono_add_ns(now.mono, WG_RIVAL_DELAY_NS);
		wg_peer_arm(d, p);
	}
	wg_out_event(out, WG_EVENT_HANDSHAKE, p, p->timers.attempts);
}

void
wg_handshake_send_rival(struct wg_peer *p, struct wg_out *out)
{
	uint8_t *bytes = wg_out_msg(out, &p->rival->to, WIRE_WG_INITIATION_LEN);
	memcpy(bytes, p->rival->initiation, WIRE_WG_INITIATION_LEN);
	count_tx(p, WIRE_WG_INITIATION_LEN);
}

/* Under load, and the message has no valid cookie: perhaps a reply with one. */
static void
refuse_without_cookie(
	struct wg_device *d, struct mono now, const struct wg_cookie_claim *m, struct wg_out *out)
{
	if (!wg_limiter_take(&d->limiter, WG_LIMIT_COOKIE_REPLY, m->from, now) ||
		!wg_bucket_take(&d->cookie_replies, &cookie_reply_rate, now)) {
		count(out, DROP_HS_RATE);
		return;
	}
	count(out, DROP_HS_MAC2);
	uint8_t *bytes = wg_out_msg(out, m->from, WIRE_WG_COOKIE_REPLY_LEN);
	wg_cookie_reply(d->crypto, &d->checker, &d->entropy, m, now, bytes);
}

/* May the message cost curve arithmetic? Its mac1 is right. */
static bool
admit(struct wg_device *d, struct mono now, const struct wg_cookie_claim *m, struct wg_out *out)
{
	if (!wg_load_note(&d->load, now)) {
		return true;
	}
	if (!wg_cookie_check_mac2(d->crypto, &d->checker, m, now)) {
		refuse_without_cookie(d, now, m, out);
		return false;
	}
	if (!wg_limiter_take(&d->limiter, WG_LIMIT_PORT, m->from, now) ||
		!wg_limiter_take(&d->limiter, WG_LIMIT_ADDR, m->from, now)) {
		count(out, DROP_HS_RATE);
		return false;
	}
	return true;
}

/* Keys are agreed: a session in the index table, not yet in a slot. used_index: as which it is
 * known to the other side already, entered in the table for p. */
static struct wg_session *
make_session(struct wg_device *d, struct wg_peer *p, struct mono now, bool is_initiator,
	const struct wg_noise_keys *keys, uint32_t used_index)
{
	struct wg_session *s;
	if (wg_session_new(p, now, is_initiator, keys, &s)) {
		wg_index_remove(&d->index, used_index);
		return NULL;
	}
	s->id = ++d->sessions;
	s->local_index = used_index;
	wg_index_change(&d->index, used_index, WG_INDEX_SESSION, s);
	wg_timers_session_derived(&p->timers, now);
	(void)wg_timers_received(&p->timers, now, false);
	return s;
}

/* The peer's initiation is authentic and fresh. */
static void
respond(struct wg_device *d, struct wg_peer *p, struct mono now, struct wg_noise_incoming *in,
	const struct endpoint *from, struct wg_out *out)
{
	struct wire_wg_response m;
	if (wg_index_add(&d->index, &d->entropy, WG_INDEX_PENDING, p, &m.sender)) {
		return;
	}
	struct wg_noise_keys keys;
	uint8_t ephemeral[WG_NOISE_KEY_LEN];
	uint32_t remote_index = in->sender;
	fill_private(d, ephemeral);
	struct wg_session *s = NULL;
	if (wg_noise_respond(d->crypto, &p->remote, in, ephemeral, &m, &keys)) {
		wg_index_remove(&d->index, m.sender);
	} else {
		s = make_session(d, p, now, false, &keys, m.sender);
	}
	secret_wipe(&keys, sizeof(keys));
	secret_wipe(ephemeral, sizeof(ephemeral));
	if (!s) {
		return;
	}
	s->remote_index = remote_index;
	wg_keyring_add_answered(d, p, s);
	uint8_t *bytes = wg_out_msg(out, from, WIRE_WG_RESPONSE_LEN);
	wire_wg_response_encode(&m, bytes);
	wg_cookie_jar_sign(
		d->crypto, &p->jar, p->remote.public_key, now, bytes, WIRE_WG_RESPONSE_LEN);
	count_tx(p, WIRE_WG_RESPONSE_LEN);
	(void)wg_timers_sent(&p->timers, now, false);
	wg_peer_arm(d, p);
}

/* Is the initiation newer than those before it, and not too soon? Remembers it then. */
static bool
accept_stamp(struct wg_device *d, struct wg_peer *p, struct mono now,
	const struct wg_noise_incoming *in, const struct endpoint *from, struct wg_out *out)
{
	if (p->has_stamp && memcmp(in->stamp, p->stamp, sizeof(p->stamp)) <= 0) {
		count(out, DROP_HS_STALE);
		p->stale_initiations++;
		wg_device_note_trouble(d, WG_TROUBLE_STALE, p->remote.public_key, from);
		if (!endpoint_is_same_remote(from, &p->endpoint)) {
			atomic_fetch_add_explicit(&p->rejected_moves, 1, memory_order_relaxed);
		}
		wg_agenda_add(d, p, WG_TODO_STALE);
		return false;
	}
	if (p->has_stamp && now.ns - p->accepted_ns < WG_INITIATION_INTERVAL_NS) {
		count(out, DROP_HS_FLOOD);
		return false;
	}
	memcpy(p->stamp, in->stamp, sizeof(p->stamp));
	p->accepted_ns = now.ns;
	p->unconfirmed++;
	return true;
}

static void
handle_initiation(struct wg_device *d, struct mono now, const struct wg_cookie_claim *claim,
	struct wg_out *out)
{
	struct wire_wg_initiation m;
	struct wg_noise_incoming in;
	if (!wire_wg_initiation_decode(claim->msg, claim->len, &m) || !admit(d, now, claim, out)) {
		return;
	}
	if (wg_noise_open_static(d->crypto, &d->identity, &m, &in)) {
		count(out, DROP_HS_AUTH);
		return;
	}
	struct wg_peer *p = wg_roster_find(&d->roster, in.remote_static);
	if (!p) {
		count(out, DROP_HS_PEER);
		wg_device_note_trouble(d, WG_TROUBLE_STRANGER, in.remote_static, claim->from);
	} else if (wg_noise_open_stamp(d->crypto, &d->identity, &p->remote, &m, &in)) {
		count(out, DROP_HS_AUTH);
	} else if (accept_stamp(d, p, now, &in, claim->from, out)) {
		count_rx(p, claim->len);
		/* Until the peer has used a session that it began in our life, its initiations may
		 * be replays from before it, one after the other: they are answered, but the peer
		 * is believed to be there only when it uses the session. */
		if (p->is_stamp_proven) {
			wg_peer_move_endpoint(d, p, claim->from);
		}
		p->has_stamp = true;
		respond(d, p, now, &in, claim->from, out);
	}
	secret_wipe(&in, sizeof(in));
}

static void
complete(struct wg_device *d, struct wg_peer *p, struct wg_time now, struct wg_session *s,
	const struct endpoint *from)
{
	wg_keyring_add_initiated(d, p, s);
	p->has_pending = false; /* its index is the session's now */
	secret_wipe(&p->pending, sizeof(p->pending));
	p->handshakes++;
	p->unconfirmed = 0;
	p->last_handshake_wall_ns = now.wall_ns;
	atomic_store_explicit(&p->has_rekeyed_on_receive, false, memory_order_relaxed);
	wg_peer_move_endpoint(d, p, from);
	wg_timers_session_complete(&p->timers);
	wg_agenda_expect_end(d, p);
	wg_agenda_cancel(p, WG_TODO_INITIATION);
	/* The responder may not send before it has heard on the session. Staged packets do that,
	 * else a keepalive. */
	wg_agenda_add(d, p, p->stage.n ? WG_TODO_SESSION : WG_TODO_SESSION | WG_TODO_KEEPALIVE);
}

static void
handle_response(struct wg_device *d, struct wg_time now, const struct wg_cookie_claim *claim,
	struct wg_out *out)
{
	struct wire_wg_response m;
	if (!wire_wg_response_decode(claim->msg, claim->len, &m)) {
		return;
	}
	const struct wg_index_entry *e = wg_index_find(&d->index, m.receiver);
	if (!e || e->kind != WG_INDEX_PENDING) {
		count(out, DROP_HS_INDEX);
		return;
	}
	struct wg_peer *p = e->what;
	if (p->pending_failures >= RESPONSE_FAILURES_MAX && !admit(d, now.mono, claim, out)) {
		return;
	}
	struct wg_noise_keys keys;
	if (wg_noise_open_response(d->crypto, &d->identity, &p->remote, &p->pending, &m, &keys)) {
		if (p->pending_failures < RESPONSE_FAILURES_MAX) {
			p->pending_failures++;
		}
		wg_device_note_trouble(d, WG_TROUBLE_RESPONSE, p->remote.public_key, claim->from);
		count(out, DROP_HS_AUTH);
		return;
	}
	count_rx(p, claim->len);
	struct wg_session *s = make_session(d, p, now.mono, true, &keys, p->pending_index);
	secret_wipe(&keys, sizeof(keys));
	if (!s) {
		wg_keyring_drop_pending(d, p);
		return;
	}
	s->remote_index = m.sender;
	s->initiated = (struct mono){p->initiation_ns};
	complete(d, p, now, s, claim->from);
}

static void
handle_cookie_reply(
	struct wg_device *d, struct mono now, const uint8_t *data, size_t len, struct wg_out *out)
{
	struct wire_wg_cookie_reply m;
	if (!wire_wg_cookie_reply_decode(data, len, &m)) {
		return;
	}
	const struct wg_index_entry *e = wg_index_find(&d->index, m.receiver);
	if (!e) {
		count(out, DROP_HS_INDEX);
		return;
	}
	struct wg_peer *p = e->kind == WG_INDEX_PENDING
				    ? e->what
				    : wg_session_peer((const struct wg_session *)e->what);
	if (!wg_cookie_jar_take(d->crypto, &p->jar, p->remote.public_key, now, &m)) {
		count(out, DROP_HS_AUTH);
		return;
	}
	count_rx(p, len);
	wg_device_note_trouble(d, WG_TROUBLE_COOKIE, p->remote.public_key, &p->endpoint);
	/* The retransmission timer sends the next initiation with it; no sooner, or cookie
	 * replies would speed us up. */
}

/* Counts a message of the wrong length or type. */
static bool
is_well_formed(const uint8_t *data, size_t len, struct wg_out *out)
{
	static const size_t lens[] = {[WIRE_WG_TYPE_INITIATION] = WIRE_WG_INITIATION_LEN,
		[WIRE_WG_TYPE_RESPONSE] = WIRE_WG_RESPONSE_LEN,
		[WIRE_WG_TYPE_COOKIE_REPLY] = WIRE_WG_COOKIE_REPLY_LEN};
	enum wire_wg_type type = wire_wg_type(data, len);
	if (len < 4) {
		count(out, DROP_RX_SHORT);
		return false;
	}
	if (type == WIRE_WG_TYPE_NONE || type == WIRE_WG_TYPE_DATA || len > lens[type]) {
		count(out, DROP_RX_TYPE);
		return false;
	}
	if (len < lens[type]) {
		count(out, DROP_RX_SHORT);
		return false;
	}
	return true;
}

void
wg_device_handle(struct wg_device *d, struct wg_time now, const uint8_t *data, size_t len,
	const struct endpoint *from, struct wg_out *out)
{
	d->now = mono_is_before(d->now, now.mono) ? now.mono : d->now;
	struct wg_cookie_claim claim = {data, len, from};
	if (!is_well_formed(data, len, out)) {
		return;
	}
	if (!wg_out_has_room(out)) {
		count(out, DROP_HS_RATE);
		return;
	}
	enum wire_wg_type type = wire_wg_type(data, len);
	if (type == WIRE_WG_TYPE_COOKIE_REPLY) {
		handle_cookie_reply(d, now.mono, data, len, out);
	} else if (!d->identity.has_key || !wg_cookie_check_mac1(d->crypto, &d->checker, &claim)) {
		count(out, DROP_HS_MAC1);
		wg_device_note_trouble(d, WG_TROUBLE_MAC1, NULL, from);
	} else if (type == WIRE_WG_TYPE_INITIATION) {
		handle_initiation(d, now.mono, &claim, out);
	} else {
		handle_response(d, now, &claim, out);
	}
	wg_agenda_run(d, now, out);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What peers still have to put into an out: a few bits a peer, and the list of those that have
 * any. Whatever causes a message or an event only sets a bit, so that nothing is lost and
 * nothing grows when an out is full. */
#include "wg/engine.h"

#include <string.h>

#include "base/assert.h"
#include "crypto/xaead.h"

/* An initiation costs some 0.1 ms, during which nobody else may use the device. */
#define INITIATIONS_A_CALL 16

bool
wg_out_has_room(const struct wg_out *out)
{
	return out->msgs_cap - out->msgs_n >= WG_OUT_MSGS_MIN &&
	       out->events_cap - out->events_n >= WG_OUT_EVENTS_MIN;
}

void
wg_out_event(struct wg_out *out, enum wg_event_kind kind, struct wg_peer *p, uint64_t value)
{
	weft_assert(out->events_n < out->events_cap);
	out->events[out->events_n++] = (struct wg_event){kind, p, value};
}

uint8_t *
wg_out_msg(struct wg_out *out, const struct endpoint *to, uint16_t len)
{
	weft_assert(out->msgs_n < out->msgs_cap);
	struct wg_msg *m = &out->msgs[out->msgs_n++];
	m->to = *to;
	m->len = len;
	return m->bytes;
}

void
wg_agenda_add(struct wg_device *d, struct wg_peer *p, uint32_t todo)
{
	if (!p->todo) {
		list_push_back(&d->todo, &p->todo_link);
	}
	p->todo |= todo;
}

void
wg_agenda_cancel(struct wg_peer *p, uint32_t todo)
{
	p->todo &= ~todo;
	if (!p->todo) {
		list_remove(&p->todo_link);
	}
}

/* must: what wants it now may be all that comes, so that a try made a moment ago only defers it. */
static void
want(struct wg_device *d, struct wg_peer *p, struct mono now, bool must)
{
	bool can_initiate = d->identity.has_key && p->endpoint.addr.family != IP_FAMILY_NONE;
	if (can_initiate && now.ns - p->initiation_ns >= WG_REKEY_TIMEOUT_NS) {
		wg_agenda_add(d, p, WG_TODO_INITIATION);
	} else if (can_initiate && must) {
		wg_timers_initiation_wanted(
			&p->timers, (struct mono){p->initiation_ns + WG_REKEY_TIMEOUT_NS});
	}
	wg_peer_arm(d, p);
}

void
wg_agenda_want_session(struct wg_device *d, struct wg_peer *p, struct mono now, bool is_retry)
{
	if (!is_retry) {
		wg_timers_want_session(&p->timers, now);
	}
	want(d, p, now, !wg_peer_can_send(p, now));
}

void
wg_agenda_renew(struct wg_device *d, struct wg_peer *p, struct mono now)
{
	wg_timers_want_session(&p->timers, now);
	want(d, p, now, true);
}

void
wg_agenda_expect_end(struct wg_device *d, struct wg_peer *p)
{
	wg_peer_drop_rival(p);
	wg_agenda_cancel(p, WG_TODO_RIVAL | WG_TODO_EXPIRED);
	if (p->current) {
		p->expire_ns = p->current->born.ns + WG_REJECT_AFTER_TIME_NS;
	}
	wg_peer_arm(d, p);
}

/* An empty data message, or an initiation when no session can carry one. */
static void
send_keepalive(struct wg_device *d, struct wg_peer *p, struct wg_time now, struct wg_out *out)
{
	if (p->endpoint.addr.family == IP_FAMILY_NONE) {
		return;
	}
	struct wg_session *s = p->current;
	uint64_t counter;
	if (!s || wg_session_is_too_old(s, now.mono) || !wg_session_take_counters(s, 1, &counter)) {
		wg_agenda_want_session(d, p, now.mono, false);
		return;
	}
	uint8_t *msg = wg_out_msg(out, &p->endpoint, WIRE_WG_DATA_LEN_MIN);
	/* By the cipher that every session opens: there is no text to be quick about. */
	wire_wg_data_write_header(msg, AEAD_CIPHER_CHACHA20_POLY1305, s->remote_index, counter);
	aead_msg_seal(d->crypto, msg + WIRE_WG_DATA_HEADER_LEN,
		s->send[AEAD_CIPHER_CHACHA20_POLY1305].bytes, counter,
		(struct xaead_bytes){NULL, 0}, (struct xaead_bytes){NULL, 0});
	atomic_fetch_add_explicit(&p->tx_bytes, WIRE_WG_DATA_LEN_MIN, memory_order_relaxed);
	atomic_fetch_add_explicit(&p->tx_packets, 1, memory_order_relaxed);
	(void)wg_timers_sent(&p->timers, now.mono, false);
	wg_peer_arm(d, p);
	if (wg_session_wants_rekey(s, counter + 1, now.mono)) {
		wg_agenda_want_session(d, p, now.mono, false);
	}
}

/* Everything that p has to do. There is room. */
static void
run_peer(struct wg_device *d, struct wg_peer *p, struct wg_time now, struct wg_out *out)
{
	uint32_t todo = p->todo;
	if (todo & WG_TODO_ENDPOINT) {
		wg_out_event(out, WG_EVENT_ENDPOINT, p, 0);
	}
	if (todo & WG_TODO_STALE) {
		wg_out_event(out, WG_EVENT_STALE, p, 0);
	}
	if (todo & WG_TODO_GAVE_UP) {
		wg_out_event(out, WG_EVENT_GAVE_UP, p, p->gave_up_packets);
		p->gave_up_packets = 0;
	}
	if (todo & WG_TODO_EXPIRED) {
		wg_out_event(out, WG_EVENT_EXPIRED, p, 0);
	}
	if (todo & WG_TODO_SESSION) {
		wg_out_event(out, WG_EVENT_SESSION, p, 0);
	}
	if (todo & WG_TODO_KEEPALIVE) {
		send_keepalive(d, p, now, out); /* may want an initiation */
	}
	if (p->todo & WG_TODO_INITIATION) {
		wg_handshake_initiate(d, p, now, out);
	} else if (todo & WG_TODO_RIVAL && p->rival && p->has_pending) {
		wg_handshake_send_rival(p, out);
	}
	wg_agenda_cancel(p, UINT32_MAX);
}

void
wg_agenda_run(struct wg_device *d, struct wg_time now, struct wg_out *out)
{
	weft_assert(out->msgs_cap >= WG_OUT_MSGS_MIN && out->events_cap >= WG_OUT_EVENTS_MIN);
	out->drops->n[DROP_TX_NO_SESSION] += d->lost_packets;
	d->lost_packets = 0;
	for (unsigned initiations = 0; !list_is_empty(&d->todo) && wg_out_has_room(out) &&
				       initiations < INITIATIONS_A_CALL;) {
		struct wg_peer *p = WEFT_CONTAINER_OF(d->todo.next, struct wg_peer, todo_link);
		int64_t before = p->initiation_ns;
		run_peer(d, p, now, out);
		initiations += p->initiation_ns != before;
	}
}

/* What the peer's timers say is due now. */
static void
run_timers(struct wg_device *d, struct wg_peer *p, struct wg_time now, struct wg_out *out)
{
	uint32_t attempts = p->timers.attempts;
	uint32_t due = wg_timers_run(&p->timers, now.mono, wg_device_jitter_ns(d));
	if (due & WG_DUE_GIVE_UP) {
		p->gave_up_ns = now.mono.ns;
		p->gave_up_tries = attempts;
		uint32_t n = wg_stage_clear(&d->stage_pool, &p->stage);
		out->drops->n[DROP_TX_NO_SESSION] += n;
		p->gave_up_packets += n;
		wg_keyring_drop_pending(d, p);
		wg_agenda_cancel(p, WG_TODO_INITIATION);
		wg_agenda_add(d, p, WG_TODO_GAVE_UP);
	}
	if (due & (WG_DUE_RETRANSMIT | WG_DUE_NEW_HANDSHAKE)) {
		/* No answer: perhaps our own address is to blame. */
		p->endpoint.src = (struct ip_addr){0};
		p->endpoint.src_ifindex = 0;
		wg_agenda_want_session(d, p, now.mono, !(due & WG_DUE_NEW_HANDSHAKE));
	}
	if (p->rival && p->rival->due.ns <= now.mono.ns) {
		p->rival->due = MONO_NEVER;
		wg_agenda_add(d, p, WG_TODO_RIVAL);
	}
	if (p->expire_ns && p->expire_ns <= now.mono.ns) {
		p->expire_ns = 0;
		if (!wg_peer_can_send(p, now.mono)) {
			wg_agenda_add(d, p, WG_TODO_EXPIRED);
		}
	}
	if (due & WG_DUE_ZERO_KEYS) {
		wg_keyring_clear(d, p);
	}
	if (due & WG_DUE_KEEPALIVE ||
		(due & WG_DUE_PERSISTENT && p->endpoint.addr.family != IP_FAMILY_NONE)) {
		wg_agenda_add(d, p, WG_TODO_KEEPALIVE);
	}
	wg_peer_arm(d, p);
}

void
wg_device_tick(struct wg_device *d, struct wg_time now, struct wg_out *out)
{
	d->now = mono_is_before(d->now, now.mono) ? now.mono : d->now;
	for (struct timer *t; (t = timerwheel_take_expired(&d->wheel, now.mono));) {
		run_timers(d, WEFT_CONTAINER_OF(t, struct wg_peer, timer), now, out);
	}
	wg_agenda_run(d, now, out);
}

/* As old as a session gets before who sends or receives renews it. */
static bool
is_session_stale(const struct wg_peer *p, struct mono now)
{
	return !wg_peer_can_send(p, now) || wg_session_wants_rekey(p->current, 0, now);
}

void
wg_device_wake(struct wg_device *d, struct mono since, struct wg_time now, struct wg_out *out)
{
	LIST_FOR_EACH(it, &d->roster.peers)
	{
		struct wg_peer *p = WEFT_CONTAINER_OF(it, struct wg_peer, of_device);
		bool was_in_use =
			wg_peer_can_send(p, since) || (p->timers.persistent_s && p->timers.is_up);
		if (was_in_use && p->endpoint.addr.family != IP_FAMILY_NONE &&
			is_session_stale(p, now.mono)) {
			wg_agenda_want_session(d, p, now.mono, false);
		}
	}
	/* Timers before messages: the end of old keys ends also an initiation under way. */
	wg_device_tick(d, now, out);
}

struct mono
wg_device_deadline(const struct wg_device *d)
{
	return list_is_empty(&d->todo) ? timerwheel_next(&d->wheel) : d->now;
}

static void
settle_one(struct wg_device *d, struct wg_time now, const struct wg_note *n)
{
	struct wg_peer *p = n->peer;
	if (n->needs & WG_NEED_ENDPOINT) {
		wg_peer_move_endpoint(d, p, &n->from);
	}
	if (n->needs & WG_NEED_CONFIRM && wg_keyring_confirm(d, p, n->session)) {
		p->is_stamp_proven = true;
		p->unconfirmed = 0;
		wg_timers_session_complete(&p->timers);
		p->handshakes++;
		p->last_handshake_wall_ns = now.wall_ns;
		wg_agenda_cancel(p, WG_TODO_INITIATION);
		wg_agenda_expect_end(d, p);
		wg_agenda_add(d, p, WG_TODO_SESSION);
	}
	if (n->needs & WG_NEED_HANDSHAKE) {
		wg_agenda_want_session(d, p, now.mono, false);
	}
	if (n->needs & (WG_NEED_TIMER | WG_NEED_CONFIRM)) {
		wg_peer_arm(d, p);
	}
}

void
wg_device_settle(struct wg_device *d, struct wg_time now, struct wg_note *notes, size_t n,
	struct wg_out *out)
{
	d->now = mono_is_before(d->now, now.mono) ? now.mono : d->now;
	for (size_t i = 0; i < n; i++) {
		struct wg_note *note = &notes[i];
		if (!note->peer) {
			continue;
		}
		if (!wg_peer_is_removed(note->peer)) {
			settle_one(d, now, note);
		}
		if (note->session) {
			wg_session_put(note->session);
		}
		wg_peer_put(note->peer);
		*note = (struct wg_note){0};
	}
	wg_agenda_run(d, now, out);
}

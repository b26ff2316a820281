/* SPDX-License-Identifier: Apache-2.0 */
/* The data path: [shared] calls. Only atomics and the window are written; everything else of
 * peers, sessions and tables stands still while one of these runs. */
#include "wg/engine.h"

#include <string.h>

static struct wg_peer *
peer_of(struct allowed_owner *owner)
{
	return owner ? WEFT_CONTAINER_OF(owner, struct wg_peer, allowed) : NULL;
}

struct wg_peer *
wg_device_route_raw(const struct wg_device *d, enum ip_family family, const uint8_t *dst)
{
	return peer_of(allowed_lookup(d->allowed, family, dst));
}

struct wg_peer *
wg_device_route(const struct wg_device *d, const struct ip_addr *dst)
{
	return wg_device_route_raw(d, dst->family, dst->b);
}

bool
wg_peer_may_source(const struct wg_device *d, const struct wg_peer *p, enum ip_family family,
	const uint8_t *src)
{
	return allowed_lookup(d->allowed, family, src) == &p->allowed;
}

struct wg_session *
wg_device_session(const struct wg_device *d, uint32_t index)
{
	const struct wg_index_entry *e = wg_index_find(&d->index, index);
	return e && e->kind == WG_INDEX_SESSION ? e->what : NULL;
}

static void
note_fill(struct wg_note *note, struct wg_peer *p, uint32_t needs)
{
	note->needs = needs;
	note->peer = NULL;
	note->session = NULL;
	if (needs) {
		wg_peer_get(p);
		note->peer = p;
	}
}

/* An initiation within REKEY_TIMEOUT is still awaiting its answer. */
static bool
may_initiate(const struct wg_peer *p, struct mono now)
{
	return now.ns - p->initiation_ns >= WG_REKEY_TIMEOUT_NS;
}

bool
wg_peer_has_staged(const struct wg_peer *p)
{
	return p->stage.n > 0;
}

bool
wg_peer_can_send(const struct wg_peer *p, struct mono now)
{
	return p->current && !wg_session_is_too_old(p->current, now);
}

struct wg_session *
wg_peer_begin_send(struct wg_device *d, struct wg_peer *p, struct mono now, uint32_t n,
	uint64_t bytes, uint64_t *first_counter, struct wg_note *note)
{
	(void)d;
	struct wg_session *s = p->current;
	uint64_t first;
	if (!s || wg_session_is_too_old(s, now) || !wg_session_take_counters(s, n, &first)) {
		note_fill(note, p, WG_NEED_HANDSHAKE);
		return NULL;
	}
	*first_counter = first;
	atomic_fetch_add_explicit(&p->tx_bytes, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&p->tx_packets, n, memory_order_relaxed);
	uint32_t needs = 0;
	if (wg_timers_sent(&p->timers, now, bytes > (uint64_t)n * WG_OVERHEAD)) {
		needs |= WG_NEED_TIMER;
	}
	if (WEFT_UNLIKELY(wg_session_wants_rekey(s, first + n, now)) && may_initiate(p, now)) {
		needs |= WG_NEED_HANDSHAKE;
	}
	note_fill(note, p, needs);
	return s;
}

struct wg_session *
wg_peer_session(const struct wg_peer *p)
{
	return p->current;
}

struct wg_session *
wg_peer_session_by_id(const struct wg_peer *p, uint64_t id, struct mono now)
{
	struct wg_session *const slots[] = {p->current, p->previous, p->next};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(slots); i++) {
		if (slots[i] && slots[i]->id == id) {
			return wg_session_is_too_old(slots[i], now) ? NULL : slots[i];
		}
	}
	return NULL;
}

bool
wg_session_begin_frames(struct wg_session *s, uint32_t n, uint64_t *first)
{
	return wg_session_take_counters(s, n, first);
}

void
wg_session_end_frames(struct wg_session *s, struct mono now, uint32_t n, uint64_t bytes)
{
	struct wg_peer *p = s->peer;
	atomic_fetch_add_explicit(&p->tx_bytes, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&p->tx_packets, n, memory_order_relaxed);
	/* Something was sent, so fewer timers run than before: none becomes due earlier. */
	(void)wg_timers_sent(&p->timers, now, false);
}

/* The session we send with is ours to renew and comes near its end, though we only receive. */
static bool
wants_rekey_on_receive(struct wg_peer *p, struct mono now)
{
	const struct wg_session *s = p->current;
	if (!s || !s->is_initiator ||
		mono_diff_ns(now, s->born) <
			WG_REJECT_AFTER_TIME_NS - WG_KEEPALIVE_TIMEOUT_NS - WG_REKEY_TIMEOUT_NS ||
		!may_initiate(p, now)) {
		return false;
	}
	return !atomic_exchange_explicit(&p->has_rekeyed_on_receive, true, memory_order_relaxed);
}

static bool
is_same_endpoint(const struct endpoint *a, const struct endpoint *b)
{
	return endpoint_is_same_remote(a, b) && a->src_ifindex == b->src_ifindex &&
	       ip_addr_is_equal(&a->src, &b->src);
}

void
wg_session_accept(struct wg_device *d, struct wg_session *s, struct mono now, struct aead_op *ops,
	size_t n, const struct endpoint *from, uint64_t *replays, struct wg_note *note)
{
	(void)d;
	struct wg_peer *p = s->peer;
	struct wg_session_passed passed;
	wg_session_window_pass(s, ops, n, &passed);
	if (passed.replays) {
		*replays += passed.replays;
		if (!endpoint_is_same_remote(from, &p->endpoint)) {
			atomic_fetch_add_explicit(
				&p->rejected_moves, passed.replays, memory_order_relaxed);
		}
	}
	if (!passed.packets) {
		note_fill(note, p, 0);
		return;
	}
	atomic_fetch_add_explicit(&p->rx_bytes, passed.bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&p->rx_packets, passed.packets, memory_order_relaxed);
	uint32_t needs = 0;
	if (wg_timers_received(&p->timers, now, passed.has_data)) {
		needs |= WG_NEED_TIMER;
	}
	if (wants_rekey_on_receive(p, now)) {
		needs |= WG_NEED_HANDSHAKE;
	}
	if (!is_same_endpoint(from, &p->endpoint)) {
		needs |= WG_NEED_ENDPOINT;
	}
	if (!s->is_confirmed) {
		needs |= WG_NEED_CONFIRM;
	}
	note_fill(note, p, needs);
	if (needs & WG_NEED_ENDPOINT) {
		note->from = *from;
	}
	if (needs & WG_NEED_CONFIRM) {
		wg_session_get(s);
		note->session = s;
	}
}

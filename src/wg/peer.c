/* SPDX-License-Identifier: Apache-2.0 */
#include "wg/peer.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/secret.h"
#include "wg/engine.h"
#include "wg/session.h"

enum weft_err
wg_peer_new(struct wg_peer **out)
{
	struct wg_peer *p = aligned_alloc(_Alignof(struct wg_peer), sizeof(*p));
	if (!p) {
		return WEFT_ENOMEM;
	}
	memset(p, 0, sizeof(*p));
	atomic_init(&p->refs, 1);
	p->initiation_ns = -WG_REKEY_TIMEOUT_NS;
	wg_timers_init(&p->timers);
	list_init(&p->of_device);
	list_init(&p->todo_link);
	timer_init(&p->timer);
	allowed_owner_init(&p->allowed);
	wg_stage_init(&p->stage);
	*out = p;
	return WEFT_OK;
}

void
wg_peer_get(struct wg_peer *p)
{
	atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
}

void
wg_peer_put(struct wg_peer *p)
{
	if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1) {
		free(p->rival);
		secret_wipe(p, sizeof(*p));
		free(p);
	}
}

bool
wg_peer_is_removed(const struct wg_peer *p)
{
	return atomic_load_explicit(&p->is_removed, memory_order_acquire);
}

void
wg_peer_set_user(struct wg_peer *p, void *user)
{
	p->user = user;
}

void *
wg_peer_user(const struct wg_peer *p)
{
	return p->user;
}

void
wg_peer_set_ally(struct wg_peer *p, void *ally)
{
	p->ally = ally;
}

void *
wg_peer_ally(const struct wg_peer *p)
{
	return p->ally;
}

void
wg_peer_set_psk(struct wg_peer *p, const uint8_t psk[WG_KEY_LEN])
{
	memcpy(p->remote.psk, psk, WG_KEY_LEN);
}

void
wg_peer_psk(const struct wg_peer *p, uint8_t out[WG_KEY_LEN])
{
	memcpy(out, p->remote.psk, WG_KEY_LEN);
}

void
wg_peer_set_endpoint(struct wg_peer *p, const struct endpoint *e)
{
	p->endpoint = *e;
	wg_peer_drop_rival(p);
}

void
wg_peer_set_rival(struct wg_peer *p, const struct endpoint *e)
{
	if (!p->rival) {
		p->rival = malloc(sizeof(*p->rival));
	}
	if (p->rival) {
		p->rival->to = *e;
		p->rival->due = MONO_NEVER;
	}
}

void
wg_peer_drop_rival(struct wg_peer *p)
{
	wg_agenda_cancel(p, WG_TODO_RIVAL); /* a later rival has no initiation yet */
	free(p->rival);
	p->rival = NULL;
}

struct endpoint
wg_peer_endpoint(const struct wg_peer *p)
{
	return p->endpoint;
}

struct endpoint
wg_peer_moved_from(const struct wg_peer *p)
{
	return p->moved_from;
}

bool
wg_peer_allowed_next(const struct wg_peer *p, void **cursor, struct ip_prefix *out)
{
	return allowed_next(&p->allowed, cursor, out);
}

static uint64_t
get(const _Atomic uint64_t *a)
{
	return atomic_load_explicit(a, memory_order_relaxed);
}

void
wg_peer_info(const struct wg_peer *p, struct wg_peer_info *out)
{
	*out = (struct wg_peer_info){
		.has_psk = !secret_is_zero(p->remote.psk, sizeof(p->remote.psk)),
		.endpoint = p->endpoint,
		.keepalive_s = p->timers.persistent_s,
		.last_handshake_wall_ns = p->last_handshake_wall_ns,
		.rx_bytes = get(&p->rx_bytes),
		.tx_bytes = get(&p->tx_bytes),
		.rx_packets = get(&p->rx_packets),
		.tx_packets = get(&p->tx_packets),
		.stale_initiations = p->stale_initiations,
		.rejected_moves = get(&p->rejected_moves),
		.handshakes = p->handshakes,
		.handshake_tries = p->handshake_tries,
		.unanswered = p->timers.attempts,
		.staged_packets = p->stage.n,
		.staged_bytes = p->stage.bytes,
		.has_session = p->current != NULL,
	};
	memcpy(out->public_key, p->remote.public_key, WG_KEY_LEN);
	if (p->current) {
		out->session_born = p->current->born;
	}
}

static struct mono
get_time(const _Atomic int64_t *a)
{
	return (struct mono){atomic_load_explicit(a, memory_order_relaxed)};
}

void
wg_peer_trail(const struct wg_peer *p, struct wg_peer_trail *out)
{
	*out = (struct wg_peer_trail){
		.sent = get_time(&p->timers.sent_ns),
		.received = get_time(&p->timers.received_ns),
		.unanswered_since = get_time(&p->timers.unanswered_ns),
		.tried = {p->handshake_tries ? p->initiation_ns : 0},
		.trying_since = {p->timers.attempts ? p->series_ns : 0},
		.gave_up = {p->gave_up_ns},
		.gave_up_tries = p->gave_up_tries,
		.called = {p->accepted_ns},
		.calls_unused = p->unconfirmed,
	};
	struct wg_session *const sessions[] = {p->current, p->previous};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(sessions); i++) {
		if (sessions[i]) {
			wg_session_count_arrivals(sessions[i], &out->expected, &out->arrived);
		}
	}
}

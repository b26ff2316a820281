/* SPDX-License-Identifier: Apache-2.0 */
#include "node/recover.h"

#include "base/assert.h"
#include "node/egress.h"
#include "node/ingress.h"
#include "pkt/ecn.h"
#include "pkt/ip.h"

#define DUE_MAX 32

static void
rearm(struct worker *w, struct ally *a, struct wg_time now)
{
	if (ally_rearm(w->env.allies, a, now.mono) && w->index != 0) {
		w->env.wake(w->env.ctx, 0);
	}
}

struct ally *
recover_begin(const struct wg_peer *p)
{
	struct ally *a = wg_peer_ally(p);
	if (a) {
		os_mutex_lock(&a->mutex);
	}
	return a;
}

/* One packet of a span at most, so that marks spread over the flows. The outer header keeps what it
 * has: on exit the two are combined, and CE inside stays (RFC 6040). */
static void
mark_congestion(
	struct fec_recovery *r, struct egress_job *j, const struct egress_span *s, struct mono now)
{
	if ((s->ecn == ECN_ECT0 || s->ecn == ECN_ECT1) && fec_recovery_take_mark(r, now)) {
		ip_set_ecn(j->buf + j->segs[s->first].off + GSO_HEADROOM, ECN_CE);
	}
}

static void
show_sources(struct fec_recovery *r, const struct egress_job *j, const struct egress_span *s,
	struct mono now)
{
	uint64_t id = wg_session_id(s->session);
	const struct gso_seg *segs = j->segs + s->first;
	if (fec_recovery_wants_sources(r, now)) {
		for (size_t k = 0; k < s->n; k++) {
			fec_recovery_source(r, now, id, s->counter + k,
				j->buf + segs[k].off + GSO_HEADROOM, segs[k].len);
		}
		return;
	}
	size_t bytes = 0;
	for (size_t k = 0; k < s->n; k++) {
		bytes += segs[k].len;
	}
	fec_recovery_sent_run(r, now, id, s->counter, s->n, bytes);
}

void
recover_end(struct worker *w, struct ally *a, struct egress_job *j, struct egress_span *s,
	struct wg_time now)
{
	uint64_t id = s->session ? wg_session_id(s->session) : 0;
	bool is_due = s->session && wg_hello_sent(&a->hello, now.mono, id);
	if (s->session && a->recovery) {
		mark_congestion(a->recovery, j, s, now.mono);
		show_sources(a->recovery, j, s, now.mono);
		s->has_frames_due = fec_recovery_frames_due(a->recovery, now.mono, id) > 0;
		is_due = true;
	}
	if (is_due) {
		rearm(w, a, now);
	}
	os_mutex_unlock(&a->mutex);
}

/* --- inbound --- */

/* Hands on what the decoder gave out, and makes room for more: the arena is used again. */
static void
deliver(struct worker *w, const struct wg_peer *p, struct wg_session *s)
{
	struct fec_out *out = &w->recovered;
	for (size_t i = 0; i < out->n; i++) {
		const struct fec_packet *k = &out->packets[i];
		if (k->is_recovered && !s) {
			w->stats.drops.n[DROP_RX_EXPIRED]++;
		} else if (!k->is_recovered || wg_session_mark(s, k->counter)) {
			w->stats.recovered_rx += k->is_recovered;
			ingress_take_packet(w, p, k->data, k->len, k->ecn);
		} /* else it came by itself meanwhile, and has been delivered */
	}
	if (out->arena_used > 0) {
		ingress_write(w);
	}
	out->n = 0;
	out->arena_used = 0;
}

static void
deliver_ready(struct worker *w, struct ally *a, struct wg_time now)
{
	bool has_more;
	do {
		uint64_t id = 0;
		has_more = fec_recovery_take(a->recovery, now.mono, &id, &w->recovered);
		deliver(w, a->peer, wg_peer_session_by_id(a->peer, id, now.mono));
	} while (has_more);
}

/* Packets with consecutive counters and no frame among them. */
static bool
is_plain(const struct ingress_job *j, const struct ingress_run *r)
{
	const struct aead_op *ops = j->ops + r->first;
	for (size_t k = 0; k < r->n; k++) {
		if (!ops[k].ok || ops[k].counter != ops[0].counter + k ||
			wire_ext_is_frame(ops[k].data, ops[k].len)) {
			return false;
		}
	}
	return r->n > 0;
}

/* As wg_hello_received(): HELLO may be due again because of these. */
static bool
tell_hello(
	struct ally *a, const struct ingress_job *j, const struct ingress_run *r, struct mono now)
{
	struct wg_hello_arrival in = {.n = 0};
	for (size_t k = r->first; k < (size_t)r->first + r->n; k++) {
		const struct aead_op *op = &j->ops[k];
		if (op->ok) {
			in.n++;
			in.end = op->counter + 1 > in.end ? op->counter + 1 : in.end;
			in.has_data |= op->len > 0 && !wire_ext_is_frame(op->data, op->len);
		}
	}
	return wg_hello_received(&a->hello, now, wg_session_id(r->session), &in);
}

/* A packet or a frame. False: a frame that is not understood or not agreed on. */
static bool
take(struct worker *w, struct ally *a, struct ingress_run *r, const struct aead_op *op, uint8_t ecn,
	struct wg_time now)
{
	struct wg_session *s = r->session;
	bool is_frame = wire_ext_is_frame(op->data, op->len);
	enum wire_ext_type type = is_frame ? wire_ext_type(op->data, op->len) : WIRE_EXT_TYPE_NONE;
	bool is_known = !is_frame || type != WIRE_EXT_TYPE_NONE;
	bool is_good = true;
	if (type == WIRE_EXT_TYPE_HELLO) {
		is_good = ally_hello(w->env.allies, a, now.mono, s, op->data, op->len);
		r->has_frames_due = true;
	} else if (is_frame && is_known) {
		is_good = ally_takes_frame(w->env.allies, a, now.mono, s);
	}
	if (a->recovery) {
		struct fec_out *out = &w->recovered;
		if (out->n == out->cap) {
			deliver(w, a->peer, s);
		}
		/* One that is refused, or of a type that we do not know, is no loss either: its
		 * counter is told. */
		const struct fec_arrival p = {
			op->counter, op->data, is_good ? op->len : 0, ecn, false};
		is_good &= fec_recovery_received(a->recovery, now.mono, wg_session_id(s), &p, out);
	} else if (!is_frame) {
		ingress_take_packet(w, a->peer, op->data, op->len, ecn);
	}
	w->stats.frames_rx += is_frame && is_known && is_good;
	return is_known && is_good;
}

void
recover_received(struct worker *w, struct ingress_job *j, struct ingress_run *r, struct wg_time now)
{
	struct ally *a = wg_peer_ally(wg_session_peer(r->session));
	os_mutex_lock(&a->mutex);
	uint64_t id = wg_session_id(r->session);
	bool is_due = wg_hello_is_asking(&a->hello, id) && tell_hello(a, j, r, now.mono);
	if (a->recovery) {
		fec_recovery_set_overflow(a->recovery, j->has_overflow);
		if (fec_recovery_begin(a->recovery, id)) {
			deliver_ready(w, a, now);
		}
	}
	bool is_quiet =
		is_plain(j, r) && (!a->recovery || fec_recovery_skip(a->recovery, now.mono, id,
							   j->ops[r->first].counter, r->n));
	for (size_t k = r->first; k < (size_t)r->first + r->n; k++) {
		const struct aead_op *op = &j->ops[k];
		if (!op->ok) {
			continue;
		}
		w->stats.keepalives_rx += op->len == 0;
		if (is_quiet) {
			ingress_take_packet(w, a->peer, op->data, op->len, j->ecn[k]);
		} else if (!take(w, a, r, op, j->ecn[k], now)) {
			w->stats.drops.n[DROP_RX_EXT]++;
		}
	}
	if (!is_quiet) {
		deliver(w, a->peer, r->session);
		if (a->recovery) {
			deliver_ready(w, a, now);
			r->has_frames_due |=
				fec_recovery_due_session(a->recovery, now.mono, 0) != 0;
			/* Or a tick of worker 0 hands on what comes behind them first. */
			ingress_write(w);
		}
	}
	if (is_due || !is_quiet) {
		rearm(w, a, now);
	}
	os_mutex_unlock(&a->mutex);
}

/* --- frames --- */

/* Room for one more frame of any kind behind what the job holds; NULL: it is full. */
static uint8_t *
frame_place(struct egress_job *j, size_t len_max)
{
	struct gso_arena *g = &j->arena;
	if (g->segs_n == JOB_SEGS_MAX || j->spans_n == JOB_SPANS_MAX ||
		g->cap - g->used < GSO_HEADROOM + len_max + GSO_TAILROOM) {
		return NULL;
	}
	return g->buf + g->used + GSO_HEADROOM;
}

/* The frame at frame_place() is part of the span: counters of a span follow each other. */
static void
frame_add(struct egress_job *j, struct egress_span *s, size_t len)
{
	struct gso_arena *g = &j->arena;
	g->segs[g->segs_n++] = (struct gso_seg){
		.off = (uint32_t)g->used, .len = (uint16_t)len, .padded_len = (uint16_t)len};
	g->used += GSO_HEADROOM + len + GSO_TAILROOM;
	s->n++;
}

static struct egress_span *
span_begin(struct egress_job *j, struct wg_peer *p, struct wg_session *s, uint64_t counter)
{
	struct egress_span *span = &j->spans[j->spans_n++];
	*span = (struct egress_span){.peer = p,
		.session = s,
		.to = wg_peer_endpoint(p),
		.counter = counter,
		.first = (uint16_t)j->arena.segs_n};
	wg_session_get(s);
	return span;
}

static void
span_end(struct egress_job *j, const struct egress_span *span, struct wg_time now)
{
	uint64_t bytes = 0;
	for (size_t k = span->first; k < (size_t)span->first + span->n; k++) {
		bytes += j->segs[k].padded_len + WG_OVERHEAD;
	}
	wg_session_end_frames(span->session, now.mono, span->n, bytes);
}

/* False: the job is full. */
static bool
add_hello(struct ally *a, struct egress_job *j, struct wg_time now)
{
	uint8_t *at;
	while ((at = frame_place(j, WIRE_EXT_HELLO_MAX))) {
		struct wg_session *s;
		uint64_t counter;
		size_t len = ally_take_hello(a, now.mono, &s, at, WIRE_EXT_HELLO_MAX);
		if (len == 0) {
			return true;
		}
		if (wg_session_begin_frames(s, 1, &counter)) {
			struct egress_span *span = span_begin(j, a->peer, s, counter);
			frame_add(j, span, len);
			span_end(j, span, now);
		}
	}
	return false;
}

/* How many frames of that length have room behind what the job holds. */
static size_t
frame_places(const struct egress_job *j, size_t len_max)
{
	const struct gso_arena *g = &j->arena;
	size_t by_bytes = (g->cap - g->used) / (GSO_HEADROOM + len_max + GSO_TAILROOM);
	size_t by_segs = JOB_SEGS_MAX - g->segs_n;
	return j->spans_n == JOB_SPANS_MAX ? 0 : by_bytes < by_segs ? by_bytes : by_segs;
}

/* Frames of loss recovery of one session, in a span of consecutive counters. No counter is taken
 * that is not used: the other side would take it for a loss. False: the job is full. */
static bool
add_repairs(struct allies *t, struct ally *a, struct egress_job *j, struct wg_session *s,
	struct wg_time now)
{
	uint64_t id = wg_session_id(s);
	size_t frame_max = allies_frame_max(t);
	size_t places = frame_places(j, frame_max);
	size_t due = fec_recovery_frames_due(a->recovery, now.mono, id);
	size_t n = due < places ? due : places;
	uint64_t counter;
	if (n == 0 || !wg_session_begin_frames(s, (uint32_t)n, &counter)) {
		return due == 0 || places > 0;
	}
	struct egress_span *span = span_begin(j, a->peer, s, counter);
	for (size_t i = 0; i < n; i++) {
		size_t len = fec_recovery_frame(a->recovery, now.mono, id, counter + i,
			frame_place(j, frame_max), frame_max);
		if (len == 0) {
			break;
		}
		frame_add(j, span, len);
	}
	span_end(j, span, now);
	return n == due;
}

/* Of all sessions. False: the job is full. */
static bool
add_due(struct allies *t, struct ally *a, struct egress_job *j, struct wg_time now)
{
	unsigned waiting = 0; /* sessions whose HELLO is not answered yet */
	uint64_t id;
	while (a->recovery && (id = fec_recovery_due_session(a->recovery, now.mono, waiting))) {
		struct wg_session *s = wg_peer_session_by_id(a->peer, id, now.mono);
		if (!s) {
			fec_recovery_forget(a->recovery, id);
		} else if (!ally_may_send_frames(a, id)) {
			waiting++;
		} else if (!add_repairs(t, a, j, s, now)) {
			return false;
		} else if (fec_recovery_frames_due(a->recovery, now.mono, id) > 0) {
			return true; /* no counters left */
		}
	}
	return true;
}

/* Fills the flush job. Returns whether it holds frames; *is_all: no more are due. */
static bool
fill(struct worker *w, struct wg_peer *p, struct egress_job *j, struct wg_time now, bool *is_all)
{
	j->arena.used = 0;
	j->arena.segs_n = 0;
	j->spans_n = 0;
	*is_all = true;
	os_rwlock_read_lock(w->env.lock);
	struct ally *a = wg_peer_ally(p);
	if (a) {
		os_mutex_lock(&a->mutex);
		*is_all = add_hello(a, j, now);
		*is_all = *is_all && add_due(w->env.allies, a, j, now);
		rearm(w, a, now);
		os_mutex_unlock(&a->mutex);
	}
	os_rwlock_read_unlock(w->env.lock);
	return j->arena.segs_n > 0;
}

void
recover_flush(struct worker *w, struct wg_peer *p, struct wg_time now)
{
	struct egress_job *j = w->flush;
	bool is_all = false;
	while (!is_all && fill(w, p, j, now, &is_all)) {
		w->has_used_keys = true;
		egress_seal(w->aead, j);
		egress_send(w, j, now);
	}
}

void
recover_tick(struct worker *w, struct wg_time now)
{
	struct wg_peer *due[DUE_MAX];
	os_rwlock_read_lock(w->env.lock);
	size_t n = allies_due(w->env.allies, now.mono, due, DUE_MAX);
	for (size_t i = 0; i < n; i++) {
		struct ally *a = wg_peer_ally(due[i]);
		os_mutex_lock(&a->mutex);
		if (a->recovery) {
			deliver_ready(w, a, now);
		}
		os_mutex_unlock(&a->mutex);
	}
	os_rwlock_read_unlock(w->env.lock);
	ingress_write(w);
	for (size_t i = 0; i < n; i++) {
		recover_flush(w, due[i], now);
		wg_peer_put(due[i]);
	}
}

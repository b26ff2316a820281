/* SPDX-License-Identifier: Apache-2.0 */
#include "node/egress.h"

#include <string.h>

#include "base/assert.h"
#include "base/endian.h"
#include "node/recover.h"
#include "node/troubles.h"
#include "wire/wg.h"

#define IP_PROTO_UDP 17
#define IPV6_HEADER_LEN 40
#define UDP_HEADER_LEN 8
#define WORKER_PAD_MAX 16 /* zeros behind a packet, WireGuard paper 5.4.6 */

void
egress_job_init(struct egress_job *j)
{
	atomic_init(&j->job.state, JOB_STATE_EMPTY);
	j->job.kind = JOB_KIND_EGRESS;
	j->arena = (struct gso_arena){
		.buf = j->buf, .cap = sizeof(j->buf), .segs = j->segs, .segs_cap = JOB_SEGS_MAX};
	j->spans_n = 0;
}

static void
drop(struct worker *w, enum drop_reason why, uint64_t n)
{
	w->stats.drops.n[why] += n;
}

/* What routing needs of a frame, from its first bytes. */
struct inner {
	enum ip_family family;
	const uint8_t *dst;
	uint8_t ecn;
};

static bool
parse_inner(const struct frame *f, struct inner *out)
{
	const uint8_t *b = f->data;
	if (f->len >= 20 && b[0] >> 4 == 4) {
		*out = (struct inner){IP_FAMILY_V4, b + 16, b[1] & 3};
		return true;
	}
	if (f->len >= IPV6_HEADER_LEN && b[0] >> 4 == 6) {
		*out = (struct inner){IP_FAMILY_V6, b + 24, (b[1] >> 4) & 3};
		return true;
	}
	return false;
}

/* A WireGuard message from our port to the endpoint of the peer that it would be sealed for: the
 * routing sends the tunnel's own packets back into the tunnel. */
static bool
is_own_outer(
	struct worker *w, const struct frame *f, const struct inner *in, const struct wg_peer *peer)
{
	const uint8_t *b = f->data;
	size_t l4 = in->family == IP_FAMILY_V4 ? (size_t)(b[0] & 15) * 4 : IPV6_HEADER_LEN;
	uint8_t proto = in->family == IP_FAMILY_V4 ? b[9] : b[6];
	if (proto != IP_PROTO_UDP || f->len < l4 + UDP_HEADER_LEN + 4 ||
		load_be16(b + l4) !=
			atomic_load_explicit(w->env.listen_port, memory_order_relaxed)) {
		return false;
	}
	struct endpoint e = wg_peer_endpoint(peer);
	uint8_t type = b[l4 + UDP_HEADER_LEN];
	return e.addr.family == in->family && load_be16(b + l4 + 2) == e.port &&
	       memcmp(e.addr.b, in->dst, ip_family_len(in->family)) == 0 && type >= 1 && type <= 4;
}

static void
note_unroutable(struct worker *w, const struct inner *in)
{
	if (mono_is_before(w->now, w->route_noted_at)) {
		return;
	}
	struct endpoint at = {.addr.family = in->family};
	memcpy(at.addr.b, in->dst, ip_family_len(in->family));
	worker_note_trouble(w, WG_TROUBLE_ROUTE, NULL, &at);
	w->route_noted_at = mono_add_ns(w->now, TROUBLES_PAUSE_NS);
}

/* Splits the frame in hand into the job. False: the job has no room for it now. */
static bool
take_frame(struct worker *w, struct egress_job *j)
{
	struct inner in;
	w->has_frame = false;
	if (!parse_inner(&w->frame, &in)) {
		drop(w, DROP_TX_INNER, 1);
		return true;
	}
	struct wg_peer *peer = wg_device_route_raw(w->env.device, in.family, in.dst);
	if (!peer) {
		drop(w, DROP_TX_ROUTE, 1);
		note_unroutable(w, &in);
		return true;
	}
	if (is_own_outer(w, &w->frame, &in, peer)) {
		struct endpoint to = wg_peer_endpoint(peer);
		drop(w, DROP_TX_LOOP, 1);
		worker_note_trouble(w, WG_TROUBLE_LOOP, NULL, &to);
		return true;
	}
	struct egress_span *s = j->spans_n > 0 ? &j->spans[j->spans_n - 1] : NULL;
	bool is_same = s && s->peer == peer && s->ecn == in.ecn;
	if (!is_same && j->spans_n == JOB_SPANS_MAX) {
		w->has_frame = true;
		return false;
	}
	enum drop_reason why;
	size_t first = j->arena.segs_n;
	size_t n = gso_split(&w->frame, w->port->mtu, &j->arena, &why);
	if (n == 0) {
		if (why == DROP_COUNT) {
			w->has_frame = true;
			return false;
		}
		drop(w, why, 1);
		return true;
	}
	if (is_same) {
		s->n = (uint16_t)(s->n + n);
		return true;
	}
	j->spans[j->spans_n++] = (struct egress_span){
		.peer = peer, .first = (uint16_t)first, .n = (uint16_t)n, .ecn = in.ecn};
	return true;
}

static uint64_t
span_bytes(const struct egress_job *j, const struct egress_span *s)
{
	uint64_t bytes = 0;
	for (size_t i = s->first; i < (size_t)s->first + s->n; i++) {
		bytes += j->segs[i].padded_len + WG_OVERHEAD;
	}
	return bytes;
}

/* Takes the span's counters, and shows its packets to loss recovery. Under the lock. */
static void
begin_span(struct worker *w, struct egress_job *j, struct egress_span *s, struct wg_time now)
{
	struct wg_note *note = worker_note_slot(w);
	weft_assert(note);
	/* Both under the ally's mutex: other workers take counters for this peer too, and the
	 * encoder is to see them in their order. */
	struct ally *a = recover_begin(s->peer);
	s->session = wg_peer_begin_send(
		w->env.device, s->peer, now.mono, s->n, span_bytes(j, s), &s->counter, note);
	worker_note_keep(w, note);
	if (s->session) {
		wg_session_get(s->session);
		s->to = wg_peer_endpoint(s->peer);
	}
	if (a) {
		recover_end(w, a, j, s, now);
	}
}

/* Keeps a span's packets with its peer until there is a session. Under the lock, alone. */
static void
stage_span(struct worker *w, struct egress_job *j, struct egress_span *s, struct wg_time now)
{
	for (size_t k = s->first; k < (size_t)s->first + s->n; k++) {
		wg_peer_stage(w->env.device, s->peer, j->buf + j->segs[k].off + GSO_HEADROOM,
			j->segs[k].len, &w->out);
	}
	s->n = 0;
	/* Another worker may have brought the session up since this one looked. */
	if (wg_peer_can_send(s->peer, now.mono)) {
		worker_add_ready(w, s->peer);
		return;
	}
	/* What was staged before need not have a handshake under way: the peer may have had no
	 * endpoint then. Each packet asks anew, as if none were waiting. */
	struct wg_note *note = worker_note_slot(w);
	if (note) {
		wg_peer_get(s->peer);
		*note = (struct wg_note){.peer = s->peer, .needs = WG_NEED_HANDSHAKE};
		worker_note_keep(w, note);
	}
}

/* The spans that found no session keep a reference to their peer until here. */
static void
stage_unsent(struct worker *w, struct egress_job *j, struct wg_time now)
{
	worker_begin_engine(w);
	for (size_t i = 0; i < j->spans_n; i++) {
		struct egress_span *s = &j->spans[i];
		if (s->session || s->n == 0) {
			continue;
		}
		if (wg_peer_is_removed(s->peer)) {
			drop(w, DROP_TX_ROUTE, s->n);
			s->n = 0;
		} else {
			stage_span(w, j, s, now);
		}
		wg_peer_put(s->peer);
	}
	worker_end_engine(w, now);
}

bool
egress_fill(struct worker *w, struct egress_job *j, struct wg_time now, bool *is_empty)
{
	bool has_unsent = false;
	j->arena.used = 0;
	j->arena.segs_n = 0;
	j->spans_n = 0;
	*is_empty = false;

	os_rwlock_read_lock(w->env.lock);
	for (unsigned i = 0; i < JOB_FRAMES_MAX && j->arena.segs_n < JOB_SEGS_MAX; i++) {
		if (!w->has_frame) {
			enum weft_err e = w->port->ops->receive(
				w->port, w->frame_buf, WORKER_FRAME_LEN, &w->frame);
			if (e) {
				w->is_closed |= e == WEFT_ECLOSED;
				*is_empty = true;
				break;
			}
		}
		if (!take_frame(w, j)) {
			break;
		}
	}
	for (size_t i = 0; i < j->spans_n; i++) {
		struct egress_span *s = &j->spans[i];
		if (!wg_peer_has_staged(s->peer)) {
			begin_span(w, j, s, now);
		}
		if (!s->session) {
			wg_peer_get(s->peer); /* for stage_unsent() */
			has_unsent = true;
		}
	}
	os_rwlock_read_unlock(w->env.lock);

	if (has_unsent) {
		stage_unsent(w, j, now);
	} else {
		worker_settle(w, now);
	}
	return j->arena.segs_n > 0;
}

void
egress_seal(struct aead *a, struct egress_job *j)
{
	struct aead_op ops[JOB_SEGS_MAX];
	for (size_t i = 0; i < j->spans_n; i++) {
		const struct egress_span *s = &j->spans[i];
		if (!s->session) {
			continue;
		}
		uint32_t index = wg_session_remote_index(s->session);
		/* Once: its cipher marks the headers. */
		const struct aead_key *key = wg_session_send_key(s->session);
		for (size_t k = 0; k < s->n; k++) {
			const struct gso_seg *seg = &j->segs[s->first + k];
			uint8_t *datagram = j->buf + seg->off;
			wire_wg_data_write_header(datagram, key->cipher, index, s->counter + k);
			ops[k] = (struct aead_op){.data = datagram + WG_HEADER_LEN,
				.len = seg->padded_len,
				.counter = s->counter + k};
		}
		aead_seal(a, key, ops, s->n);
	}
}

/* Cuts a span into runs of equal datagrams; the last of a run may be shorter. */
static size_t
cut_runs(struct worker *w, struct egress_job *j, const struct egress_span *s, struct link_run *runs,
	size_t cap)
{
	size_t n = 0;
	struct link_run *r = NULL;
	for (size_t k = s->first; k < (size_t)s->first + s->n; k++) {
		const struct gso_seg *seg = &j->segs[k];
		size_t sealed_len = (size_t)seg->padded_len + WG_OVERHEAD;
		if (sealed_len > UINT16_MAX) {
			/* Of an interface with an MTU that no datagram can carry. */
			drop(w, DROP_LINK_MSGSIZE, 1);
			r = NULL;
			continue;
		}
		uint16_t len = (uint16_t)sealed_len;
		if (r && len <= r->seg) {
			r->len += len;
			if (len < r->seg) {
				r = NULL;
			}
			continue;
		}
		weft_assert(n < cap);
		runs[n] = (struct link_run){.to = &s->to,
			.data = j->buf + seg->off,
			.len = len,
			.seg = len,
			.ecn = s->ecn};
		r = &runs[n++];
	}
	return n;
}

/* Sends the job's runs. Returns whether a pinned source address had to be given up. */
static bool
send_runs(struct worker *w, struct egress_job *j)
{
	struct link_run runs[JOB_SEGS_MAX];
	struct egress_span *owner[JOB_SEGS_MAX];
	size_t n = 0;
	bool is_cleared = false;

	for (size_t i = 0; i < j->spans_n; i++) {
		struct egress_span *s = &j->spans[i];
		if (!s->session) {
			continue;
		}
		if (s->to.addr.family == IP_FAMILY_NONE) {
			drop(w, DROP_TX_ENDPOINT, s->n);
			continue;
		}
		size_t added = cut_runs(w, j, s, runs + n, JOB_SEGS_MAX - n);
		for (size_t k = 0; k < added; k++) {
			owner[n + k] = s;
		}
		n += added;
	}
	if (n > 0) {
		w->link->ops->send(w->link, runs, n);
	}
	for (size_t i = 0; i < n; i++) {
		owner[i]->is_src_cleared |= runs[i].src_cleared;
		is_cleared |= runs[i].src_cleared;
		if (WEFT_UNLIKELY(runs[i].errnum)) {
			worker_note_unsent(w, runs[i].to, runs[i].errnum);
		}
	}
	return is_cleared;
}

/* Under the lock, alone. */
static void
clear_sources(struct worker *w, struct egress_job *j)
{
	for (size_t i = 0; i < j->spans_n; i++) {
		if (j->spans[i].is_src_cleared) {
			wg_peer_clear_src(w->env.device, wg_session_peer(j->spans[i].session));
		}
	}
}

/* Fills due, unless NULL, with the peers that have frames due, and references to them. */
static size_t
release_spans(struct egress_job *j, struct wg_peer **due)
{
	size_t n = 0;
	for (size_t i = 0; i < j->spans_n; i++) {
		struct egress_span *s = &j->spans[i];
		if (!s->session) {
			continue;
		}
		struct wg_peer *p = wg_session_peer(s->session);
		if (due && s->has_frames_due && (n == 0 || due[n - 1] != p)) {
			wg_peer_get(p);
			due[n++] = p;
		}
		wg_session_put(s->session);
		s->session = NULL;
	}
	return n;
}

/* What loss recovery wants to send leaves behind what it protects. */
static void
flush_frames(struct worker *w, struct wg_peer **due, size_t n, struct wg_time now)
{
	for (size_t i = 0; i < n; i++) {
		recover_flush(w, due[i], now);
		wg_peer_put(due[i]);
	}
}

void
egress_send(struct worker *w, struct egress_job *j, struct wg_time now)
{
	if (send_runs(w, j)) {
		worker_begin_engine(w);
		clear_sources(w, j);
		worker_end_engine(w, now);
	}
	struct wg_peer *due[JOB_SPANS_MAX];
	size_t n = release_spans(j, due);
	flush_frames(w, due, n, now);
}

/* Moves a peer's staged packets into the flush job, oldest first. Under the lock, alone. */
static bool
take_staged(struct worker *w, struct wg_peer *p, struct egress_job *j)
{
	struct gso_arena *a = &j->arena;
	a->used = 0;
	a->segs_n = 0;
	j->spans_n = 0;
	while (a->segs_n < JOB_SEGS_MAX && j->spans_n < JOB_SPANS_MAX) {
		size_t overhead = GSO_HEADROOM + WORKER_PAD_MAX + GSO_TAILROOM;
		if (a->cap - a->used <= overhead) {
			break;
		}
		uint8_t *packet = a->buf + a->used + GSO_HEADROOM;
		size_t len;
		if (!wg_peer_unstage(w->env.device, p, packet, a->cap - a->used - overhead, &len)) {
			break;
		}
		struct frame f = {.data = packet, .len = (uint32_t)len};
		struct inner in;
		weft_assert(parse_inner(&f, &in)); /* it was parsed before it was staged */
		size_t padded = (len + 15) & ~(size_t)15;
		padded = padded <= w->port->mtu ? padded : len < w->port->mtu ? w->port->mtu : len;
		memset(packet + len, 0, padded - len);
		a->segs[a->segs_n] = (struct gso_seg){.off = (uint32_t)a->used,
			.len = (uint16_t)len,
			.padded_len = (uint16_t)padded};
		a->used += GSO_HEADROOM + padded + GSO_TAILROOM;
		struct egress_span *s = j->spans_n > 0 ? &j->spans[j->spans_n - 1] : NULL;
		if (s && s->ecn == in.ecn) {
			s->n++;
		} else {
			j->spans[j->spans_n++] = (struct egress_span){
				.peer = p, .first = (uint16_t)a->segs_n, .n = 1, .ecn = in.ecn};
		}
		a->segs_n++;
	}
	return a->segs_n > 0;
}

/* All of it with the lock held alone: while packets are staged nobody gets counters, and when
 * they no longer are, they have been sent. So nothing overtakes them. */
static void
flush_peer(struct worker *w, struct wg_peer *p, struct wg_time now)
{
	struct egress_job *j = w->flush;
	worker_begin_engine(w);
	while (!wg_peer_is_removed(p) && wg_peer_can_send(p, now.mono) && take_staged(w, p, j)) {
		for (size_t i = 0; i < j->spans_n; i++) {
			begin_span(w, j, &j->spans[i], now);
			if (!j->spans[i].session) {
				drop(w, DROP_TX_NO_SESSION,
					j->spans[i].n); /* its counters ran out */
			}
		}
		w->has_used_keys = true;
		egress_seal(w->aead, j);
		if (send_runs(w, j)) {
			clear_sources(w, j);
		}
		(void)release_spans(j, NULL);
		wg_device_settle(w->env.device, now, w->notes, w->notes_n, &w->out);
		w->notes_n = 0;
	}
	worker_end_engine(w, now);
}

void
egress_flush_ready(struct worker *w, struct wg_time now)
{
	/* Flushing may find more that is ready; those wait for the next call. */
	struct wg_peer *peers[WORKER_READY_MAX];
	size_t n = w->ready_n;
	memcpy(peers, w->ready, n * sizeof(peers[0]));
	w->ready_n = 0;
	for (size_t i = 0; i < n; i++) {
		flush_peer(w, peers[i], now);
		if (w->env.allies) {
			recover_flush(w, peers[i], now);
		}
		wg_peer_put(peers[i]);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "node/worker.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "node/ally.h"
#include "node/crew.h"
#include "node/egress.h"
#include "node/ingress.h"
#include "node/recover.h"
#include "node/stats.h"
#include "node/troubles.h"

/* Batches of one kind in a turn before the other side gets its chance: bounds the time that a
 * ping waits behind a bulk transfer to this many batches of about 50 us. */
#define TURN_BATCHES 4
/* Recovered and held packets on their way to the port at a time. */
#define RECOVERED_BYTES (128u << 10)
/* Of one worker 16,384 datagrams, which is more than its socket's buffer holds. */
#define SWAP_TURNS_MAX 16

static enum weft_err
alloc_buffers(struct worker *w)
{
	w->frame_buf = malloc(WORKER_FRAME_LEN);
	w->egress = malloc(sizeof(*w->egress));
	w->flush = malloc(sizeof(*w->flush));
	w->ingress = malloc(sizeof(*w->ingress));
	w->pkts = malloc(JOB_PKTS_MAX * sizeof(*w->pkts));
	w->joined = (struct gro_out){.frames = malloc(JOB_PKTS_MAX * sizeof(struct gro_frame)),
		.frames_cap = JOB_PKTS_MAX,
		.pieces = malloc(2 * JOB_PKTS_MAX * sizeof(struct gro_piece)),
		.pieces_cap = 2 * (size_t)JOB_PKTS_MAX};
	w->recovered = (struct fec_out){.packets = malloc(JOB_PKTS_MAX * sizeof(struct fec_packet)),
		.cap = JOB_PKTS_MAX,
		.arena = malloc(RECOVERED_BYTES),
		.arena_cap = RECOVERED_BYTES};
	w->out = (struct wg_out){.msgs = malloc(WORKER_MSGS_MAX * sizeof(struct wg_msg)),
		.msgs_cap = WORKER_MSGS_MAX,
		.events = malloc(WORKER_EVENTS_MAX * sizeof(struct wg_event)),
		.events_cap = WORKER_EVENTS_MAX,
		.drops = &w->stats.drops};
	if (!w->frame_buf || !w->egress || !w->flush || !w->ingress || !w->pkts ||
		!w->joined.frames || !w->joined.pieces || !w->recovered.packets ||
		!w->recovered.arena || !w->out.msgs || !w->out.events) {
		return WEFT_ENOMEM;
	}
	egress_job_init(w->egress);
	egress_job_init(w->flush);
	ingress_job_init(w->ingress);
	w->ingress->buf = NULL;
	return WEFT_OK;
}

static void
free_buffers(struct worker *w)
{
	free(w->frame_buf);
	free(w->egress);
	free(w->flush);
	free(w->ingress);
	free(w->pkts);
	free(w->recovered.packets);
	free(w->recovered.arena);
	free(w->joined.frames);
	free(w->joined.pieces);
	free(w->out.msgs);
	free(w->out.events);
}

enum weft_err
worker_new(const struct worker_config *c, struct worker **out)
{
	struct worker *w = calloc(1, sizeof(*w));
	if (!w) {
		return WEFT_ENOMEM;
	}
	w->env = c->env;
	w->index = c->index;
	w->forget_at = MONO_NEVER;
	enum weft_err e = alloc_buffers(w);
	if (e) {
		goto undo_worker;
	}
	e = aead_new(c->aead, &w->aead);
	if (e) {
		goto undo_worker;
	}
	w->link = c->link;
	w->port = c->port;
	*out = w;
	return WEFT_OK;

undo_worker:
	free_buffers(w);
	free(w);
	return e;
}

void
worker_free(struct worker *w)
{
	weft_assert(w->notes_n == 0);
	while (w->ready_n > 0) {
		wg_peer_put(w->ready[--w->ready_n]);
	}
	w->link->ops->close(w->link);
	w->port->ops->close(w->port);
	aead_free(w->aead);
	free_buffers(w);
	free(w);
}

void
worker_look(struct worker *w)
{
	struct drop_counts sum = w->stats.drops;
	stats_add_drops(&sum, &w->link->stats.drops);
	stats_add_drops(&sum, &w->port->stats.drops);
	drop_times_look(&w->dropped, &sum, w->now);
}

/* Drops are dated by the turn that they were seen after: to a second while turns follow each
 * other, and else exactly. */
static void
begin_turn(struct worker *w, struct mono now)
{
	if (!mono_is_before(now, w->look_at)) {
		worker_look(w);
		w->look_at = mono_add_ns(now, WORKER_LOOK_NS);
	}
	w->now = now;
}

void
worker_note_trouble(
	struct worker *w, enum wg_trouble_kind kind, const uint8_t *key, const struct endpoint *at)
{
	struct wg_trouble what = {.kind = kind, .at = *at};
	if (key) {
		memcpy(what.key, key, sizeof(what.key));
	}
	troubles_note(w->env.troubles, &what, w->now);
}

void
worker_note_unsent(struct worker *w, const struct endpoint *to, int errnum)
{
	const struct wg_trouble what = {.kind = WG_TROUBLE_SEND, .at = *to, .errnum = errnum};
	troubles_note(w->env.troubles, &what, w->now);
}

struct wg_note *
worker_note_slot(struct worker *w)
{
	if (w->notes_n == WORKER_NOTES_MAX) {
		return NULL;
	}
	w->notes[w->notes_n] = (struct wg_note){0};
	return &w->notes[w->notes_n];
}

void
worker_note_keep(struct worker *w, struct wg_note *note)
{
	weft_dassert(note == &w->notes[w->notes_n]);
	if (note->needs != 0) {
		w->notes_n++;
	}
}

void
worker_begin_engine(struct worker *w)
{
	os_rwlock_write_lock(w->env.lock);
}

void
worker_add_ready(struct worker *w, struct wg_peer *p)
{
	for (size_t i = 0; i < w->ready_n; i++) {
		if (w->ready[i] == p) {
			return;
		}
	}
	/* Full only when a turn brings more sessions up than a turn has events; what is staged
	 * then leaves with the peer's next packet, which finds it waiting. */
	if (w->ready_n < WORKER_READY_MAX) {
		wg_peer_get(p);
		w->ready[w->ready_n++] = p;
	}
}

/* The peer has a session that it may not have had before. With the lock held alone. */
static void
note_session(struct worker *w, struct wg_peer *p, struct mono now)
{
	worker_add_ready(w, p);
	if (w->env.allies && allies_session(w->env.allies, p, now) && w->index != 0) {
		w->env.wake(w->env.ctx, 0);
	}
}

/* Remembers the peers that can send what waits, and tells the owner the news. */
static void
take_events(struct worker *w, struct wg_time now)
{
	for (size_t i = 0; i < w->out.events_n; i++) {
		const struct wg_event *e = &w->out.events[i];
		if (e->kind == WG_EVENT_SESSION) {
			note_session(w, e->peer, now.mono);
		}
		if (w->env.event) {
			w->env.event(w->env.ctx, e, now);
		}
	}
	w->out.events_n = 0;
}

static void
send_msgs(struct worker *w)
{
	struct link_run runs[WORKER_MSGS_MAX];
	size_t n = 0;
	for (size_t i = 0; i < w->out.msgs_n; i++) {
		struct wg_msg *m = &w->out.msgs[i];
		if (m->to.addr.family == IP_FAMILY_NONE) {
			w->stats.drops.n[DROP_TX_ENDPOINT]++;
			continue;
		}
		runs[n++] = (struct link_run){
			.to = &m->to, .data = m->bytes, .len = m->len, .seg = m->len};
	}
	if (n > 0) {
		w->link->ops->send(w->link, runs, n);
	}
	for (size_t i = 0; i < n; i++) {
		if (runs[i].errnum) {
			worker_note_unsent(w, runs[i].to, runs[i].errnum);
		}
	}
	w->out.msgs_n = 0;
}

/* What control left under the lock becomes ours to send. Returns whether some had no room. */
static bool
take_mail(struct worker *w, struct mono now)
{
	struct wg_out *mail = w->env.mail;
	if (!mail) {
		return false;
	}
	for (size_t i = 0; i < mail->events_n; i++) {
		note_session(w, mail->events[i].peer, now);
		wg_peer_put(mail->events[i].peer);
	}
	mail->events_n = 0;
	size_t n = mail->msgs_n;
	size_t room = w->out.msgs_cap - w->out.msgs_n;
	n = n < room ? n : room;
	memcpy(w->out.msgs + w->out.msgs_n, mail->msgs, n * sizeof(mail->msgs[0]));
	w->out.msgs_n += n;
	memmove(mail->msgs, mail->msgs + n, (mail->msgs_n - n) * sizeof(mail->msgs[0]));
	mail->msgs_n -= n;
	return mail->msgs_n > 0;
}

void
worker_end_engine(struct worker *w, struct wg_time now)
{
	if (w->notes_n > 0) {
		wg_device_settle(w->env.device, now, w->notes, w->notes_n, &w->out);
		w->notes_n = 0;
	}
	take_events(w, now);
	/* Whoever has the lock takes the mail: the deadline by which control asked worker 0 to do
	 * it is overwritten here. */
	int64_t deadline = take_mail(w, now.mono) ? 0 : wg_device_deadline(w->env.device).ns;
	int64_t before =
		atomic_exchange_explicit(w->env.deadline_ns, deadline, memory_order_relaxed);
	os_rwlock_write_unlock(w->env.lock);
	if (deadline < before && w->index != 0) {
		w->env.wake(w->env.ctx, 0); /* worker 0 sleeps until the old one */
	}
	send_msgs(w);
}

void
worker_settle(struct worker *w, struct wg_time now)
{
	if (w->notes_n > 0) {
		worker_begin_engine(w);
		worker_end_engine(w, now);
	}
}

void
worker_tick(struct worker *w, struct wg_time now)
{
	begin_turn(w, now.mono);
	if (now.mono.ns >= atomic_load_explicit(w->env.deadline_ns, memory_order_relaxed)) {
		worker_begin_engine(w);
		if (w->env.allies) {
			allies_sweep(w->env.allies, now.mono);
		}
		wg_device_tick(w->env.device, now, &w->out);
		worker_end_engine(w, now);
		egress_flush_ready(w, now);
	}
	if (w->env.allies && !mono_is_before(now.mono, allies_deadline(w->env.allies))) {
		recover_tick(w, now);
	}
}

struct mono
worker_deadline(const struct worker *w)
{
	struct mono at = {atomic_load_explicit(w->env.deadline_ns, memory_order_relaxed)};
	return w->env.allies ? mono_min(at, allies_deadline(w->env.allies)) : at;
}

void
worker_wake(struct worker *w, struct mono since, struct wg_time now)
{
	begin_turn(w, now.mono);
	w->stats.gaps++;
	worker_begin_engine(w);
	wg_device_wake(w->env.device, since, now, &w->out);
	worker_end_engine(w, now);
	egress_flush_ready(w, now);
}

static unsigned
turn_link(struct worker *w, struct wg_time now)
{
	bool is_empty = false;
	for (int i = 0; i < TURN_BATCHES && !is_empty; i++) {
		if (ingress_fill(w, w->ingress, now, &is_empty)) {
			w->has_used_keys = true;
			ingress_open(w->aead, w->ingress);
			ingress_deliver(w, w->ingress, now);
		}
		if (w->ready_n > 0) {
			egress_flush_ready(w, now);
		}
	}
	return is_empty ? 0 : WORKER_READY_LINK;
}

static unsigned
turn_port(struct worker *w, struct wg_time now)
{
	bool is_empty = false;
	for (int i = 0; i < TURN_BATCHES && !is_empty; i++) {
		if (egress_fill(w, w->egress, now, &is_empty)) {
			w->has_used_keys = true;
			egress_seal(w->aead, w->egress);
			egress_send(w, w->egress, now);
		}
		if (w->ready_n > 0) {
			egress_flush_ready(w, now);
		}
	}
	return is_empty ? 0 : WORKER_READY_PORT;
}

struct mono
worker_rest(struct worker *w, struct mono now)
{
	if (w->has_used_keys) {
		w->has_used_keys = false;
		w->keys_at = now;
		w->forget_at = mono_min(w->forget_at, mono_add_ns(now, WORKER_KEYS_IDLE_NS));
	}
	if (!mono_is_before(now, w->forget_at)) {
		/* Moved once in ten seconds, not with each use: the caller's timer follows it. */
		w->forget_at = mono_add_ns(w->keys_at, WORKER_KEYS_IDLE_NS);
		if (!mono_is_before(now, w->forget_at)) {
			aead_forget(w->aead);
			w->forget_at = MONO_NEVER;
		}
	}
	return w->forget_at;
}

unsigned
worker_turn(struct worker *w, struct wg_time now, unsigned ready)
{
	begin_turn(w, now.mono);
	if (w->env.crew) {
		return crew_turn(w->env.crew, w, now, ready);
	}
	unsigned more = 0;
	if (ready & WORKER_READY_LINK) {
		more |= turn_link(w, now);
	}
	if (ready & WORKER_READY_PORT) {
		more |= turn_port(w, now);
	}
	return more;
}

/* Datagrams that the link has handed over and nobody has taken. */
static uint64_t
forget_received(struct worker *w)
{
	uint64_t n = 0;
	for (; w->rx_i < w->rx_n; w->rx_i++, w->rx_off = 0) {
		const struct link_rx *rx = &w->rx[w->rx_i];
		n += (rx->len - w->rx_off + rx->seg - 1) / rx->seg;
	}
	w->rx_n = 0;
	w->rx_i = 0;
	return n;
}

struct link *
worker_swap_link(struct worker *w, struct link *fresh, struct wg_time now)
{
	struct link *old = w->link;
	unsigned more = WORKER_READY_LINK;
	for (unsigned i = 0; i < SWAP_TURNS_MAX && (more & WORKER_READY_LINK); i++) {
		more = worker_turn(w, now, WORKER_READY_LINK);
	}
	w->stats.drops.n[DROP_RX_REBIND] += forget_received(w);
	w->link = fresh;
	return old;
}

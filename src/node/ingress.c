/* SPDX-License-Identifier: Apache-2.0 */
#include "node/ingress.h"

#include <string.h>

#include "base/assert.h"
#include "base/endian.h"
#include "node/recover.h"
#include "node/troubles.h"
#include "pkt/ecn.h"
#include "pkt/ip.h"
#include "wire/ext.h"
#include "wire/wg.h"

/* The kernel counts a datagram with a wrong checksum as dropped, too, and that one is a loss of the
 * path. What a full socket drops has all that it holds in front of it: the least buffer takes 26 of
 * 9000 bytes, and 46 and more of others. */
#define FULL_SOCKET_MIN 16

void
ingress_job_init(struct ingress_job *j)
{
	atomic_init(&j->job.state, JOB_STATE_EMPTY);
	j->job.kind = JOB_KIND_INGRESS;
	j->ops_n = 0;
	j->runs_n = 0;
	j->has_overflow = false;
}

static void
drop(struct worker *w, enum drop_reason why, uint64_t n)
{
	w->stats.drops.n[why] += n;
}

/* A run of handshake messages is handled under one taking of the lock alone. */
static void
handle_message(struct worker *w, const uint8_t *data, size_t len, const struct endpoint *from,
	struct wg_time now)
{
	os_rwlock_read_unlock(w->env.lock);
	worker_begin_engine(w);
	w->stats.handshakes_rx++;
	wg_device_handle(w->env.device, now, data, len, from, &w->out);
	worker_end_engine(w, now);
	os_rwlock_read_lock(w->env.lock);
}

/* Finds or starts the run that a data message belongs to. NULL: no room for another run. */
static struct ingress_run *
run_for(struct ingress_job *j, struct wg_session *s, const struct aead_key *key,
	const struct endpoint *from)
{
	if (j->runs_n > 0) {
		struct ingress_run *last = &j->runs[j->runs_n - 1];
		/* No two sessions share a key. */
		if (last->key == key && endpoint_is_same_remote(&last->from, from) &&
			ip_addr_is_equal(&last->from.src, &from->src)) {
			return last;
		}
	}
	if (j->runs_n == JOB_RUNS_MAX) {
		return NULL;
	}
	struct ingress_run *r = &j->runs[j->runs_n++];
	*r = (struct ingress_run){
		.session = s, .key = key, .from = *from, .first = (uint16_t)j->ops_n};
	wg_session_get(s);
	return r;
}

/* With more than one worker the bytes outlive the link's next receive, so they are copied:
 * 25 ns a packet, against 400 and more for opening it. NULL: no room. */
static uint8_t *
place(struct ingress_job *j, uint8_t *data, size_t len)
{
	if (!j->buf) {
		return data;
	}
	size_t at = (j->buf_used + 15) & ~(size_t)15;
	if (at + len > j->buf_len) {
		return NULL;
	}
	memcpy(j->buf + at, data, len);
	j->buf_used = at + len;
	return j->buf + at;
}

/* False: the job is full; the same datagram comes again. */
static bool
take_datagram(struct worker *w, struct ingress_job *j, uint8_t *data, size_t len,
	const struct link_rx *rx, struct wg_time now)
{
	if (len < 4) {
		drop(w, DROP_RX_SHORT, 1);
		return true;
	}
	enum wire_wg_type type = wire_wg_type(data, len);
	if (type == WIRE_WG_TYPE_NONE) {
		drop(w, DROP_RX_TYPE, 1);
		return true;
	}
	if (type != WIRE_WG_TYPE_DATA) {
		handle_message(w, data, len, &rx->from, now);
		return true;
	}
	if (!wire_wg_data_is_well_formed(data, len)) {
		drop(w, DROP_RX_SHORT, 1);
		return true;
	}
	struct wg_session *s = wg_device_session(w->env.device, wire_wg_data_receiver(data));
	if (!s) {
		drop(w, DROP_RX_INDEX, 1);
		return true;
	}
	if (!wg_session_can_open(s, now.mono)) {
		drop(w, DROP_RX_EXPIRED, 1);
		return true;
	}
	const struct aead_key *key = wg_session_recv_key(s, wire_wg_data_cipher(data));
	if (!key) {
		drop(w, DROP_RX_TYPE, 1);
		return true;
	}
	struct ingress_run *r = run_for(j, s, key, &rx->from);
	uint8_t *at = r ? place(j, data, len) : NULL;
	if (!at) {
		return false;
	}
	j->ecn[j->ops_n] = rx->ecn;
	j->ops[j->ops_n++] = (struct aead_op){.data = at + WG_HEADER_LEN,
		.len = (uint32_t)(len - WG_OVERHEAD),
		.counter = wire_wg_data_counter(data)};
	r->n++;
	return true;
}

/* Takes what the link has handed over. False: the job is full, or has looked at enough; some
 * may be left. */
static bool
take_received(struct worker *w, struct ingress_job *j, struct wg_time now)
{
	for (; w->rx_i < w->rx_n; w->rx_i++, w->rx_off = 0) {
		const struct link_rx *rx = &w->rx[w->rx_i];
		if (rx->len == 0) {
			drop(w, DROP_RX_SHORT, 1);
			continue;
		}
		while (w->rx_off < rx->len) {
			size_t left = rx->len - w->rx_off;
			size_t len = left < rx->seg ? left : rx->seg;
			if (j->ops_n == JOB_PKTS_MAX || j->looks == JOB_LOOKS_MAX ||
				!take_datagram(w, j, rx->data + w->rx_off, len, rx, now)) {
				return false;
			}
			w->rx_off += len;
			j->looks++;
		}
	}
	return true;
}

static void
note_empty(struct worker *w)
{
	uint64_t now = w->link->stats.rx_datagrams;
	if (now != w->empty_at) {
		w->empty_before = w->empty_at;
		w->empty_at = now;
	}
}

/* The socket may have been full before the newest datagram. That one may have come when all that
 * was in front of it had been taken. */
static bool
was_full(const struct worker *w)
{
	return w->link->stats.rx_datagrams - w->empty_before >= FULL_SOCKET_MIN;
}

static bool
is_behind_drop(const struct link_rx *rx, size_t n)
{
	bool is = false;
	for (size_t i = 0; i < n; i++) {
		is |= rx[i].is_behind_drop;
	}
	return is;
}

bool
ingress_fill(struct worker *w, struct ingress_job *j, struct wg_time now, bool *is_empty)
{
	j->ops_n = 0;
	j->runs_n = 0;
	j->buf_used = 0;
	j->looks = 0;
	*is_empty = false;
	os_rwlock_read_lock(w->env.lock);
	while (take_received(w, j, now)) {
		/* Bytes in the link's memory are good until the next receive only. */
		if (j->ops_n > 0 && !j->buf) {
			break;
		}
		w->rx_i = 0;
		enum weft_err e = w->link->ops->receive(w->link, w->rx, JOB_RX_MAX, &w->rx_n);
		if (e) {
			w->rx_n = 0;
			note_empty(w);
			*is_empty = true;
			break;
		}
		w->has_overflow |= was_full(w) && is_behind_drop(w->rx, w->rx_n);
	}
	os_rwlock_read_unlock(w->env.lock);
	j->has_overflow = w->has_overflow;
	w->has_overflow = w->has_overflow && w->rx_i < w->rx_n;
	return j->ops_n > 0;
}

void
ingress_open(struct aead *a, struct ingress_job *j)
{
	for (size_t i = 0; i < j->runs_n; i++) {
		const struct ingress_run *r = &j->runs[i];
		aead_open(a, r->key, j->ops + r->first, r->n);
	}
}

/* Counts what does not authenticate, then asks the window about the rest. */
static void
accept_run(struct worker *w, struct ingress_job *j, const struct ingress_run *r, struct wg_time now)
{
	struct aead_op *ops = j->ops + r->first;
	size_t good = 0;
	for (size_t i = 0; i < r->n; i++) {
		good += ops[i].ok;
	}
	drop(w, DROP_RX_AUTH, r->n - good);
	if (good == 0) {
		return;
	}
	uint64_t replays = 0;
	struct wg_note *note = worker_note_slot(w);
	weft_assert(note);
	wg_session_accept(w->env.device, r->session, now.mono, ops, r->n, &r->from, &replays, note);
	worker_note_keep(w, note);
	drop(w, DROP_RX_REPLAY, replays);
}

void
ingress_write(struct worker *w)
{
	if (w->pkts_n > 0) {
		w->joined.frames_n = 0;
		w->joined.pieces_n = 0;
		gro_join(&w->port->caps, w->pkts, w->pkts_n, &w->joined);
		w->port->ops->send(w->port, &w->joined);
		w->pkts_n = 0;
	}
}

static void
note_source(struct worker *w, const struct wg_peer *peer, enum ip_family family, const uint8_t *src)
{
	if (mono_is_before(w->now, w->source_noted_at)) {
		return;
	}
	struct wg_peer_info info;
	struct endpoint at = {.addr.family = family};
	wg_peer_info(peer, &info);
	memcpy(at.addr.b, src, ip_family_len(family));
	worker_note_trouble(w, WG_TROUBLE_SOURCE, info.public_key, &at);
	w->source_noted_at = mono_add_ns(w->now, TROUBLES_PAUSE_NS);
}

void
ingress_take_packet(
	struct worker *w, const struct wg_peer *peer, uint8_t *data, size_t data_len, uint8_t ecn)
{
	uint32_t len;
	if (data_len == 0) {
		return;
	}
	if (ip_exact_len(data, data_len, &len)) {
		drop(w, DROP_RX_INNER, 1);
		return;
	}
	unsigned version = data[0] >> 4;
	enum ip_family family = version == 4 ? IP_FAMILY_V4 : IP_FAMILY_V6;
	const uint8_t *src = data + (version == 4 ? 12 : 8);
	if (!wg_peer_may_source(w->env.device, peer, family, src)) {
		drop(w, DROP_RX_SOURCE, 1);
		note_source(w, peer, family, src);
		return;
	}
	if (ecn != 0 && !ecn_decapsulate_packet(data, ecn)) {
		drop(w, DROP_RX_ECN, 1);
		return;
	}
	/* A batch fits; what a decoder gives out on top may not. */
	if (w->pkts_n == JOB_PKTS_MAX) {
		ingress_write(w);
	}
	w->pkts[w->pkts_n++] = (struct gro_pkt){.data = data, .len = len};
}

/* Of a peer with which nothing is agreed. */
static void
take_run(struct worker *w, struct ingress_job *j, const struct ingress_run *r)
{
	const struct wg_peer *peer = wg_session_peer(r->session);
	for (size_t k = r->first; k < (size_t)r->first + r->n; k++) {
		const struct aead_op *op = &j->ops[k];
		if (!op->ok) {
			continue;
		}
		w->stats.keepalives_rx += op->len == 0;
		if (wire_ext_is_frame(op->data, op->len)) {
			drop(w, DROP_RX_EXT, 1);
		} else {
			ingress_take_packet(w, peer, op->data, op->len, j->ecn[k]);
		}
	}
}

/* A peer's ally comes with its first session, and a HELLO may stand right behind the message that
 * confirms that: in the same job. */
static bool
has_stranger(const struct worker *w, const struct ingress_job *j)
{
	for (size_t i = 0; w->env.allies && i < j->runs_n; i++) {
		if (!wg_peer_ally(wg_session_peer(j->runs[i].session))) {
			return true;
		}
	}
	return false;
}

void
ingress_deliver(struct worker *w, struct ingress_job *j, struct wg_time now)
{
	os_rwlock_read_lock(w->env.lock);
	for (size_t i = 0; i < j->runs_n; i++) {
		accept_run(w, j, &j->runs[i], now);
	}
	if (has_stranger(w, j)) {
		os_rwlock_read_unlock(w->env.lock);
		worker_settle(w, now);
		os_rwlock_read_lock(w->env.lock);
	}
	for (size_t i = 0; i < j->runs_n; i++) {
		struct ingress_run *r = &j->runs[i];
		if (wg_peer_ally(wg_session_peer(r->session))) {
			recover_received(w, j, r, now);
		} else {
			take_run(w, j, r);
		}
	}
	os_rwlock_read_unlock(w->env.lock);
	/* Before the answers can come, which another worker may send: a peer that moved gets them
	 * where it is now. */
	worker_settle(w, now);
	ingress_write(w);
	for (size_t i = 0; i < j->runs_n; i++) {
		struct ingress_run *r = &j->runs[i];
		if (r->has_frames_due) {
			recover_flush(w, wg_session_peer(r->session), now);
		}
		wg_session_put(r->session);
	}
}

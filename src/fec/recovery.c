/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/recovery.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "fec/gf256.h"
#include "fec/recovery_internal.h"
#include "fec/symbol.h"

#define RATE_SPAN_NS (5 * WEFT_NS_PER_MS)
/* While nothing was lost lately a flow of up to CALM_RATE packets/s is remembered all the same, at
 * about 20 ns a packet, so that the first loss is answered: a probe, a voice, a TCP connection
 * that begins. */
#define CALM_RATE 5000.0
#define CALM_BURST 2048.0
#define CALM_DEBT 512.0
#define PAUSE_NS WEFT_NS_PER_S
#define TAIL_MIN_NS (2 * WEFT_NS_PER_MS)
#define TAIL_MAX_NS (5 * WEFT_NS_PER_MS)
#define GRAIN_NS (250 * WEFT_NS_PER_US)
/* Answers a source, and how many may be saved up: a peer that asks for ever gets no more. */
#define ANSWERS_A_SOURCE 2.0
#define ANSWERS_SAVED_MIN 512.0
#define ANSWERS_A_FLIGHT 3.0
#define ANSWERS_FLIGHT_MAX 8192.0
/* The same in bytes, so that small sources do not earn answers over large ones. */
#define ANSWER_BYTES_A_BYTE 2.0
/* "Lately": halved when so many bytes of sources have passed. */
#define LATELY_BYTES 4e6

/* --- sessions --- */

enum weft_err
fec_recovery_new(const struct fec_recovery_config *c, struct fec_recovery **out)
{
	struct fec_recovery *r = calloc(1, sizeof(*r));
	if (!r) {
		return WEFT_ENOMEM;
	}
	r->config = *c;
	r->gf = gf256_get(GF256_ISA_AUTO);
	r->answers = ANSWERS_SAVED_MIN;
	r->answer_bytes = ANSWERS_SAVED_MIN * c->packet_max;
	r->sent_at = (struct mono){INT64_MIN / 2};
	r->allowance = CALM_BURST;
	for (int i = 0; i < FEC_SESSIONS; i++) {
		r->sessions[i].repeat_at = MONO_NEVER;
	}
	fec_controller_init(&r->controller, &c->policy);
	*out = r;
	return 0;
}

/* What a decoder counted outlives it. */
static void
add_rx(struct fec_decoder_stats *sum, const struct fec_decoder *d)
{
	struct fec_decoder_stats s;
	if (!d) {
		return;
	}
	fec_decoder_stats(d, &s);
	sum->received += s.received;
	sum->lost += s.lost;
	sum->runs += s.runs;
	sum->recovered_ahead += s.recovered_ahead;
	sum->recovered_answer += s.recovered_answer;
	sum->given_up += s.given_up;
	sum->repairs += s.repairs;
	sum->repairs_useless += s.repairs_useless;
	sum->repairs_refused += s.repairs_refused;
	sum->held += s.held;
	sum->hold_ns_sum += s.hold_ns_sum;
	sum->hold_ns_max = s.hold_ns_max > sum->hold_ns_max ? s.hold_ns_max : sum->hold_ns_max;
	sum->overflowed += s.overflowed;
	sum->late += s.late;
	sum->unawake += s.unawake;
	sum->jumps += s.jumps;
}

static void
session_fini(struct fec_recovery *r, struct fec_session *s)
{
	add_rx(&r->stats.rx, s->decoder);
	fec_encoder_free(s->encoder);
	fec_decoder_free(s->decoder);
	*s = (struct fec_session){.repeat_at = MONO_NEVER};
}

void
fec_recovery_free(struct fec_recovery *r)
{
	if (!r) {
		return;
	}
	for (int i = 0; i < FEC_SESSIONS; i++) {
		session_fini(r, &r->sessions[i]);
	}
	free(r);
}

struct fec_session *
fec_recovery_find(struct fec_recovery *r, uint64_t id)
{
	for (int i = 0; i < FEC_SESSIONS; i++) {
		if (r->sessions[i].id == id) {
			return &r->sessions[i];
		}
	}
	return NULL;
}

/* The session's slot; a new session takes that of the oldest. */
static struct fec_session *
want(struct fec_recovery *r, uint64_t id)
{
	weft_dassert(id != 0);
	struct fec_session *s = fec_recovery_find(r, id);
	if (s) {
		return s;
	}
	s = &r->sessions[0];
	for (int i = 1; i < FEC_SESSIONS; i++) {
		if (r->sessions[i].order < s->order) {
			s = &r->sessions[i];
		}
	}
	session_fini(r, s);
	s->id = id;
	s->order = ++r->order;
	s->repeat_at = MONO_NEVER;
	fec_schedule_init(&s->schedule);
	return s;
}

void
fec_recovery_forget(struct fec_recovery *r, uint64_t session)
{
	struct fec_session *s = session != 0 ? fec_recovery_find(r, session) : NULL;
	if (s) {
		session_fini(r, s);
	}
}

/* --- the path --- */

void
fec_recovery_set_policy(struct fec_recovery *r, const struct fec_policy *p)
{
	r->config.policy = *p;
	fec_controller_set_policy(&r->controller, p);
}

void
fec_recovery_set_path(
	struct fec_recovery *r, struct mono now, int64_t rtt_ns, int64_t clock_diff_us)
{
	fec_controller_set_path(&r->controller, now, rtt_ns, clock_diff_us);
	for (int i = 0; i < FEC_SESSIONS; i++) {
		if (r->sessions[i].decoder) {
			fec_decoder_set_rtt(r->sessions[i].decoder, r->controller.rtt_ns);
		}
	}
}

/* --- sending --- */

bool
fec_recovery_is_armed(const struct fec_recovery *r)
{
	return r->controller.is_armed;
}

static void
refill_allowance(struct fec_recovery *r, struct mono now)
{
	r->allowance += (double)mono_diff_ns(now, r->allowed_at) * (CALM_RATE / 1e9);
	r->allowance = r->allowance < CALM_BURST ? r->allowance : CALM_BURST;
	r->allowed_at = now;
}

bool
fec_recovery_wants_sources(struct fec_recovery *r, struct mono now)
{
	refill_allowance(r, now);
	return r->controller.is_armed || r->allowance > 0;
}

void
fec_recovery_leave_trail(
	struct fec_recovery *r, struct fec_session *s, struct mono now, uint64_t first, size_t n)
{
	int64_t grain = r->controller.rtt_ns * 2 / FEC_TRAIL_STAMPS;
	fec_trail_add(&s->trail, now, first, (uint32_t)n, grain > GRAIN_NS ? grain : GRAIN_NS,
		mono_diff_ns(now, r->sent_at) >= PAUSE_NS);
	r->sent_at = now;
	refill_allowance(r, now);
	r->allowance -= (double)n;
	r->allowance = r->allowance > -CALM_DEBT ? r->allowance : -CALM_DEBT;
}

bool
fec_recovery_take_mark(struct fec_recovery *r, struct mono now)
{
	return fec_marks_take(&r->marks, now);
}

static void
count_sources(struct fec_recovery *r, struct mono now, size_t n, size_t bytes)
{
	int64_t span_ns = mono_diff_ns(now, r->rate.at);
	if (span_ns >= RATE_SPAN_NS) {
		r->rate.n_a_ns = (double)r->rate.n / (double)span_ns;
		r->rate.bytes_a_ns = (double)r->rate.bytes / (double)span_ns;
		r->rate.n = r->rate.bytes = 0;
		r->rate.at = now;
	}
	r->rate.n += n;
	r->rate.bytes += bytes;
	r->stats.sources += n;
	r->stats.source_bytes += bytes;
	r->source_bytes_lately += (double)bytes;
	if (r->source_bytes_lately > LATELY_BYTES) {
		r->source_bytes_lately /= 2;
		r->repair_bytes_lately /= 2;
	}
}

void
fec_recovery_pause_encoder(struct fec_session *s)
{
	if (s->is_given) {
		fec_encoder_pause(s->encoder);
		fec_schedule_init(&s->schedule);
		s->is_given = false;
		s->is_announced = false;
	}
}

void
fec_recovery_drop_encoder(struct fec_session *s)
{
	fec_recovery_pause_encoder(s);
	fec_encoder_free(s->encoder);
	s->encoder = NULL;
	s->is_calm = false;
}

void
fec_recovery_sent_run(struct fec_recovery *r, struct mono now, uint64_t session, uint64_t first,
	size_t n, size_t bytes)
{
	if (n == 0) {
		return;
	}
	struct fec_session *s = want(r, session);
	fec_recovery_leave_trail(r, s, now, first, n);
	fec_trail_note_source(&s->trail);
	count_sources(r, now, n, bytes);
	fec_controller_sent(&r->controller, now, fec_class((uint32_t)(bytes / n)), n);
	fec_recovery_pause_encoder(s);
}

static int64_t
tail_ns(const struct fec_recovery *r)
{
	int64_t t = r->controller.rtt_ns / 8;
	return t < TAIL_MIN_NS ? TAIL_MIN_NS : t > TAIL_MAX_NS ? TAIL_MAX_NS : t;
}

/* While congested, all repairs together stay within a share of the sources' bytes. */
static void
limit_bytes(struct fec_recovery *r, struct fec_session *s, enum wire_ext_class class, unsigned due)
{
	if (r->controller.plan.has_byte_limit && r->purse < r->source_len[class]) {
		fec_schedule_cancel(&s->schedule, class, due);
		s->schedule.tail_at = MONO_NEVER;
	}
}

/* What a flow may ask for when it has ended: some for each source of a round trip. */
static double
answers_max(const struct fec_recovery *r)
{
	double flow = ANSWERS_A_FLIGHT * fec_controller_flight(&r->controller);
	return ANSWERS_SAVED_MIN + (flow < ANSWERS_FLIGHT_MAX ? flow : ANSWERS_FLIGHT_MAX);
}

void
fec_recovery_source(struct fec_recovery *r, struct mono now, uint64_t session, uint64_t counter,
	const uint8_t *packet, size_t len)
{
	struct fec_session *s = want(r, session);
	enum wire_ext_class class = fec_class((uint32_t)len);
	fec_recovery_leave_trail(r, s, now, counter, 1);
	fec_trail_note_source(&s->trail);
	count_sources(r, now, 1, len);
	fec_controller_sent(&r->controller, now, class, 1);
	if (!fec_recovery_encoder(r, s, now)) {
		fec_recovery_pause_encoder(s);
		return;
	}
	fec_encoder_source(s->encoder, now, counter, packet, len);
	if (!s->is_given) {
		s->is_given = true;
		s->given_from = counter;
	}
	s->source_at = now;
	s->shows[0] = counter;
	s->shows_n = 1;
	unsigned least = r->source_len[class] - r->source_len[class] / 64;
	r->source_len[class] = len > least ? (unsigned)len : least;
	r->purse += FEC_CONGESTED_SHARE * (double)len +
		    FEC_PURSE_RATE / 1e9 * (double)mono_diff_ns(now, r->purse_at);
	r->purse = r->purse > FEC_PURSE_MAX ? FEC_PURSE_MAX : r->purse;
	r->purse_at = now;
	double saved_max = answers_max(r);
	r->answers += ANSWERS_A_SOURCE;
	r->answers = r->answers > saved_max ? saved_max : r->answers;
	double bytes_max = saved_max * r->config.packet_max;
	r->answer_bytes += ANSWER_BYTES_A_BYTE * (double)len;
	r->answer_bytes = r->answer_bytes > bytes_max ? bytes_max : r->answer_bytes;
	if (!r->controller.is_armed) {
		return;
	}
	if (!s->is_announced) {
		/* The first repair tells the receiver to keep what comes. */
		s->is_announced = true;
		fec_schedule_announce(&s->schedule);
	}
	unsigned due =
		fec_schedule_source(&s->schedule, now, class, &r->controller.plan, tail_ns(r));
	limit_bytes(r, s, class, due);
}

/* --- receiving --- */

static void
apply_hold(struct fec_recovery *r)
{
	for (int i = 0; i < FEC_SESSIONS; i++) {
		struct fec_session *s = &r->sessions[i];
		if (s->decoder) {
			fec_decoder_set_hold(s->decoder, fec_recovery_may_hold(r, s));
		}
	}
}

void
fec_recovery_set_hold(struct fec_recovery *r, bool is_on)
{
	r->is_hold_off = !is_on;
	apply_hold(r);
}

bool
fec_recovery_begin(struct fec_recovery *r, uint64_t session)
{
	if (want(r, session)->decoder) {
		return false;
	}
	apply_hold(r);
	return true;
}

void
fec_recovery_set_overflow(struct fec_recovery *r, bool has_overflowed)
{
	r->has_overflowed = has_overflowed;
}

bool
fec_recovery_skip(
	struct fec_recovery *r, struct mono now, uint64_t session, uint64_t first, size_t n)
{
	struct fec_decoder *d = fec_recovery_decoder(r, want(r, session));
	return !d || fec_decoder_skip(d, now, first, n);
}

/* The last FEEDBACK once more? */
static bool
is_repeated(struct fec_session *s, const uint8_t *data, size_t len)
{
	if (len > sizeof(s->came)) {
		return false;
	}
	bool is_same = len == s->came_len && memcmp(s->came, data, len) == 0;
	memcpy(s->came, data, len);
	s->came_len = len;
	return is_same;
}

bool
fec_recovery_received(struct fec_recovery *r, struct mono now, uint64_t session,
	const struct fec_arrival *p, struct fec_out *out)
{
	struct fec_session *s = want(r, session);
	struct fec_decoder *d = fec_recovery_decoder(r, s);
	bool is_frame = wire_ext_is_frame(p->data, p->len);
	struct fec_arrival known = *p;
	known.is_source = !is_frame && p->len > 0;
	struct wire_ext_repair repair;
	struct wire_ext_feedback feedback;
	if (d) {
		fec_decoder_set_overflow(d, r->has_overflowed);
		fec_decoder_packet(d, now, &known, out);
	} else if (known.is_source) {
		weft_dassert(out->n < out->cap);
		out->packets[out->n++] = (struct fec_packet){.data = p->data,
			.len = (uint32_t)p->len,
			.ecn = p->ecn,
			.counter = p->counter};
	}
	switch (is_frame ? wire_ext_type(p->data, p->len) : WIRE_EXT_TYPE_NONE) {
	case WIRE_EXT_TYPE_REPAIR:
		return wire_ext_repair_decode(p->data, p->len, &repair) &&
		       (!d || fec_decoder_repair(d, now, p->counter, &repair));
	case WIRE_EXT_TYPE_FEEDBACK:
		return wire_ext_feedback_decode(p->data, p->len, &feedback) &&
		       (is_repeated(s, p->data, p->len) ||
			       fec_recovery_feedback(r, now, s, &feedback));
	default:
		return true;
	}
}

bool
fec_recovery_take(struct fec_recovery *r, struct mono now, uint64_t *session, struct fec_out *out)
{
	size_t before = out->n;
	for (int i = 0; i < FEC_SESSIONS; i++) {
		struct fec_session *s = &r->sessions[i];
		bool more = s->decoder && fec_decoder_take(s->decoder, now, out);
		if (more || out->n > before) {
			*session = s->id;
			return true;
		}
	}
	return false;
}

struct mono
fec_recovery_deadline(const struct fec_recovery *r)
{
	struct mono at = MONO_NEVER;
	for (int i = 0; i < FEC_SESSIONS; i++) {
		const struct fec_session *s = &r->sessions[i];
		if (s->has_due) {
			return (struct mono){0};
		}
		at = mono_min(at, s->repeat_at);
		if (s->decoder) {
			at = mono_min(at, fec_decoder_deadline(s->decoder));
			at = mono_min(
				at, fec_decoder_rest_at(s->decoder, fec_recovery_keep_ns(r, s)));
		}
		if (s->is_given) {
			at = mono_min(at, fec_schedule_deadline(&s->schedule, &r->controller.plan));
		}
		if (s->encoder) {
			at = mono_min(at, mono_add_ns(s->source_at, fec_recovery_keep_ns(r, s)));
		}
	}
	return at;
}

/* --- status --- */

void
fec_recovery_stats(const struct fec_recovery *r, struct fec_recovery_stats *out)
{
	const struct fec_controller *c = &r->controller;
	*out = r->stats;
	out->why = c->plan.why;
	out->loss = fec_controller_loss(c, c->planned_at);
	out->burst = c->all.burst;
	out->residual = r->packets_lately > 0 ? r->given_up_lately / r->packets_lately : 0;
	out->overhead =
		r->source_bytes_lately > 0 ? r->repair_bytes_lately / r->source_bytes_lately : 0;
	double small = c->plan.classes[WIRE_EXT_CLASS_SMALL].ahead;
	double large = c->plan.classes[WIRE_EXT_CLASS_LARGE].ahead;
	out->ahead_share =
		c->dense[WIRE_EXT_CLASS_SMALL] > c->dense[WIRE_EXT_CLASS_LARGE] ? small : large;
	out->rtt_ns = c->rtt_ns;
	out->ce_marked = r->marks.taken;
	out->queue_ns = c->guard.queue_us * WEFT_NS_PER_US;
	for (int i = 0; i < FEC_SESSIONS; i++) {
		const struct fec_session *s = &r->sessions[i];
		add_rx(&out->rx, s->decoder);
		out->memory += s->encoder ? fec_encoder_size(s->encoder) : 0;
		out->memory += s->decoder ? fec_decoder_size(s->decoder) : 0;
	}
	if (r->is_starved && c->is_armed) {
		out->why = FEC_WHY_MEMORY;
	}
}

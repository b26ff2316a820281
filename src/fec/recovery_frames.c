/* SPDX-License-Identifier: Apache-2.0 */
/* The frames that a recovery sends: how many are due, and their bytes. */
#include "fec/recovery_internal.h"

#include <string.h>

/* FEEDBACKs go out twice from that share of losses on, so far apart; the next of its own accord is
 * 2 ms later at least. */
#define REPEAT_SHARE 0.05
#define REPEAT_NS WEFT_NS_PER_MS
/* Once more, so much later, where even two are often lost both. */
#define TWICE_SHARE 0.3
#define AGAIN_NS (500 * WEFT_NS_PER_US)
#define RX_LATELY_PACKETS 2000.0

static bool
has_feedback(struct fec_session *s, struct mono now)
{
	if (!mono_is_before(now, s->repeat_at)) {
		return true;
	}
	if (!s->has_due && s->decoder && !mono_is_before(now, fec_decoder_deadline(s->decoder))) {
		s->has_due = fec_decoder_feedback(s->decoder, now, &s->due);
	}
	return s->has_due;
}

static size_t
frames_due(struct fec_recovery *r, struct fec_session *s, struct mono now)
{
	size_t n = has_feedback(s, now);
	return n + (s->is_given ? fec_schedule_due(&s->schedule, now, &r->controller.plan) : 0);
}

size_t
fec_recovery_frames_due(struct fec_recovery *r, struct mono now, uint64_t session)
{
	struct fec_session *s = fec_recovery_find(r, session);
	return s && s->id != 0 ? frames_due(r, s, now) : 0;
}

static size_t
make_repair(struct fec_session *s, const struct fec_job *j, const struct fec_place *to)
{
	if (j->answer.is_refusal) {
		uint64_t back = to->own - j->answer.base;
		struct wire_ext_repair refusal = {.class = j->class,
			.why = WIRE_EXT_WHY_TAIL,
			.span = 1,
			.back = (uint16_t)back};
		return back >= 1 && back <= UINT16_MAX
			       ? wire_ext_repair_encode(&refusal, to->bytes, to->cap)
			       : 0;
	}
	if (j->why == WIRE_EXT_WHY_ANSWER) {
		if (to->own < j->answer.base + j->answer.span) {
			return 0; /* asked for before it was sent: nobody misses that */
		}
		const struct fec_wanted w = {
			j->class, j->answer.base, j->answer.span, j->answer.missing};
		return fec_encoder_answer(s->encoder, &w, to);
	}
	if (j->why == WIRE_EXT_WHY_AHEAD) {
		fec_encoder_expect(s->encoder, to->own, j->alike);
	}
	return fec_encoder_ahead(s->encoder, j->class, j->window, j->skip, j->why, to);
}

/* What the receiving direction loses. The other one is heard of only where packets of ours go that
 * way; else it is taken for as bad. */
static double
rx_share(struct fec_session *s)
{
	uint32_t lost = s->due.lost - s->told_lost;
	s->rx_lost += lost;
	s->rx_all += (double)lost + (s->due.received - s->told_received);
	s->told_lost = s->due.lost;
	s->told_received = s->due.received;
	while (s->rx_all > RX_LATELY_PACKETS) {
		s->rx_all /= 2;
		s->rx_lost /= 2;
	}
	return s->rx_all > 0 ? s->rx_lost / s->rx_all : 0;
}

/* A lost FEEDBACK costs a round trip, and a burst of them the packets it asked for. */
static size_t
make_feedback(
	struct fec_recovery *r, struct fec_session *s, struct mono now, uint8_t *out, size_t cap)
{
	if (!mono_is_before(now, s->repeat_at)) {
		s->repeats--;
		s->repeat_at = s->repeats > 0 ? mono_add_ns(now, AGAIN_NS) : MONO_NEVER;
		size_t len = s->sent_len < cap ? s->sent_len : 0;
		memcpy(out, s->sent, len);
		return len;
	}
	s->has_due = false;
	size_t len = wire_ext_feedback_encode(&s->due, out, cap);
	double share = rx_share(s), tx_share = fec_controller_loss(&r->controller, now);
	if (len > 0 && s->due.blocks_n > 0 && (share >= REPEAT_SHARE || tx_share >= REPEAT_SHARE)) {
		memcpy(s->sent, out, len);
		s->sent_len = len;
		s->repeats = share >= TWICE_SHARE || tx_share >= TWICE_SHARE ? 2 : 1;
		s->repeat_at = mono_add_ns(now, REPEAT_NS);
	}
	s->due.blocks_n = 0;
	return len;
}

static void
count_repair(struct fec_recovery *r, const struct fec_job *j, size_t len)
{
	r->stats.repairs_ahead += j->why == WIRE_EXT_WHY_AHEAD;
	r->stats.repairs_answer += j->why == WIRE_EXT_WHY_ANSWER;
	r->stats.repairs_tail += j->why == WIRE_EXT_WHY_TAIL;
	r->stats.repair_bytes += len;
	r->repair_bytes_lately += (double)len;
	r->purse -= (double)len;
	r->purse = r->purse < -FEC_PURSE_MAX ? -FEC_PURSE_MAX : r->purse;
	r->answer_bytes -= j->why == WIRE_EXT_WHY_ANSWER ? (double)len : 0;
}

static void
note_shown(struct fec_session *s, const struct fec_job *j, uint64_t counter)
{
	if (j->why != WIRE_EXT_WHY_ANSWER && j->skip == 0 && j->class == s->schedule.tail_class &&
		s->shows_n > 0) {
		s->shows[1 + (s->shows_n - 1) % FEC_PROBES_MAX] = counter;
		s->shows_n++;
	}
}

size_t
fec_recovery_frame(struct fec_recovery *r, struct mono now, uint64_t session, uint64_t counter,
	uint8_t *out, size_t cap)
{
	struct fec_session *s = fec_recovery_find(r, session);
	struct fec_job job;
	size_t len = 0;
	if (!s || s->id == 0) {
		return 0;
	}
	if (has_feedback(s, now)) {
		len = make_feedback(r, s, now, out, cap);
		r->stats.feedback_tx += len > 0;
	} else if (s->is_given && fec_schedule_take(&s->schedule, now, &r->controller.plan, &job)) {
		len = make_repair(s, &job, &(struct fec_place){counter, out, cap});
		if (len > 0) {
			count_repair(r, &job, len);
			note_shown(s, &job, counter);
		} else {
			/* Sources may have been forgotten since it fell due. The counter is taken,
			 * and a frame that says little is better than a gap: the last FEEDBACK,
			 * with the times of now, since the other side measures by them. */
			if (s->decoder) {
				(void)fec_decoder_newest(s->decoder, now, &s->due);
			}
			s->due.edge_back = 0;
			len = wire_ext_feedback_encode(&s->due, out, cap);
		}
	}
	if (len > 0) {
		fec_recovery_leave_trail(r, s, now, counter, 1);
	}
	return len;
}

static void
reap(struct fec_recovery *r, struct fec_session *s, struct mono now)
{
	if (!r->controller.is_armed && !s->is_calm) {
		fec_recovery_pause_encoder(s);
	}
	fec_recovery_grow(r, s, now);
	if (s->encoder && mono_diff_ns(now, s->source_at) >= fec_recovery_keep_ns(r, s)) {
		fec_recovery_drop_encoder(s);
	}
	if (s->decoder) {
		fec_decoder_rest(s->decoder, now, fec_recovery_keep_ns(r, s));
	}
}

uint64_t
fec_recovery_due_session(struct fec_recovery *r, struct mono now, unsigned index)
{
	for (int i = 0; i < FEC_SESSIONS; i++) {
		struct fec_session *s = &r->sessions[i];
		reap(r, s, now);
		if (s->id != 0 && frames_due(r, s, now) > 0 && index-- == 0) {
			return s->id;
		}
	}
	return 0;
}

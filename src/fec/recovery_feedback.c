/* SPDX-License-Identifier: Apache-2.0 */
/* What a FEEDBACK does to a recovery: evidence for the controller, and answers. */
#include "fec/recovery_internal.h"

#include <string.h>

#include "base/compiler.h"
#include "fec/symbol.h"

/* HELLOs and keepalives take counters that recovery is not told of. */
#define COUNTERS_UNTOLD_MAX 4096
/* For each packet that runs are longer than independent losses make them. */
#define OVERSEND_A_RUN 0.05
#define MARGIN_SHARE 0.25
#define EDGE_NS (2 * WEFT_NS_PER_MS)
/* "Lately": halved when so many packets have passed. */
#define LATELY_PACKETS 8192.0

/* What changed between two FEEDBACKs. False: the second is the older one, or is not to be
 * believed. */
static bool
difference(const struct wire_ext_feedback *a, const struct wire_ext_feedback *b,
	struct fec_report *out)
{
	static const uint32_t half = UINT32_C(1) << 31;
	*out = (struct fec_report){.received = b->received - a->received,
		.lost = b->lost - a->lost,
		.runs = b->runs - a->runs};
	return out->received < half && out->lost < half && out->runs <= out->lost;
}

/* The longest silence between two counters' departures, in which nothing left but frames. Bounded
 * by the number of stamps. */
static int64_t
silence_ns(const struct fec_trail *trail, uint64_t from, uint64_t to)
{
	const struct fec_trail_stamp *a = fec_trail_find(trail, from), *b = a;
	int64_t longest = 0;
	while (b && b->first + b->n <= to && (b = fec_trail_find(trail, b->first + b->n))) {
		int64_t ns = mono_diff_ns(b->at, a->at);
		longest = ns > longest ? ns : longest;
		a = b->has_source ? b : a;
	}
	return longest;
}

/* What was lost first left behind the edge; long behind it, the edge tells nothing. */
static void
note_edge(const struct fec_session *s, uint64_t highest, const struct wire_ext_feedback *f,
	struct fec_guard_sample *out)
{
	if (f->edge_back == 0 || f->edge_back > highest) {
		return;
	}
	uint64_t edge = highest - f->edge_back;
	const struct fec_trail_stamp *before = fec_trail_find(&s->trail, edge);
	const struct fec_trail_stamp *lost = fec_trail_find(&s->trail, edge + 1);
	const struct fec_trail_stamp *top = fec_trail_find(&s->trail, highest);
	if (!before || !lost || !top || mono_diff_ns(lost->at, before->at) > EDGE_NS) {
		return;
	}
	int64_t lead = mono_diff_ns(top->at, before->at);
	out->has_edge = true;
	out->edge_lead_us = (lead - silence_ns(&s->trail, edge, highest)) / WEFT_NS_PER_US;
	out->edge_gap_us = f->edge_us;
	out->edge_delay_us =
		f->clock_us - f->edge_us - (uint32_t)(uint64_t)(before->at.ns / WEFT_NS_PER_US);
}

static void
sample_times(const struct fec_session *s, struct mono now, uint64_t highest,
	const struct wire_ext_feedback *f, struct fec_report *out)
{
	const struct fec_trail_stamp *t = fec_trail_find(&s->trail, highest);
	if (!t || f->received == 0) {
		return; /* forgotten; or nothing has arrived, and `highest` is no packet */
	}
	int64_t rtt = mono_diff_ns(now, t->at) - (int64_t)f->delay_us * WEFT_NS_PER_US;
	if (rtt <= 0) {
		return;
	}
	out->has_times = true;
	out->rtt_ns = rtt;
	out->sample = (struct fec_guard_sample){
		.delay_us = f->clock_us - (uint32_t)(uint64_t)(t->at.ns / WEFT_NS_PER_US),
		/* The first of them alone: the others found it before them. */
		.after_pause = t->after_pause && highest == t->first,
		.behind_ns = -1};
	note_edge(s, highest, f, &out->sample);
	if (f->blocks_n > 0 && f->blocks[0].back <= highest) {
		const struct fec_trail_stamp *lost =
			fec_trail_find(&s->trail, highest - f->blocks[0].back);
		out->sample.behind_ns = lost ? mono_diff_ns(t->at, lost->at) : -1;
	}
}

static void
note_outcome(struct fec_recovery *r, const struct wire_ext_feedback *before,
	const struct wire_ext_feedback *f, const struct fec_report *report)
{
	uint32_t given_up = f->given_up - before->given_up;
	r->stats.peer_recovered_ahead += f->recovered_ahead - before->recovered_ahead;
	r->stats.peer_recovered_answer += f->recovered_answer - before->recovered_answer;
	r->stats.peer_given_up += given_up;
	r->stats.peer_lost += report->lost;
	/* Frames that were lost are nobody's loss: the share is one of the sources. */
	r->packets_lately += (double)(r->stats.sources - r->judged_sources);
	r->judged_sources = r->stats.sources;
	r->given_up_lately += given_up;
	while (r->packets_lately > LATELY_PACKETS) {
		r->packets_lately /= 2;
		r->given_up_lately /= 2;
	}
}

static double
lesser(double a, double b)
{
	return a < b ? a : b;
}

/* Bytes of the answers that wait: they are paid for when they leave. */
static double
queued_bytes(const struct fec_recovery *r)
{
	double sum = 0;
	for (int i = 0; i < FEC_SESSIONS; i++) {
		const struct fec_schedule *s = &r->sessions[i].schedule;
		for (unsigned k = 0; k < s->answers_n; k++) {
			const struct fec_answer *a = &s->answers[(s->answer + k) % FEC_ANSWERS_MAX];
			sum += (double)a->n * r->source_len[a->class];
		}
	}
	return sum;
}

/* How many repairs may go out of those that were asked for. */
static uint8_t
allowed(struct fec_recovery *r, enum wire_ext_class class, double n)
{
	double len = r->source_len[class] > 0 ? r->source_len[class] : 1;
	double queued = queued_bytes(r);
	double max = lesser(r->answers, (r->answer_bytes - queued) / len);
	if (r->controller.plan.has_byte_limit) {
		max = lesser(max, (r->purse - queued) / len);
	}
	n = lesser(lesser(n + 0.5, max), 255);
	n = n < 0 ? 0 : n;
	r->answers -= (double)(uint8_t)n;
	return (uint8_t)n;
}

/* The same for a frame that says what is no source: a few bytes, and never held back for those. */
static uint8_t
allowed_word(struct fec_recovery *r)
{
	uint8_t n = r->answers >= 1;
	r->answers -= n;
	return n;
}

/* Answers are lost as sources are, and where losses come in runs many at once. */
static double
oversend(const struct fec_recovery *r)
{
	const struct fec_estimate *e = &r->controller.all;
	double arrive = e->share < 0.9 ? 1 - e->share : 0.1;
	double burst = e->burst * arrive;
	return (1 + (burst > 1 ? burst - 1 : 0) * OVERSEND_A_RUN) / arrive;
}

/* Of n answers some more or fewer arrive than their mean; where half are lost a round that brings
 * one too few is dear. */
static double
margin(const struct fec_recovery *r, double n)
{
	double p = r->controller.all.share;
	return p > MARGIN_SHARE ? (2 + n / 6) * lesser(1, (p - MARGIN_SHARE) * 4) : 0;
}

/* Repairs over the sources that a block misses, shared between the classes as these are. The
 * receiver, whose newest packet is `highest`, cannot know which of its gaps were repairs, so it may
 * ask for too many: no more than the sources and two, one of which says which gaps to forget. */
static void
answer_block(struct fec_recovery *r, struct fec_session *s, uint64_t highest,
	const struct wire_ext_block *b)
{
	uint64_t base = highest - b->back;
	struct fec_answer a[WIRE_EXT_CLASS_COUNT] = {0};
	unsigned sources[WIRE_EXT_CLASS_COUNT] = {0}, all = 0;
	for (unsigned i = 0; i < b->span; i++) {
		if (!fec_has_bit(b->missing, i)) {
			continue;
		}
		for (int c = 0; c < WIRE_EXT_CLASS_COUNT; c++) {
			if (fec_encoder_has(s->encoder, base + i, (enum wire_ext_class)c)) {
				sources[c]++;
				all++;
			}
		}
	}
	bool is_known = base >= s->given_from; /* so that we can say what is no source */
	for (int c = 0; c < WIRE_EXT_CLASS_COUNT; c++) {
		const struct fec_plan_class *k = &r->controller.plan.classes[c];
		/* Told that nothing will come: there is no source, or none that is answered. */
		bool is_refused = sources[c] > 0 && !k->has_answers && sources[c] == all;
		bool is_told = is_known && (is_refused || (all == 0 && c == WIRE_EXT_CLASS_SMALL));
		if ((sources[c] == 0 || !k->has_answers) && !is_told) {
			continue;
		}
		double part = is_told ? 1 : (double)b->want * sources[c] / all;
		double most = sources[c] + 2;
		part = (part < most ? part : most);
		part = part * oversend(r) + margin(r, part);
		a[c].class = (enum wire_ext_class)c;
		a[c].base = base;
		a[c].span = b->span;
		/* All that was asked for, not this class's part alone: what it leaves clear, the
		 * receiver takes for no source. */
		memcpy(a[c].missing, b->missing, sizeof(b->missing));
		if (is_refused) {
			/* It speaks of what the receiver has, so that nothing is said of what it
			 * misses: that may be answered for a moment later. */
			a[c].is_refusal = true;
			a[c].base = highest;
			a[c].span = 1;
		}
		a[c].n = is_told ? allowed_word(r) : allowed(r, a[c].class, part);
		if (a[c].n > 0 && !fec_schedule_answer(&s->schedule, &a[c])) {
			r->answers += a[c].n;
			return;
		}
	}
}

/* Does the other side know of our last source, so that it asks for what it misses by itself? */
static bool
knows_last(const struct fec_session *s, uint64_t highest, const struct wire_ext_feedback *f)
{
	unsigned n = s->shows_n < WEFT_ARRAY_LEN(s->shows) ? s->shows_n : WEFT_ARRAY_LEN(s->shows);
	for (unsigned i = 0; i < n; i++) {
		if (s->shows[i] == highest) {
			return true;
		}
	}
	for (unsigned i = 0; i < f->blocks_n; i++) {
		const struct wire_ext_block *b = &f->blocks[i];
		if (b->back <= highest && highest - b->back + b->span > s->shows[0]) {
			return true;
		}
	}
	return false;
}

bool
fec_recovery_feedback(struct fec_recovery *r, struct mono now, struct fec_session *s,
	const struct wire_ext_feedback *f)
{
	uint64_t known = fec_trail_highest(&s->trail);
	uint64_t highest = known + (uint64_t)(int64_t)(int32_t)(f->highest - (uint32_t)known);
	struct fec_report report;
	if (highest > known + COUNTERS_UNTOLD_MAX) { /* or below zero */
		return false;
	}
	if (difference(&s->seen, f, &report)) {
		sample_times(s, now, highest, f, &report);
		note_outcome(r, &s->seen, f, &report);
		fec_controller_report(&r->controller, now, &report);
		uint32_t recovered = f->recovered_ahead - s->seen.recovered_ahead +
				     f->recovered_answer - s->seen.recovered_answer;
		fec_marks_report(
			&r->marks, now, report.lost, recovered, r->controller.plan.queue_share);
		s->seen = *f;
	}
	r->stats.feedback_rx++;
	for (int i = 0; i < FEC_SESSIONS; i++) {
		if (r->sessions[i].decoder) {
			fec_decoder_set_rtt(r->sessions[i].decoder, r->controller.rtt_ns);
		}
	}
	if (!r->controller.is_armed || !s->is_given) {
		return true;
	}
	if (knows_last(s, highest, f)) {
		fec_schedule_end_tail(&s->schedule);
	}
	for (unsigned i = 0; i < f->blocks_n; i++) {
		if (f->blocks[i].back <= highest && f->blocks[i].want > 0) {
			answer_block(r, s, highest, &f->blocks[i]);
		}
	}
	return true;
}

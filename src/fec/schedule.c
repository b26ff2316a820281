/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/schedule.h"

#include <string.h>

#include "base/assert.h"
#include "fec/gf256.h"

#define APART_NS (500 * WEFT_NS_PER_US)
#define APART_SPARSE_NS (2 * WEFT_NS_PER_MS)
/* Answers that go out in one turn, and between the beginnings of two. One FEEDBACK may ask for
 * hundreds, which would be a burst of our own making on a path that loses. It is 1.5 Gbit/s still.
 */
#define ANSWERS_A_TURN 64u
#define ANSWERS_TURN_NS (500 * WEFT_NS_PER_US)
/* As many as are computed together. */
#define ALIKE ((unsigned)GF256_ROWS_MAX)
/* More would be a backlog that nobody fetches. */
#define DUE_MAX 64
/* All that these reach over, and more of the past than is of use to anybody. */
#define UNCOVERED_MAX (DUE_MAX * FEC_WINDOW_MAX)
/* Probes are cheap when bursts are few: that many a second are free, whatever the loss. */
#define PROBES_MAX 10.0
#define PROBE_NS (50 * WEFT_NS_PER_MS)
#define PROBE_FACTOR 3
#define PROBE_LAST_NS (500 * WEFT_NS_PER_MS)
/* A flow of one packet in 20 ms has not ended because none came for 15: the second probe waits for
 * twice the usual, of up to that. */
#define PACE_MAX_NS (20 * WEFT_NS_PER_MS)

void
fec_schedule_init(struct fec_schedule *s)
{
	*s = (struct fec_schedule){.tail_at = MONO_NEVER, .probes = PROBES_MAX};
}

static void
refill_probes(struct fec_schedule *s, struct mono now, double share)
{
	int64_t passed = mono_diff_ns(now, s->probes_at);
	s->probes += share + (passed > 0 ? (double)passed / (double)PROBE_NS : 0);
	s->probes = s->probes > PROBES_MAX ? PROBES_MAX : s->probes;
	s->probes_at = now;
}

static void
note_pace(struct fec_schedule *s, struct mono now)
{
	int64_t ns = mono_diff_ns(now, s->source_at);
	if (ns > 0) {
		s->pace_ns += ((ns < PACE_MAX_NS ? ns : PACE_MAX_NS) - s->pace_ns) / 8;
	}
	s->source_at = now;
}

/* What no repair will come for is left to answers. Were it still to be covered later, the first
 * repairs sent ahead after a long while would all go to the past. */
static void
forget_uncovered(struct fec_lane *l, unsigned max)
{
	l->uncovered = l->uncovered < max ? l->uncovered : max;
}

unsigned
fec_schedule_source(struct fec_schedule *s, struct mono now, enum wire_ext_class class,
	const struct fec_plan *plan, int64_t tail_ns)
{
	struct fec_lane *l = &s->lanes[class];
	const struct fec_plan_class *k = &plan->classes[class];
	if (l->hand_at.ns != now.ns) {
		l->hand_at = now;
		l->has_earlier = l->has_earlier || l->in_hand > 0;
		l->in_hand = 0;
	}
	l->in_hand++;
	l->uncovered++;
	forget_uncovered(l, k->ahead > 0 ? UNCOVERED_MAX : FEC_WINDOW_MAX);
	l->alike = l->left = 0;
	unsigned n = 0;
	l->credit += k->ahead;
	if (l->credit >= 1) {
		l->credit -= 1;
		n = l->due < DUE_MAX;
		if (l->due == 0) {
			l->due_since = now;
			l->due_at = mono_add_ns(now, k->is_sparse ? APART_SPARSE_NS : APART_NS);
		}
		l->due += n;
	}
	refill_probes(s, now, plan->probe_share);
	note_pace(s, now);
	s->tail_class = class;
	s->tail_n = 0;
	s->tail_ns = tail_ns;
	/* What would not be answered need not be asked for sooner. */
	bool is_worth_it = s->probes >= 1 && k->has_answers;
	s->tail_at = is_worth_it ? mono_add_ns(now, tail_ns) : MONO_NEVER;
	return n;
}

void
fec_schedule_end_tail(struct fec_schedule *s)
{
	s->tail_at = MONO_NEVER;
}

void
fec_schedule_cancel(struct fec_schedule *s, enum wire_ext_class class, unsigned n)
{
	struct fec_lane *l = &s->lanes[class];
	l->due -= n < l->due ? n : l->due;
	l->alike = l->left = 0;
	if (l->due == 0) {
		forget_uncovered(l, FEC_WINDOW_MAX);
	}
}

void
fec_schedule_announce(struct fec_schedule *s)
{
	for (int c = 0; c < WIRE_EXT_CLASS_COUNT; c++) {
		s->lanes[c].credit = 1;
	}
}

bool
fec_schedule_answer(struct fec_schedule *s, const struct fec_answer *a)
{
	weft_dassert(a->n > 0);
	if (s->answers_n == FEC_ANSWERS_MAX) {
		return false;
	}
	s->answers[(s->answer + s->answers_n) % FEC_ANSWERS_MAX] = *a;
	s->answers_n++;
	return true;
}

/* Sources that a repair covers: those that none has covered yet, and as many before them that it
 * overlaps with earlier ones by half a window. */
static unsigned
reach(unsigned uncovered, const struct fec_plan_class *k)
{
	unsigned n = uncovered + k->window / 2;
	n = n > k->window ? n : k->window;
	return n < FEC_WINDOW_MAX ? n : FEC_WINDOW_MAX;
}

static bool
is_ready(const struct fec_lane *l, const struct fec_plan_class *k, struct mono now)
{
	if (l->due == 0) {
		return false;
	}
	if (!mono_is_before(now, l->due_at) || l->hand_at.ns != l->due_since.ns) {
		return true;
	}
	return !k->is_sparse && l->has_earlier && reach(l->uncovered, k) > l->in_hand;
}

static bool
is_new_turn(const struct fec_schedule *s, struct mono now)
{
	return mono_diff_ns(now, s->answered_at) >= ANSWERS_TURN_NS;
}

static unsigned
answers_left(const struct fec_schedule *s, struct mono now)
{
	return is_new_turn(s, now) ? ANSWERS_A_TURN : ANSWERS_A_TURN - s->answered_n;
}

unsigned
fec_schedule_due(const struct fec_schedule *s, struct mono now, const struct fec_plan *plan)
{
	unsigned n = 0, ahead = 0;
	for (unsigned i = 0; i < s->answers_n; i++) {
		n += s->answers[(s->answer + i) % FEC_ANSWERS_MAX].n;
	}
	unsigned left = answers_left(s, now);
	n = n < left ? n : left;
	for (int c = 0; c < WIRE_EXT_CLASS_COUNT; c++) {
		if (is_ready(&s->lanes[c], &plan->classes[c], now)) {
			ahead += s->lanes[c].due;
		}
	}
	bool is_covered = is_ready(&s->lanes[s->tail_class], &plan->classes[s->tail_class], now);
	return n + ahead + (!is_covered && !mono_is_before(now, s->tail_at));
}

/* A repair over the last source goes out; it may be lost as that was. */
static void
plan_probe(struct fec_schedule *s, const struct fec_plan *plan)
{
	if (s->tail_at.ns == MONO_NEVER.ns) {
		return;
	}
	int64_t ns = PROBE_FACTOR * s->tail_ns;
	s->tail_ns = ns > 2 * s->pace_ns ? ns : 2 * s->pace_ns;
	s->tail_n++;
	bool has_next = s->tail_n < plan->probes && s->probes >= 1 && !plan->has_byte_limit &&
			s->tail_ns <= PROBE_LAST_NS;
	s->tail_at = has_next ? mono_add_ns(s->source_at, s->tail_ns) : MONO_NEVER;
}

/* A repair of this class goes out: what came before is covered. */
static void
covered(struct fec_schedule *s, enum wire_ext_class class, const struct fec_plan *plan)
{
	s->lanes[class].uncovered = s->lanes[class].left = s->lanes[class].alike = 0;
	if (s->tail_class == class) {
		plan_probe(s, plan);
	}
}

static void
job_over_last(struct fec_schedule *s, enum wire_ext_class class, enum wire_ext_repair_why why,
	const struct fec_plan *plan, struct fec_job *out)
{
	*out = (struct fec_job){.class = class,
		.why = why,
		.window = reach(s->lanes[class].uncovered, &plan->classes[class])};
}

/* The next repairs that are due at once: as many as are computed together, or fewer where they have
 * to reach far, over the oldest part of what is uncovered. A batch of 192 sources is wider than any
 * window. */
static void
begin_part(struct fec_lane *l, const struct fec_plan_class *k)
{
	unsigned parts = (l->due + ALIKE - 1) / ALIKE;
	l->left = l->left > 0 ? l->left : l->uncovered;
	unsigned wide = (l->left + k->window - 1) / k->window;
	parts = parts > wide ? parts : wide;
	parts = parts < l->due ? parts : l->due;
	unsigned part = (l->left + parts - 1) / parts;
	l->alike = (l->due + parts - 1) / parts;
	l->skip = l->left - part;
	l->window = reach(part, k);
}

static void
job_ahead(struct fec_schedule *s, enum wire_ext_class class, const struct fec_plan *plan,
	struct fec_job *out)
{
	struct fec_lane *l = &s->lanes[class];
	if (l->alike == 0) {
		begin_part(l, &plan->classes[class]);
	}
	*out = (struct fec_job){.class = class,
		.why = WIRE_EXT_WHY_AHEAD,
		.window = l->window,
		.skip = l->skip,
		.alike = l->alike};
	l->due--;
	if (--l->alike == 0) {
		l->left = l->skip;
	}
	if (l->due == 0) {
		covered(s, class, plan);
	}
}

bool
fec_schedule_take(
	struct fec_schedule *s, struct mono now, const struct fec_plan *plan, struct fec_job *out)
{
	if (s->answers_n > 0 && answers_left(s, now) > 0) {
		if (is_new_turn(s, now)) {
			s->answered_at = now;
			s->answered_n = 0;
		}
		s->answered_n++;
		struct fec_answer *a = &s->answers[s->answer];
		*out = (struct fec_job){
			.class = a->class, .why = WIRE_EXT_WHY_ANSWER, .answer = *a};
		if (--a->n == 0) {
			s->answer = (s->answer + 1) % FEC_ANSWERS_MAX;
			s->answers_n--;
		}
		return true;
	}
	for (int c = 0; c < WIRE_EXT_CLASS_COUNT; c++) {
		struct fec_lane *l = &s->lanes[c];
		if (is_ready(l, &plan->classes[c], now)) {
			job_ahead(s, (enum wire_ext_class)c, plan, out);
			return true;
		}
	}
	if (!mono_is_before(now, s->tail_at)) {
		job_over_last(s, s->tail_class, WIRE_EXT_WHY_TAIL, plan, out);
		s->probes -= 1;
		covered(s, s->tail_class, plan);
		return true;
	}
	return false;
}

struct mono
fec_schedule_deadline(const struct fec_schedule *s, const struct fec_plan *plan)
{
	struct mono at = s->tail_at;
	if (s->answers_n > 0) {
		struct mono turn = mono_add_ns(s->answered_at, ANSWERS_TURN_NS);
		at = mono_min(at, s->answered_n < ANSWERS_A_TURN ? (struct mono){0} : turn);
	}
	for (int c = 0; c < WIRE_EXT_CLASS_COUNT; c++) {
		const struct fec_lane *l = &s->lanes[c];
		if (is_ready(l, &plan->classes[c], l->hand_at)) {
			return (struct mono){0};
		}
		at = l->due > 0 ? mono_min(at, l->due_at) : at;
	}
	return at;
}

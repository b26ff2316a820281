/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/controller.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "fec/solver.h"

/* Below this share nothing is worth a copy of every packet. */
#define DISARM_SHARE 3e-4
/* Around the 1 % below which answers suffice; apart, so that a path of just 1 % stays put. */
#define AHEAD_ON_SHARE 0.0125
#define AHEAD_OFF_SHARE 0.009
/* Sources within the budget: up to SPARSE each is its own burst, from DENSE on a stream. */
#define SPARSE 8.0
#define DENSE 32.0
#define WINDOW_MIN 4
/* Against independent losses. A source is combined window times share times. With 48 more is left
 * to answers, and TCP waits for those: at 5 %, 10 ms and 1 Gbit/s 630 to 800 Mbit/s, with 64 670 to
 * 790, with 96 780 to 800. */
#define WINDOW 64
#define AHEAD_MAX_SPARSE 1.0
#define AHEAD_MAX_BULK 0.5
/* From the loss to the FEEDBACK's departure, beyond the reordering grace: when something is asked
 * for, and when only totals are told because repairs sent ahead did it all. */
#define FEEDBACK_NS (2 * WEFT_NS_PER_MS)
#define FEEDBACK_TOTALS_NS (25 * WEFT_NS_PER_MS)
#define RTT_ASSUMED_NS (10 * WEFT_NS_PER_MS)
/* A FEEDBACK about a packet has come, or will not, that long behind the round trip. */
#define JUDGED_SLACK_NS (30 * WEFT_NS_PER_MS)
/* So many frames are nothing unusual, whatever the sources. */
#define SPREAD_MIN 64.0
/* Evidence that lowers what the line is known for: some ten losses at 0.5 %. */
#define CALM_LOWERED_PACKETS 2048.0
#define CALM_MARGIN 1.3 /* and by chance that may be too low by so much */
/* Tails that may be lost with all their probes, were losses independent. */
#define TAIL_LEFT_SHARE 1e-6
#define PLAN_NS (2 * WEFT_NS_PER_MS)
#define PLAN_PACKETS 16

/* With "auto within 1000 ms: " before it, a text fits a terminal of 80 columns. */
static const struct {
	const char *name, *text;
} why_words[FEC_WHY_COUNT] = {
	[FEC_WHY_OFF] = {"off", "loss recovery is off by configuration"},
	[FEC_WHY_NOT_AGREED] = {"not_agreed", "the peer has no loss recovery, or has it off"},
	[FEC_WHY_CLEAN] = {"clean", "no loss seen lately: nothing is sent or stored"},
	[FEC_WHY_ANSWERS] = {"answers", "loss is rare, the round trip short: repairs on request"},
	[FEC_WHY_AHEAD] = {"ahead", "repairs are sent ahead, and on request"},
	[FEC_WHY_CONGESTED] = {"congested",
		"loss with rising delay is congestion: repairs held back"},
	[FEC_WHY_FIXED] = {"fixed", "a fixed share is sent ahead, by configuration"},
	[FEC_WHY_MEMORY] = {"memory", "the memory for loss recovery with all peers is spent"},
};

const char *
fec_why_name(enum fec_why w)
{
	weft_assert((unsigned)w < FEC_WHY_COUNT);
	return why_words[w].name;
}

const char *
fec_why_text(enum fec_why w)
{
	weft_assert((unsigned)w < FEC_WHY_COUNT);
	return why_words[w].text;
}

static int64_t
rtt_of(const struct fec_controller *c)
{
	return c->rtt_ns > 0 ? c->rtt_ns : RTT_ASSUMED_NS;
}

static int64_t
budget_ns(const struct fec_controller *c)
{
	return c->policy.budget_us * WEFT_NS_PER_US;
}

/* How many sources were sent `lag` ago and before. */
static uint64_t
sent_before(const struct fec_controller *c, struct mono now, int64_t lag)
{
	for (unsigned i = 0; i < WEFT_ARRAY_LEN(c->marks); i++) {
		unsigned m = (c->mark - i) % WEFT_ARRAY_LEN(c->marks);
		if (mono_diff_ns(now, c->marks[m].at) >= lag) {
			return c->marks[m].sent;
		}
	}
	return 0;
}

/* Sources of which a FEEDBACK would have come if they had been lost, behind those that the last
 * one spoke of. */
static double
clean(const struct fec_controller *c, struct mono now)
{
	uint64_t n = sent_before(c, now, rtt_of(c) + JUDGED_SLACK_NS);
	return n > c->judged_report ? (double)(n - c->judged_report) : 0;
}

double
fec_controller_flight(const struct fec_controller *c)
{
	double dense = c->dense[WIRE_EXT_CLASS_SMALL] + c->dense[WIRE_EXT_CLASS_LARGE];
	return dense * (double)rtt_of(c) / (double)budget_ns(c);
}

double
fec_controller_loss(const struct fec_controller *c, struct mono now)
{
	return fec_estimate_share(&c->all, clean(c, now));
}

/* --- plan --- */

static double
least(double a, double b)
{
	return a < b ? a : b;
}

static double
most(double a, double b)
{
	return a > b ? a : b;
}

static bool
answers_in_budget(const struct fec_controller *c)
{
	int64_t rtt = rtt_of(c), grace = rtt / 16 > WEFT_NS_PER_MS ? rtt / 16 : WEFT_NS_PER_MS;
	return rtt + grace + FEEDBACK_NS <= budget_ns(c);
}

/* 0 for independent losses, 1 for runs half as long again and more. */
static double
burstiness(const struct fec_controller *c)
{
	return least(1, most(0, (fec_estimate_burst_factor(&c->all) - 1.2) / 0.3));
}

static unsigned
window(const struct fec_controller *c, double dense)
{
	double widest = WINDOW + (FEC_WINDOW_MAX - WINDOW) * burstiness(c);
	return (unsigned)most(WINDOW_MIN, least(dense, widest));
}

/* Repairs a source at a share p of losses. Where answers come in time, twice the losses (2.5
 * times in bursts) leave them little to do. Where not, repairs sent ahead stand alone: the
 * second formula is the least overhead that leaves 1e-3 within `window` packets, fitted to
 * simulated windows at 10 % (4 packets: 0.97; 32: 0.27; 64: 0.22), and never less than what
 * covers each source once. */
static double
ahead_share(const struct fec_controller *c, double p, const struct fec_plan_class *k)
{
	double factor = 2 + 0.5 * burstiness(c);
	double share = factor * p;
	if (k->is_sparse || !answers_in_budget(c)) {
		share = most(share, factor / 2 * (1.7 * p + (1 + 22 * p) / k->window));
	}
	return share;
}

static double
ahead_max(double dense)
{
	double part = least(1, most(0, (dense - SPARSE) / (DENSE - SPARSE)));
	return AHEAD_MAX_SPARSE + (AHEAD_MAX_BULK - AHEAD_MAX_SPARSE) * part;
}

/* Where even the most that is sent ahead brings less than is lost, none of it is solved before the
 * answers come; and where more is lost until then than a receiver keeps in its equations, they are
 * for nothing, and push out what the answers need. */
static bool
is_hopeless(const struct fec_controller *c, double p, double dense)
{
	double waiting = dense * p * (double)(rtt_of(c) + FEEDBACK_NS) / (double)budget_ns(c);
	return ahead_max(dense) * (1 - p) < p && waiting > FEC_UNKNOWNS_MAX / 2;
}

static void
plan_class(struct fec_controller *c, enum wire_ext_class class, double p)
{
	struct fec_plan_class *k = &c->plan.classes[class];
	double dense = c->dense[class];
	k->is_sparse = dense < SPARSE;
	k->window = window(c, dense);
	k->has_answers = true;
	switch (c->plan.why) {
	case FEC_WHY_FIXED:
		k->ahead = c->policy.percent / 100.0;
		break;
	case FEC_WHY_AHEAD:
	case FEC_WHY_CONGESTED:
		k->ahead = p > 0 ? least(ahead_share(c, p, k), ahead_max(dense)) : 0;
		k->ahead = is_hopeless(c, p, dense) ? 0 : k->ahead;
		break;
	default:
		k->ahead = 0;
		break;
	}
}

/* What the line loses without a queue. While one stands, or seems to, what is lost beyond is not
 * the line's; only less than before is believed. */
static double
calm_share(const struct fec_controller *c, double n, double all)
{
	bool is_doubtful = c->guard.is_loaded || c->guard.is_suspect;
	return is_doubtful ? least(all, fec_estimate_share(&c->calm, n)) : all;
}

static bool
is_congested(const struct fec_controller *c, double all, double calm)
{
	return c->guard.is_loaded && all > 1.5 * calm;
}

static enum fec_why
choose_why(const struct fec_controller *c, double all, double calm)
{
	if (!c->is_armed) {
		return FEC_WHY_CLEAN;
	}
	if (is_congested(c, all, calm)) {
		return FEC_WHY_CONGESTED;
	}
	double threshold = c->plan.why == FEC_WHY_AHEAD ? AHEAD_OFF_SHARE : AHEAD_ON_SHARE;
	return calm < threshold && answers_in_budget(c) ? FEC_WHY_ANSWERS : FEC_WHY_AHEAD;
}

/* A tail is lost for good when its last source and all probes are. */
static unsigned
probes(const struct fec_controller *c, double p)
{
	double in_burst = 1 - 1 / c->all.burst, left = p;
	double again = in_burst > p ? in_burst : p;
	unsigned n = 0;
	while (left > TAIL_LEFT_SHARE && n < FEC_PROBES_MAX) {
		left *= again;
		n++;
	}
	return n > 0 ? n : 1;
}

static void
plan(struct fec_controller *c, struct mono now)
{
	c->planned_at = now;
	c->planned_sent = c->sent;
	c->plan.probes = probes(c, fec_controller_loss(c, now));
	if (c->policy.mode != FEC_MODE_AUTO) {
		c->is_armed = c->policy.mode == FEC_MODE_FIXED;
		c->plan.why = c->is_armed ? FEC_WHY_FIXED : FEC_WHY_OFF;
		c->plan.probe_share = 1;
		c->plan.has_byte_limit = false;
		c->plan.queue_share = 0;
		plan_class(c, WIRE_EXT_CLASS_SMALL, 0);
		plan_class(c, WIRE_EXT_CLASS_LARGE, 0);
		return;
	}
	double n = clean(c, now), all = fec_estimate_share(&c->all, n);
	double calm = calm_share(c, n, all);
	if (c->is_armed && all < DISARM_SHARE) {
		c->is_armed = false;
		fec_estimate_reset(&c->all);
		fec_estimate_reset(&c->calm);
	}
	c->plan.why = choose_why(c, all, calm);
	c->plan.has_byte_limit = c->plan.why == FEC_WHY_CONGESTED;
	c->plan.queue_share = c->plan.why == FEC_WHY_CONGESTED ? 1 - calm / all : 0;
	c->plan.probe_share = least(1, 10 * calm);
	/* Small packets hardly fill a queue: ACKs, voice and pings keep their protection, within
	 * the limit on bytes. Large ones get what the line itself loses. */
	plan_class(c, WIRE_EXT_CLASS_SMALL, all);
	plan_class(c, WIRE_EXT_CLASS_LARGE, calm);
	c->plan.classes[WIRE_EXT_CLASS_LARGE].has_answers =
		c->plan.why != FEC_WHY_CONGESTED || calm > DISARM_SHARE;
}

/* --- events --- */

void
fec_controller_init(struct fec_controller *c, const struct fec_policy *p)
{
	*c = (struct fec_controller){0};
	fec_estimate_reset(&c->all);
	fec_estimate_reset(&c->calm);
	fec_guard_reset(&c->guard);
	fec_controller_set_policy(c, p);
}

void
fec_controller_set_policy(struct fec_controller *c, const struct fec_policy *p)
{
	/* Between auto and a fixed share what is known of the line stays. Forgotten beside a guard
	 * that a full queue has loaded, each loss of the line would be taken for one of the queue.
	 */
	bool was_off = c->policy.mode == FEC_MODE_OFF, is_off = p->mode == FEC_MODE_OFF;
	if (was_off != is_off) {
		c->is_armed = false;
		fec_estimate_reset(&c->all);
		fec_estimate_reset(&c->calm);
	}
	c->policy = *p;
	if (c->policy.budget_us == 0) {
		c->policy.budget_us = FEC_BUDGET_US_DEFAULT;
	}
	plan(c, c->planned_at);
}

void
fec_controller_set_path(
	struct fec_controller *c, struct mono now, int64_t rtt_ns, int64_t clock_diff_us)
{
	if (rtt_ns > 0) {
		fec_guard_set_path(&c->guard, now, rtt_ns, clock_diff_us);
		if (!c->has_rtt_sample || rtt_ns < c->rtt_ns) {
			c->rtt_ns = rtt_ns;
		}
	}
}

static void
mark(struct fec_controller *c, struct mono now)
{
	int64_t step = (rtt_of(c) + JUDGED_SLACK_NS) / (int64_t)(WEFT_ARRAY_LEN(c->marks) - 4);
	if (mono_diff_ns(now, c->marks[c->mark].at) >= step) {
		c->mark = (c->mark + 1) % WEFT_ARRAY_LEN(c->marks);
		c->marks[c->mark].at = now;
		c->marks[c->mark].sent = c->sent;
	}
}

void
fec_controller_sent(struct fec_controller *c, struct mono now, enum wire_ext_class class, size_t n)
{
	double x = (double)mono_diff_ns(now, c->dense_at[class]) / (double)budget_ns(c);
	x = x > 0 ? x : 0;
	c->dense[class] = c->dense[class] / (1 + x + x * x / 2 + x * x * x / 6) + (double)n;
	c->dense_at[class] = now;
	mark(c, now);
	c->sent += n;
	if (c->is_armed && (c->sent - c->planned_sent >= PLAN_PACKETS ||
				   mono_diff_ns(now, c->planned_at) >= PLAN_NS)) {
		plan(c, now);
	}
}

static void
note_times(struct fec_controller *c, struct mono now, const struct fec_report *r)
{
	if (!r->has_times || r->rtt_ns <= 0) {
		return;
	}
	c->rtt_ns = c->has_rtt_sample ? c->rtt_ns + (r->rtt_ns - c->rtt_ns) / 8 : r->rtt_ns;
	c->has_rtt_sample = true;
	fec_guard_rtt(&c->guard, r->rtt_ns);
	if (r->lost > 0) {
		fec_guard_sample(&c->guard, now, &r->sample);
	}
}

/* Most of what was sent since the last report of loss were frames. These show no gap, so that
 * losses are judged all at once, when a source comes at last, and may lie anywhere before it. */
static bool
is_spread(const struct fec_controller *c, double judged)
{
	return judged > 2 * (double)(c->sent - c->reported_sent) + SPREAD_MIN;
}

/* How many of the newest packets a loss was among. */
static uint32_t
recent_packets(const struct fec_controller *c)
{
	double dense = c->dense[WIRE_EXT_CLASS_SMALL] + c->dense[WIRE_EXT_CLASS_LARGE];
	double n = dense * (double)FEEDBACK_TOTALS_NS / (double)budget_ns(c);
	return n < 32 ? 32 : (uint32_t)n;
}

/* The line loses no more than is lost in all. Where a queue always stands a little nothing else is
 * learnt of the line, and its first loss, one in some 64 packets, would excuse a queue for ever. By
 * better evidence alone, or each dip by chance would stay. */
static void
lower_calm(struct fec_controller *c)
{
	double share = CALM_MARGIN * c->all.share;
	if (share < c->calm.share && c->all.weight > c->calm.weight &&
		c->all.weight >= CALM_LOWERED_PACKETS) {
		c->calm = c->all;
		c->calm.share = share;
	}
}

void
fec_controller_report(struct fec_controller *c, struct mono now, const struct fec_report *r)
{
	note_times(c, now, r);
	if (r->lost == 0) {
		c->unlost += r->received < UINT32_MAX / 2 - c->unlost ? r->received : 0;
		return;
	}
	struct fec_evidence v = {.lost = r->lost,
		.received = r->received + c->unlost,
		.runs = r->runs,
		.recent = recent_packets(c),
		.clean = clean(c, now)};
	v.is_spread = is_spread(c, (double)v.lost + v.received);
	c->reported_sent = c->sent;
	fec_estimate_add(&c->all, &v);
	if (!c->guard.is_loaded && !c->guard.is_suspect) {
		fec_estimate_add(&c->calm, &v);
	}
	lower_calm(c);
	c->unlost = 0;
	c->judged_report = sent_before(c, now, rtt_of(c));
	if (c->policy.mode == FEC_MODE_AUTO) {
		c->is_armed = true;
	}
	plan(c, now);
}

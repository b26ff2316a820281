/* SPDX-License-Identifier: Apache-2.0 */
/* Loss recovery between nodes: what it brings, at what price, and what it must never do. */
#include "family.h"

#include "loss.h"

/* The bound of the hold, and of the reordering grace (src/fec/decoder.c). */
#define HOLD_MAX_NS (30 * WEFT_NS_PER_MS)

enum shape { SHAPE_STEADY, SHAPE_BURSTS, SHAPE_STEPS, SHAPE_ONE_WAY, SHAPE_COUNT };

struct loss_case {
	enum shape shape;
	double loss, back_loss, burst, pps;
	int64_t rtt_ns, delay_ns;
	struct sim_loss_flow flows[2];
	double seconds;
};

static struct loss_case
draw_case(struct sim_world *w)
{
	static const double losses[] = {0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0};
	static const double rates[] = {50, 4000, 4000, 20000, 100000};
	static const double seconds[] = {30, 2.5, 2.5, 0.7, 0.3};
	static const int64_t rtts_ms[] = {1, 10, 40, 150};
	struct rng *r = &w->script;
	struct loss_case c = {.shape = (enum shape)(w->report->seed % SHAPE_COUNT), .burst = 1};
	size_t rate = rng_below(r, WEFT_ARRAY_LEN(rates));
	c.loss = losses[w->report->seed / SHAPE_COUNT % WEFT_ARRAY_LEN(losses)];
	c.back_loss = c.loss;
	c.pps = rates[rate];
	c.seconds = seconds[rate];
	c.rtt_ns = rtts_ms[rng_below(r, 4)] * WEFT_NS_PER_MS;
	c.delay_ns = c.rtt_ns / 2;
	if (c.shape == SHAPE_BURSTS) {
		c.burst = (double)(2u << rng_below(r, 3));
	} else if (c.shape == SHAPE_STEPS) {
		c.loss = c.back_loss = 0.15;
	} else if (c.shape == SHAPE_ONE_WAY) {
		c.back_loss = 0;
	}
	bool is_tcp = rng_is_hit(r, 0.4);
	enum sim_proto proto = is_tcp ? SIM_PROTO_TCP : SIM_PROTO_UDP;
	unsigned batch = c.pps > 50000 ? 16 : c.pps > 10000 ? 4 : 1;
	c.flows[0] = (struct sim_loss_flow){0, 1, proto, is_tcp ? 1200 : 200, c.pps, batch};
	/* The other way as acknowledgements go. */
	c.flows[1] = (struct sim_loss_flow){1, 0, SIM_PROTO_UDP, 60, c.pps / 4, 1};
	return c;
}

static void
set_losses(struct sim_world *w, const struct loss_case *c, bool is_on)
{
	struct emu_loss there = sim_loss_of(is_on ? c->loss : 0, c->burst);
	struct emu_loss back = sim_loss_of(is_on ? c->back_loss : 0, c->burst);
	sim_loss_set(w, 0, 1, &there, c->delay_ns);
	sim_loss_set(w, 1, 0, &back, c->delay_ns);
}

static void
check_reaction(struct sim_world *w, const struct sim_loss_story *s, const struct loss_case *c)
{
	const struct sim_loss_way *way = &s->ways[0];
	/* What is sent ahead follows a packet. */
	int64_t gap_ns = (int64_t)(1e9 * c->flows[0].batch / c->pps);
	int64_t grace_ns = c->rtt_ns / 16;
	int64_t most_ns = c->rtt_ns + gap_ns + 3 * WEFT_NS_PER_MS +
			  (grace_ns > WEFT_NS_PER_MS ? grace_ns : 0);
	int64_t took_ns = way->first_repair_ns - way->shown_ns;
	/* What asks must have arrived. */
	if (!way->shown_ns || s->ways[1].feedbacks_lost_before) {
		return;
	}
	sim_trace(w->report, "reaction %.3f ms, RTT %.0f ms", (double)took_ns / 1e6,
		(double)c->rtt_ns / 1e6);
	sim_check(w->report, way->first_repair_ns && took_ns <= most_ns,
		"the first REPAIR left %.3f ms after the first loss, RTT %.0f ms",
		(double)took_ns / 1e6, (double)c->rtt_ns / 1e6);
}

static void
tell(struct sim_world *w, const struct sim_loss_story *s, const struct loss_case *c,
	const struct sim_loss_result *r)
{
	const struct sim_loss_way *way = &s->ways[0];
	sim_trace(w->report,
		"loss %.0f %% burst %.0f back %.0f %% RTT %.0f ms %.0f/s %u B %s: sent %llu lost "
		"%llu delivered %.3f %% residual %.2e (%llu) overhead %.1f %% REPAIRs %llu "
		"FEEDBACKs %llu back REPAIRs %llu FEEDBACKs %llu, recovered p50 %.1f p99 %.1f max "
		"%.1f ms",
		c->loss * 100, c->burst, c->back_loss * 100, (double)c->rtt_ns / 1e6, c->pps,
		c->flows[0].len, c->flows[0].proto == SIM_PROTO_TCP ? "TCP" : "UDP",
		(unsigned long long)r->sent, (unsigned long long)(r->sent - r->arrived),
		100.0 * (double)r->delivered / (double)r->sent,
		(double)r->missing / (double)r->sent, (unsigned long long)r->missing,
		100.0 * (double)way->frames[SIM_KIND_REPAIR] / (double)r->sent,
		(unsigned long long)way->frames[SIM_KIND_REPAIR],
		(unsigned long long)way->frames[SIM_KIND_FEEDBACK],
		(unsigned long long)s->ways[1].frames[SIM_KIND_REPAIR],
		(unsigned long long)s->ways[1].frames[SIM_KIND_FEEDBACK], r->p50_ms, r->p99_ms,
		r->max_ms);
}

/* Residual and repairs a source as sim/fec.c aims at them, and twice that. Of so few packets three
 * lost ones may be chance. */
static void
check_price(struct sim_world *w, const struct sim_loss_story *s, const struct loss_case *c,
	const struct sim_loss_result *r)
{
	/* Of bulk traffic 0.5 repairs a source go ahead at most. Where that is not enough, answers
	 * must do, and nothing is promised when a round trip and two FEEDBACKs' time lose several
	 * times the decoder's 64 unknowns. */
	double rtt_s = (double)c->rtt_ns / 1e9 + 0.004;
	bool is_beyond = c->loss * c->pps * rtt_s > 200;
	if (c->rtt_ns > 40 * WEFT_NS_PER_MS || is_beyond) {
		return;
	}
	bool is_sparse = c->pps < 1000;
	double burst = c->burst > 1 ? c->burst / 2 : 1;
	double residual = c->loss > 0.4   ? 0.02 * burst
			  : c->loss > 0.2 ? 2e-3 * burst
			  : c->loss > 0.1 ? 1e-3 * burst
					  : 2e-4 * burst;
	double most = 3 + residual * (double)r->sent * (is_sparse ? 10 : 1);
	sim_check(w->report, (double)r->missing <= most,
		"%llu of %llu packets were lost for good, and at most %.0f may be",
		(unsigned long long)r->missing, (unsigned long long)r->sent, most);
	double repairs = (double)s->ways[0].frames[SIM_KIND_REPAIR] / (double)r->sent;
	double price = 0.03 + 4.5 * c->loss;
	price += c->burst > 1 ? 0.1 + 1.5 * c->loss : 0;
	price = is_sparse ? 1.5 + 5 * c->loss : price;
	sim_check(w->report, repairs <= price, "%.3f REPAIRs a source", repairs);
}

/* Nothing is lost any more: what is sent ahead ends. */
static void
end_loss(struct sim_world *w, struct sim_loss_story *s, const struct loss_case *c)
{
	set_losses(w, c, false);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t before = s->ways[0].frames[SIM_KIND_REPAIR];
		uint64_t packets = s->ways[0].packets;
		sim_loss_run(w, c->flows, 2, c->seconds / 2);
		uint64_t n = s->ways[0].frames[SIM_KIND_REPAIR] - before;
		sim_trace(w->report, "no loss, quarter %u: %llu REPAIRs, %llu packets", i,
			(unsigned long long)n, (unsigned long long)(s->ways[0].packets - packets));
		sim_check(w->report, i < 3 || n == 0, "%llu REPAIRs long after the last loss",
			(unsigned long long)n);
	}
}

void
sim_run_loss(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {
		.hosts_min = 2, .hosts_max = 2, .ally_share = 1, .channel_packets = 32768};
	struct sim_loss_story story;
	struct sim_loss_result r;
	sim_world_init(w, w->report, &plan);
	for (unsigned i = 0; i < 2; i++) {
		sim_host_set_policy(&w->hosts[i], &ALLY_POLICY_DEFAULT);
	}
	struct loss_case c = draw_case(w);
	sim_loss_watch(&story, w);
	sim_loss_meet(w, c.delay_ns);
	sim_loss_run(w, c.flows, 2, c.pps < 1000 ? 2 : 0.05);
	sim_world_run_s(w, 1);
	for (unsigned i = 0; i < 2; i++) {
		sim_check(w->report, !story.ways[i].frames[SIM_KIND_REPAIR],
			"a REPAIR on a clean path");
	}
	uint32_t first = w->ledger.n;
	set_losses(w, &c, true);
	sim_loss_run(w, c.flows, 2, c.seconds);
	sim_world_run_ns(w, 3 * WEFT_NS_PER_S + 20 * c.rtt_ns);
	check_reaction(w, &story, &c);
	sim_loss_check(w, first, HOLD_MAX_NS);
	/* What was lost until then the sender does not remember; and it must learn how much is
	 * lost. */
	int64_t armed_ns = story.ways[0].first_repair_ns;
	int64_t from_ns = armed_ns ? armed_ns + 2 * c.rtt_ns : INT64_MAX;
	sim_loss_judge(w, 0, first, from_ns, c.delay_ns, &r);
	tell(w, &story, &c, &r);
	check_price(w, &story, &c, &r);
	sim_loss_check_quiet(w, &story, c.rtt_ns, c.pps);
	if (c.shape == SHAPE_STEPS && c.pps > 1000) {
		end_loss(w, &story, &c);
	}
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

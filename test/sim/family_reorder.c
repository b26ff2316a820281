/* SPDX-License-Identifier: Apache-2.0 */
/* Reordering and copies without any loss: what recovery must make of it is as little as can be. */
#include "family.h"

#include "loss.h"

#define RTT_NS (10 * WEFT_NS_PER_MS)
#define GRACE_NS WEFT_NS_PER_MS /* of that round trip */
#define HOLD_NS (13 * WEFT_NS_PER_MS)
#define HOLD_MAX_NS (30 * WEFT_NS_PER_MS)
#define PPS 4000

struct reorder_case {
	double share, duplicate;
	uint32_t distance;
	int64_t late_ns; /* what was overtaken came so much later at the most */
	bool is_tcp;
};

static struct reorder_case
start_reordering(struct sim_world *w)
{
	static const uint32_t distances[] = {3, 30, 300, 3000};
	struct rng *r = &w->script;
	struct reorder_case c = {.share = rng_is_hit(r, 0.5) ? 0.01 : 0.1,
		.duplicate = rng_is_hit(r, 0.5) ? 0.05 : 0,
		.distance = distances[w->report->seed % WEFT_ARRAY_LEN(distances)],
		.is_tcp = rng_is_hit(r, 0.6)};
	struct emu_settings s = emu_settings_default;
	s.delay_ns = RTT_NS / 2;
	s.reorder = (struct emu_reorder){
		.share = c.share, .distance_min = c.distance / 2 + 1, .distance_max = c.distance};
	s.duplicate = c.duplicate;
	emu_channel_set(&w->net.channels[0][1], w->report->now, &s);
	return c;
}

/* More than the way takes. */
static int64_t
latest_ns(const struct sim_world *w, uint32_t first)
{
	int64_t most = 0;
	for (uint32_t id = first; id < w->ledger.n; id++) {
		const struct sim_packet *p = &w->ledger.packets[id];
		int64_t ns = p->arrived_ns - p->sent_ns - RTT_NS / 2;
		most = ns > most ? ns : most;
	}
	return most;
}

static void
tell(struct sim_world *w, const struct sim_loss_story *s, const struct reorder_case *c)
{
	sim_trace(w->report,
		"%.0f %% by %u, %.1f ms late, %.0f %% twice, %s: %llu REPAIRs, %llu FEEDBACKs, "
		"%llu packets, "
		"%llu recovered, %llu late, %llu replays",
		c->share * 100, c->distance, (double)c->late_ns / 1e6, c->duplicate * 100,
		c->is_tcp ? "TCP" : "UDP", (unsigned long long)s->ways[0].frames[SIM_KIND_REPAIR],
		(unsigned long long)s->ways[1].frames[SIM_KIND_FEEDBACK],
		(unsigned long long)s->ways[0].packets,
		(unsigned long long)sim_host_recovered(&w->hosts[1]),
		(unsigned long long)w->ledger.late,
		(unsigned long long)sim_host_drops(&w->hosts[1], DROP_RX_REPLAY));
}

/* A packet that comes later than the grace for reordering is lost as far as anybody can know: it is
 * asked for, and protected against. What comes sooner costs nothing. */
static void
check(struct sim_world *w, const struct sim_loss_story *s, const struct reorder_case *c)
{
	uint64_t repairs = s->ways[0].frames[SIM_KIND_REPAIR];
	uint64_t feedbacks = s->ways[1].frames[SIM_KIND_FEEDBACK];
	sim_check(w->report, c->late_ns >= GRACE_NS || repairs + feedbacks == 0,
		"%llu REPAIRs for reordering within the grace", (unsigned long long)repairs);
	double most = (double)s->ways[0].packets * (0.1 + 5 * c->share);
	sim_check(w->report, (double)repairs <= most, "%llu REPAIRs, and at most %.0f may be",
		(unsigned long long)repairs, most);
	sim_check(w->report, !c->is_tcp || c->late_ns >= HOLD_NS || w->ledger.late_tcp == 0,
		"%llu TCP packets went out in disorder that the hold mends",
		(unsigned long long)w->ledger.late_tcp);
	/* Of what came twice once is dropped; so is the late original of a recovered one. */
	uint64_t copies = w->net.channels[0][1].counters.duplicated;
	uint64_t replays = sim_host_drops(&w->hosts[1], DROP_RX_REPLAY);
	sim_check(w->report,
		replays >= copies && replays <= copies + sim_host_recovered(&w->hosts[1]),
		"%llu replays, %llu copies", (unsigned long long)replays,
		(unsigned long long)copies);
}

void
sim_run_reorder(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {
		.hosts_min = 2, .hosts_max = 2, .ally_share = 1, .channel_packets = 32768};
	struct sim_loss_story story;
	struct emu_settings clean = emu_settings_default;
	sim_world_init(w, w->report, &plan);
	for (unsigned i = 0; i < 2; i++) {
		sim_host_set_policy(&w->hosts[i], &ALLY_POLICY_DEFAULT);
	}
	w->ledger.is_ordered = false;
	sim_loss_watch(&story, w);
	clean.delay_ns = RTT_NS / 2;
	sim_loss_meet(w, clean.delay_ns);
	uint32_t first = w->ledger.n;
	struct reorder_case c = start_reordering(w);
	struct sim_loss_flow flow = {
		0, 1, c.is_tcp ? SIM_PROTO_TCP : SIM_PROTO_UDP, c.is_tcp ? 1200 : 200, PPS, 1};
	sim_loss_run(w, &flow, 1, 2.5);
	/* Later ones release those that are held back: as many as it takes. */
	emu_channel_set(&w->net.channels[0][1], w->report->now, &clean);
	sim_loss_run(w, &flow, 1, 1);
	sim_world_run_s(w, 2);
	c.late_ns = latest_ns(w, first);
	tell(w, &story, &c);
	sim_world_must_have_all(w);
	sim_loss_check(w, first, HOLD_MAX_NS);
	sim_loss_check_quiet(w, &story, RTT_NS, PPS);
	check(w, &story, &c);
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

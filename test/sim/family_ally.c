/* SPDX-License-Identifier: Apache-2.0 */
/* Agreement between nodes over time: sessions that end, nodes that restart, change their mind, or
 * are stock ones. */
#include "family.h"

#include "loss.h"

static const struct ally_policy aes_policy = {.has_extensions = true,
	.cipher = ALLY_CIPHER_AES_256_GCM,
	.fec = {.mode = FEC_MODE_AUTO, .budget_us = ALLY_BUDGET_US_DEFAULT}};

static void
lose_both_ways(struct sim_world *w, double share, int64_t delay_ns)
{
	struct emu_settings s = emu_settings_default;
	s.loss = sim_loss_of(share, 1);
	s.delay_ns = delay_ns;
	sim_net_set(&w->net, &s);
}

/* --- rekey --- */

#define REKEY_PPS 100
#define REKEY_S 380

void
sim_run_rekey(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {.hosts_min = 2, .hosts_max = 2, .ally_share = 1, .psk_share = 0.5};
	struct sim_loss_story story;
	sim_world_init(w, w->report, &plan);
	for (unsigned i = 0; i < 2; i++) {
		sim_host_set_policy(&w->hosts[i], &aes_policy);
	}
	int64_t delay_ns = (int64_t)(1 + rng_below(&w->script, 30)) * WEFT_NS_PER_MS;
	sim_loss_watch(&story, w);
	sim_loss_meet(w, delay_ns);
	const struct sim_loss_flow flows[] = {
		{0, 1, SIM_PROTO_UDP, 200, REKEY_PPS, 1}, {1, 0, SIM_PROTO_TCP, 600, REKEY_PPS, 1}};
	lose_both_ways(w, 0.1, delay_ns);
	sim_loss_run(w, flows, 2, 10);
	uint32_t first = w->ledger.n;
	sim_loss_run(w, flows, 2, REKEY_S);
	sim_world_run_s(w, 2);
	unsigned long long sent = w->ledger.n - first;
	unsigned long long missing = sim_ledger_missing(&w->ledger, first);
	sim_trace(w->report, "delay %.0f ms, %llu and %llu sessions: %llu of %llu packets lost",
		(double)delay_ns / 1e6, (unsigned long long)story.ways[0].sessions,
		(unsigned long long)story.ways[1].sessions, missing, sent);
	sim_loss_check_quiet(w, &story, 2 * delay_ns, REKEY_PPS);
	/* The last millisecond: in a session without agreement time is looked at once in one. */
	sim_loss_check(w, first, 31 * WEFT_NS_PER_MS);
	for (unsigned i = 0; i < 2; i++) {
		sim_check(w->report, story.ways[i].sessions >= 4, "sessions did not change");
		sim_check(w->report, story.ways[i].unmarked_late == 0,
			"host %u: %llu packets of old sessions are not of AES-256-GCM", i,
			(unsigned long long)story.ways[i].unmarked_late);
	}
	sim_check(w->report, sim_world_drops(w, DROP_RX_TYPE) == 0, "a cipher nobody agreed to");
	sim_check(w->report, !story.ways[0].has_unagreed && !story.ways[1].has_unagreed,
		"a session without agreement");
	/* At 100/s what a change leaves unprotected for a round trip or two is a packet or so. */
	sim_check(w->report, missing <= sent / 2000 + 10, "%llu of %llu packets were lost for good",
		missing, sent);
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

/* --- mixed --- */

/* A life ends without a word, and another begins: perhaps of a stock node. */
static void
change_life(struct sim_world *w, uint64_t *sums)
{
	unsigned i = (unsigned)rng_below(&w->script, w->n);
	struct sim_host *h = &w->hosts[i];
	if (h->device) {
		sim_host_stop(h);
	}
	h->has_allies = rng_is_hit(&w->script, 0.7);
	sim_trace(
		w->report, "host %u comes back as a %s node", i, h->has_allies ? "weft" : "stock");
	if (rng_is_hit(&w->script, 0.3)) {
		sim_world_run_s(w, rng_unit(&w->script));
	}
	sim_world_restart(w, i);
	sums[SIM_SUM_RESTARTS]++;
}

static void
change_mind(struct sim_world *w)
{
	struct sim_host *h = &w->hosts[rng_below(&w->script, w->n)];
	struct ally_policy p = sim_draw_policy(&w->script);
	if (sim_host_is_live(h)) {
		sim_host_set_policy(h, &p);
	}
}

static void
check_agreed(struct sim_world *w, unsigned i, unsigned j)
{
	struct ally_info info;
	ally_info(sim_host_peer(&w->hosts[i], j), &info);
	bool is_agreed = info.state == ALLY_STATE_AGREED &&
			 info.cipher == AEAD_CIPHER_AES_256_GCM && info.has_fec;
	sim_check(w->report, is_agreed, "hosts %u and %u did not agree: state %d, cipher %d", i, j,
		(int)info.state, (int)info.cipher);
}

/* Nodes that know nothing of each other's past lives are of one mind within the session. */
static void
must_agree(struct sim_world *w)
{
	for (unsigned i = 0; i < w->n; i++) {
		sim_host_stop(&w->hosts[i]);
		w->hosts[i].has_allies = true;
		w->hosts[i].policy = aes_policy;
		sim_host_start(&w->hosts[i]);
	}
	sim_world_must_converge(w);
	sim_world_run_s(w, 8);
	for (unsigned i = 0; i < w->n; i++) {
		for (unsigned j = 0; j < w->n; j++) {
			if (sim_host_peer(&w->hosts[i], j)) {
				check_agreed(w, i, j);
			}
		}
	}
}

void
sim_run_mixed(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {
		.hosts_min = 2, .hosts_max = 3, .psk_share = 0.5, .ally_share = 0.7};
	sim_world_init(w, w->report, &plan);
	int64_t delay_ns = (int64_t)rng_below(&w->script, 60) * WEFT_NS_PER_MS;
	lose_both_ways(w, 0.02 + 0.2 * rng_unit(&w->script), delay_ns);
	/* The guard may err about a peer that restarts or changes its mind: some 4 marks in 50
	 * seeds. */
	w->ledger.has_marks = true;
	w->traffic.frame_share = 0.3;
	for (unsigned round = 0; round < 20; round++) {
		static const int64_t gaps_us[] = {500, 5000, 50000};
		sim_world_start_traffic(w, gaps_us[rng_below(&w->script, 3)] * WEFT_NS_PER_US);
		sim_world_run_s(w, 0.6 * rng_unit(&w->script));
		w->traffic.mean_gap_ns = 100 * WEFT_NS_PER_MS;
		sim_world_run_s(w, 6 * rng_unit(&w->script));
		if (rng_is_hit(&w->script, 0.4)) {
			change_life(w, sums);
		} else {
			change_mind(w);
		}
	}
	sim_world_must_converge(w);
	must_agree(w);
	sim_check(w->report, w->ledger.marked <= 8, "%llu marks",
		(unsigned long long)w->ledger.marked);
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

/* --- nodes that know each other --- */

#define AGREE_SESSIONS 100
#define AGREE_S 10 /* within which they are to */
#define AGREE_STEP_S 0.25
#define AGREE_PPS 20

struct meeting {
	struct sim_world *w;
	uint64_t ids[2]; /* of the sessions that they send with */
};

static uint64_t
session_of(struct sim_world *w, unsigned host)
{
	const struct wg_session *s = wg_peer_session(sim_host_peer(&w->hosts[host], 1 - host));
	return s ? wg_session_id(s) : 0;
}

static void
talk(struct sim_world *w, double seconds)
{
	static const struct sim_loss_flow flows[] = {
		{0, 1, SIM_PROTO_UDP, 200, AGREE_PPS, 1}, {1, 0, SIM_PROTO_UDP, 200, AGREE_PPS, 1}};
	sim_loss_run(w, flows, 2, seconds);
}

/* Both send in a session that they did not have before. */
static void
wait_for_sessions(struct meeting *m)
{
	uint64_t before[2] = {m->ids[0], m->ids[1]};
	for (unsigned i = 0; i < 1000; i++) {
		talk(m->w, AGREE_STEP_S);
		for (unsigned k = 0; k < 2; k++) {
			m->ids[k] = session_of(m->w, k);
		}
		if (m->ids[0] && m->ids[1] && m->ids[0] != before[0] && m->ids[1] != before[1]) {
			return;
		}
	}
	sim_check(m->w->report, false, "no session in 250 s");
}

static bool
has_agreed(struct sim_world *w, unsigned host)
{
	struct ally_info info;
	ally_info(sim_host_peer(&w->hosts[host], 1 - host), &info);
	return info.state == ALLY_STATE_AGREED && info.cipher == AEAD_CIPHER_AES_256_GCM &&
	       info.has_fec;
}

/* True: in that time. A session that is replaced meanwhile, since a response was lost or both
 * began, counts from the last one's beginning. */
static bool
agree_in_time(struct meeting *m)
{
	for (double s = 0; s < AGREE_S; s += AGREE_STEP_S) {
		talk(m->w, AGREE_STEP_S);
		for (unsigned k = 0; k < 2; k++) {
			uint64_t id = session_of(m->w, k);
			s = id == m->ids[k] ? s : 0;
			m->ids[k] = id;
		}
		if (has_agreed(m->w, 0) && has_agreed(m->w, 1)) {
			return true;
		}
	}
	return false;
}

void
sim_run_agree(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {.hosts_min = 2, .hosts_max = 2, .psk_share = 0.5, .ally_share = 1};
	struct meeting m = {.w = w};
	sim_world_init(w, w->report, &plan);
	for (unsigned i = 0; i < 2; i++) {
		sim_host_set_policy(&w->hosts[i], &aes_policy);
	}
	double loss = w->report->seed % 2 ? 0.5 : 0.2;
	int64_t delay_ns = (int64_t)(1 + rng_below(&w->script, 80)) * WEFT_NS_PER_MS;
	sim_loss_meet(w, delay_ns);
	lose_both_ways(w, loss, delay_ns);
	unsigned late = 0;
	for (unsigned i = 0; i < AGREE_SESSIONS; i++) {
		for (unsigned k = 0; k < 2; k++) {
			m.ids[k] = session_of(w, k);
		}
		sim_host_renew_key(&w->hosts[rng_below(&w->script, 2)]);
		wait_for_sessions(&m);
		late += !agree_in_time(&m);
	}
	sim_trace(w->report, "loss %.0f %%: of %u sessions %u did not agree in %u s", loss * 100,
		(unsigned)AGREE_SESSIONS, late, (unsigned)AGREE_S);
	/* Fewer than one in 1000: of 100 sessions there is one in a seed of ten at most. */
	sim_check(w->report, late <= 1, "%u sessions without agreement", late);
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

/* --- stock peers --- */

static void
check_stock(struct sim_world *w, const struct sim_loss_way *way, unsigned weft)
{
	unsigned stock = 1 - weft;
	unsigned long long hellos = way->frames[SIM_KIND_HELLO];
	struct ally_info info;
	ally_info(sim_host_peer(&w->hosts[weft], stock), &info);
	sim_trace(w->report, "%llu HELLOs in %llu sessions", hellos,
		(unsigned long long)way->sessions);
	sim_check(w->report, way->requests_max <= 3, "%u HELLOs in one session", way->requests_max);
	sim_check(w->report, way->frames[SIM_KIND_REPAIR] + way->frames[SIM_KIND_FEEDBACK] == 0,
		"frames of loss recovery to a stock node");
	sim_check(w->report, sim_host_drops(&w->hosts[stock], DROP_RX_EXT) <= hellos,
		"more frames came than left");
	sim_check(w->report, info.cipher == AEAD_CIPHER_CHACHA20_POLY1305,
		"AES-256-GCM with a stock node");
}

void
sim_run_stockhello(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {.hosts_min = 2, .hosts_max = 2, .psk_share = 0.5, .ally_share = 1};
	struct sim_loss_story story;
	sim_world_init(w, w->report, &plan);
	unsigned weft = (unsigned)rng_below(&w->script, 2), stock = 1 - weft;
	sim_host_stop(&w->hosts[stock]);
	w->hosts[stock].has_allies = false;
	sim_host_start(&w->hosts[stock]);
	sim_host_set_policy(&w->hosts[weft], &aes_policy);
	sim_loss_watch(&story, w);
	bool is_lossy = rng_is_hit(&w->script, 0.5);
	lose_both_ways(w, is_lossy ? 0.1 : 0, 20 * WEFT_NS_PER_MS);
	sim_world_start_traffic(w, WEFT_NS_PER_S);
	uint64_t hours = 2 + rng_below(&w->script, 3);
	for (uint64_t hour = 1; hour <= hours; hour++) {
		sim_world_run_s(w, 3600);
		uint64_t n = story.ways[weft].frames[SIM_KIND_HELLO];
		/* Three at first, in each of three sessions if packets were lost in them, and again
		 * with a session an hour later at the soonest. */
		sim_check(w->report, n <= 3 * hour + (is_lossy ? 6 : 0),
			"%llu HELLOs in %llu hours", (unsigned long long)n,
			(unsigned long long)hour);
	}
	check_stock(w, &story.ways[weft], weft);
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

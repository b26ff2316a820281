/* SPDX-License-Identifier: Apache-2.0 */
/* What people do: replay, flood, change the configuration, and all of it at once. */
#include "family.h"

#include "crypto/crypto.h"

static void
start_replays(struct sim_world *w, int64_t mean_gap_ns)
{
	w->net.tap = sim_attacker_tap;
	w->net.tap_ctx = &w->attacker;
	w->attack_gap_ns = mean_gap_ns;
	w->attack_next_ns = w->report->now.ns + mean_gap_ns;
}

void
sim_run_replay(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {
		.hosts_min = 2, .hosts_max = 3, .psk_share = 0.5, .blind_share = 0.3};
	struct emu_settings s = emu_settings_default;
	sim_world_init(w, w->report, &plan);
	s.delay_ns = (int64_t)rng_below(&w->script, 100) * WEFT_NS_PER_MS;
	s.loss.in_good = 0.02;
	sim_net_set(&w->net, &s);
	start_replays(w, 60 * WEFT_NS_PER_MS);
	sim_world_start_traffic(w, 120 * WEFT_NS_PER_MS);
	for (unsigned round = 0; round < 5; round++) {
		sim_world_run_s(w, 150 * rng_unit(&w->script));
		unsigned host = (unsigned)rng_below(&w->script, w->n);
		bool is_quiet = rng_is_hit(&w->script, 0.5);
		w->traffic.is_on = !is_quiet; /* replays come before anything true does */
		sim_world_restart(w, host);
		sums[SIM_SUM_RESTARTS]++;
		sim_world_run_s(w, 3 * rng_unit(&w->script));
		sim_world_start_traffic(w, 120 * WEFT_NS_PER_MS);
	}
	sim_world_must_converge(w);
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

/* Small packets in long super-frames: counters grow fast. */
static void
burst(struct sim_world *w, uint32_t packets)
{
	for (uint32_t end = w->ledger.n + packets; w->ledger.n < end;) {
		sim_world_talk(w, 1, 0);
	}
	sim_world_run_ns(w, 20 * WEFT_NS_PER_MS);
}

void
sim_run_window(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {.hosts_min = 2, .hosts_max = 2};
	struct emu_settings s = emu_settings_default;
	sim_world_init(w, w->report, &plan);
	sim_world_ping(w, 1, 0);
	sim_world_run_s(w, 1);
	s.delay_ns = WEFT_NS_PER_MS;
	s.loss.in_good = 0.05;
	if (w->report->seed % 2) {
		s.reorder = (struct emu_reorder){
			.share = 0.05, .distance_min = 1, .distance_max = 1000};
		w->ledger.is_ordered = false;
	}
	sim_net_set(&w->net, &s);
	start_replays(w, 0);
	sim_attacker_watch_window(&w->attacker);
	w->traffic.len_max = 90;
	w->traffic.segments_max = 60;
	w->traffic.frame_share = 0.9;
	for (unsigned round = 0; round < 8; round++) {
		burst(w, 1000);
		sim_attacker_replay_window(&w->attacker);
	}
	for (unsigned round = 0; round < 20; round++) {
		burst(w, 150);
		sim_attacker_replay_window(&w->attacker);
	}
	sim_world_must_converge(w);
	sim_trace(w->report, "%llu came late",
		(unsigned long long)w->net.channels[1][0].counters.reordered);
	/* And nothing that was only late was taken for one, unless it had been recovered
	 * meanwhile. */
	uint64_t refused = sim_host_drops(&w->hosts[0], DROP_RX_REPLAY);
	uint64_t late = w->ledger.is_ordered ? 0 : sim_host_recovered(&w->hosts[0]);
	sim_check(w->report,
		refused >= w->attacker.window_replays &&
			refused <= w->attacker.window_replays + late,
		"%llu replays, %llu refused, %llu recovered",
		(unsigned long long)w->attacker.window_replays, (unsigned long long)refused,
		(unsigned long long)late);
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

#define FLOOD_RATE 1500 /* a second */
#define FLOOD_S 10

void
sim_run_flood(struct sim_world *w, uint64_t *sums)
{
	/* The clients do not know each other. */
	struct sim_plan plan = {.hosts_min = 5, .hosts_max = 5, .mobile = 3, .psk_share = 0.5};
	struct emu_settings s = emu_settings_default;
	struct crypto *crypto;
	bool is_through[SIM_HOSTS_MAX] = {false};
	unsigned through = 0;
	sim_world_init(w, w->report, &plan);
	sim_check(w->report, !crypto_new(&crypto), "no crypto");
	s.delay_ns = (int64_t)rng_below(&w->script, 80) * WEFT_NS_PER_MS;
	sim_net_set(&w->net, &s);
	/* Clients behind one NAT share an address. */
	for (unsigned i = 3; i < w->n; i++) {
		w->net.places[i].at.addr = w->net.places[2].at.addr;
	}
	uint32_t pings[SIM_HOSTS_MAX] = {0};
	pings[1] = sim_world_ping(w, 1, 0); /* has its session before */
	sim_world_run_s(w, 1);
	for (unsigned ms = 0; ms < FLOOD_S * 1000; ms += 10) {
		for (unsigned i = 0; i < FLOOD_RATE / 100; i++) {
			sim_attacker_forge(&w->attacker, crypto, 0);
		}
		sim_host_turn(&w->hosts[0]);
		sim_world_ping(w, 1, 0);
		sim_world_ping(w, 0, 1);
		for (unsigned i = 2; ms >= 1000 && ms % 500 == 0 && i < w->n; i++) {
			is_through[i] |= pings[i] && sim_world_has_arrived(w, pings[i]);
			pings[i] = is_through[i] ? pings[i] : sim_world_ping(w, i, 0);
		}
		sim_world_run_ns(w, 10 * WEFT_NS_PER_MS);
	}
	for (unsigned i = 2; i < w->n; i++) {
		through += is_through[i];
	}
	sim_check(w->report, through == w->n - 2, "%u of %u clients got through the flood", through,
		w->n - 2);
	/* What costs curve arithmetic fails to authenticate; the rest was refused before. */
	sim_check(w->report, sim_world_drops(w, DROP_HS_AUTH) < w->attacker.forged / 10,
		"%llu of %llu forged initiations cost curve arithmetic",
		(unsigned long long)sim_world_drops(w, DROP_HS_AUTH),
		(unsigned long long)w->attacker.forged);
	sim_world_run_s(w, 1);
	sim_world_must_have_all(w);
	sim_world_must_converge(w);
	sim_sum_up(w, sums);
	crypto_free(crypto);
	sim_world_fini(w);
}

/* Control adds or removes a peer of a host, changes its keepalive, or touches the device. */
static void
reconfigure(struct sim_world *w)
{
	unsigned i = (unsigned)rng_below(&w->script, w->n);
	unsigned j = (unsigned)rng_below(&w->script, w->n);
	struct sim_host *h = &w->hosts[i];
	if (!sim_world_are_pair(w, i, j) || !sim_host_is_live(h)) {
		return;
	}
	if (rng_is_hit(&w->script, 0.1)) {
		sim_host_renew_key(h);
	} else if (rng_is_hit(&w->script, 0.1)) {
		sim_host_bounce(h);
	} else if (!h->peers[j].is_in) {
		sim_host_add_peer(h, j);
	} else if (rng_is_hit(&w->script, 0.7)) {
		sim_host_remove_peer(h, j);
	} else {
		sim_host_set_keepalive(h, j,
			(uint16_t)(rng_is_hit(&w->script, 0.5) ? 0
							       : 1 + rng_below(&w->script, 30)));
	}
}

/* A packet waits for a handshake that the new key ends. The next one must not wait behind it. */
static void
renew_while_one_waits(struct sim_world *w)
{
	unsigned from, to;
	sim_world_let_expire(w, &from, &to);
	w->net.is_blocked[from][to] = true;
	sim_world_ping(w, from, to);
	sim_host_renew_key(&w->hosts[from]);
	w->net.is_blocked[from][to] = false;
	sim_world_run_s(w, 3 * rng_unit(&w->script));
	uint32_t id = sim_world_ping(w, from, to);
	sim_world_run_s(w, 6);
	sim_check(w->report, sim_world_has_arrived(w, id) && sim_world_has_arrived(w, id - 1),
		"packets from %u to %u wait for nothing", from, to);
}

void
sim_run_config(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {
		.hosts_min = 2, .hosts_max = 4, .workers = 2, .psk_share = 0.5, .blind_share = 0.2};
	struct emu_settings s = emu_settings_default;
	sim_world_init(w, w->report, &plan);
	s.delay_ns = (int64_t)rng_below(&w->script, 100) * WEFT_NS_PER_MS;
	s.loss.in_good = 0.05 * rng_unit(&w->script);
	sim_net_set(&w->net, &s);
	w->traffic.frame_share = 0.3;
	w->traffic.forged_share = 0.05;
	w->traffic.late_share = 0.3;
	sim_world_start_traffic(w, 60 * WEFT_NS_PER_MS);
	for (unsigned round = 0; round < 40; round++) {
		reconfigure(w);
		sim_world_run_s(w, 6 * rng_unit(&w->script));
	}
	sim_world_must_converge(w);
	renew_while_one_waits(w);
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

static void
harm(struct sim_world *w, uint64_t *sums)
{
	struct rng *r = &w->script;
	unsigned i = (unsigned)rng_below(r, w->n), j = (unsigned)rng_below(r, w->n);
	struct emu_settings s;
	switch (rng_below(r, 8)) {
	case 0:
		sim_world_sleep(w, i, (int64_t)(1 + rng_below(r, 300)) * WEFT_NS_PER_S);
		sums[SIM_SUM_SLEEPS]++;
		break;
	case 1:
		sim_world_restart(w, i);
		sums[SIM_SUM_RESTARTS]++;
		break;
	case 2:
		w->hosts[i].wall_off_ns += ((int64_t)rng_below(r, 7200) - 3600) * WEFT_NS_PER_S;
		break;
	case 3:
		s = sim_world_bad_network(w);
		sim_net_set(&w->net, &s);
		break;
	case 4:
		w->net.is_blocked[i][j] ^= true;
		break;
	case 5:
		if (w->is_mobile[i]) {
			sim_world_move(w, i);
		}
		break;
	case 6:
		if (w->hosts[i].device) {
			sim_host_stop(&w->hosts[i]);
		}
		break;
	default:
		reconfigure(w);
	}
}

void
sim_run_chaos(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {.hosts_min = 2,
		.hosts_max = 5,
		.mobile = (unsigned)(w->report->seed % 2),
		.workers = 2,
		.psk_share = 0.5,
		.blind_share = 0.2};
	sim_world_init(w, w->report, &plan);
	w->ledger.is_ordered = false;
	w->ledger.has_marks = true;
	w->net.ce_share = 0.2;
	w->net.send_error_share = 0.005;
	w->net.queue_max = 300;
	w->traffic.frame_share = 0.2;
	w->traffic.forged_share = 0.05;
	w->traffic.junk_share = 0.02;
	w->traffic.twice_share = 0.02;
	w->traffic.late_share = 0.2;
	start_replays(w, 80 * WEFT_NS_PER_MS);
	sim_world_start_traffic(w, 60 * WEFT_NS_PER_MS);
	for (unsigned round = 0; round < 20; round++) {
		sim_world_run_s(w, 12 * rng_unit(&w->script));
		harm(w, sums);
	}
	sim_world_must_converge(w);
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

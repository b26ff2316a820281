/* SPDX-License-Identifier: Apache-2.0 */
/* What networks do to datagrams, and several workers. */
#include "family.h"

void
sim_run_badnet(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {.hosts_min = 2, .hosts_max = 4, .psk_share = 0.5};
	sim_world_init(w, w->report, &plan);
	w->ledger.is_ordered = false;
	w->ledger.has_marks = true;
	w->net.ce_share = 0.3;
	w->net.send_error_share = 0.01;
	w->traffic.frame_share = 0.3;
	w->traffic.forged_share = 0.05;
	w->traffic.junk_share = 0.03;
	w->traffic.twice_share = 0.02;
	w->traffic.late_share = 0.2;
	w->traffic.segments_max = rng_is_hit(&w->script, 0.1) ? 60 : 12;
	sim_world_start_traffic(w, 30 * WEFT_NS_PER_MS);
	for (unsigned round = 0; round < 6; round++) {
		struct emu_settings s = sim_world_bad_network(w);
		sim_net_set(&w->net, &s);
		sim_world_run_s(w, 15 * rng_unit(&w->script));
	}
	sim_world_must_converge(w);
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

/* One packet makes a host try until it gives up. One more, a moment later, is enough to make it try
 * again, by itself. */
static void
try_again(struct sim_world *w)
{
	unsigned from, to;
	sim_world_let_expire(w, &from, &to);
	const uint64_t *gave_up = &w->hosts[from].peers[to].events[WG_EVENT_GAVE_UP];
	uint64_t before = *gave_up;
	w->net.is_blocked[from][to] = true;
	sim_world_ping(w, from, to);
	sim_world_run_s(w, 90.5); /* REKEY_ATTEMPT_TIME */
	sim_check(w->report, *gave_up > before, "host %u has not given up host %u", from, to);
	w->net.is_blocked[from][to] = false;
	sim_world_run_s(w, 6 * rng_unit(&w->script));
	uint32_t id = sim_world_ping(w, from, to);
	sim_world_run_s(w, 6);
	sim_check(w->report, sim_world_has_arrived(w, id),
		"a packet after host %u had given up host %u did not arrive", from, to);
}

void
sim_run_partition(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {
		.hosts_min = 2, .hosts_max = 5, .psk_share = 0.5, .blind_share = 0.2};
	struct emu_settings s = emu_settings_default;
	sim_world_init(w, w->report, &plan);
	s.delay_ns = (int64_t)rng_below(&w->script, 150) * WEFT_NS_PER_MS;
	s.loss.in_good = 0.1 * rng_unit(&w->script);
	sim_net_set(&w->net, &s);
	sim_world_start_traffic(w, 150 * WEFT_NS_PER_MS);
	for (unsigned round = 0; round < 5; round++) {
		for (unsigned i = 0; i < w->n; i++) {
			for (unsigned j = 0; j < w->n; j++) {
				/* One way only, quite often. */
				w->net.is_blocked[i][j] = rng_is_hit(&w->script, 0.4);
			}
		}
		sim_world_run_s(w, 2 + 20 * rng_unit(&w->script));
		/* Attempts are only given up when nothing new asks for them. */
		w->traffic.is_on = rng_is_hit(&w->script, 0.5);
		sim_world_run_s(w, 100 * rng_unit(&w->script));
		sim_world_start_traffic(w, 150 * WEFT_NS_PER_MS);
	}
	sums[SIM_SUM_GIVEN_UP] += sim_world_events(w, WG_EVENT_GAVE_UP);
	sim_world_must_converge(w);
	try_again(w);
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

/* Every host that got a packet of the mover knows where it is. */
static void
check_followed(struct sim_world *w, unsigned mover, const uint32_t *pings)
{
	for (unsigned j = 0; j < w->n; j++) {
		const struct wg_peer *p = sim_host_peer(&w->hosts[j], mover);
		if (!p || !sim_world_are_pair(w, mover, j)) {
			continue;
		}
		struct endpoint e = wg_peer_endpoint(p);
		sim_check(w->report, sim_world_has_arrived(w, pings[j]),
			"host %u moved, and its packet to %u was lost", mover, j);
		sim_check(w->report, endpoint_is_same_remote(&e, &w->net.places[mover].at),
			"host %u has not followed host %u", j, mover);
	}
}

void
sim_run_roaming(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {.hosts_min = 3,
		.hosts_max = 5,
		.mobile = 1 + (unsigned)(w->report->seed % 2),
		.psk_share = 0.5,
		.blind_share = 0.5};
	struct emu_settings s = emu_settings_default;
	sim_world_init(w, w->report, &plan);
	s.delay_ns = (int64_t)rng_below(&w->script, 150) * WEFT_NS_PER_MS;
	sim_net_set(&w->net, &s);
	for (unsigned i = w->n - plan.mobile; i < w->n; i++) {
		bool has_nat = rng_is_hit(&w->script, 0.5);
		w->net.places[i].nat_timeout_ns = has_nat ? 60 * WEFT_NS_PER_S : 0;
		for (unsigned j = 0; has_nat && j < w->n; j++) {
			if (sim_world_are_pair(w, i, j)) {
				sim_host_set_keepalive(&w->hosts[i], j, 25);
			}
		}
	}
	sim_world_start_traffic(w, 250 * WEFT_NS_PER_MS);
	for (unsigned round = 0; round < 8; round++) {
		unsigned mover = w->n - 1 - (unsigned)rng_below(&w->script, plan.mobile);
		uint32_t pings[SIM_HOSTS_MAX] = {0};
		sim_world_run_s(w, 60 * rng_unit(&w->script));
		sim_world_move(w, mover);
		sim_world_run_s(w, rng_is_hit(&w->script, 0.5) ? 0 : 8 * rng_unit(&w->script));
		for (unsigned j = 0; j < w->n; j++) {
			if (sim_world_are_pair(w, mover, j)) {
				pings[j] = sim_world_ping(w, mover, j);
			}
		}
		/* A handshake may have been under way when it moved: then REKEY_TIMEOUT passes. */
		sim_world_run_s(w, 7);
		check_followed(w, mover, pings);
	}
	sim_world_must_converge(w);
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

void
sim_run_workers(struct sim_world *w, uint64_t *sums)
{
	struct sim_plan plan = {
		.hosts_min = 2, .hosts_max = 3, .workers = SIM_WORKERS_MAX, .psk_share = 0.5};
	struct emu_settings s = emu_settings_default;
	sim_world_init(w, w->report, &plan);
	s.delay_ns = (int64_t)rng_below(&w->script, 50) * WEFT_NS_PER_MS;
	sim_net_set(&w->net, &s);
	w->traffic.flows = SIM_WORKERS_MAX;
	w->traffic.segments_max = 40;
	/* Often a packet is read in the turn in which the handshake is done. */
	w->traffic.late_share = 0.8;
	w->traffic.late_ns_max = 20 * WEFT_NS_PER_MS;
	for (unsigned round = 0; round < 3; round++) {
		/* So few that all can wait for the handshake: 128 packets and 64 KiB. */
		w->traffic.frame_share = 0;
		sim_world_start_traffic(w, 2 * WEFT_NS_PER_MS);
		sim_world_run_s(w, 0.3);
		w->traffic.frame_share = 0.6;
		sim_world_start_traffic(w, 4 * WEFT_NS_PER_MS);
		sim_world_run_s(w, 0.6);
		w->traffic.is_on = false;
		sim_world_run_s(w, 200); /* the next round begins with a handshake again */
	}
	sim_world_must_have_all(w);
	sim_world_must_converge(w);
	sim_sum_up(w, sums);
	sim_world_fini(w);
}

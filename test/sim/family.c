/* SPDX-License-Identifier: Apache-2.0 */
#include "family.h"

#define SEES(sum) (UINT64_C(1) << SIM_SUM_##sum)

/* Some hosts of most seeds speak extension frames. */
#define SEES_ALL (SEES(DELIVERED) | SEES(FRAMES))

const struct sim_family sim_families[] = {
	{"steady", "steady_traffic_takes_one_handshake_in_120_s_and_loses_nothing", 70,
		sim_run_steady, SEES_ALL},
	{"collision", "initiations_in_one_millisecond_cost_one_more_handshake_and_lose_nothing", 80,
		sim_run_collision, SEES_ALL | SEES(CROSSED)},
	{"restart", "restarted_nodes_are_back_within_30_s_and_never_undercut_their_stamp", 70,
		sim_run_restart, SEES_ALL | SEES(RESTARTS)},
	{"clock", "a_clock_that_went_backward_is_reported_and_shuts_nobody_out", 70, sim_run_clock,
		SEES_ALL | SEES(STALE) | SEES(RESTARTS)},
	{"sleep", "the_first_packet_after_a_sleep_arrives_within_a_round_trip_and_a_second", 70,
		sim_run_sleep, SEES_ALL | SEES(SLEEPS)},
	{"badnet", "loss_reordering_copies_and_damage_never_show_inside", 80, sim_run_badnet,
		SEES_ALL | SEES(LOST) | SEES(DAMAGED) | SEES(FORGED) | SEES(MARKED) |
			SEES(RECOVERED)},
	{"partition", "nodes_are_through_within_30_s_after_a_partition", 70, sim_run_partition,
		SEES_ALL | SEES(LOST) | SEES(GIVEN_UP)},
	{"roaming", "a_peer_that_moves_is_followed_with_its_next_packet", 70, sim_run_roaming,
		SEES_ALL | SEES(MOVES)},
	{"workers", "four_workers_keep_the_order_of_every_flow_and_lose_nothing", 70,
		sim_run_workers, SEES_ALL},
	{"replay", "replayed_datagrams_are_refused_before_and_after_a_restart", 80, sim_run_replay,
		SEES_ALL | SEES(REPLAYS) | SEES(RESTARTS)},
	{"window", "nothing_at_the_edge_of_the_replay_window_is_delivered_twice", 30,
		sim_run_window, SEES_ALL | SEES(REPLAYS) | SEES(WINDOW)},
	{"flood", "a_flood_of_initiations_costs_no_data_and_keeps_no_client_out", 30, sim_run_flood,
		SEES_ALL | SEES(COOKIES)},
	{"config", "peers_come_and_go_and_leave_nothing_behind", 70, sim_run_config, SEES_ALL},
	{"loss", "a_lossy_path_looks_clean_and_pays_for_what_it_loses_alone", 48, sim_run_loss,
		SEES_ALL | SEES(REPAIRS) | SEES(RECOVERED)},
	{"reorder", "reordering_and_copies_cost_no_packet_and_within_the_grace_nothing", 24,
		sim_run_reorder, SEES_ALL | SEES(REPLAYS)},
	{"rekey", "sessions_that_change_in_mid_loss_lose_no_more_than_others", 4, sim_run_rekey,
		SEES_ALL | SEES(RECOVERED)},
	{"mixed", "nodes_restart_change_their_mind_and_are_stock_ones_in_mid_loss", 50,
		sim_run_mixed, SEES_ALL | SEES(RECOVERED) | SEES(RESTARTS)},
	{"agree", "sessions_of_nodes_that_know_each_other_agree_whatever_is_lost", 4, sim_run_agree,
		SEES_ALL | SEES(LOST) | SEES(RECOVERED)},
	{"stockhello",
		"a_stock_node_is_asked_three_times_a_session_until_known_and_sent_nothing_else", 10,
		sim_run_stockhello, SEES_ALL},
	{"chaos", "everything_at_once_breaks_no_invariant_and_ends_in_quiet", 140, sim_run_chaos,
		SEES_ALL | SEES(LOST) | SEES(REPLAYS) | SEES(MOVES) | SEES(RESTARTS) |
			SEES(SLEEPS) | SEES(DAMAGED) | SEES(FORGED) | SEES(RECOVERED)},
};
const unsigned sim_families_n = WEFT_ARRAY_LEN(sim_families);

void
sim_sum_up(const struct sim_world *w, uint64_t *sums)
{
	sums[SIM_SUM_DELIVERED] += w->ledger.delivered;
	sums[SIM_SUM_MARKED] += w->ledger.marked;
	sums[SIM_SUM_LOST] += sim_net_lost(&w->net);
	sums[SIM_SUM_STALE] += sim_world_drops(w, DROP_HS_STALE);
	sums[SIM_SUM_REPLAYS] +=
		sim_world_drops(w, DROP_RX_REPLAY) + sim_world_drops(w, DROP_HS_STALE);
	sums[SIM_SUM_WINDOW] += w->attacker.window_replays;
	sums[SIM_SUM_MOVES] += sim_world_events(w, WG_EVENT_ENDPOINT);
	sums[SIM_SUM_COOKIES] += sim_world_drops(w, DROP_HS_MAC2);
	sums[SIM_SUM_FORGED] += sim_world_drops(w, DROP_RX_SOURCE);
	sums[SIM_SUM_DAMAGED] += sim_world_drops(w, DROP_RX_AUTH);
	for (unsigned i = 0; i < w->n; i++) {
		const uint64_t *out = w->net.tally[i].out;
		sums[SIM_SUM_FRAMES] += out[SIM_KIND_HELLO] + out[SIM_KIND_FEEDBACK];
		sums[SIM_SUM_FRAMES] += out[SIM_KIND_REPAIR];
		sums[SIM_SUM_REPAIRS] += out[SIM_KIND_REPAIR];
		sums[SIM_SUM_RECOVERED] += sim_host_recovered(&w->hosts[i]);
	}
}

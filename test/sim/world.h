/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts, network, traffic and attacker under one virtual time, all from one seed. */
#ifndef WEFT_TEST_SIM_WORLD_H
#define WEFT_TEST_SIM_WORLD_H

#include "attacker.h"

struct sim_plan {
	unsigned hosts_min, hosts_max;
	unsigned workers;   /* of host 0; the others have 1, or as many by chance. 0 = 1 */
	unsigned mobile;    /* so many of the last hosts move, and know only hosts that do not */
	double psk_share;   /* of pairs */
	double blind_share; /* of pairs where one side does not know the other's address */
	/* Of hosts that speak extension frames, each with some policy. 0: by the seed none, all, or
	 * most of them. < 0: none. */
	double ally_share;
	uint32_t channel_packets; /* as sim_net_init() has it */
};

/* What inner hosts send by themselves. */
struct sim_traffic {
	bool is_on;
	int64_t next_ns, mean_gap_ns;
	double frame_share;  /* super-frames */
	double forged_share; /* source address of somebody else */
	double junk_share;   /* malformed, or to nobody */
	double twice_share;  /* sent twice by the inner host */
	int64_t late_ns_max;
	double late_share;     /* which the node reads a little later, together with other work */
	uint32_t segments_max; /* of a super-frame */
	uint16_t len_max;
	unsigned flows;
};

struct sim_world {
	struct sim_report *report;
	struct rng script, chance; /* the family's, and the world's own */
	unsigned n;
	struct sim_net net;
	struct sim_sniffer sniffer;
	struct sim_ledger ledger;
	struct sim_attacker attacker;
	struct sim_traffic traffic;
	bool is_mobile[SIM_HOSTS_MAX];
	bool is_stale[SIM_HOSTS_MAX]; /* its initiations are refused for their timestamps */
	struct sim_host hosts[SIM_HOSTS_MAX];
	int64_t attack_gap_ns, attack_next_ns; /* mean gap of replays; 0: none */
	int64_t stuck_ns;
	uint64_t stuck_steps;
	uint8_t frame[SIM_FRAME_MAX + 1];
};

/* All hosts run, the network is perfect, nobody talks. */
void sim_world_init(struct sim_world *w, struct sim_report *report, const struct sim_plan *plan);
struct ally_policy sim_draw_policy(struct rng *r);
/* Ends all hosts and checks that everything is accounted for. */
void sim_world_fini(struct sim_world *w);

void sim_world_run_ns(struct sim_world *w, int64_t ns);
void sim_world_run_s(struct sim_world *w, double seconds);
/* Both know each other. */
bool sim_world_are_pair(const struct sim_world *w, unsigned i, unsigned j);

/* A small packet; returns its number. The node reads it at once unless it sleeps. */
uint32_t sim_world_ping(struct sim_world *w, unsigned from, unsigned to);
bool sim_world_has_arrived(const struct sim_world *w, uint32_t id);
/* n packets like `first`, as one frame if there are several, of equal size but the last. Returns
 * the first number. */
uint32_t sim_world_send(
	struct sim_world *w, struct sim_packet *first, uint32_t n, uint16_t last_len);
/* One packet or frame of the traffic, from `from` to `to`. */
void sim_world_talk(struct sim_world *w, unsigned from, unsigned to);
void sim_world_start_traffic(struct sim_world *w, int64_t mean_gap_ns);

void sim_world_sleep(struct sim_world *w, unsigned host, int64_t ns);
void sim_world_restart(struct sim_world *w, unsigned host);
void sim_world_move(struct sim_world *w, unsigned host);
/* Ends all faults, and checks that all pairs reach each other within 30 s: first one way, where
 * nobody helps by calling back, then both ways. */
void sim_world_must_converge(struct sim_world *w);
/* Lets the sessions of a quiet world pass their time, and chooses a pair of which *from may call
 * *to: it knows where it is. */
void sim_world_let_expire(struct sim_world *w, unsigned *from, unsigned *to);
/* Nothing was lost: every packet injected was delivered. */
void sim_world_must_have_all(struct sim_world *w);

uint64_t sim_world_events(const struct sim_world *w, enum wg_event_kind kind);
uint64_t sim_world_drops(const struct sim_world *w, enum drop_reason r);
/* A random fault of the network: loss, jitter, reordering, copies, damage. */
struct emu_settings sim_world_bad_network(struct sim_world *w);

#endif

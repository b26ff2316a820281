/* SPDX-License-Identifier: Apache-2.0 */
/* Families of scenarios: each takes a seed and lives through one story made from it. */
#ifndef WEFT_TEST_SIM_FAMILY_H
#define WEFT_TEST_SIM_FAMILY_H

#include "world.h"

/* Sums over the seeds of a family: it must have had something to show. */
enum sim_sum {
	SIM_SUM_DELIVERED,
	SIM_SUM_LOST,
	SIM_SUM_CROSSED, /* rounds in which both sides initiated */
	SIM_SUM_STALE,   /* initiations with an old timestamp */
	SIM_SUM_REPLAYS, /* rejected: data by the window, initiations by their timestamp */
	SIM_SUM_WINDOW,  /* replays around the edge of the window */
	SIM_SUM_MOVES,   /* endpoints that followed */
	SIM_SUM_COOKIES, /* initiations refused without a cookie */
	SIM_SUM_FORGED,  /* packets with another's source address that were refused */
	SIM_SUM_DAMAGED, /* datagrams that did not authenticate */
	SIM_SUM_GIVEN_UP,
	SIM_SUM_MARKED, /* CE came from the outer header to the inner one */
	SIM_SUM_RESTARTS,
	SIM_SUM_SLEEPS,
	SIM_SUM_FRAMES,    /* extension frames sent */
	SIM_SUM_REPAIRS,   /* of these REPAIRs */
	SIM_SUM_RECOVERED, /* packets put in by loss recovery */
	SIM_SUM_COUNT
};

struct sim_family {
	const char *name;  /* for --family */
	const char *claim; /* the test's name */
	unsigned seeds;    /* of the plain build; 1000 in all */
	void (*run)(struct sim_world *w, uint64_t *sums);
	uint64_t must_see; /* bits of sums that may not be 0 over all seeds */
};

extern const struct sim_family sim_families[];
extern const unsigned sim_families_n;

/* Adds what the world has counted. */
void sim_sum_up(const struct sim_world *w, uint64_t *sums);

/* time.c: order of handshakes, clocks, sleep */
void sim_run_steady(struct sim_world *w, uint64_t *sums);
void sim_run_collision(struct sim_world *w, uint64_t *sums);
void sim_run_restart(struct sim_world *w, uint64_t *sums);
void sim_run_clock(struct sim_world *w, uint64_t *sums);
void sim_run_sleep(struct sim_world *w, uint64_t *sums);
/* path.c: what networks do */
void sim_run_badnet(struct sim_world *w, uint64_t *sums);
void sim_run_partition(struct sim_world *w, uint64_t *sums);
void sim_run_roaming(struct sim_world *w, uint64_t *sums);
void sim_run_workers(struct sim_world *w, uint64_t *sums);
/* hostile.c: what people do */
void sim_run_replay(struct sim_world *w, uint64_t *sums);
void sim_run_window(struct sim_world *w, uint64_t *sums);
void sim_run_flood(struct sim_world *w, uint64_t *sums);
void sim_run_config(struct sim_world *w, uint64_t *sums);
void sim_run_chaos(struct sim_world *w, uint64_t *sums);
/* loss.c: recovery between two nodes of weft */
void sim_run_loss(struct sim_world *w, uint64_t *sums);
void sim_run_reorder(struct sim_world *w, uint64_t *sums);
/* ally.c: agreement over time */
void sim_run_rekey(struct sim_world *w, uint64_t *sums);
void sim_run_mixed(struct sim_world *w, uint64_t *sums);
void sim_run_agree(struct sim_world *w, uint64_t *sums);
void sim_run_stockhello(struct sim_world *w, uint64_t *sums);

#endif

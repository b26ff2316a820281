/* SPDX-License-Identifier: Apache-2.0 */
/* Two nodes of a number of workers each, joined worker by worker in memory, for tests. */
#ifndef WEFT_TEST_UNIT_NODE_PAIR_H
#define WEFT_TEST_UNIT_NODE_PAIR_H

#include <stdatomic.h>

#include "base/rng.h"
#include "link/mem.h"
#include "node/ally.h"
#include "node/crew.h"
#include "node/worker.h"
#include "port/mem.h"

#define PAIR_WORKERS_MAX 4

struct pair_node {
	struct wg_device *device;
	struct os_rwlock lock;
	_Atomic uint16_t listen_port;
	_Atomic int64_t deadline_ns;
	struct crew *crew;
	struct allies allies; /* used with has_allies of pair_init_allied() */
	bool has_allies;
	unsigned workers;
	struct worker *w[PAIR_WORKERS_MAX];
	struct rng rng;
	uint64_t events[8]; /* by kind; under the lock */
};

/* What a node sends goes through here, and is lost with some probability. */
struct pair_filter {
	struct link base;
	struct link *inner;
	struct rng *rng;
	double loss;
	uint64_t lost, marked; /* datagrams; those of data that are marked as AES-256-GCM */
	bool has_dropped;      /* the next one received is told to be behind a drop */
};

struct pair {
	struct pair_node node[2];
	struct pair_filter filters[2][PAIR_WORKERS_MAX];
};

/* Keys, peers (10.0.0.1 behind node 0, 10.0.0.2 behind node 1) and endpoints are set. */
void pair_init(struct pair *p, unsigned workers, uint64_t seed);
/* The policy of a node that speaks extension frames and was told nothing of its peer. */
extern const struct ally_policy pair_no_policy;
/* The same; a node with a policy speaks extension frames, one without (NULL) is a stock one. */
void pair_init_allied(struct pair *p, unsigned workers, uint64_t seed,
	const struct ally_policy *const policies[2]);
struct wg_peer *pair_peer(struct pair *p, unsigned i);
void pair_fini(struct pair *p);
/* Turns of every worker of both nodes on the calling thread. */
void pair_run(struct pair *p, struct wg_time now, unsigned turns);
/* An IPv4 UDP packet without checksum from node `from` to the other, `len` bytes in all, with a
 * flow and a sequence number in it; goes into the port of worker w. */
bool pair_inject(
	struct pair *p, unsigned from, unsigned w, uint16_t flow, uint32_t seq, uint32_t len);
/* The next delivered packet at worker w of node `at`. False: none. */
bool pair_take(
	struct pair *p, unsigned at, unsigned w, uint16_t *flow, uint32_t *seq, uint32_t *len);

#endif

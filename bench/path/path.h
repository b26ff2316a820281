/* SPDX-License-Identifier: Apache-2.0 */
/* Two whole nodes in this process, joined worker by worker over rings in memory: everything that
 * the daemon does with a packet but sockets, TUN and waiting. */
#ifndef WEFT_BENCH_PATH_PATH_H
#define WEFT_BENCH_PATH_PATH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "node/crew.h"
#include "node/node.h"
#include "node/worker.h"
#include "port/mem.h"

struct path_node {
	struct wg_device *device;
	struct os_rwlock lock;
	_Atomic uint16_t listen_port;
	_Atomic int64_t deadline_ns;
	struct crew *crew; /* with more than one worker */
	struct worker *workers[NODE_WORKERS_MAX];
};

/* Node 0 has 10.0.0.1 behind it, node 1 has 10.0.0.2. */
struct path {
	struct path_node nodes[2];
	unsigned workers; /* of each node */
};

struct path_config {
	unsigned workers;
	uint16_t mtu;
	size_t ring_bytes; /* of each link and port, a direction */
	bool has_gso;      /* the ports take joined frames */
};

WEFT_MUST_CHECK enum weft_err path_new(const struct path_config *c, struct path **out);
void path_free(struct path *p);
/* One turn of a worker as its thread would take it. Node 0's worker 0 and node 1's keep the
 * timers. */
void path_turn(struct path *p, unsigned node, unsigned worker);
/* Sends the frame from node 0 until it arrives, so that a session stands. */
WEFT_MUST_CHECK enum weft_err path_connect(struct path *p, const struct frame *f);
/* What that worker, its link and its port dropped, by reason. Between its turns. */
void path_drops(const struct path *p, unsigned node, unsigned worker, struct drop_counts *out);

#endif

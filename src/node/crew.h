/* SPDX-License-Identifier: Apache-2.0 */
/* Several workers of one device that lend each other hands.
 *
 * Each worker has two lanes, outbound and inbound: rings of jobs in order of filling. Whoever
 * has nothing of its own to do takes a ready job from anybody's lane, seals or opens it, and
 * marks it done; the lane's owner finishes its jobs strictly in order. So one flow can use
 * all cores and is never reordered. A job changes hands by one compare-and-swap a batch. */
#ifndef WEFT_NODE_CREW_H
#define WEFT_NODE_CREW_H

#include "base/err.h"
#include "node/worker.h"

#define CREW_LANE_DEPTH 6 /* jobs a lane: 12 a worker, 85 KiB each when in use */

struct crew;

/* wake(ctx, i) makes worker i's thread leave its wait; from any thread. */
WEFT_MUST_CHECK enum weft_err crew_new(
	unsigned workers, void (*wake)(void *ctx, unsigned i), void *ctx, struct crew **out);
void crew_free(struct crew *c);
/* worker_turn() of a worker that belongs to a crew. Bit WORKER_READY_HELP in the result: there
 * may be work for others' lanes, do not sleep. */
unsigned crew_turn(struct crew *c, struct worker *w, struct wg_time now, unsigned ready);
/* Says that worker i is about to wait (true) or came back (false). When it returns true there
 * is work to take after all. */
bool crew_set_idle(struct crew *c, unsigned i, bool is_idle);

#define WORKER_READY_HELP 4u

#endif

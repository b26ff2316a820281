/* SPDX-License-Identifier: Apache-2.0 */
/* Sums what the workers count into a struct node_stats. */
#ifndef WEFT_NODE_STATS_H
#define WEFT_NODE_STATS_H

#include "node/runner.h"

void stats_add_drops(struct drop_counts *to, const struct drop_counts *d);
/* Adds a worker's to the struct node_stats. To be given to runner_ask(). */
void stats_take(struct runner *r, void *node_stats);
/* Likewise, a struct drop_times. */
void stats_take_times(struct runner *r, void *drop_times);

#endif

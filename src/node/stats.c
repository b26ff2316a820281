/* SPDX-License-Identifier: Apache-2.0 */
#include "node/stats.h"

#include "link/udp.h"
#include "node/node.h"

static void
add_link_stats(struct link_stats *to, const struct link_stats *s)
{
	to->rx_bytes += s->rx_bytes;
	to->rx_datagrams += s->rx_datagrams;
	to->rx_calls += s->rx_calls;
	to->tx_bytes += s->tx_bytes;
	to->tx_datagrams += s->tx_datagrams;
	to->tx_calls += s->tx_calls;
	to->gso_off_count += s->gso_off_count;
}

static void
add_port_stats(struct port_stats *to, const struct port_stats *s)
{
	to->rx_bytes += s->rx_bytes;
	to->rx_frames += s->rx_frames;
	to->tx_bytes += s->tx_bytes;
	to->tx_frames += s->tx_frames;
	to->join_off_count += s->join_off_count;
}

void
stats_add_drops(struct drop_counts *to, const struct drop_counts *d)
{
	for (size_t i = 0; i < DROP_COUNT; i++) {
		to->n[i] += d->n[i];
	}
}

void
stats_take_times(struct runner *r, void *arg)
{
	link_udp_sync(r->worker->link);
	worker_look(r->worker);
	drop_times_merge(arg, &r->worker->dropped);
}

void
stats_take(struct runner *r, void *arg)
{
	struct node_stats *to = arg;
	struct worker *w = r->worker;
	link_udp_sync(w->link);
	add_link_stats(&to->link, &w->link->stats);
	add_port_stats(&to->port, &w->port->stats);
	stats_add_drops(&to->drops, &w->link->stats.drops);
	stats_add_drops(&to->drops, &w->port->stats.drops);
	stats_add_drops(&to->drops, &w->stats.drops);
	to->handshakes_rx += w->stats.handshakes_rx;
	to->keepalives_rx += w->stats.keepalives_rx;
	to->gaps += w->stats.gaps;
}

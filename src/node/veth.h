/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of a node where /dev/net/tun is absent or forbidden: a veth pair in its private
 * namespace, of which the node has the far end by packet sockets. */
#ifndef WEFT_NODE_VETH_H
#define WEFT_NODE_VETH_H

#include <stdint.h>

#include "base/err.h"
#include "node/node.h"
#include "os/netlink.h"
#include "port/packet.h"
#include "port/tun.h"

struct node_veth {
	uint32_t far_index;
	unsigned queues;
	struct os_pktring rings[NODE_WORKERS_MAX];
	struct port_packet packets[NODE_WORKERS_MAX];
	uint64_t dropped; /* of packets to peers; the control thread's */
};

/* The near end has the name of c; the far end is up. Failures are said to c->log. */
WEFT_MUST_CHECK enum weft_err node_veth_open(struct os_netlink *nl, const struct node_config *c,
	unsigned queues, struct node_veth **out);
/* Takes both ends away. NULL is allowed. */
void node_veth_close(struct node_veth *v, struct os_netlink *nl);
/* What port_tun_new() needs for queue i, but mtu and log. */
void node_veth_port(struct node_veth *v, unsigned i, struct port_tun_config *out);
/* All that was dropped so far. */
uint64_t node_veth_dropped(struct node_veth *v);

#endif

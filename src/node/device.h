/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of a node in the kernel: its TUN queues, and what is known of it by netlink. */
#ifndef WEFT_NODE_DEVICE_H
#define WEFT_NODE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "node/node.h"
#include "os/netlink.h"
#include "os/netmon.h"
#include "os/tun.h"
#include "port/port.h"

struct node_veth;

struct node_device {
	struct os_tun tun;
	struct node_veth *veth;     /* in place of tun; NULL = there is a TUN */
	struct os_netlink *netlink; /* the control thread's */
	struct os_netmon *netmon;
	char name[NODE_NAME_MAX];
	uint32_t ifindex;
	uint16_t mtu;
	bool is_up;
	bool is_private; /* in a namespace of its own: nobody else's addresses and routes are there
			  */
};

WEFT_MUST_CHECK enum weft_err node_device_open(
	struct node_device *d, const struct node_config *c, unsigned queues);
void node_device_close(struct node_device *d);
/* The port of queue i, and what to watch for it. log must outlive the port. */
WEFT_MUST_CHECK enum weft_err node_device_port(
	struct node_device *d, unsigned i, const struct log *log, struct port **out, int *fd);
int node_device_monitor_fd(const struct node_device *d);
/* Follows renames, up and down, and MTU. WEFT_ECLOSED: the interface was deleted. */
WEFT_MUST_CHECK enum weft_err node_device_read_news(struct node_device *d, const struct log *log);
/* Waits, a second at most, until packets pass an interface that was set up. */
void node_device_wait(const struct node_device *d);
/* Packets to peers that the interface has dropped so far because its queue was full. */
uint64_t node_device_dropped(const struct node_device *d);

#endif

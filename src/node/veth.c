/* SPDX-License-Identifier: Apache-2.0 */
#include "node/veth.h"

#include <stdlib.h>
#include <string.h>

#define FAR_NAME "weft-far"
/* The far end takes whatever the near one sends, also when that one's MTU is changed. */
#define FAR_MTU 65535
/* All sockets of one pair; another pair has a namespace of its own. */
#define GROUP 1

/* Locally administered. Nobody but the two ends sees them. */
static const uint8_t near_mac[PORT_PACKET_MAC_LEN] = {0x02, 'w', 'e', 'f', 't', 1};
static const uint8_t far_mac[PORT_PACKET_MAC_LEN] = {0x02, 'w', 'e', 'f', 't', 2};

static enum weft_err
make_pair(struct os_netlink *nl, const struct node_config *c, uint32_t *far_index)
{
	struct os_veth_end near_end = {.name = c->name, .mtu = c->mtu ? c->mtu : NODE_MTU_DEFAULT};
	struct os_veth_end far_end = {.name = FAR_NAME, .mtu = FAR_MTU};
	memcpy(near_end.mac, near_mac, sizeof(near_mac));
	memcpy(far_end.mac, far_mac, sizeof(far_mac));
	struct os_link_info info;
	enum weft_err e = os_netlink_veth_add(nl, &near_end, &far_end);
	if (!e) {
		e = os_netlink_link_by_name(nl, FAR_NAME, &info);
	}
	if (!e) {
		*far_index = info.index;
		e = os_netlink_link_set_up(nl, info.index, true);
	}
	if (e) {
		log_error(c->log, "%s: cannot make a veth pair: %s", c->name,
			os_netlink_error_text(nl));
		if (os_netlink_link_by_name(nl, FAR_NAME, &info) == WEFT_OK) {
			enum weft_err ignored = os_netlink_link_delete(nl, info.index);
			(void)ignored;
		}
	}
	return e;
}

enum weft_err
node_veth_open(
	struct os_netlink *nl, const struct node_config *c, unsigned queues, struct node_veth **out)
{
	struct node_veth *v = calloc(1, sizeof(*v));
	if (!v) {
		return WEFT_ENOMEM;
	}
	enum weft_err e = make_pair(nl, c, &v->far_index);
	if (e) {
		free(v);
		return e;
	}
	for (; v->queues < queues && !e; v->queues++) {
		struct os_pktring_config rc = {.ns = c->netns,
			.ifindex = v->far_index,
			.mtu = c->mtu ? c->mtu : NODE_MTU_DEFAULT,
			.sockets = queues,
			.group = GROUP,
			.log = c->log};
		unsigned i = v->queues;
		e = os_pktring_open(&rc, &v->rings[i]);
		port_packet_init(&v->packets[i], &v->rings[i], near_mac, far_mac);
	}
	if (e) {
		node_veth_close(v, nl);
		return e;
	}
	*out = v;
	return WEFT_OK;
}

void
node_veth_close(struct node_veth *v, struct os_netlink *nl)
{
	if (!v) {
		return;
	}
	for (unsigned i = 0; i < v->queues; i++) {
		os_pktring_close(&v->rings[i]);
	}
	/* It may be gone already. */
	enum weft_err ignored = os_netlink_link_delete(nl, v->far_index);
	(void)ignored;
	free(v);
}

void
node_veth_port(struct node_veth *v, unsigned i, struct port_tun_config *out)
{
	out->fd = v->rings[i].fd;
	out->calls = &v->packets[i].calls;
}

uint64_t
node_veth_dropped(struct node_veth *v)
{
	for (unsigned i = 0; i < v->queues; i++) {
		v->dropped += os_pktring_take_dropped(&v->rings[i]);
	}
	return v->dropped;
}

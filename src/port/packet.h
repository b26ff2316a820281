/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in for a TUN where /dev/net/tun is absent or forbidden: a veth pair, whose far end is
 * ours by a packet socket.
 *
 * It is a table of the calls of a TUN queue (os/tun.h) that puts on and takes off what a TUN does
 * not have, the Ethernet header; so port_tun_new() over it gives a port that behaves as a TUN's
 * does in everything. */
#ifndef WEFT_PORT_PACKET_H
#define WEFT_PORT_PACKET_H

#include <stdint.h>

#include "os/pktring.h"
#include "os/tun.h"

#define PORT_PACKET_MAC_LEN 6

struct port_packet {
	struct os_tun_calls calls; /* for struct port_tun_config, with the ring's fd */
	struct os_pktring *ring;
	uint8_t near_mac[PORT_PACKET_MAC_LEN]; /* of the end that sockets use */
	uint8_t far_mac[PORT_PACKET_MAC_LEN];
};

/* p must stay in place, and outlive the port together with ring. Offload is
 * OS_TUN_OFFLOAD_CSUM or more: there is always a header. */
void port_packet_init(struct port_packet *p, struct os_pktring *ring,
	const uint8_t near_mac[PORT_PACKET_MAC_LEN], const uint8_t far_mac[PORT_PACKET_MAC_LEN]);

#endif

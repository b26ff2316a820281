/* SPDX-License-Identifier: Apache-2.0 */
/* Inner packets of the simulator: described by a struct, written to bytes, and recognised again.
 *
 * Written naively, apart from the code under test: each packet must arrive byte for byte as
 * sim_packet_write() makes it. The body carries the packet's number and, from 12 bytes on, a
 * marker that no outer datagram may ever show. */
#ifndef WEFT_TEST_SIM_PACKET_H
#define WEFT_TEST_SIM_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkt/frame.h"

#define SIM_HOSTS_MAX 5
#define SIM_FLOWS_MAX 8
#define SIM_MTU 1420
#define SIM_BODY_MIN 4
#define SIM_MARKER "wEfT\x9fpT!"
#define SIM_MARKER_LEN 8
#define SIM_FRAME_MAX 65535

enum sim_proto {
	SIM_PROTO_RAW, /* IPv4 without ports, the smallest packets */
	SIM_PROTO_UDP,
	SIM_PROTO_TCP,
	SIM_PROTO_COUNT
};

struct sim_packet {
	uint8_t src, dst; /* hosts */
	uint8_t claimed;  /* host whose address it bears as its source; src unless forged */
	uint8_t flow;
	enum sim_proto proto;
	bool is_v6;
	bool is_unchecked; /* UDP over IPv4 without a checksum */
	bool is_ping;
	uint8_t tos, tcp_flags;
	uint16_t ip_id;
	uint16_t len; /* of the IP packet */
	uint32_t tcp_seq;
	uint32_t seq;                         /* in its flow */
	uint8_t injected, delivered, arrived; /* arrived: datagrams that its node has read */
	int64_t sent_ns, arrived_ns, came_ns; /* injected; first read, delivered */
};

uint32_t sim_packet_header_len(const struct sim_packet *p);
/* Headers with good checksums, and the body of number id. */
void sim_packet_write(const struct sim_packet *p, uint32_t id, uint8_t *out);
/* A super-frame of n packets like `first`, numbered from id, of equal size but the last. Returns
 * its length. */
uint32_t sim_packet_write_frame(const struct sim_packet *first, uint32_t n, uint16_t last_len,
	uint32_t id, uint8_t *out, struct frame *f);
/* Writes one packet as a frame whose checksum is left to the node. */
void sim_packet_leave_checksum(const struct sim_packet *p, uint8_t *data, struct frame *f);
/* The i-th packet of that super-frame. */
struct sim_packet sim_packet_of_frame(
	const struct sim_packet *first, uint32_t i, uint32_t n, uint16_t last_len);
void sim_body_write(uint32_t id, uint8_t *out, uint32_t len);
/* The number in a packet's bytes. */
uint32_t sim_packet_id(const uint8_t *packet, uint32_t len);
/* The host whose inner address it is, or SIM_HOSTS_MAX. */
unsigned sim_host_of_address(const uint8_t *addr, bool is_v6);
void sim_address_of_host(unsigned host, bool is_v6, uint8_t *out);

#endif

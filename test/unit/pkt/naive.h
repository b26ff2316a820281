/* SPDX-License-Identifier: Apache-2.0 */
/* Packets and super-packets in the simplest way: built field by field, summed byte by byte, cut
 * as the RFCs and the kernel's software segmentation do it. What gso.c and gro.c are compared
 * with; shares no code with them. */
#ifndef WEFT_TEST_UNIT_PKT_NAIVE_H
#define WEFT_TEST_UNIT_PKT_NAIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

#define NAIVE_LEN_MAX 65535

/* All that a packet's headers say. Zeros are valid; version must be 4 or 6, proto 6 or 17. */
struct naive_packet {
	uint8_t version, proto;
	uint8_t src[16], dst[16]; /* IPv4 uses the first 4 */
	uint16_t sport, dport;
	uint8_t tos, ttl;
	uint32_t flow_label;
	uint16_t id, fragment; /* IPv4: the flags and offset word */
	uint8_t ip_options[40], ip_options_len;
	uint8_t ext[128], ext_len, ext_first; /* IPv6 extension headers, the last one's next
						 header already set; ext_first: type of the first */
	uint32_t seq, ack;
	uint8_t tcp_reserved; /* low nibble beside the data offset */
	uint8_t flags;
	uint16_t window, urgent;
	uint8_t options[40], options_len;
	bool has_zero_csum; /* UDP */
};

/* How many seeds to run: n, or a tenth under TSan, where these models of single bytes are slow
 * and find nothing. */
uint64_t naive_seeds(uint64_t n);

/* The sum of RFC 1071, starting from another. */
uint16_t naive_sum(const uint8_t *p, size_t len, uint16_t from);

/* Builds the packet with right checksums and returns its length. */
uint32_t naive_build(
	uint8_t *out, const struct naive_packet *n, const uint8_t *payload, uint32_t payload_len);

/* Where TCP or UDP begins, by walking from the start; 0 if there is none. *proto: which. */
uint32_t naive_l4(const uint8_t *ip, uint32_t len, uint8_t *proto);

/* Puts into the checksum field of TCP or UDP the pseudo-header's sum alone, as the kernel hands
 * out what an offload is to complete. Returns where the field is. */
uint32_t naive_make_partial(uint8_t *ip, uint32_t len);

/* Makes the checksums right. A zero one of UDP stays with keep_zero. */
void naive_complete(uint8_t *ip, uint32_t len, bool keep_zero);

/* What tells a packet's flow: version, protocol, ports, addresses. All zeros for bytes of any
 * other kind, which together count as one flow. */
#define NAIVE_FLOW_LEN 38
void naive_flow(const uint8_t *ip, uint32_t len, uint8_t out[NAIVE_FLOW_LEN]);

/* Are all checksums right? UDP without one is. */
bool naive_is_right(const uint8_t *ip, uint32_t len);

/* Cuts a super-packet into out (cap bytes), lens[] long each. Checksums are computed, but a zero
 * one of UDP stays with keep_zero. Returns how many. */
size_t naive_segment(const uint8_t *super, uint32_t len, uint16_t gso_size, bool keep_zero,
	uint8_t *out, size_t cap, uint32_t *lens, size_t lens_cap);

/* A flow with random headers; with extras also options and extension headers. */
struct naive_packet naive_random(struct rng *r, bool has_extras);

/* Ordinary flows of data: DF, timestamps in TCP, an id and a sequence that soon wrap. */
struct naive_packet naive_tcp4(void);
struct naive_packet naive_udp4(void);
struct naive_packet naive_as_v6(struct naive_packet n);

#endif

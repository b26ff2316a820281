/* SPDX-License-Identifier: Apache-2.0 */
/* Frames for benches: what a host's TCP or UDP hands to an interface. */
#ifndef WEFT_BENCH_MICRO_FLOW_H
#define WEFT_BENCH_MICRO_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "pkt/frame.h"

struct flow {
	enum ip_family family;
	bool is_tcp;
	uint8_t src[16], dst[16]; /* IPv4 uses the first 4 */
	uint16_t sport, dport;
	uint32_t seq;
};

/* All headers' length. */
uint32_t flow_header_len(const struct flow *f);
/* Writes a packet of len bytes with payload, or, with gso_size > 0, a super-packet that stands
 * for segments of gso_size payload bytes. The transport checksum is left to be completed. */
void flow_frame(
	const struct flow *f, uint8_t *data, uint32_t len, uint16_t gso_size, struct frame *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of packets for gro_join() and the comparison of what comes out with what went in. */
#ifndef WEFT_TEST_UNIT_PKT_BATCH_H
#define WEFT_TEST_UNIT_PKT_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "naive.h"
#include "pkt/gro.h"

#define BATCH_PACKETS_MAX 512

struct batch {
	uint8_t *bytes;        /* packets, where they are joined */
	uint8_t *bytes_before; /* the same bytes as they were before */
	size_t used, cap;
	struct gro_pkt pkts[BATCH_PACKETS_MAX];
	size_t n;
	struct gro_out out;
	struct gro_frame frames[BATCH_PACKETS_MAX];
	struct gro_piece pieces[2 * BATCH_PACKETS_MAX];
	uint8_t *whole; /* scratch of the comparison */
	uint8_t *cut;
};

/* Takes memory for packets of so many bytes once; batch_begin() empties it for the next case. */
void batch_init(struct batch *b, size_t cap);
void batch_fini(struct batch *b);
void batch_begin(struct batch *b);

bool batch_has_room(const struct batch *b, uint32_t len);
/* Room for the next packet; batch_add() takes it into the batch. */
uint8_t *batch_next(struct batch *b);
void batch_add(struct batch *b, uint32_t len);
/* Builds a packet with a payload that depends on its sequence and id. Returns it. */
uint8_t *batch_add_built(struct batch *b, const struct naive_packet *n, uint32_t payload_len);
/* The same, and moves the flow on. */
uint8_t *batch_add_next(struct batch *b, struct naive_packet *n, uint32_t payload_len);

void batch_join(struct batch *b, const struct gro_caps *caps);

/* The packet as it was before joining. */
uint8_t *batch_was(const struct batch *b, size_t i);
/* Lays a frame out in one piece. Returns its length. */
uint32_t batch_gather(const struct batch *b, const struct gro_frame *f, uint8_t *out);

/* Everything that gro.h promises, after batch_join(): cut again, the frames are the packets,
 * each once and in the order of its flow (naive_flow()). NULL, or what is wrong. */
const char *batch_check(struct batch *b);

#endif

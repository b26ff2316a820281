/* SPDX-License-Identifier: Apache-2.0 */
/* Trail: when the counters of one session left, coarsely and not for long. A FEEDBACK names the
 * highest counter that arrived; its departure gives round trip and one-way delay. */
#ifndef WEFT_FEC_TRAIL_H
#define WEFT_FEC_TRAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mono.h"

#define FEC_TRAIL_STAMPS 512

/* Consecutive counters that left at about one time. */
struct fec_trail_stamp {
	uint64_t first;
	uint32_t n; /* 0: unused */
	bool after_pause;
	bool has_source; /* else nothing but frames */
	struct mono at;  /* of the first */
};

struct fec_trail {
	struct fec_trail_stamp stamps[FEC_TRAIL_STAMPS];
	unsigned newest;
};

/* Counters only grow. Those within grain_ns of a stamp share it; after_pause marks new ones. */
void fec_trail_add(struct fec_trail *t, struct mono now, uint64_t first, uint32_t n,
	int64_t grain_ns, bool after_pause);
/* A source is among those just added. */
void fec_trail_note_source(struct fec_trail *t);
/* NULL: never heard of, or forgotten. */
const struct fec_trail_stamp *fec_trail_find(const struct fec_trail *t, uint64_t counter);
/* The highest counter added; 0 when none. */
uint64_t fec_trail_highest(const struct fec_trail *t);

#endif

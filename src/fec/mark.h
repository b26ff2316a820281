/* SPDX-License-Identifier: Apache-2.0 */
/* Marks: what a queue dropped and recovery brought back, said to the flows all the same, as CE
 * (RFC 3168) in packets of those that know it.
 *
 * Each hidden loss that the queue is to blame for is a credit, and an ECN-capable packet that is
 * about to leave takes one. A few may be saved up, and none for long: a flow slows down once a
 * round trip, whatever the number, and what is old speaks of a queue that may be gone. Where most
 * losses stay, flows hear of the queue by those, and a mark would count it twice.
 * Decides and counts; the packet is the caller's. */
#ifndef WEFT_FEC_MARK_H
#define WEFT_FEC_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mono.h"

#define FEC_MARKS_MAX 8.0
#define FEC_MARKS_NS (200 * WEFT_NS_PER_MS)

/* All zeros at first. */
struct fec_marks {
	double credit;
	struct mono at;      /* of the last loss that gave some */
	double lost, hidden; /* packets, lately */
	uint64_t taken;
};

/* A report tells of so many more lost and recovered; queue_share of them (0..1) are the queue's. */
void fec_marks_report(struct fec_marks *m, struct mono now, uint32_t lost, uint32_t recovered,
	double queue_share);
/* Is one due? True: it is taken. */
bool fec_marks_take(struct fec_marks *m, struct mono now);

#endif

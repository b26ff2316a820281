/* SPDX-License-Identifier: Apache-2.0 */
/* Policer: does the path drop what exceeds a rate, without any queue that a delay would show?
 *
 * Compares the share lost with the rate of the sources, over windows of 50 ms and more. A bad line
 * loses the same share at any rate, and TCP slows down where it loses more; a policer loses nothing
 * below its rate, and of all beyond. Repairs are left out of the rate: they follow the losses. */
#ifndef WEFT_FEC_POLICER_H
#define WEFT_FEC_POLICER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mono.h"

/* All zeros at first. */
struct fec_policer {
	struct mono from;         /* of the window; 0 = none yet */
	uint64_t from_sent;       /* sources, until then */
	double lost, all;         /* in the window */
	double n;                 /* windows, lately */
	double mean_x, mean_y;    /* log rate; share lost */
	double xx, xy, yy;        /* mean products of deviations */
	struct mono convicted_at; /* 0 = never */
};

/* So many were lost and received since the last call, of all that left until `until`, when `sent`
 * sources had left. */
void fec_policer_report(struct fec_policer *p, struct mono now, struct mono until, uint64_t sent,
	uint32_t lost, uint32_t received);
bool fec_policer_is_there(const struct fec_policer *p, struct mono now);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Budget: the bytes that the recoveries of all peers of a node may hold together, in encoders and
 * decoders. What is fixed a peer (struct fec_recovery, and struct fec_decoder without what it
 * takes when it wakes) is not counted here.
 *
 * Nobody gets everything: what is only of use has to leave room for what is needed more. */
#ifndef WEFT_FEC_BUDGET_H
#define WEFT_FEC_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum fec_budget_use {
	FEC_BUDGET_SPARE,  /* more than the next, where many leave at once: within a quarter */
	FEC_BUDGET_CALM,   /* nothing was lost yet: within half of the budget */
	FEC_BUDGET_GROWTH, /* more than the least that works: within three quarters */
	FEC_BUDGET_NEED,   /* without it nothing is recovered: all of it */
};

/* Any thread. */
struct fec_budget {
	uint64_t bytes_max; /* set before it is shared */
	_Atomic uint64_t bytes;
};

/* False: spent, and nothing was taken. b NULL: there is no bound. */
bool fec_budget_take(struct fec_budget *b, uint64_t bytes, enum fec_budget_use use);
void fec_budget_give(struct fec_budget *b, uint64_t bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Controller: from what the other side reports, how much to send ahead, over what window, how
 * to answer, and when to stop. One a peer, for the sending direction; it outlives sessions.
 *
 * Evidence is counted in packets, not in time: a sparse flow does not forget by being silent.
 * Raised at once, lowered by the rule of three: to believe in a loss below q takes 3 / q packets
 * without one. Rising one-way delay together with loss is congestion, which more packets make
 * worse: then nothing is sent ahead, and answers stay within a small share. */
#ifndef WEFT_FEC_CONTROLLER_H
#define WEFT_FEC_CONTROLLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mono.h"
#include "wire/ext.h"

enum fec_mode {
	FEC_MODE_OFF,
	FEC_MODE_AUTO,
	FEC_MODE_FIXED,
};

struct fec_policy {
	enum fec_mode mode;
	uint16_t percent;   /* FIXED: repairs a hundred sources, 1..100 */
	uint32_t budget_us; /* FecDelay: what recovery may take; default 20,000 */
};

enum fec_why {
	FEC_WHY_OFF,        /* configured */
	FEC_WHY_NOT_AGREED, /* the other side has no loss recovery, or has it off */
	FEC_WHY_CLEAN,      /* no loss seen lately */
	FEC_WHY_ANSWERS,    /* loss is rare and the round trip short: repairs on request only */
	FEC_WHY_AHEAD,      /* repairs are sent ahead */
	FEC_WHY_CONGESTED, /* loss comes with rising delay: congestion, not answered by more packets
			    */
	FEC_WHY_FIXED,
};
const char *fec_why_name(enum fec_why w); /* "clean": the key in JSON */
const char *fec_why_text(enum fec_why w); /* one sentence for people */

struct fec_controller {
	struct fec_policy policy;
	/* The rest is the controller's own. */
	bool is_armed;
};

#endif

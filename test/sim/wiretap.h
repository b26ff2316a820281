/* SPDX-License-Identifier: Apache-2.0 */
/* What can be judged of a host's data messages from outside: no counter of a session comes twice,
 * which would repeat a nonce, and no session is used for longer than REJECT_AFTER_TIME. */
#ifndef WEFT_TEST_SIM_WIRETAP_H
#define WEFT_TEST_SIM_WIRETAP_H

#include "report.h"

#define SIM_TAPPED_SESSIONS 32
#define SIM_TAPPED_COUNTERS 4096

struct sim_tapped {
	uint32_t index; /* the receiver's */
	unsigned to;
	int64_t first_ns;
	uint64_t end; /* one above the greatest counter; 0: unused */
	uint64_t bits[SIM_TAPPED_COUNTERS / 64];
};

/* Of one sender. */
struct sim_wiretap {
	struct sim_tapped sessions[SIM_TAPPED_SESSIONS];
	unsigned next; /* the oldest */
};

void sim_wiretap_see(struct sim_wiretap *t, struct sim_report *report, unsigned to, uint32_t index,
	uint64_t counter);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* One scenario of loss recovery: a flow over a lossy link for a while, and what came of it. */
#ifndef WEFT_TEST_SIM_FEC_CASE_H
#define WEFT_TEST_SIM_FEC_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fec_link.h"

/* Zeros are defaults: 4000 packets/s of 200 bytes, 10 ms, 30 s, independent losses, automatic. */
struct fec_case {
	const char *name;
	double pps, loss, burst, rtt_ms, seconds;
	double back_loss; /* of the other direction; 0: as `loss`, < 0: none */
	double loss_2,
		loss_3; /* of the second and third part of the time; 0: as before, < 0: none */
	double reorder, duplicate;
	double stall_every_ms; /* moments of 5 to 20 ms in which an end does not run; 0: none */
	bool is_ecn;
	uint32_t len;   /* of the inner packets; 0: 200 */
	unsigned batch; /* 0: by the rate */
	bool has_rekeys, has_restarts;
	enum fec_mode mode;
	uint16_t percent;
	double budget_ms;
	/* Bounds that must hold; 0: none. */
	double residual_max, overhead_max, p99_max_ms, delivered_min;
	double congested_max; /* of the time; < 0: never */
	bool is_repairless;   /* no repair may be sent at all */
};

struct fec_result {
	uint64_t sent, delivered, lost_on_line, armed_lost;
	double delivered_share, residual; /* residual: of what was sent since the first alarm */
	double overhead;                  /* repairs a source */
	double byte_overhead;             /* repair bytes to source bytes, plaintext */
	double wire_ratio;                /* datagram bytes of all frames to inner bytes */
	double p50_ms, p99_ms;            /* of recovered packets, beyond the one-way delay */
	double hold_p99_ms;               /* of the others */
	uint64_t recovered, repairs, feedbacks;
	double ahead;     /* repairs ahead a source */
	double congested; /* share of the time */
	struct fec_recovery_stats tx, rx;
};

/* False: a promise was broken, and *text says which. */
bool fec_case_run(const struct fec_case *c, uint64_t seed, struct fec_result *out, char text[200]);
/* The bounds that the result misses, in words; empty: none. */
void fec_case_judge(const struct fec_case *c, const struct fec_result *r, char text[200]);
void fec_case_print_head(void);
void fec_case_print(const struct fec_case *c, const struct fec_result *r, const char *verdict);
/* What both ends say of it. */
void fec_case_print_more(const struct fec_result *r);

#endif

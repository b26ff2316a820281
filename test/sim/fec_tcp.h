/* SPDX-License-Identifier: Apache-2.0 */
/* A bulk TCP flow as CUBIC would send it, and pings beside it, through two recoveries and a line
 * with a rate and a queue: does loss recovery take from TCP what it needs to hear, or from the
 * line what others need?
 *
 * A model: sequence numbers are packets; every acknowledgment tells all that has arrived (SACK
 * without limit); loss is found as RACK finds it, by time, with a window for reordering of a
 * quarter of the least round trip; CUBIC without HyStart, pacing or undo. ECN as RFC 3168 has it: a
 * mark that arrives is told with the next acknowledgment, and is taken for a loss that needs no
 * retransmission. */
#ifndef WEFT_TEST_SIM_FEC_TCP_H
#define WEFT_TEST_SIM_FEC_TCP_H

#include <stdbool.h>
#include <stdint.h>

struct fec_tcp_case {
	double rate_mbit, queue_ms, rtt_ms, loss, seconds;
	double police_mbit, police_kbyte; /* a policer instead of a queue; 0: none */
	bool is_ecn;
	bool is_off; /* no recovery at all */
};

struct fec_tcp_result {
	double goodput_mbit;             /* of payload, without the first fifth of the time */
	double ping_p50_ms, ping_p99_ms; /* one way, beyond half the round trip */
	double ping_loss;
	double wire_share;       /* repair bytes to source bytes */
	double congested, ahead; /* share of the time; mean share ahead */
	uint64_t reductions, retransmissions, marks;
};

/* False: a promise was broken, and text says which. */
bool fec_tcp_run(
	const struct fec_tcp_case *c, uint64_t seed, struct fec_tcp_result *out, char text[200]);

#endif

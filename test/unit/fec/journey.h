/* SPDX-License-Identifier: Apache-2.0 */
/* A line (line.h) under virtual time: what was sent arrives after a delay of its own, the decoder
 * is called at its deadlines, and FEEDBACKs travel back and are answered. */
#ifndef WEFT_TEST_FEC_JOURNEY_H
#define WEFT_TEST_FEC_JOURNEY_H

#include "base/rng.h"
#include "line.h"

struct journey_event {
	int64_t at_ns;
	uint64_t counter; /* arrives */
	size_t feedback;  /* or, if is_feedback, its number */
	bool is_feedback;
};

struct journey {
	struct line line;
	struct rng rng;
	int64_t now_ns;
	int64_t delay_ns; /* each way */
	double loss;      /* iid, both ways; SMALL and LARGE sources and frames alike */
	double loss_to_bad, loss_to_good; /* Gilbert instead, forwards, if loss_to_bad > 0 */
	bool is_bad;
	int64_t jitter_ns;            /* more delay, uniform in 0..jitter */
	bool is_mute;                 /* FEEDBACKs are not answered */
	struct journey_event *events; /* a heap by time */
	size_t events_n, events_cap;
	struct wire_ext_feedback *feedbacks;
	int64_t *feedback_at;
	size_t feedbacks_n, feedbacks_cap;
};

void journey_begin(struct journey *j, const struct line_config *c, int64_t delay_ns);
void journey_end(struct journey *j);
/* The counter is on its way, or lost. */
void journey_send(struct journey *j, uint64_t counter);
/* Arrives for certain, in so long. */
void journey_send_in(struct journey *j, uint64_t counter, int64_t ns);
/* All that happens up to this moment. */
void journey_run(struct journey *j, int64_t until_ns);

#endif

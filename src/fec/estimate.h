/* SPDX-License-Identifier: Apache-2.0 */
/* How lossy a path is: the share of packets lost, before any correction, and the mean length of
 * a loss, from counts that the receiver reports.
 *
 * A slow average over thousands of packets is what counts. Two short windows watch it: when one
 * of them holds more (or fewer) losses than chance explains, the average starts afresh from that
 * window. Between reports the belief falls by the rule of three: after n packets without a loss
 * a rate above 3 / n is refuted. Counts packets, never time. */
#ifndef WEFT_FEC_ESTIMATE_H
#define WEFT_FEC_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

struct fec_estimate {
	double share, weight; /* slow average, and the packets behind it; weight 0: nothing known */
	double near, mid;     /* the short windows */
	double burst;         /* mean run, 1 and more */
	double runs, runs_lost; /* lately, and the losses in them */
};

/* One report: of lost + received packets, which came after `clean` ones without any loss
 * (those are among the received ones). */
struct fec_evidence {
	uint32_t lost, received, runs;
	uint32_t recent; /* the losses lie among the last that many, about; 1 at least */
	bool is_spread;  /* no: they lie anywhere */
	double clean;
};

void fec_estimate_reset(struct fec_estimate *e);
void fec_estimate_add(struct fec_estimate *e, const struct fec_evidence *v);
/* What to believe when `clean` packets were judged since the last loss. */
double fec_estimate_share(const struct fec_estimate *e, double clean);
/* Mean run in units of what independent loss of that share would give: 1 = independent. */
double fec_estimate_burst_factor(const struct fec_estimate *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/estimate.h"

#define WEIGHT_MAX 4096.0
#define NEAR 64.0
#define MID 256.0
#define RUNS_MAX 64.0
#define BURST_MAX 32.0

void
fec_estimate_reset(struct fec_estimate *e)
{
	*e = (struct fec_estimate){.burst = 1};
}

/* An exponential window of `size` packets takes in `n`, of which `lost` were lost. */
static double
window_add(double window, double size, double lost, double n)
{
	double part = n < size ? n / size : 1;
	return window * (1 - part) + (n > 0 ? lost / n : 0) * part;
}

/* Packets without loss; correct for any n, unlike the above, which replaces the window. */
static double
window_clean(double window, double size, double n)
{
	double x = n / size;
	return window / (1 + x + x * x / 2 + x * x * x / 6); /* about exp(-x) */
}

/* Does a window of that size contradict the average by more than three deviations? Sudden runs
 * spread a count by (2 run - 1) more than independent losses do. The constant keeps three losses
 * close together by chance from counting as a change where losses are rare; one of them is always
 * there, since reports come after losses. */
static int
contradiction(const struct fec_estimate *e, double window, double size)
{
	double expected = e->share * size, seen = window * size;
	double variance = expected * (1 - e->share) * (2 * e->burst - 1);
	double over = seen - expected - 2.5 * e->burst, under = expected - seen - 2.5 * e->burst;
	if (over > 0 && over * over > 10 * variance) {
		return 1;
	}
	return under > 0 && under * under > 10 * variance ? -1 : 0;
}

/* A run may reach over several reports, which then tell of losses and no run. */
static void
add_runs(struct fec_estimate *e, const struct fec_evidence *v)
{
	double keep = e->runs > RUNS_MAX ? RUNS_MAX / e->runs : 1;
	e->runs = e->runs * keep + v->runs;
	e->runs_lost = e->runs_lost * keep + v->lost;
	double burst = e->runs_lost / (e->runs > 1 ? e->runs : 1);
	e->burst = burst < 1 ? 1 : burst > BURST_MAX ? BURST_MAX : burst;
}

/* The longer window would need four times as long to agree, and until then contradict. */
static void
start_from_near(struct fec_estimate *e)
{
	e->share = e->mid = e->near;
	e->weight = NEAR;
}

void
fec_estimate_add(struct fec_estimate *e, const struct fec_evidence *v)
{
	double recent = v->is_spread || v->received < v->recent ? v->received : v->recent;
	double before = v->received - recent, lost = v->lost, n = lost + v->received;
	/* A silence that was twice as long as needed to refute the average has done so for good,
	 * and is not counted a second time. Shorter ones come by chance. */
	double bound = fec_estimate_share(e, v->clean);
	if (2 * bound < e->share) {
		e->share = bound;
		e->weight = e->weight < v->clean ? e->weight : v->clean;
		n = lost + recent;
	}
	add_runs(e, v);
	e->near = window_add(window_clean(e->near, NEAR, before), NEAR, lost, lost + recent);
	e->mid = window_add(window_clean(e->mid, MID, before), MID, lost, lost + recent);
	if (e->weight <= 0) {
		/* How many there were before the losses says little about what comes now. */
		double among = v->is_spread && recent > NEAR ? recent : NEAR;
		e->near = lost / (lost + among);
		start_from_near(e);
		e->weight = among;
		return;
	}
	e->share = (e->share * e->weight + lost) / (e->weight + n);
	e->weight = e->weight + n < WEIGHT_MAX ? e->weight + n : WEIGHT_MAX;
	if (contradiction(e, e->near, NEAR) > 0) {
		start_from_near(e);
	} else if (contradiction(e, e->mid, MID) != 0) {
		e->share = e->mid;
		e->weight = MID;
	}
}

double
fec_estimate_share(const struct fec_estimate *e, double clean)
{
	double bound = clean > 0 ? 3 * e->burst / clean : 1;
	return bound < e->share ? bound : e->share;
}

double
fec_estimate_burst_factor(const struct fec_estimate *e)
{
	double factor = e->burst * (1 - e->share);
	return factor > 1 ? factor : 1;
}

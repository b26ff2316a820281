/* SPDX-License-Identifier: Apache-2.0 */
#include "fec_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LOOKS 100 /* at the state, in a twelfth of the time */

static unsigned
batch_of(const struct fec_case *c)
{
	return c->batch > 0 ? c->batch : c->pps > 50000 ? 32 : c->pps > 5000 ? 8 : 1;
}

static struct fec_case
with_defaults(const struct fec_case *c)
{
	struct fec_case d = *c;
	d.pps = d.pps > 0 ? d.pps : 4000;
	d.burst = d.burst > 1 ? d.burst : 1;
	d.rtt_ms = d.rtt_ms > 0 ? d.rtt_ms : 10;
	d.seconds = d.seconds > 0 ? d.seconds : 30;
	d.len = d.len > 0 ? d.len : 200;
	d.mode = d.mode == FEC_MODE_OFF ? FEC_MODE_AUTO : d.mode;
	return d;
}

static void
settle_settings(const struct fec_case *c, double loss, struct emu_settings out[2])
{
	double back = c->back_loss == 0 ? loss : c->back_loss;
	back = back > 0 ? back : 0;
	loss = loss > 0 ? loss : 0;
	out[0] = out[1] = emu_settings_default;
	out[0].delay_ns = out[1].delay_ns = (int64_t)(c->rtt_ms * 5e5);
	out[0].loss = fec_link_loss(loss, c->burst);
	out[1].loss = fec_link_loss(back, c->burst);
	if (c->reorder > 0) {
		out[0].reorder = (struct emu_reorder){
			.share = c->reorder, .distance_min = 1, .distance_max = 2};
	}
	out[0].duplicate = c->duplicate;
}

static void
change_loss(const struct fec_case *c, struct fec_link *l, double loss)
{
	struct emu_settings s[2];
	settle_settings(c, loss, s);
	fec_link_set(l, 0, &s[0]);
	fec_link_set(l, 1, &s[1]);
}

static bool
run_parts(const struct fec_case *c, struct fec_link *l, struct fec_result *r)
{
	struct fec_policy policy = {.mode = c->mode,
		.percent = c->percent,
		.budget_us = (uint32_t)(c->budget_ms * 1000)};
	int64_t part = (int64_t)(c->seconds * 1e9 / 12);
	for (int i = 0; i < 12; i++) {
		if (i == 4 && c->loss_2 != 0) {
			change_loss(c, l, c->loss_2);
		}
		if (i == 8 && c->loss_3 != 0) {
			change_loss(c, l, c->loss_3);
		}
		if (c->has_rekeys && i % 3 == 2) {
			fec_link_rekey(l);
		}
		if (c->has_restarts && i % 6 == 4 && !fec_link_restart(l, i > 6 ? 1 : 0, &policy)) {
			return false;
		}
		for (int k = 0; k < LOOKS; k++) {
			struct fec_recovery_stats s;
			fec_link_run(l, part / LOOKS);
			fec_recovery_stats(l->ends[0].recovery, &s);
			r->congested += s.why == FEC_WHY_CONGESTED ? 1.0 / LOOKS / 12 : 0;
		}
	}
	fec_link_drain(l, 2 * WEFT_NS_PER_S);
	return true;
}

static double
quantile_ms(const struct emu_histogram *h, double share)
{
	return (double)emu_histogram_quantile(h, share) / 1e6;
}

static void
summarize(const struct fec_link *l, struct fec_result *r)
{
	const struct fec_link_end *a = &l->ends[0];
	const struct fec_link_counts *k = &a->counts;
	fec_recovery_stats(a->recovery, &r->tx);
	fec_recovery_stats(l->ends[1].recovery, &r->rx);
	r->sent = k->sent;
	r->delivered = k->delivered;
	r->lost_on_line = a->out.counters.lost;
	r->delivered_share = (double)k->delivered / (double)k->sent;
	r->armed_lost = k->sent_armed - k->delivered_armed;
	r->residual = k->sent_armed > 0 ? (double)r->armed_lost / (double)k->sent_armed : 0;
	r->repairs = r->tx.repairs_ahead + r->tx.repairs_answer + r->tx.repairs_tail;
	double sources = (double)(k->sent_armed > 0 ? k->sent_armed : k->sent);
	r->overhead = (double)r->repairs / sources;
	r->ahead = (double)r->tx.repairs_ahead / sources;
	r->byte_overhead = (double)r->tx.repair_bytes / (double)k->inner_bytes;
	r->wire_ratio = (double)k->wire_bytes / (double)k->inner_bytes;
	r->p50_ms = quantile_ms(&k->repair_ns, 0.5);
	r->p99_ms = quantile_ms(&k->repair_ns, 0.99);
	r->hold_p99_ms = quantile_ms(&k->hold_ns, 0.99);
	r->recovered = k->recovered;
	r->feedbacks = r->rx.feedback_tx;
}

bool
fec_case_run(const struct fec_case *given, uint64_t seed, struct fec_result *out, char text[200])
{
	static struct fec_link l;
	const struct fec_case d = with_defaults(given), *c = &d;
	*out = (struct fec_result){0};
	struct fec_link_config config = {
		.seed = seed, .numbers_max = (uint64_t)(c->pps * c->seconds) + 1000};
	settle_settings(c, c->loss, config.settings);
	config.stalls = (struct fec_link_stalls){
		(int64_t)(c->stall_every_ms * 1e6), 5 * WEFT_NS_PER_MS, 20 * WEFT_NS_PER_MS};
	config.is_ecn = c->is_ecn;
	for (int i = 0; i < 2; i++) {
		config.policy[i] = (struct fec_policy){.mode = c->mode,
			.percent = c->percent,
			.budget_us = (uint32_t)(c->budget_ms * 1000)};
	}
	config.flow[0] = (struct fec_link_flow){
		.pps = c->pps, .len = c->len, .batch = batch_of(c), .kind = FEC_LINK_UDP};
	bool is_good = fec_link_init(&l, &config) && run_parts(c, &l, out) && !l.is_wrong;
	if (is_good) {
		summarize(&l, out);
		text[0] = 0;
	} else {
		snprintf(text, 200, "%s", l.is_wrong ? l.text : "no memory");
	}
	fec_link_fini(&l);
	return is_good;
}

static void
judge_one(char text[200], bool is_missed, const char *what, double is, double bound)
{
	size_t n = strlen(text);
	if (is_missed && n < 200) {
		snprintf(text + n, 200 - n, "%s%s %.3g, bound %.3g", n > 0 ? "; " : "", what, is,
			bound);
	}
}

void
fec_case_judge(const struct fec_case *c, const struct fec_result *r, char text[200])
{
	/* A share of a few events is uncertain: three deviations, and one event more. */
	double expected = c->residual_max * (double)r->sent;
	double bound = (expected + 3 * sqrt(expected) + 1) / (double)r->sent;
	text[0] = 0;
	judge_one(text, c->residual_max > 0 && r->residual > bound, "residual", r->residual,
		c->residual_max);
	judge_one(text, c->overhead_max > 0 && r->overhead > c->overhead_max, "overhead",
		r->overhead, c->overhead_max);
	judge_one(text, c->p99_max_ms > 0 && r->p99_ms > c->p99_max_ms, "p99", r->p99_ms,
		c->p99_max_ms);
	judge_one(text, c->delivered_min > 0 && r->delivered_share < c->delivered_min, "delivered",
		r->delivered_share, c->delivered_min);
	double congested_max = c->congested_max < 0 ? 0 : c->congested_max;
	judge_one(text, c->congested_max != 0 && r->congested > congested_max, "congested",
		r->congested, congested_max);
	judge_one(text, c->congested_max < 0 && r->tx.ce_marked > 0, "marks",
		(double)r->tx.ce_marked, 0);
	judge_one(text, c->is_repairless && r->repairs > 0, "repairs", (double)r->repairs, 0);
}

void
fec_case_print_head(void)
{
	printf("%-34s %8s %10s %9s %8s %8s %7s %7s %7s %7s %7s\n", "case", "sent", "delivered %",
		"residual", "repairs%", "ahead %", "wire x", "p50 ms", "p99 ms", "hold99", "fback");
}

void
fec_case_print(const struct fec_case *given, const struct fec_result *r, const char *verdict)
{
	const struct fec_case d = with_defaults(given), *c = &d;
	char name[80];
	snprintf(name, sizeof(name), "%s%s%.0f/s %g%%%s%.0f rtt %g", c->name ? c->name : "",
		c->name ? " " : "", c->pps, c->loss * 100, c->burst > 1 ? " burst " : " iid ",
		c->burst, c->rtt_ms);
	printf("%-34s %8llu %10.4f %9.1e %8.2f %8.2f %7.3f %7.2f %7.2f %7.2f %7llu %s\n", name,
		(unsigned long long)r->sent, r->delivered_share * 100, r->residual,
		r->overhead * 100, r->ahead * 100, r->wire_ratio, r->p50_ms, r->p99_ms,
		r->hold_p99_ms, (unsigned long long)r->feedbacks, verdict);
	fflush(stdout);
}

static unsigned long long
count(uint64_t n)
{
	return n;
}

void
fec_case_print_more(const struct fec_result *r)
{
	const struct fec_recovery_stats *t = &r->tx;
	const struct fec_decoder_stats *d = &r->rx.rx;
	printf("  congested %.2f %% of the time, %llu marks\n", r->congested * 100,
		count(t->ce_marked));
	printf("  sender: %s, loss %.4f, burst %.2f, ahead %.3f, rtt %.2f ms, queue %.2f ms, ahead "
	       "%llu, "
	       "answers %llu, tail %llu, feedback %llu\n",
		fec_why_name(t->why), t->loss, t->burst, t->ahead_share, (double)t->rtt_ns / 1e6,
		(double)t->queue_ns / 1e6, count(t->repairs_ahead), count(t->repairs_answer),
		count(t->repairs_tail), count(t->feedback_rx));
	printf("  receiver: received %llu, lost %llu in %llu runs, late %llu, recovered %llu ahead "
	       "%llu by answer, given up %llu, repairs %llu, useless %llu; lost on the line %llu\n",
		count(d->received), count(d->lost), count(d->runs), count(d->late),
		count(d->recovered_ahead), count(d->recovered_answer), count(d->given_up),
		count(d->repairs), count(d->repairs_useless), count(r->lost_on_line));
}

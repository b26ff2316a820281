/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "fec/controller.h"

static const struct fec_policy automatic = {.mode = FEC_MODE_AUTO};

#define LARGE WIRE_EXT_CLASS_LARGE
#define SMALL WIRE_EXT_CLASS_SMALL

/* A path that loses packets as it is told, a sender at a steady rate, and a receiver that
 * reports as the decoder does: a grace after a loss, at most each 2 ms, never without one. */
#define ON_THE_WAY 65536
struct outcome {
	struct mono known; /* when a report could tell of it here */
	bool is_lost;
};

struct path {
	struct fec_controller c;
	struct rng rng;
	struct mono now;
	int64_t rtt_ns, queue_ns, gap_ns;
	uint32_t clock_us;     /* the receiver's, less the sender's */
	double loss, stay_bad; /* Gilbert: share, and chance that a loss is followed by one */
	bool is_bad;
	enum wire_ext_class class;
	struct outcome outcomes[ON_THE_WAY]; /* of packets sent and not known of yet */
	uint64_t sent, known;
	uint32_t lost, received, runs; /* not reported yet */
	bool was_lost;
	struct mono reported_at;
	uint64_t reports;
	double ahead_sum; /* over sources */
};

static void
path_init(struct path *p, double pps, int64_t rtt_ms, uint64_t seed)
{
	*p = (struct path){.rtt_ns = rtt_ms * WEFT_NS_PER_MS,
		.gap_ns = (int64_t)(1e9 / pps),
		.now = {1000 * WEFT_NS_PER_S},
		.class = LARGE,
		.clock_us = 0xfffffff0};
	rng_init(&p->rng, seed);
	fec_controller_init(&p->c, &automatic);
	fec_controller_set_path(&p->c, p->now, p->rtt_ns, p->clock_us);
}

static bool
path_loses(struct path *p)
{
	if (p->stay_bad <= 0) {
		return rng_is_hit(&p->rng, p->loss);
	}
	double to_bad = (1 - p->stay_bad) * p->loss / (1 - p->loss);
	p->is_bad = rng_is_hit(&p->rng, p->is_bad ? p->stay_bad : to_bad);
	return p->is_bad;
}

static void
path_report(struct path *p)
{
	struct fec_report r = {.lost = p->lost,
		.received = p->received,
		.runs = p->runs,
		.has_times = true,
		.rtt_ns = p->rtt_ns + p->queue_ns,
		.sample = {.delay_us =
				   p->clock_us + (uint32_t)((p->rtt_ns / 2 + p->queue_ns) / 1000)}};
	fec_controller_report(&p->c, p->now, &r);
	p->lost = p->received = p->runs = 0;
	p->reported_at = p->now;
	p->reports++;
}

static void
path_learn(struct path *p)
{
	while (p->known < p->sent) {
		const struct outcome *o = &p->outcomes[p->known % ON_THE_WAY];
		if (mono_is_before(p->now, o->known)) {
			break;
		}
		p->lost += o->is_lost;
		p->received += !o->is_lost;
		p->runs += o->is_lost && !p->was_lost;
		p->was_lost = o->is_lost;
		p->known++;
	}
	if (p->lost > 0 && mono_diff_ns(p->now, p->reported_at) >= 2 * WEFT_NS_PER_MS) {
		path_report(p);
	}
}

static void
path_send(struct path *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		p->now = mono_add_ns(p->now, p->gap_ns);
		path_learn(p);
		fec_controller_sent(&p->c, p->now, p->class, 1);
		p->ahead_sum += p->c.plan.classes[p->class].ahead;
		p->outcomes[p->sent % ON_THE_WAY] = (struct outcome){
			.known = mono_add_ns(p->now, p->rtt_ns + p->queue_ns + WEFT_NS_PER_MS),
			.is_lost = path_loses(p)};
		p->sent++;
		assert_true(p->sent - p->known < ON_THE_WAY);
	}
}

static double
path_loss(const struct path *p)
{
	return fec_controller_loss(&p->c, p->now);
}

static void
it_is_clean_and_unarmed_until_a_loss_is_reported(void **state)
{
	(void)state;
	static struct path p;
	path_init(&p, 4000, 10, 1);
	path_send(&p, 100000);
	assert_false(p.c.is_armed);
	struct fec_report r = {.received = 100000, .has_times = true, .rtt_ns = p.rtt_ns};
	fec_controller_report(&p.c, p.now, &r);
	assert_false(p.c.is_armed);
	assert_int_equal(p.c.plan.why, FEC_WHY_CLEAN);
	assert_true(p.c.plan.classes[LARGE].ahead <= 0);
}

static void
the_first_report_of_loss_arms_and_sends_ahead(void **state)
{
	(void)state;
	static const double rates[] = {50, 4000, 20000, 100000};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(rates); i++) {
		static struct path p;
		path_init(&p, rates[i], 10, 2);
		path_send(&p, 50000);
		p.loss = 0.15;
		while (p.reports == 0) {
			path_send(&p, 1);
		}
		assert_true(p.c.is_armed);
		assert_int_equal(p.c.plan.why, FEC_WHY_AHEAD);
		assert_true(p.c.plan.classes[LARGE].ahead >= 0.02);
		/* The rest follows within a few packets of evidence, or a few reports. */
		path_send(&p, rates[i] > 20000 ? 2000 : 200);
		assert_true(path_loss(&p) > 0.09 && path_loss(&p) < 0.25);
	}
}

static void
estimate_settles_on_the_share_that_is_lost(void **state)
{
	(void)state;
	static const struct {
		double pps, loss, burst;
	} cases[] = {{4000, 0.003, 1}, {4000, 0.01, 1}, {4000, 0.05, 1}, {4000, 0.2, 1},
		{4000, 0.5, 1}, {50, 0.05, 1}, {100000, 0.05, 1}, {4000, 0.05, 4}, {20000, 0.1, 8}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		static struct path p;
		path_init(&p, cases[i].pps, 10, 3 + i);
		p.loss = cases[i].loss;
		p.stay_bad = cases[i].burst > 1 ? 1 - 1 / cases[i].burst : 0;
		path_send(&p, 20000);
		double sum = 0, n = 0;
		for (int k = 0; k < 500; k++) {
			path_send(&p, 200);
			sum += path_loss(&p);
			n++;
		}
		double mean = sum / n;
		print_message("# pps %.0f loss %.3f burst %.0f: believed %.4f, run %.2f\n",
			cases[i].pps, cases[i].loss, cases[i].burst, mean, p.c.all.burst);
		assert_true(mean > 0.75 * cases[i].loss && mean < 1.45 * cases[i].loss);
		assert_true(p.c.all.burst > 0.6 * cases[i].burst);
		assert_true(p.c.all.burst < 2.2 * cases[i].burst);
	}
}

static void
silence_lowers_by_the_rule_of_three(void **state)
{
	(void)state;
	static struct path p;
	path_init(&p, 4000, 10, 20);
	p.loss = 0.1;
	path_send(&p, 20000);
	p.loss = 0;
	path_send(&p, 100); /* what is still on its way is reported */
	uint64_t from = p.sent;
	double before = path_loss(&p);
	assert_true(before > 0.06);
	while (p.c.is_armed) {
		path_send(&p, 10);
		/* Never below 3 / n; and the bound is used once n allows it. */
		double n = (double)(p.sent - from);
		double now = path_loss(&p);
		assert_true(!p.c.is_armed || now >= 0.9 * 3 / (n + 100));
		assert_true(now <= before + 1e-9);
		before = now;
		assert_true(p.sent - from < 20000);
	}
	assert_in_range(p.sent - from, 9000, 14000);
	assert_int_equal(p.c.plan.why, FEC_WHY_CLEAN);
}

static void
below_one_percent_answers_suffice_when_they_come_in_time(void **state)
{
	(void)state;
	for (int64_t rtt = 10; rtt <= 40; rtt += 30) {
		static struct path p;
		path_init(&p, 4000, rtt, 30);
		p.loss = 0.004;
		path_send(&p, 100000);
		p.ahead_sum = 0;
		path_send(&p, 100000);
		double ahead = p.ahead_sum / 100000;
		print_message("# 0.4 %% lost, RTT %d ms: %.4f ahead\n", (int)rtt, ahead);
		if (rtt == 10) {
			assert_true(ahead < 0.001);
		} else {
			/* Each source is covered once at least, within the budget. */
			assert_true(ahead * p.c.plan.classes[LARGE].window > 0.9);
			assert_true(ahead < 0.04);
		}
	}
}

static void
share_ahead_follows_loss_and_keeps_its_bounds(void **state)
{
	(void)state;
	static const struct {
		double pps, loss, burst, min, max;
	} cases[] = {
		{4000, 0.05, 1, 0.09, 0.13},
		{4000, 0.10, 1, 0.18, 0.24},
		{4000, 0.20, 1, 0.37, 0.45},
		{4000, 0.50, 1, 0.499, 0.501},
		{4000, 0.05, 4, 0.11, 0.17},
		{100000, 0.10, 1, 0.17, 0.25},
		{100000, 0.30, 1, 0.499, 0.501},
		/* Less than is lost, and nowhere to keep it until the answers come. */
		{100000, 0.40, 1, 0, 0.001},
		{50, 0.10, 1, 0.8, 1.0},
		{50, 0.40, 1, 0.999, 1.001},
		{50, 0.02, 1, 0.3, 0.6},
	};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		static struct path p;
		path_init(&p, cases[i].pps, 10, 40 + i);
		p.loss = cases[i].loss;
		p.stay_bad = cases[i].burst > 1 ? 1 - 1 / cases[i].burst : 0;
		path_send(&p, 10000);
		p.ahead_sum = 0;
		path_send(&p, 50000);
		double ahead = p.ahead_sum / 50000;
		print_message("# pps %.0f loss %.2f burst %.0f: %.3f ahead, window %u\n",
			cases[i].pps, cases[i].loss, cases[i].burst, ahead,
			p.c.plan.classes[LARGE].window);
		assert_true(ahead >= cases[i].min && ahead <= cases[i].max);
		assert_in_range(p.c.plan.classes[LARGE].window, 4, FEC_WINDOW_MAX);
		assert_int_equal(p.c.plan.classes[LARGE].is_sparse, cases[i].pps < 400);
	}
}

static void
a_sparse_flow_does_not_forget_by_silence(void **state)
{
	(void)state;
	static struct path p;
	path_init(&p, 50, 10, 60);
	p.loss = 0.1;
	path_send(&p, 500);
	double before = path_loss(&p);
	p.now = mono_add_ns(p.now, 3600 * WEFT_NS_PER_S);
	p.loss = 0;
	path_send(&p, 5);
	assert_true(p.c.is_armed);
	assert_true(path_loss(&p) > 0.8 * before);
	assert_true(p.c.plan.classes[LARGE].ahead > 0.5);
}

static void
what_is_on_its_way_is_not_called_clean(void **state)
{
	(void)state;
	/* A burst much larger than what can be reported within the round trip. */
	static struct path p;
	path_init(&p, 100000, 150, 70);
	p.loss = 0.1;
	path_send(&p, 100000);
	p.now = mono_add_ns(p.now, WEFT_NS_PER_S);
	path_send(&p, 1);
	double before = path_loss(&p);
	p.loss = 0;
	path_send(&p, 14000);
	assert_true(path_loss(&p) > 0.9 * before);
	path_send(&p, 20000);
	assert_true(path_loss(&p) < 0.001);
}

static void
loss_under_a_standing_queue_is_congestion(void **state)
{
	(void)state;
	static struct path p;
	path_init(&p, 2000, 10, 80);
	p.queue_ns = 45 * WEFT_NS_PER_MS;
	p.loss = 0.02;
	path_send(&p, 20000);
	assert_true(p.c.is_armed);
	assert_int_equal(p.c.plan.why, FEC_WHY_CONGESTED);
	assert_true(p.c.plan.has_byte_limit);
	assert_true(p.c.plan.classes[LARGE].ahead <= 0);
	assert_false(p.c.plan.classes[LARGE].has_answers);
	assert_true(p.c.plan.classes[SMALL].has_answers);
	/* The queue goes, the loss stays: then it is the line's. */
	p.queue_ns = 0;
	path_send(&p, 2000);
	assert_int_equal(p.c.plan.why, FEC_WHY_AHEAD);
	assert_false(p.c.plan.has_byte_limit);
	assert_true(p.c.plan.classes[LARGE].ahead > 0.02);
	assert_true(p.c.plan.classes[LARGE].has_answers);
}

static void
loss_at_flat_delay_is_the_line_s_whatever_the_delay(void **state)
{
	(void)state;
	static const int64_t rtts[] = {1, 10, 40, 150};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(rtts); i++) {
		static struct path p;
		path_init(&p, 2000, rtts[i], 90 + i);
		p.loss = 0.05;
		for (int k = 0; k < 100; k++) {
			p.queue_ns = (int64_t)rng_below(&p.rng, WEFT_NS_PER_MS / 2);
			path_send(&p, 500);
			assert_int_not_equal(p.c.plan.why, FEC_WHY_CONGESTED);
		}
		assert_true(p.c.plan.classes[LARGE].ahead > 0.08);
	}
}

/* Part of the packets find the path calm, and lose no fewer. */
static void
jitter_beyond_the_threshold_does_not_take_the_protection_away(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		static struct path p;
		path_init(&p, 2000, 10, 300 + seed);
		p.loss = 0.05;
		for (int k = 0; k < 1500; k++) {
			p.ahead_sum = k == 500 ? 0 : p.ahead_sum;
			p.queue_ns = (int64_t)rng_below(&p.rng, 4 * WEFT_NS_PER_MS);
			path_send(&p, 20);
		}
		assert_true(p.ahead_sum / 20000 > 0.06);
	}
}

/* The last packets of a burst, dropped by a full queue, show when the next one comes: by then the
 * queue is empty. */
static void
a_queue_that_has_drained_since_does_not_acquit(void **state)
{
	(void)state;
	static struct path p;
	path_init(&p, 2000, 10, 310);
	p.queue_ns = 45 * WEFT_NS_PER_MS;
	p.loss = 0.02;
	path_send(&p, 5000);
	assert_int_equal(p.c.plan.why, FEC_WHY_CONGESTED);
	struct fec_report r = {.lost = 10,
		.received = 90,
		.runs = 2,
		.has_times = true,
		.rtt_ns = p.rtt_ns,
		.sample = {.delay_us = p.clock_us + 5000, .behind_ns = 40 * WEFT_NS_PER_MS}};
	for (int i = 0; i < 4; i++) {
		p.now = mono_add_ns(p.now, 100 * WEFT_NS_PER_MS);
		fec_controller_report(&p.c, p.now, &r);
		assert_int_equal(p.c.plan.why, FEC_WHY_CONGESTED);
		assert_true(p.c.plan.classes[LARGE].ahead <= 0);
	}
	r.sample.behind_ns = 3 * WEFT_NS_PER_MS;
	fec_controller_report(&p.c, p.now, &r);
	assert_int_equal(p.c.plan.why, FEC_WHY_AHEAD);
}

/* Its first loss looks like one in 65; then there is always a queue, and nothing but the sum to
 * learn from. */
static void
one_early_loss_does_not_excuse_a_queue_for_ever(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		static struct path p;
		path_init(&p, 2000, 10, 320 + seed);
		p.loss = 0.005;
		while (p.reports == 0) {
			path_send(&p, 1);
		}
		p.queue_ns = 20 * WEFT_NS_PER_MS;
		unsigned wrong = 0;
		for (int i = 0; i < 400; i++) {
			path_send(&p, 100);
			wrong += p.c.plan.why == FEC_WHY_CONGESTED;
		}
		p.loss = 0.02;
		unsigned sent = 0;
		while (p.c.plan.why != FEC_WHY_CONGESTED && sent < 40000) {
			path_send(&p, 10);
			sent += 10;
		}
		print_message("# seed %d: congested %u of 400 times without, then after %u\n",
			(int)seed, wrong, sent);
		assert_in_range(wrong, 0, 40);
		assert_in_range(sent, 0, 8000); /* 4 s */
	}
}

static void
a_lossy_line_keeps_its_protection_under_a_queue_but_gets_no_more(void **state)
{
	(void)state;
	static struct path p;
	path_init(&p, 2000, 10, 100);
	p.loss = 0.05;
	path_send(&p, 20000);
	p.queue_ns = 45 * WEFT_NS_PER_MS;
	path_send(&p, 20000);
	assert_int_equal(p.c.plan.why, FEC_WHY_AHEAD);
	assert_true(p.c.plan.classes[LARGE].ahead > 0.08);
	p.loss = 0.15; /* 10 % of it is the queue's */
	path_send(&p, 20000);
	assert_int_equal(p.c.plan.why, FEC_WHY_CONGESTED);
	double ahead = p.c.plan.classes[LARGE].ahead;
	assert_true(ahead > 0.06 && ahead < 0.15);
	assert_true(p.c.plan.has_byte_limit);
}

static void
one_report_with_a_high_delay_by_chance_changes_nothing(void **state)
{
	(void)state;
	static struct path p;
	path_init(&p, 2000, 10, 110);
	p.loss = 0.05;
	path_send(&p, 20000);
	p.queue_ns = 30 * WEFT_NS_PER_MS;
	double before = p.c.plan.classes[LARGE].ahead;
	uint64_t reports = p.reports;
	while (p.reports == reports) {
		path_send(&p, 1);
	}
	assert_int_equal(p.c.plan.why, FEC_WHY_AHEAD);
	assert_true(p.c.plan.classes[LARGE].ahead > 0.8 * before);
}

static void
clocks_that_drift_do_not_look_like_a_queue(void **state)
{
	(void)state;
	/* 30 ppm for ten minutes: 18 ms. */
	static struct path p;
	path_init(&p, 500, 10, 120);
	p.loss = 0.03;
	for (int s = 0; s < 600; s++) {
		p.clock_us += 30;
		path_send(&p, 500);
		assert_int_not_equal(p.c.plan.why, FEC_WHY_CONGESTED);
	}
}

static void
a_longer_path_is_learnt_in_a_pause(void **state)
{
	(void)state;
	static struct path p;
	path_init(&p, 2000, 10, 130);
	p.loss = 0.05;
	path_send(&p, 5000);
	struct fec_report r = {.lost = 1,
		.received = 20,
		.runs = 1,
		.has_times = true,
		.rtt_ns = p.rtt_ns + 40 * WEFT_NS_PER_MS,
		.sample = {.delay_us = p.clock_us + 45000, .after_pause = true, .behind_ns = -1}};
	fec_controller_report(&p.c, p.now, &r);
	r.sample.after_pause = false;
	for (int i = 0; i < 50; i++) {
		fec_controller_sent(&p.c, p.now, LARGE, 20);
		fec_controller_report(&p.c, p.now, &r);
	}
	assert_int_equal(p.c.plan.why, FEC_WHY_AHEAD);
}

static void
fixed_is_always_ahead_and_unguarded(void **state)
{
	(void)state;
	static const struct fec_policy fixed = {.mode = FEC_MODE_FIXED, .percent = 30};
	static struct path p;
	path_init(&p, 2000, 10, 140);
	fec_controller_set_policy(&p.c, &fixed);
	assert_true(p.c.is_armed);
	p.queue_ns = 45 * WEFT_NS_PER_MS;
	for (int i = 0; i < 3; i++) {
		p.loss = i == 1 ? 0.1 : 0;
		path_send(&p, 20000);
		assert_true(p.c.is_armed);
		assert_int_equal(p.c.plan.why, FEC_WHY_FIXED);
		assert_true(p.c.plan.classes[LARGE].ahead > 0.299);
		assert_true(p.c.plan.classes[LARGE].ahead < 0.301);
		assert_true(p.c.plan.classes[LARGE].has_answers);
		assert_false(p.c.plan.has_byte_limit);
	}
	fec_controller_set_policy(&p.c, &automatic);
	assert_false(p.c.is_armed);
	fec_controller_set_policy(&p.c, &(struct fec_policy){.mode = FEC_MODE_OFF});
	p.loss = 0.1;
	path_send(&p, 1000);
	assert_false(p.c.is_armed);
	assert_int_equal(p.c.plan.why, FEC_WHY_OFF);
}

/* A fast flow under a fixed share fills the queue now and then, and leaves the guard loaded. */
static void
from_a_fixed_share_to_auto_the_line_stays_known(void **state)
{
	(void)state;
	static const struct fec_policy fixed = {.mode = FEC_MODE_FIXED, .percent = 10};
	static struct path p;
	path_init(&p, 4000, 10, 141);
	fec_controller_set_policy(&p.c, &fixed);
	p.loss = 0.05;
	path_send(&p, 20000);
	p.queue_ns = 45 * WEFT_NS_PER_MS;
	path_send(&p, 2000);
	assert_true(p.c.guard.is_loaded);
	fec_controller_set_policy(&p.c, &automatic);
	assert_true(p.c.is_armed);
	assert_int_equal(p.c.plan.why, FEC_WHY_AHEAD);
	assert_true(p.c.plan.classes[LARGE].ahead > 0.08);
	path_send(&p, 2000);
	assert_int_equal(p.c.plan.why, FEC_WHY_AHEAD);
}

static void
classes_are_dense_or_sparse_each_by_itself(void **state)
{
	(void)state;
	static struct path p;
	path_init(&p, 4000, 10, 150);
	p.loss = 0.1;
	for (int i = 0; i < 1000; i++) {
		path_send(&p, 80);
		fec_controller_sent(&p.c, p.now, SMALL, 1);
	}
	path_send(&p, 16);
	assert_true(p.c.plan.classes[SMALL].is_sparse);
	assert_true(p.c.plan.classes[SMALL].ahead > 0.8);
	assert_false(p.c.plan.classes[LARGE].is_sparse);
	assert_true(p.c.plan.classes[LARGE].ahead < 0.3);
}

static void
every_reason_has_a_name_and_a_sentence(void **state)
{
	(void)state;
	for (int w = 0; w < FEC_WHY_COUNT; w++) {
		assert_true(strlen(fec_why_name((enum fec_why)w)) > 2);
		assert_true(strlen(fec_why_text((enum fec_why)w)) > 10);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_clean_and_unarmed_until_a_loss_is_reported),
		cmocka_unit_test(the_first_report_of_loss_arms_and_sends_ahead),
		cmocka_unit_test(estimate_settles_on_the_share_that_is_lost),
		cmocka_unit_test(silence_lowers_by_the_rule_of_three),
		cmocka_unit_test(below_one_percent_answers_suffice_when_they_come_in_time),
		cmocka_unit_test(share_ahead_follows_loss_and_keeps_its_bounds),
		cmocka_unit_test(a_sparse_flow_does_not_forget_by_silence),
		cmocka_unit_test(what_is_on_its_way_is_not_called_clean),
		cmocka_unit_test(loss_under_a_standing_queue_is_congestion),
		cmocka_unit_test(loss_at_flat_delay_is_the_line_s_whatever_the_delay),
		cmocka_unit_test(jitter_beyond_the_threshold_does_not_take_the_protection_away),
		cmocka_unit_test(a_queue_that_has_drained_since_does_not_acquit),
		cmocka_unit_test(one_early_loss_does_not_excuse_a_queue_for_ever),
		cmocka_unit_test(a_lossy_line_keeps_its_protection_under_a_queue_but_gets_no_more),
		cmocka_unit_test(one_report_with_a_high_delay_by_chance_changes_nothing),
		cmocka_unit_test(clocks_that_drift_do_not_look_like_a_queue),
		cmocka_unit_test(a_longer_path_is_learnt_in_a_pause),
		cmocka_unit_test(fixed_is_always_ahead_and_unguarded),
		cmocka_unit_test(from_a_fixed_share_to_auto_the_line_stays_known),
		cmocka_unit_test(classes_are_dense_or_sparse_each_by_itself),
		cmocka_unit_test(every_reason_has_a_name_and_a_sentence),
	};
	return cmocka_run_group_tests_name("controller", tests, NULL, NULL);
}

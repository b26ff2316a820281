/* SPDX-License-Identifier: Apache-2.0 */
/* Loss recovery over emulated links. Without arguments a short form of the table runs as tests.
 *
 *   sim-fec --all [--seconds S] [--seed N]          the whole table
 *   sim-fec --tcp [--seconds S] [--seed N]          bulk TCP through a line with a queue
 *   sim-fec --pps R --loss % --burst N --rtt MS --seconds S --seed N [-v]     one case
 *           [--back-loss % --len BYTES --batch N --budget MS --fixed % --stalls MS]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "fec_case.h"
#include "fec_tcp.h"

static const struct fec_case table[] = {
	{.name = "aim", .loss = 0.01, .residual_max = 1e-5, .overhead_max = 0.03},
	{.name = "aim", .loss = 0.05, .residual_max = 1e-5, .overhead_max = 0.14},
	{.name = "aim", .loss = 0.10, .residual_max = 1e-5, .overhead_max = 0.25},
	{.name = "aim", .loss = 0.20, .residual_max = 1e-5, .overhead_max = 0.475},
	{.name = "aim", .loss = 0.10, .rtt_ms = 40, .residual_max = 1e-5, .overhead_max = 0.25},
	{.name = "aim", .loss = 0.05, .burst = 4, .residual_max = 1e-4, .overhead_max = 0.20},
	{.name = "aim", .loss = 0.10, .burst = 4, .residual_max = 1e-4, .overhead_max = 0.35},
};

static const struct fec_case stories[] = {
	{.name = "step 0, 15, 0 %:", .loss_2 = 0.15, .loss_3 = -1, .residual_max = 1e-4},
	{.name = "step 3, 15, 1 %:",
		.loss = 0.03,
		.loss_2 = 0.15,
		.loss_3 = 0.01,
		.residual_max = 1e-4},
	{.name = "back clean:", .loss = 0.1, .back_loss = -1, .residual_max = 1e-5},
	{.name = "back 30 %:", .loss = 0.05, .back_loss = 0.3, .residual_max = 1e-4},
	{.name = "rekeys:", .loss = 0.1, .has_rekeys = true, .residual_max = 2e-4},
	{.name = "restarts:", .loss = 0.1, .has_restarts = true, .delivered_min = 0.998},
	{.name = "reordered, doubled:",
		.reorder = 0.03,
		.duplicate = 0.03,
		.is_repairless = true,
		.delivered_min = 1},
	{.name = "fixed 30 %:",
		.loss = 0.05,
		.mode = FEC_MODE_FIXED,
		.percent = 30,
		.residual_max = 1e-5,
		.overhead_max = 0.32},
	{.name = "full packets:",
		.loss = 0.05,
		.pps = 20000,
		.len = 1400,
		.batch = 44,
		.residual_max = 1e-5,
		.overhead_max = 0.13},
	{.name = "half lost:",
		.loss = 0.5,
		.pps = 20000,
		.residual_max = 3e-4,
		.overhead_max = 1.5},
	{.name = "half lost, far:",
		.loss = 0.5,
		.pps = 20000,
		.rtt_ms = 40,
		.residual_max = 2e-3,
		.overhead_max = 1.5},
	{.name = "one a 20 ms:", .loss = 0.1, .pps = 50, .residual_max = 1e-3},
};

/* Ends that do not run now and then, for 5 to 20 ms, on lines that lose without any queue. */
static const struct fec_case stalls[] = {
	{.name = "no stalls:", .loss = 0.05, .residual_max = 1e-5},
	{.name = "stalls:", .loss = 0.05, .stall_every_ms = 100, .residual_max = 1e-4},
	{.name = "stalls:", .loss = 0.05, .stall_every_ms = 30, .residual_max = 1e-4},
	{.name = "stalls:", .loss = 0.01, .pps = 2000, .len = 1200, .stall_every_ms = 50},
	{.name = "stalls:", .loss = 0.10, .pps = 50, .stall_every_ms = 50, .residual_max = 2e-3},
	{.name = "stalls:", .loss = 0.05, .burst = 4, .pps = 4000, .stall_every_ms = 50},
};

static const struct fec_tcp_case tcp_table[] = {
	{.rate_mbit = 20, .queue_ms = 50, .rtt_ms = 10},
	{.rate_mbit = 20, .queue_ms = 50, .rtt_ms = 25},
	{.rate_mbit = 20, .queue_ms = 50, .rtt_ms = 38},
	{.rate_mbit = 20, .queue_ms = 50, .rtt_ms = 40},
	{.rate_mbit = 20, .queue_ms = 50, .rtt_ms = 44},
	{.rate_mbit = 20, .queue_ms = 50, .rtt_ms = 100},
	{.rate_mbit = 20, .queue_ms = 20, .rtt_ms = 15},
	{.rate_mbit = 20, .queue_ms = 20, .rtt_ms = 25},
	{.rate_mbit = 20, .queue_ms = 20, .rtt_ms = 60},
	{.rate_mbit = 20, .queue_ms = 10, .rtt_ms = 10},
	{.rate_mbit = 20, .queue_ms = 3, .rtt_ms = 10},
	{.rate_mbit = 20, .queue_ms = 200, .rtt_ms = 10},
	{.rate_mbit = 100, .queue_ms = 20, .rtt_ms = 20},
	{.rate_mbit = 5, .queue_ms = 100, .rtt_ms = 30},
	{.rate_mbit = 20, .queue_ms = 50, .rtt_ms = 10, .loss = 0.005},
	{.rate_mbit = 20, .queue_ms = 50, .rtt_ms = 10, .loss = 0.02},
	{.rate_mbit = 20, .queue_ms = 50, .rtt_ms = 10, .loss = 0.05},
	{.rate_mbit = 20, .queue_ms = 50, .rtt_ms = 40, .loss = 0.05},
	{.rate_mbit = 20, .queue_ms = 50, .rtt_ms = 10, .is_ecn = true},
	{.rate_mbit = 20, .queue_ms = 50, .rtt_ms = 10, .loss = 0.005, .is_ecn = true},
	{.rate_mbit = 20, .queue_ms = 50, .rtt_ms = 10, .loss = 0.02, .is_ecn = true},
	{.rate_mbit = 20, .queue_ms = 50, .rtt_ms = 40, .loss = 0.005, .is_ecn = true},
	{.rtt_ms = 10, .police_mbit = 20, .police_kbyte = 60},
	{.rtt_ms = 40, .police_mbit = 20, .police_kbyte = 60},
	{.rtt_ms = 10, .police_mbit = 20, .police_kbyte = 250},
};

static bool is_verbose;

static const double losses[] = {0, 0.01, 0.03, 0.05, 0.10, 0.20, 0.30, 0.50};

static int
run_one(const struct fec_case *c, uint64_t seed)
{
	struct fec_result r;
	char text[200];
	bool is_good = fec_case_run(c, seed, &r, text);
	if (is_good) {
		fec_case_judge(c, &r, text);
	}
	fec_case_print(c, &r, text);
	if (is_verbose) {
		fec_case_print_more(&r);
	}
	return text[0] != 0;
}

/* Longer where packets are few. */
static double
seconds_at(double pps, double seconds)
{
	return pps < 1000 ? seconds * 10 : pps > 50000 ? seconds / 10 : seconds / 2;
}

static int
run_grid(double pps, double burst, double seconds, uint64_t seed)
{
	static const double rtts[] = {1, 10, 40, 150};
	int bad = 0;
	for (size_t t = 0; t < WEFT_ARRAY_LEN(rtts); t++) {
		for (size_t i = 0; i < WEFT_ARRAY_LEN(losses); i++) {
			struct fec_case c = {.pps = pps,
				.burst = burst,
				.rtt_ms = rtts[t],
				.loss = losses[i],
				.seconds = seconds_at(pps, seconds)};
			bad += run_one(&c, seed);
		}
	}
	return bad;
}

static int
run_all(double seconds, uint64_t seed)
{
	static const double rates[] = {50, 4000, 20000, 100000}, bursts[] = {1, 2, 4, 8};
	int bad = 0;
	fec_case_print_head();
	for (size_t i = 0; i < WEFT_ARRAY_LEN(table); i++) {
		struct fec_case c = table[i];
		c.seconds = seconds;
		bad += run_one(&c, seed);
	}
	for (size_t i = 0; i < WEFT_ARRAY_LEN(stories); i++) {
		struct fec_case c = stories[i];
		c.seconds = seconds;
		bad += run_one(&c, seed);
	}
	for (size_t r = 0; r < WEFT_ARRAY_LEN(rates); r++) {
		for (size_t b = 0; b < WEFT_ARRAY_LEN(bursts); b++) {
			bad += run_grid(rates[r], bursts[b], seconds, seed);
		}
	}
	return bad > 0;
}

/* Sanitizers slow it down tenfold and more, and nothing here has threads: they take every so
 * many cases. */
static size_t
stride(void)
{
	const char *stage = getenv("WEFT_TEST_STAGE");
	return stage && strcmp(stage, "asan") == 0   ? 9
	       : stage && strcmp(stage, "tsan") == 0 ? 12
						     : 1;
}

static void
check(const struct fec_case *cases, size_t n, double seconds)
{
	for (size_t i = 0; i < n; i += stride()) {
		struct fec_case c = cases[i];
		struct fec_result r;
		char text[200];
		c.seconds = seconds_at(c.pps > 0 ? c.pps : 4000, 2 * seconds);
		if (!fec_case_run(&c, 1, &r, text)) {
			fail_msg("seed 1, case %zu: %s", i, text);
		}
		fec_case_judge(&c, &r, text);
		if (text[0]) {
			fail_msg("seed 1, case %zu %s: %s", i, c.name, text);
		}
	}
}

static void
the_table_of_the_study_is_reached(void **state)
{
	(void)state;
	check(table, WEFT_ARRAY_LEN(table), 10);
}

static void
paths_that_change_lose_little(void **state)
{
	(void)state;
	check(stories, WEFT_ARRAY_LEN(stories), 9);
}

/* Lines without losses of their own, with queues that the guard can see: TCP gets there what it
 * gets without recovery, and pings wait no longer. */
static void
a_full_queue_is_left_to_tcp(void **state)
{
	(void)state;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(tcp_table); i += stride()) {
		struct fec_tcp_case c = tcp_table[i];
		struct fec_tcp_result with, without;
		char text[200];
		if (c.loss > 0 || c.police_mbit > 0) {
			continue;
		}
		c.seconds = 12;
		bool is_good = fec_tcp_run(&c, 1, &with, text);
		c.is_off = true;
		is_good = is_good && fec_tcp_run(&c, 1, &without, text);
		if (!is_good) {
			fail_msg("case %zu: %s", i, text);
		}
		if (with.congested < 0.3) {
			fail_msg("case %zu: taken for congestion %.0f %% of the time", i,
				with.congested * 100);
		}
		if (with.goodput_mbit < 0.98 * without.goodput_mbit ||
			with.ping_p99_ms > 1.05 * without.ping_p99_ms || with.ping_loss > 0.01) {
			fail_msg("case %zu: goodput %.2f of %.2f Mbit/s, ping p99 %.1f of %.1f ms, "
				 "lost %.3f",
				i, with.goodput_mbit, without.goodput_mbit, with.ping_p99_ms,
				without.ping_p99_ms, with.ping_loss);
		}
	}
}

/* The few moments at the start, before the line is known, may be taken for a queue. */
static void
a_machine_that_stalls_is_no_queue(void **state)
{
	(void)state;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(stalls); i++) {
		for (uint64_t seed = 1; seed <= 5; seed++) {
			struct fec_case c = stalls[i];
			struct fec_result r;
			char text[200];
			c.is_ecn = true;
			c.congested_max = c.stall_every_ms > 0 ? 0.02 : -1;
			c.seconds = c.pps > 0 && c.pps < 100 ? 60 : 10;
			if (!fec_case_run(&c, seed, &r, text)) {
				fail_msg("seed %d, case %zu: %s", (int)seed, i, text);
			}
			fec_case_judge(&c, &r, text);
			print_message("# stalls each %g ms, %.0f/s: congested %.2f %%, %d marks\n",
				c.stall_every_ms, c.pps, r.congested * 100, (int)r.tx.ce_marked);
			if (text[0]) {
				fail_msg("seed %d, case %zu %s: %s", (int)seed, i, c.name, text);
			}
		}
	}
}

/* A line that loses by itself, so that repairs are sent, and a queue that TCP fills. A flow may
 * never fill it in its 20 s, or only when losses of the line's halve it in time: most do. */
static void
what_a_queue_drops_and_recovery_hides_is_marked(void **state)
{
	(void)state;
	static const struct {
		double rtt_ms, loss;
	} lines[] = {{10, 0.005}, {10, 0.02}, {40, 0.005}};
	enum { SEEDS = 4 };
	unsigned marked = 0, flows = 0;
	double deaf_sum = 0, heard_sum = 0;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(lines); i++) {
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			struct fec_tcp_case c = {.rate_mbit = 20,
				.queue_ms = 50,
				.rtt_ms = lines[i].rtt_ms,
				.loss = lines[i].loss,
				.seconds = 20};
			struct fec_tcp_result deaf, heard, alone;
			char text[200];
			bool is_good = fec_tcp_run(&c, seed, &deaf, text);
			c.is_ecn = true;
			is_good = is_good && fec_tcp_run(&c, seed, &heard, text);
			c.is_off = true;
			is_good = is_good && fec_tcp_run(&c, seed, &alone, text);
			if (!is_good) {
				fail_msg("seed %d, rtt %g: %s", (int)seed, c.rtt_ms, text);
			}
			print_message("# rtt %g ms, loss %g %%, seed %d: %d marks, %.2f Mbit/s; "
				      "%.2f unmarked, %.2f off\n",
				c.rtt_ms, c.loss * 100, (int)seed, (int)heard.marks,
				heard.goodput_mbit, deaf.goodput_mbit, alone.goodput_mbit);
			assert_true(deaf.marks == 0);
			assert_true(heard.goodput_mbit > alone.goodput_mbit);
			marked += heard.marks > 0;
			flows++;
			deaf_sum += deaf.goodput_mbit;
			heard_sum += heard.goodput_mbit;
		}
	}
	/* 9 of 12, and 1 % less, when this was written. */
	assert_in_range(marked, flows / 2, flows);
	assert_true(heard_sum > 0.97 * deaf_sum);
}

/* What is refused for a queue's sake in one moment may be answered for in the next: neither must
 * contradict the other, from the first packets on. */
static void
honest_peers_refuse_no_frame_of_each_other(void **state)
{
	(void)state;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(tcp_table); i += stride()) {
		for (uint64_t seed = 1; seed <= 8; seed++) {
			struct fec_tcp_case c = tcp_table[i];
			struct fec_tcp_result r;
			char text[200];
			c.seconds = 2;
			if (!fec_tcp_run(&c, seed, &r, text)) {
				fail_msg("seed %d, case %zu: %s", (int)seed, i, text);
			}
		}
	}
}

static double
number(const char *s)
{
	char *end;
	double v = strtod(s, &end);
	if (end == s || *end != 0) {
		fprintf(stderr, "not a number: %s\n", s);
		exit(2);
	}
	return v;
}

static int
run_tcp_one(const struct fec_tcp_case *c, uint64_t seed)
{
	struct fec_tcp_result r;
	char text[200];
	bool is_good = fec_tcp_run(c, seed, &r, text), is_policed = c->police_mbit > 0;
	printf("%5.0f Mbit/s %s %5.1f %s rtt %3.0f ms loss %4.1f %% %s%-4s: goodput %6.2f Mbit/s, "
	       "ping "
	       "p50 %5.1f p99 %5.1f ms lost %4.2f %%, repairs %5.2f %%, ahead %5.2f %%, congested "
	       "%3.0f %%, reductions %llu, resent %llu, marks %llu %s\n",
		is_policed ? c->police_mbit : c->rate_mbit, is_policed ? "policer" : "queue",
		is_policed ? c->police_kbyte : c->queue_ms, is_policed ? "kB" : "ms", c->rtt_ms,
		c->loss * 100, c->is_ecn ? "ecn " : "", c->is_off ? "off" : "auto", r.goodput_mbit,
		r.ping_p50_ms, r.ping_p99_ms, r.ping_loss * 100, r.wire_share * 100, r.ahead * 100,
		r.congested * 100, (unsigned long long)r.reductions,
		(unsigned long long)r.retransmissions, (unsigned long long)r.marks, text);
	fflush(stdout);
	return !is_good;
}

/* With recovery and without, under the same chance. */
static int
run_tcp(double seconds, uint64_t seed)
{
	int bad = 0;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(tcp_table); i++) {
		for (int off = 1; off >= 0; off--) {
			struct fec_tcp_case c = tcp_table[i];
			c.seconds = seconds;
			c.is_off = off;
			bad += run_tcp_one(&c, seed);
		}
	}
	return bad > 0;
}

static int
run_arguments(int argc, char **argv)
{
	struct fec_case c = {.loss = 0.05};
	uint64_t seed = 1;
	bool is_all = false, is_tcp = false;
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];
		if (!strcmp(a, "--all")) {
			is_all = true;
			continue;
		}
		if (!strcmp(a, "--tcp")) {
			is_tcp = true;
			continue;
		}
		if (!strcmp(a, "-v")) {
			is_verbose = true;
			continue;
		}
		if (i + 1 >= argc) {
			fprintf(stderr, "what is %s?\n", a);
			return 2;
		}
		double v = number(argv[++i]);
		if (!strcmp(a, "--pps")) {
			c.pps = v;
		} else if (!strcmp(a, "--loss")) {
			c.loss = v / 100;
		} else if (!strcmp(a, "--back-loss")) {
			c.back_loss = v > 0 ? v / 100 : -1;
		} else if (!strcmp(a, "--burst")) {
			c.burst = v;
		} else if (!strcmp(a, "--rtt")) {
			c.rtt_ms = v;
		} else if (!strcmp(a, "--seconds")) {
			c.seconds = v;
		} else if (!strcmp(a, "--len")) {
			c.len = (uint32_t)v;
		} else if (!strcmp(a, "--batch")) {
			c.batch = (unsigned)v;
		} else if (!strcmp(a, "--budget")) {
			c.budget_ms = v;
		} else if (!strcmp(a, "--stalls")) {
			c.stall_every_ms = v;
			c.is_ecn = true;
		} else if (!strcmp(a, "--fixed")) {
			c.mode = FEC_MODE_FIXED;
			c.percent = (uint16_t)v;
		} else if (!strcmp(a, "--seed")) {
			seed = (uint64_t)v;
		} else {
			fprintf(stderr, "what is %s?\n", a);
			return 2;
		}
	}
	if (is_tcp) {
		return run_tcp(c.seconds > 0 ? c.seconds : 30, seed);
	}
	if (is_all) {
		return run_all(c.seconds > 0 ? c.seconds : 30, seed);
	}
	fec_case_print_head();
	return run_one(&c, seed);
}

int
main(int argc, char **argv)
{
	if (argc > 1) {
		return run_arguments(argc, argv);
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_of_the_study_is_reached),
		cmocka_unit_test(paths_that_change_lose_little),
		cmocka_unit_test(a_full_queue_is_left_to_tcp),
		cmocka_unit_test(honest_peers_refuse_no_frame_of_each_other),
		cmocka_unit_test(a_machine_that_stalls_is_no_queue),
		cmocka_unit_test(what_a_queue_drops_and_recovery_hides_is_marked),
	};
	return cmocka_run_group_tests_name("fec", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mono.h"
#include "journey.h"

#define US WEFT_NS_PER_US
#define MS WEFT_NS_PER_MS
#define RTT (10 * MS)
#define ROUND (12 * MS)
#define FIRST 100000

static void
begin(struct journey *j, size_t cap, int64_t rtt_ns)
{
	journey_begin(j, &(struct line_config){.seed = 3, .first = FIRST, .cap = cap}, rtt_ns / 2);
	j->line.why = WIRE_EXT_WHY_TAIL; /* requests do not wait for repairs sent ahead */
}

/* n sources are sent and come at once, but for those whose bit is set in `lost`. */
static uint64_t
send(struct journey *j, unsigned n, uint64_t lost)
{
	uint64_t first = j->line.first + j->line.n;
	for (unsigned i = 0; i < n; i++) {
		uint64_t c = line_source(&j->line, j->now_ns, PACKET_UDP, 500);
		if (i >= 64 || !(lost >> i & 1)) {
			journey_send_in(j, c, 0);
		}
	}
	journey_run(j, j->now_ns);
	return first;
}

static const struct wire_ext_feedback *
last(const struct journey *j)
{
	assert_true(j->feedbacks_n > 0);
	return &j->feedbacks[j->feedbacks_n - 1];
}

static uint64_t
base_of(const struct journey *j, const struct wire_ext_feedback *f, size_t i)
{
	uint64_t highest = j->line.first + j->line.n - 1;
	return highest - ((uint32_t)highest - f->highest) - f->blocks[i].back;
}

static void
nothing_is_said_without_loss(void **state)
{
	(void)state;
	struct journey j;
	begin(&j, 400, RTT);
	send(&j, 100, 0);
	/* Reordering within the grace of 1 ms. */
	uint64_t c = line_source(&j.line, j.now_ns, PACKET_UDP, 500);
	send(&j, 10, 0);
	journey_send_in(&j, c, MS - 1);
	journey_run(&j, j.now_ns + 100 * MS);
	send(&j, 100, 0);
	journey_run(&j, j.now_ns + 1000 * MS);
	assert_int_equal(j.feedbacks_n, 0);
	struct fec_decoder_stats s = line_stats(&j.line);
	assert_int_equal(s.lost, 0);
	assert_int_equal(s.late, 0);
	assert_int_equal(s.received, 211);
	journey_end(&j);
}

static void
a_loss_is_reported_when_its_grace_ends_and_the_end_of_it_once(void **state)
{
	(void)state;
	struct journey j;
	begin(&j, 400, RTT);
	send(&j, 50, 0);
	int64_t t0 = j.now_ns;
	uint64_t first = send(&j, 10, 1u << 4 | 1u << 6 | 1u << 7);
	journey_run(&j, j.now_ns + MS - 1);
	assert_int_equal(j.feedbacks_n, 0);
	journey_run(&j, j.now_ns + 1);
	assert_int_equal(j.feedbacks_n, 1);
	assert_int_equal(j.feedback_at[0], t0 + MS);
	const struct wire_ext_feedback *f = last(&j);
	assert_int_equal(f->highest, first + 9);
	assert_int_equal(f->received, 57);
	assert_int_equal(f->lost, 3);
	assert_int_equal(f->runs, 2);
	assert_int_equal(f->clock_us, (uint32_t)(t0 / US));
	assert_int_equal(f->delay_us, 1000);
	assert_int_equal(f->blocks_n, 1);
	assert_int_equal(base_of(&j, f, 0), first + 4);
	assert_int_equal(f->blocks[0].span, 4);
	assert_int_equal(f->blocks[0].missing[0], 1 | 4 | 8);
	assert_int_equal(f->blocks[0].want, 4); /* what is missing, and one */
	/* The answer arrives a round trip later. */
	journey_run(&j, t0 + MS + RTT - 1);
	assert_false(line_is_delivered(&j.line, first + 4));
	journey_run(&j, t0 + MS + RTT);
	assert_true(line_is_delivered(&j.line, first + 4));
	assert_true(line_is_delivered(&j.line, first + 6));
	assert_true(line_is_delivered(&j.line, first + 7));
	journey_run(&j, j.now_ns + 1000 * MS);
	assert_int_equal(j.feedbacks_n, 2);
	assert_int_equal(j.feedback_at[1], t0 + MS + RTT + 20 * MS);
	f = last(&j);
	assert_int_equal(f->blocks_n, 0);
	assert_int_equal(f->recovered_answer, 3);
	assert_int_equal(f->recovered_ahead, 0);
	assert_int_equal(f->lost, 3);
	assert_int_equal(f->given_up, 0);
	assert_true(fec_decoder_deadline(j.line.d).ns == INT64_MAX);
	journey_end(&j);
}

static void
what_is_not_answered_is_asked_for_again_each_round_and_given_up(void **state)
{
	(void)state;
	struct journey j;
	begin(&j, 400, RTT);
	j.is_mute = true;
	int64_t t0 = j.now_ns;
	send(&j, 3, 2);
	journey_run(&j, t0 + 500 * MS);
	/* Three rounds, since no REPAIR is ever seen, and the total. */
	assert_int_equal(j.feedbacks_n, 4);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(j.feedback_at[i], t0 + MS + (int64_t)i * ROUND);
		assert_int_equal(j.feedbacks[i].blocks_n, 1);
		assert_int_equal(j.feedbacks[i].blocks[0].want, i == 0 ? 2 : 3);
	}
	assert_int_equal(last(&j)->blocks_n, 0);
	assert_int_equal(last(&j)->given_up, 1);
	/* With a sender that repairs, but not this: four rounds, four at twice the distance, and so
	 * on, within 200 ms. */
	t0 = j.now_ns;
	fec_encoder_pause(j.line.e);
	send(&j, 3, 2);
	fec_encoder_pause(j.line.e);
	size_t before = j.feedbacks_n;
	for (int i = 0; i < 10; i++) {
		send(&j, 1, 0);
		journey_send_in(&j, line_ahead(&j.line, WIRE_EXT_CLASS_LARGE, 1), 0);
		journey_run(&j, j.now_ns + 50 * MS);
	}
	assert_int_equal(j.feedbacks_n - before, 10);
	assert_int_equal(j.feedback_at[before + 3], t0 + MS + 3 * ROUND);
	assert_int_equal(j.feedback_at[before + 7], t0 + MS + 11 * ROUND);
	assert_int_equal(j.feedback_at[before + 8], t0 + MS + 14 * ROUND);
	assert_int_equal(last(&j)->given_up, 2);
	journey_end(&j);
	/* On a long path, three round trips. */
	begin(&j, 400, 150 * MS);
	j.is_mute = true;
	t0 = j.now_ns;
	send(&j, 3, 2);
	journey_run(&j, t0 + 2000 * MS);
	assert_int_equal(line_stats(&j.line).given_up, 1);
	assert_int_equal(j.feedbacks_n, 4);
	assert_int_equal(j.feedback_at[0], t0 + 150 * MS / 16);
	assert_in_range(j.feedback_at[3], t0 + 450 * MS, t0 + 500 * MS);
	journey_end(&j);
}

static void
feedbacks_are_two_milliseconds_apart(void **state)
{
	(void)state;
	struct journey j;
	begin(&j, 4000, RTT);
	j.is_mute = true;
	for (int i = 0; i < 1000; i++) {
		send(&j, 3, 2);
		journey_run(&j, j.now_ns + 200 * US);
	}
	for (size_t i = 1; i < j.feedbacks_n; i++) {
		assert_true(j.feedback_at[i] - j.feedback_at[i - 1] >= 2 * MS);
	}
	assert_in_range(j.feedbacks_n, 95, 101);
	journey_end(&j);
}

/* Each block lists all that is missing between its first and last, what has been asked for
 * lately too; it wants repairs for the new ones only. */
static void
a_block_lists_what_is_missing_and_wants_what_is_new(void **state)
{
	(void)state;
	struct journey j;
	begin(&j, 400, 40 * MS);
	j.is_mute = true;
	send(&j, 1, 0);
	/* Missing is 1, 20 ms later 13. */
	uint64_t first = send(&j, 8, 1u << 1);
	journey_run(&j, j.now_ns + 20 * MS);
	assert_int_equal(j.feedbacks_n, 1);
	send(&j, 8, 1u << 5);
	journey_run(&j, j.now_ns + 10 * MS);
	assert_int_equal(j.feedbacks_n, 2);
	assert_int_equal(base_of(&j, last(&j), 0), first + 13);
	assert_int_equal(last(&j)->blocks[0].span, 1);
	/* 19 is judged, after a grace of 2.5 ms, when 1 is due again. */
	int64_t again = j.feedback_at[0] + 42 * MS;
	journey_run(&j, again - 2500 * US);
	send(&j, 8, 1u << 3);
	journey_run(&j, again);
	assert_int_equal(j.feedbacks_n, 3);
	const struct wire_ext_feedback *f = last(&j);
	assert_int_equal(f->blocks_n, 1);
	assert_int_equal(base_of(&j, f, 0), first + 1);
	assert_int_equal(f->blocks[0].span, 19);
	assert_int_equal(f->blocks[0].want, 2 + 2);
	assert_int_equal(f->blocks[0].missing[0], 1);
	assert_int_equal(f->blocks[0].missing[1], 1u << 4);
	assert_int_equal(f->blocks[0].missing[2], 1u << 2);
	journey_end(&j);
}

static void
many_missing_are_cut_into_blocks_of_what_the_solver_holds(void **state)
{
	(void)state;
	struct journey j;
	begin(&j, 3000, RTT);
	j.is_mute = true;
	send(&j, 1, 0);
	uint64_t first = j.line.first + j.line.n;
	for (int i = 0; i < 600; i++) {
		line_source(&j.line, j.now_ns, PACKET_UDP, 500); /* all lost */
	}
	send(&j, 1, 0);
	journey_run(&j, j.now_ns + MS);
	const struct wire_ext_feedback *f = last(&j);
	assert_int_equal(f->blocks_n, WIRE_EXT_BLOCKS_MAX);
	assert_int_equal(f->lost, 600);
	assert_int_equal(f->runs, 1);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(base_of(&j, f, i), first + 60 * i);
		assert_int_equal(f->blocks[i].span, 60);
		assert_int_equal(f->blocks[i].want, 61);
	}
	/* The rest follows 2 ms apart. */
	journey_run(&j, j.now_ns + 4 * MS);
	assert_int_equal(j.feedbacks_n, 2);
	assert_int_equal(last(&j)->blocks_n, 2);
	assert_int_equal(base_of(&j, last(&j), 1), first + 540);
	assert_int_equal(last(&j)->blocks[1].span, 60);
	journey_end(&j);
}

static void
equations_at_hand_lower_what_is_wanted(void **state)
{
	(void)state;
	struct journey j;
	begin(&j, 400, RTT);
	j.is_mute = true;
	send(&j, 3, 2);
	journey_run(&j, j.now_ns + 100 * MS);
	fec_encoder_pause(j.line.e);
	send(&j, 10, 0xf0);
	for (int i = 0; i < 3; i++) {
		journey_send_in(&j, line_ahead(&j.line, WIRE_EXT_CLASS_LARGE, 10), 0);
	}
	journey_run(&j, j.now_ns + 2 * MS);
	assert_int_equal(last(&j)->blocks_n, 1);
	assert_int_equal(last(&j)->blocks[0].missing[0], 0xf);
	assert_int_equal(last(&j)->blocks[0].want, 2);
	journey_send_in(&j, line_ahead(&j.line, WIRE_EXT_CLASS_LARGE, 10), 0);
	journey_run(&j, j.now_ns);
	assert_int_equal(line_stats(&j.line).recovered_ahead, 4);
	journey_end(&j);
}

/* Lost repairs, keepalives and FEEDBACKs are not asked for once a REPAIR has spanned them. */
/* Where repairs are sent ahead, a packet is asked for when four of them could have brought it. */
static void
requests_wait_for_repairs_sent_ahead(void **state)
{
	(void)state;
	static const struct {
		int64_t apart_ns, waits_ns;
	} cases[] = {{MS / 8, MS}, {MS / 2, 2 * MS}, {MS * 3 / 4, 3 * MS}, {5 * MS, 4 * MS}};
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct journey j;
		begin(&j, 4000, RTT);
		j.line.why = WIRE_EXT_WHY_AHEAD;
		j.is_mute = true;
		send(&j, 3, 2); /* wakes it */
		journey_run(&j, j.now_ns + 300 * MS);
		fec_encoder_pause(j.line.e);
		for (int i = 0; i < 60; i++) {
			send(&j, 1, 0);
			journey_send_in(&j, line_ahead(&j.line, WIRE_EXT_CLASS_LARGE, 1), 0);
			journey_run(&j, j.now_ns + cases[k].apart_ns);
		}
		size_t before = j.feedbacks_n;
		int64_t t0 = j.now_ns;
		fec_encoder_pause(j.line.e);
		send(&j, 3, 2);
		journey_run(&j, t0 + 9 * MS);
		assert_int_equal(j.feedbacks_n, before + 1);
		/* The mean of the intervals has come near to what they are. */
		assert_in_range(j.feedback_at[before] - t0, cases[k].waits_ns - 1000,
			cases[k].waits_ns + MS / 10);
		journey_end(&j);
	}
}

static void
what_is_no_source_is_not_asked_for(void **state)
{
	(void)state;
	struct journey j;
	begin(&j, 400, RTT);
	j.is_mute = true;
	send(&j, 3, 2);
	journey_run(&j, j.now_ns + 200 * MS);
	fec_encoder_pause(j.line.e);
	send(&j, 3, 0);
	line_ahead(&j.line, WIRE_EXT_CLASS_LARGE, 3); /* lost */
	line_keepalive(&j.line);                      /* lost */
	uint64_t first = send(&j, 3, 0);
	size_t before = j.feedbacks_n;
	journey_send_in(&j, line_ahead(&j.line, WIRE_EXT_CLASS_LARGE, 6), 0);
	journey_run(&j, j.now_ns + 15 * MS);
	assert_int_equal(j.feedbacks_n, before);
	/* They count as lost all the same, and are said in the totals. */
	journey_run(&j, j.now_ns + 100 * MS);
	assert_int_equal(j.feedbacks_n, before + 1);
	assert_int_equal(last(&j)->blocks_n, 0);
	assert_int_equal(last(&j)->lost, 3);
	assert_int_equal(last(&j)->runs, 2);
	assert_int_equal(last(&j)->given_up, 1);
	/* With small packets among the large ones it takes a repair of each class. */
	journey_send_in(&j, line_source(&j.line, j.now_ns, PACKET_UDP, 100), 0);
	line_keepalive(&j.line); /* lost */
	journey_send_in(&j, line_source(&j.line, j.now_ns, PACKET_UDP, 500), 0);
	journey_send_in(&j, line_source(&j.line, j.now_ns, PACKET_UDP, 100), 0);
	journey_send_in(&j, line_ahead(&j.line, WIRE_EXT_CLASS_LARGE, 6), 0);
	journey_run(&j, j.now_ns + 2 * MS);
	assert_int_equal(j.feedbacks_n, before + 2);
	assert_int_equal(base_of(&j, last(&j), 0), first + 5);
	journey_send_in(&j, line_ahead(&j.line, WIRE_EXT_CLASS_SMALL, 6), 0);
	journey_run(&j, j.now_ns + 100 * MS);
	/* All had been said already. */
	assert_int_equal(j.feedbacks_n, before + 2);
	assert_int_equal(line_stats(&j.line).given_up, 1);
	assert_int_equal(j.line.refused, 0);
	journey_end(&j);
}

/* Else a FEEDBACK would ask for them, and its answers be lost and asked for in turn. */
static void
lost_answers_are_not_asked_for_before_the_next_source(void **state)
{
	(void)state;
	struct journey j;
	begin(&j, 400, RTT);
	j.is_mute = true;
	uint64_t first = send(&j, 20, 1u << 4);
	journey_run(&j, j.now_ns + 2 * MS);
	assert_int_equal(j.feedbacks_n, 1);
	struct wire_ext_feedback f = *last(&j);
	assert_int_equal(line_answer(&j.line, &f) + line_answer(&j.line, &f), 4);
	journey_send_in(&j, j.line.first + j.line.n - 1, 0);
	journey_run(&j, j.now_ns + 500 * MS);
	assert_true(line_is_delivered(&j.line, first + 4));
	assert_int_equal(j.feedbacks_n, 2);
	assert_int_equal(last(&j)->blocks_n, 0);
	assert_int_equal(last(&j)->lost, 1);
	/* They keep no memory, either. */
	assert_false(fec_decoder_rest_at(j.line.d, MS).ns == INT64_MAX);
	send(&j, 1, 0);
	journey_run(&j, j.now_ns + 2 * MS);
	assert_int_equal(j.feedbacks_n, 3);
	assert_int_equal(last(&j)->blocks[0].missing[0], 7);
	journey_end(&j);
}

static void
only_a_probe_behind_another_is_answered(void **state)
{
	(void)state;
	struct journey j;
	begin(&j, 400, RTT);
	send(&j, 20, 0);
	for (unsigned i = 0; i < 3; i++) {
		journey_send_in(&j, line_ahead(&j.line, WIRE_EXT_CLASS_LARGE, 6), 0);
		journey_run(&j, j.now_ns + 50 * MS);
		assert_int_equal(j.feedbacks_n, i);
	}
	assert_int_equal(last(&j)->blocks_n, 0);
	assert_int_equal(last(&j)->highest, j.line.first + j.line.n - 1);
	send(&j, 1, 0);
	journey_send_in(&j, line_ahead(&j.line, WIRE_EXT_CLASS_LARGE, 6), 0);
	journey_run(&j, j.now_ns + 50 * MS);
	assert_int_equal(j.feedbacks_n, 2);
	journey_end(&j);
}

/* The whole loop: FEEDBACKs are lost like packets, answers too, sizes are mixed. */
static void
answers_bring_back_everything_on_a_lossy_path(void **state)
{
	(void)state;
	static const double losses[] = {0.01, 0.05, 0.1, 0.2, 0.3};
	for (uint64_t seed = 1; seed <= 20; seed++) {
		print_message("seed %llu\n", (unsigned long long)seed);
		struct journey j;
		journey_begin(&j, &(struct line_config){.seed = seed, .first = seed, .cap = 12000},
			RTT / 2);
		struct line *l = &j.line;
		j.loss = losses[seed % 5];
		j.jitter_ns = seed % 2 ? 0 : 300 * US;
		if (seed % 4 == 1) { /* bursts of four */
			j.loss_to_good = 0.25;
			j.loss_to_bad = 0.25 * j.loss / (1 - j.loss);
		}
		size_t n = 0;
		for (; n < 4000; n++) {
			size_t len = rng_below(&j.rng, 5) ? 1400 : 120;
			journey_send(&j, line_source(l, j.now_ns, PACKET_UDP, len));
			if (seed % 3 == 0 && n % 10 == 9) {
				journey_send(&j, line_ahead(l, WIRE_EXT_CLASS_LARGE, 64));
			}
			journey_run(&j, j.now_ns + 250 * US);
		}
		/* So that the end is seen. */
		for (int i = 0; i < 30; i++) {
			journey_send_in(&j, line_keepalive(l), RTT);
			journey_run(&j, j.now_ns + 20 * MS);
		}
		journey_run(&j, j.now_ns + 1000 * MS);
		size_t missing = 0;
		for (size_t i = 0; i < l->n; i++) {
			missing += l->sent[i].is_source && !l->sent[i].delivered_ns;
		}
		struct fec_decoder_stats s = line_stats(l);
		print_message("loss %.2f: %llu lost, %zu missing, %llu by answers, %llu ahead, "
			      "%llu repairs, %llu useless, %zu FEEDBACKs\n",
			j.loss, (unsigned long long)s.lost, missing,
			(unsigned long long)s.recovered_answer,
			(unsigned long long)s.recovered_ahead, (unsigned long long)s.repairs,
			(unsigned long long)s.repairs_useless, j.feedbacks_n);
		/* Eight rounds fail with 0.51^8 at a loss of 0.3. */
		assert_in_range(missing, 0, j.loss > 0.2 ? 20 : 2);
		assert_int_equal(l->refused, 0);
		assert_int_equal(s.repairs_refused, 0);
		assert_true(fec_decoder_deadline(l->d).ns == INT64_MAX);
		journey_end(&j);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_said_without_loss),
		cmocka_unit_test(a_loss_is_reported_when_its_grace_ends_and_the_end_of_it_once),
		cmocka_unit_test(what_is_not_answered_is_asked_for_again_each_round_and_given_up),
		cmocka_unit_test(feedbacks_are_two_milliseconds_apart),
		cmocka_unit_test(a_block_lists_what_is_missing_and_wants_what_is_new),
		cmocka_unit_test(many_missing_are_cut_into_blocks_of_what_the_solver_holds),
		cmocka_unit_test(equations_at_hand_lower_what_is_wanted),
		cmocka_unit_test(requests_wait_for_repairs_sent_ahead),
		cmocka_unit_test(what_is_no_source_is_not_asked_for),
		cmocka_unit_test(lost_answers_are_not_asked_for_before_the_next_source),
		cmocka_unit_test(only_a_probe_behind_another_is_answered),
		cmocka_unit_test(answers_bring_back_everything_on_a_lossy_path),
	};
	return cmocka_run_group_tests_name("fec/report", tests, NULL, NULL);
}

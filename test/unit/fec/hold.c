/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fec/hold.h"
#include "journey.h"

#define MS WEFT_NS_PER_MS
#define RTT (10 * MS)
#define HOLD (13 * MS)
#define PATIENCE (4 * MS) /* with repairs sent ahead, at most so much longer */

/* What waits, the flag that the decoder is awake and trusts the sender included, is what is tested
 * here; so a loss and a REPAIR come first. */
static void
begin(struct journey *j, uint64_t seed, size_t cap, int64_t rtt_ns)
{
	journey_begin(j, &(struct line_config){.seed = seed, .first = seed * 1000, .cap = cap},
		rtt_ns / 2);
	struct line *l = &j->line;
	for (int i = 0; i < 3; i++) {
		line_source(l, j->now_ns, PACKET_UDP, 300);
	}
	fec_encoder_pause(l->e);
	line_source(l, j->now_ns, PACKET_UDP, 300);
	line_ahead(l, WIRE_EXT_CLASS_LARGE, 1);
	for (size_t i = 0; i < 5; i++) {
		if (i != 1) {
			journey_send_in(j, l->first + i, 0);
		}
	}
	/* Long enough for the first loss to be given up. */
	journey_run(j, j->now_ns + 400 * MS + 4 * rtt_ns);
	assert_int_equal(line_stats(l).given_up, 1);
}

static int64_t
detected_ns(const struct line *l, size_t i)
{
	int64_t at = INT64_MAX;
	for (size_t k = i + 1; k < l->n && k < i + 400; k++) {
		int64_t a = l->sent[k].arrived_ns;
		at = a && a < at ? a : at;
	}
	return at;
}

/* Without REPAIRs every wait can be told in advance: TCP waits for each lower counter that comes
 * later than itself, until that comes or its time is over. */
static void
waits_are_what_the_rule_says_to_the_nanosecond(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct journey j;
		begin(&j, seed, 1200, RTT);
		struct line *l = &j.line;
		j.is_mute = true;
		j.jitter_ns = (int64_t)(seed % 6) * 4 * MS;
		for (int i = 0; i < 1000; i++) {
			enum packet_kind kind = (enum packet_kind)rng_below(&j.rng, 6);
			size_t len = PACKET_LEN_MIN + rng_below(&j.rng, 600);
			journey_send(&j, line_source(l, j.now_ns, kind, len));
			journey_run(&j, j.now_ns + (int64_t)rng_below(&j.rng, 2 * MS));
		}
		journey_run(&j, j.now_ns + 1000 * MS);
		for (size_t i = 5; i < l->n; i++) {
			const struct line_sent *s = &l->sent[i];
			if (!s->is_source || !s->arrived_ns) {
				continue;
			}
			int64_t expected = s->arrived_ns;
			for (size_t k = i > 400 ? i - 400 : 5; s->is_ordered && k < i; k++) {
				const struct line_sent *b = &l->sent[k];
				int64_t end = detected_ns(l, k) + HOLD;
				if (b->arrived_ns && b->arrived_ns < end) {
					end = b->arrived_ns;
				}
				expected = end > expected ? end : expected;
			}
			if (s->delivered_ns != expected) {
				fail_msg("seed %llu: packet %zu came at %lld, went at %lld, not "
					 "%lld",
					(unsigned long long)seed, i, (long long)s->arrived_ns,
					(long long)s->delivered_ns, (long long)expected);
			}
		}
		journey_end(&j);
	}
}

/* TCP of a class is out of order only where a packet came, or was recovered, after its time; and
 * where the path keeps the order, what it brought goes out in order, of whatever class. */
static void
check_order(const struct line *l, int64_t hold_ns, bool is_path_ordered)
{
	uint64_t highest[2] = {0, 0};
	const struct line_sent *last = NULL;
	for (size_t i = 0; i < l->log_n; i++) {
		uint64_t c = l->log[i];
		const struct line_sent *s = line_at(l, c);
		size_t class = s->len > WIRE_EXT_SMALL_MAX;
		if (!s->is_ordered) {
			continue;
		}
		if (c < highest[class] &&
			s->delivered_ns < detected_ns(l, (size_t)(c - l->first)) + hold_ns) {
			fail_msg("counter %llu after %llu, at %lld, arrived %lld, detected %lld",
				(unsigned long long)c, (unsigned long long)highest[class],
				(long long)s->delivered_ns, (long long)s->arrived_ns,
				(long long)detected_ns(l, (size_t)(c - l->first)));
		}
		highest[class] = c > highest[class] ? c : highest[class];
		if (s->is_recovered || !is_path_ordered) {
			continue;
		}
		if (last && s < last) {
			fail_msg("counter %llu came before and went after another",
				(unsigned long long)c);
		}
		last = s;
	}
}

static void
a_tcp_flow_keeps_its_order_unless_the_bound_was_hit(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		print_message("seed %llu\n", (unsigned long long)seed);
		struct journey j;
		int64_t rtt = (int64_t)(1 + seed % 5 * 9) * MS;
		int64_t hold = rtt + 3 * MS < 30 * MS ? rtt + 3 * MS : 30 * MS;
		int64_t most = 30 * MS; /* as long as answers take, up to that */
		begin(&j, seed, 8000, rtt);
		struct line *l = &j.line;
		j.loss = (double)(seed % 4) * 0.05;
		j.jitter_ns = seed % 2 ? 2 * MS : 0;
		l->out_cap = seed % 3 == 0 ? 1 : 0;
		for (int i = 0; i < 3000; i++) {
			bool is_tcp = rng_below(&j.rng, 10) > 0;
			size_t len = rng_below(&j.rng, 8) ? 1200 : 120;
			journey_send(&j, line_source(l, j.now_ns,
						 is_tcp ? PACKET_TCP_DATA : PACKET_UDP, len));
			if (i % 8 == 7) {
				journey_send(&j, line_ahead(l, WIRE_EXT_CLASS_LARGE, 64));
			}
			if (i % 40 == 39) {
				uint64_t c = line_ahead(l, WIRE_EXT_CLASS_SMALL, 16);
				if (c != UINT64_MAX) {
					journey_send(&j, c);
				}
			}
			journey_run(&j, j.now_ns + (int64_t)rng_below(&j.rng, MS / 2));
		}
		journey_run(&j, j.now_ns + 1000 * MS);
		check_order(l, hold, j.jitter_ns == 0);
		size_t missing = 0;
		for (size_t i = 5; i < l->n; i++) {
			const struct line_sent *s = &l->sent[i];
			missing += s->is_source && !s->delivered_ns;
			if (s->is_source && s->arrived_ns && !s->is_recovered) {
				assert_in_range(s->delivered_ns - s->arrived_ns, 0, most);
			}
		}
		assert_int_equal(l->refused, 0);
		assert_in_range(missing, 0, 2);
		struct fec_decoder_stats s = line_stats(l);
		assert_in_range(s.hold_ns_max, j.loss > 0, (uint64_t)most);
		assert_in_range(s.hold_ns_sum, s.hold_ns_max, s.held * s.hold_ns_max);
		journey_end(&j);
	}
}

static void
only_whole_tcp_segments_with_data_or_fin_wait(void **state)
{
	(void)state;
	static const struct {
		enum packet_kind kind;
		bool waits;
	} cases[] = {{PACKET_UDP, false}, {PACKET_TCP_DATA, true}, {PACKET_TCP_ACK, false},
		{PACKET_TCP_SYN, false}, {PACKET_TCP_FIN, true}, {PACKET_TCP_FRAGMENT, false}};
	uint8_t packet[PACKET_LEN_MAX];
	for (int is_v6 = 0; is_v6 < 2; is_v6++) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			size_t len = packet_make(packet, 1, i, cases[i].kind, is_v6, 200);
			assert_int_equal(fec_hold_is_ordered(packet, len), cases[i].waits);
			/* Padding is no payload. */
			memset(packet + len, 0, 16);
			assert_int_equal(fec_hold_is_ordered(packet, len + 16), cases[i].waits);
		}
		size_t len = packet_make(packet, 1, 1, PACKET_TCP_DATA, is_v6, 200);
		for (size_t cut = 0; cut < len; cut++) {
			assert_false(fec_hold_is_ordered(packet, cut));
		}
	}
}

/* A lost packet of a class is waited for by that class alone, once a REPAIR has told. */
static void
a_class_does_not_wait_for_the_other(void **state)
{
	(void)state;
	struct journey j;
	begin(&j, 1, 100, RTT);
	struct line *l = &j.line;
	uint64_t lost = line_source(l, j.now_ns, PACKET_TCP_DATA, 1000);
	uint64_t small = line_source(l, j.now_ns, PACKET_TCP_DATA, 100);
	uint64_t large = line_source(l, j.now_ns, PACKET_TCP_DATA, 1000);
	/* Two large ones are missing, so that this repair solves nothing. */
	uint64_t other = line_source(l, j.now_ns, PACKET_TCP_DATA, 1000);
	uint64_t repair = line_ahead(l, WIRE_EXT_CLASS_LARGE, 3);
	journey_send_in(&j, small, 0);
	journey_send_in(&j, large, 0);
	journey_run(&j, j.now_ns + MS / 2);
	assert_false(line_is_delivered(l, small));
	assert_false(line_is_delivered(l, large));
	journey_send_in(&j, repair, 0);
	journey_run(&j, j.now_ns + MS / 10);
	assert_true(line_is_delivered(l, small));
	assert_false(line_is_delivered(l, large));
	journey_send_in(&j, other, 0);
	journey_run(&j, j.now_ns + MS / 10);
	assert_true(line_at(l, lost)->is_recovered);
	assert_int_equal(l->log[l->log_n - 3], lost);
	assert_int_equal(l->log[l->log_n - 2], large);
	assert_int_equal(l->log[l->log_n - 1], other);
	journey_end(&j);
}

/* Recovered and released, but not taken yet: what comes before that goes first. */
static void
a_late_original_goes_out_in_the_place_of_the_recovered_one(void **state)
{
	(void)state;
	struct journey j;
	begin(&j, 1, 100, RTT);
	struct line *l = &j.line;
	uint64_t first = line_source(l, j.now_ns, PACKET_TCP_DATA, 1000);
	line_source(l, j.now_ns, PACKET_TCP_DATA, 1000);
	uint64_t late = line_source(l, j.now_ns, PACKET_TCP_DATA, 1000);
	uint64_t repair = line_ahead(l, WIRE_EXT_CLASS_LARGE, 1);
	line_source(l, j.now_ns, PACKET_TCP_DATA, 1000);
	line_arrive(l, j.now_ns, first + 1);
	line_arrive(l, j.now_ns, repair);
	line_arrive(l, j.now_ns, repair + 1);
	line_take(l, j.now_ns);
	size_t before = l->log_n;
	/* Within one batch. */
	line_arrive(l, j.now_ns, first);
	line_arrive(l, j.now_ns, late);
	line_take(l, j.now_ns);
	assert_int_equal(l->log_n, before + 4);
	for (size_t i = 1; i < 4; i++) {
		assert_true(l->log[before + i] > l->log[before + i - 1]);
	}
	assert_false(line_at(l, late)->is_recovered);
	journey_end(&j);
}

/* Large segments and the small last one of what an application wrote are one flow. */
static void
a_packet_does_not_overtake_a_waiting_one_of_the_other_class(void **state)
{
	(void)state;
	struct journey j;
	begin(&j, 1, 100, RTT);
	struct line *l = &j.line;
	j.is_mute = true;
	uint64_t lost = line_source(l, j.now_ns, PACKET_TCP_DATA, 1000);
	uint64_t large = line_source(l, j.now_ns, PACKET_TCP_DATA, 1000);
	uint64_t small = line_source(l, j.now_ns, PACKET_TCP_DATA, 100);
	uint64_t other = line_source(l, j.now_ns, PACKET_TCP_DATA, 1000);
	uint64_t repair = line_ahead(l, WIRE_EXT_CLASS_LARGE, 3);
	int64_t start = j.now_ns;
	journey_send_in(&j, large, 0);
	journey_send_in(&j, small, 0);
	journey_send_in(&j, repair, 0);
	journey_run(&j, start + MS / 2);
	assert_false(line_is_delivered(l, large));
	assert_false(line_is_delivered(l, small));
	uint64_t late = line_source(l, j.now_ns, PACKET_TCP_DATA, 100);
	journey_send_in(&j, late, 0);
	journey_run(&j, start + MS);
	assert_false(line_is_delivered(l, late));
	/* Neither longer than the bound. */
	journey_run(&j, start + HOLD + PATIENCE);
	assert_int_equal(l->log[l->log_n - 3], large);
	assert_int_equal(l->log[l->log_n - 2], small);
	assert_int_equal(l->log[l->log_n - 1], late);
	assert_false(line_is_delivered(l, lost));
	assert_false(line_is_delivered(l, other));
	journey_end(&j);
}

/* A queue has made the round trip longer than what is believed: as reports tell that are rare. */
static void
waits_last_as_long_as_answers_were_seen_to_take(void **state)
{
	(void)state;
	struct journey j;
	begin(&j, 1, 4000, 22 * MS);
	struct line *l = &j.line;
	fec_decoder_set_rtt(l->d, RTT);
	for (int loss = 0; loss < 6; loss++) {
		uint64_t lost = line_source(l, j.now_ns, PACKET_TCP_DATA, 1000), next = 0;
		for (int i = 0; i < 60; i++) {
			uint64_t c = line_source(l, j.now_ns, PACKET_TCP_DATA, 1000);
			next = i == 0 ? c : next;
			journey_send_in(&j, c, j.delay_ns);
			journey_run(&j, j.now_ns + MS);
		}
		const struct line_sent *a = line_at(l, lost), *b = line_at(l, next);
		assert_true(a->is_recovered);
		/* The one behind the gap comes 1 ms before it is asked for. */
		assert_in_range(a->delivered_ns - b->arrived_ns, 22 * MS, 24 * MS);
		if (loss == 0) {
			assert_in_range(b->delivered_ns - b->arrived_ns, HOLD, HOLD + PATIENCE);
		} else {
			assert_int_equal(b->delivered_ns, a->delivered_ns);
		}
	}
	/* And no longer, though nothing comes. */
	j.is_mute = true;
	line_source(l, j.now_ns, PACKET_TCP_DATA, 1000);
	uint64_t last = line_source(l, j.now_ns, PACKET_TCP_DATA, 1000);
	journey_send_in(&j, last, 0);
	journey_run(&j, j.now_ns + 40 * MS);
	const struct line_sent *s = line_at(l, last);
	assert_in_range(s->delivered_ns - s->arrived_ns, 25 * MS, 29 * MS);
	journey_end(&j);
}

/* Recovery ends, or a newer session brings packets: what waits goes out, and nothing waits any
 * more. */
static void
nothing_waits_with_the_hold_off(void **state)
{
	(void)state;
	struct journey j;
	begin(&j, 1, 100, RTT);
	struct line *l = &j.line;
	j.is_mute = true;
	line_source(l, j.now_ns, PACKET_TCP_DATA, 1000);
	uint64_t large = line_source(l, j.now_ns, PACKET_TCP_DATA, 1000);
	uint64_t small = line_source(l, j.now_ns, PACKET_TCP_DATA, 100);
	journey_send_in(&j, large, 0);
	journey_run(&j, j.now_ns);
	assert_false(line_is_delivered(l, large));
	fec_decoder_set_hold(l->d, false);
	journey_send_in(&j, small, 0);
	journey_run(&j, j.now_ns);
	assert_int_equal(l->log[l->log_n - 2], large);
	assert_int_equal(l->log[l->log_n - 1], small);
	line_source(l, j.now_ns, PACKET_TCP_DATA, 1000);
	uint64_t next = line_source(l, j.now_ns, PACKET_TCP_DATA, 1000);
	journey_send_in(&j, next, 0);
	journey_run(&j, j.now_ns);
	assert_true(line_is_delivered(l, next));
	journey_end(&j);
}

static void
nothing_waits_while_nobody_repairs(void **state)
{
	(void)state;
	struct journey j;
	journey_begin(&j, &(struct line_config){.seed = 1, .cap = 400}, RTT / 2);
	struct line *l = &j.line;
	j.is_mute = true;
	/* The first loss, while idle: a slow sender remembers what it was. */
	uint64_t c = line_source(l, 0, PACKET_TCP_DATA, 500);
	journey_send_in(&j, c, 0);
	line_source(l, 0, PACKET_TCP_DATA, 500);
	journey_send_in(&j, line_source(l, 0, PACKET_TCP_DATA, 500), 0);
	journey_run(&j, j.now_ns);
	assert_false(line_is_delivered(l, c + 2));
	journey_run(&j, j.now_ns + HOLD);
	assert_true(line_is_delivered(l, c + 2));
	/* The second: it has been asked for, so there may be an answer. */
	line_source(l, 0, PACKET_TCP_DATA, 500);
	journey_send_in(&j, line_source(l, 0, PACKET_TCP_DATA, 500), 0);
	journey_run(&j, j.now_ns);
	assert_false(line_is_delivered(l, c + 4));
	journey_run(&j, j.now_ns + HOLD);
	assert_true(line_is_delivered(l, c + 4));
	/* It never came, so the third is not waited for, until a REPAIR comes. */
	journey_run(&j, j.now_ns + 300 * MS);
	line_source(l, 0, PACKET_TCP_DATA, 500);
	journey_send_in(&j, line_source(l, 0, PACKET_TCP_DATA, 500), 0);
	journey_run(&j, j.now_ns);
	assert_true(line_is_delivered(l, c + 6));
	journey_send_in(&j, line_ahead(l, WIRE_EXT_CLASS_LARGE, 1), 0);
	line_source(l, 0, PACKET_TCP_DATA, 500);
	journey_send_in(&j, line_source(l, 0, PACKET_TCP_DATA, 500), 0);
	journey_run(&j, j.now_ns);
	assert_false(line_is_delivered(l, c + 9));
	journey_end(&j);
}

/* Waits end early when the ring of bytes or of records fills; nothing is lost by it. */
static void
what_waits_never_exceeds_half_of_the_memory(void **state)
{
	(void)state;
	for (size_t len = 100; len <= 1400; len += 1300) {
		struct journey j;
		begin(&j, 1, 4000, 200 * MS);
		struct line *l = &j.line;
		j.is_mute = true;
		line_restart(l);
		fec_decoder_set_rtt(l->d, 200 * MS);
		/* Awake, and trusting. */
		for (size_t i = 0; i < l->n; i++) {
			if (i != 1) {
				journey_send_in(&j, l->first + i, 0);
			}
		}
		journey_run(&j, j.now_ns + MS);
		uint64_t first = line_source(l, j.now_ns, PACKET_TCP_DATA, len) + 1;
		for (int i = 0; i < 3000; i++) {
			journey_send_in(&j, line_source(l, j.now_ns, PACKET_TCP_DATA, len), 0);
			journey_run(&j, j.now_ns);
		}
		size_t delivered = 0;
		for (size_t i = 0; i < 3000; i++) {
			delivered += line_is_delivered(l, first + i);
		}
		assert_in_range(delivered, 3000 - 600, 3000);
		journey_run(&j, j.now_ns + 40 * MS);
		for (size_t i = 0; i < 3000; i++) {
			assert_true(line_is_delivered(l, first + i));
			assert_int_equal(l->log[l->log_n - 3000 + i], first + i);
		}
		journey_end(&j);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_whole_tcp_segments_with_data_or_fin_wait),
		cmocka_unit_test(waits_are_what_the_rule_says_to_the_nanosecond),
		cmocka_unit_test(a_tcp_flow_keeps_its_order_unless_the_bound_was_hit),
		cmocka_unit_test(a_class_does_not_wait_for_the_other),
		cmocka_unit_test(a_late_original_goes_out_in_the_place_of_the_recovered_one),
		cmocka_unit_test(a_packet_does_not_overtake_a_waiting_one_of_the_other_class),
		cmocka_unit_test(waits_last_as_long_as_answers_were_seen_to_take),
		cmocka_unit_test(nothing_waits_with_the_hold_off),
		cmocka_unit_test(nothing_waits_while_nobody_repairs),
		cmocka_unit_test(what_waits_never_exceeds_half_of_the_memory),
	};
	return cmocka_run_group_tests_name("fec/hold", tests, NULL, NULL);
}

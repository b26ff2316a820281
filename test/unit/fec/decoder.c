/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "fec/coef.h"
#include "fec/decoder_state.h"
#include "fec/gf256.h"
#include "fec/symbol.h"
#include "allocations.h"
#include "line.h"
#include "naive.h"

#define MS WEFT_NS_PER_MS
#define LARGE WIRE_EXT_CLASS_LARGE
#define S WEFT_NS_PER_S
#define SMALL WIRE_EXT_CLASS_SMALL

/* The decoder wakes by a loss before what a test is about, so that it stores what follows. */
#define WAKERS 3

static void
send_wakers(struct line *l)
{
	for (int i = 0; i < WAKERS; i++) {
		line_source(l, 1, PACKET_UDP, 300);
	}
	fec_encoder_pause(l->e); /* repairs reach back to here alone */
}

static void
wake(struct line *l, int64_t now_ns)
{
	line_arrive(l, now_ns, l->first);
	line_arrive(l, now_ns, l->first + 2);
}

/* Equations of the REPAIRs that arrived, over sources that are not in `is_here`. */
static void
naive_add_repair(struct naive *n, const struct line *l, uint64_t own, const bool *is_here)
{
	const struct line_sent *s = line_at(l, own);
	struct wire_ext_repair r;
	uint8_t row[FEC_COEFS_MAX], *columns = calloc(1, n->columns);
	assert_non_null(columns);
	assert_true(wire_ext_repair_decode(s->bytes, s->len, &r));
	fec_coefs(fec_key(own), row, r.span);
	for (size_t i = 0; i < r.span; i++) {
		size_t at = (size_t)(own - r.back + i - l->first);
		if (r.sources[i / 8] >> (i % 8) & 1 && !is_here[at]) {
			columns[at] = row[i];
		}
	}
	naive_add(n, columns);
	free(columns);
}

/* Of what has been sent, `lost` does not arrive: recovered is what elimination finds from the
 * repairs that do. */
static void
play_pattern(struct line *l, uint32_t lost)
{
	struct naive naive;
	bool is_here[40] = {[0] = true, [2] = true}, is_solved[40];
	for (size_t i = WAKERS; i < l->n; i++) {
		is_here[i] = !(lost >> (i - WAKERS) & 1);
	}
	line_restart(l);
	wake(l, 2);
	naive_init(&naive, 40, 8);
	for (size_t i = WAKERS; i < l->n; i++) {
		if (is_here[i]) {
			line_arrive(l, 3, l->first + i);
			if (!l->sent[i].is_source) {
				naive_add_repair(&naive, l, l->first + i, is_here);
			}
		}
	}
	line_take(l, 3);
	naive_solve(&naive, is_solved);
	for (size_t i = 0; i < l->n; i++) {
		const struct line_sent *s = &l->sent[i];
		if (s->is_source && (s->delivered_ns != 0) != (is_here[i] || is_solved[i])) {
			fail_msg("%zu sent, lost %#x: number %zu", l->n, lost, i);
		}
	}
	assert_int_equal(l->refused, 0);
	naive_fini(&naive);
}

/* n sources and a repair after each number of `after`: all patterns of loss, the repairs'
 * included. */
static void
play_patterns(unsigned n, const unsigned *after, unsigned repairs)
{
	struct line l;
	line_open(&l, &(struct line_config){
			      .seed = n, .first = 500, .cap = 40, .records = 256, .bytes = 65536});
	send_wakers(&l);
	for (unsigned i = 0, r = 0; i < n; i++) {
		line_source(&l, 3, PACKET_UDP, PACKET_LEN_MIN + 7 * i);
		for (; r < repairs && after[r] == i; r++) {
			line_ahead(&l, SMALL, n < 8 ? 16 : 6 + r);
		}
	}
	assert_int_equal(l.n, WAKERS + n + repairs);
	for (uint32_t lost = 0; lost < UINT32_C(1) << (n + repairs); lost++) {
		play_pattern(&l, lost);
	}
	line_close(&l);
}

static void
every_small_pattern_is_recovered_when_it_can_be(void **state)
{
	(void)state;
	static const unsigned wheres[2][4] = {{11, 11, 11, 11}, {2, 5, 8, 11}};
	for (unsigned n = 1; n <= 12; n++) {
		for (unsigned repairs = 0; repairs <= 4; repairs++) {
			for (int w = 0; w < (repairs > 1 ? 2 : 1); w++) {
				unsigned after[4];
				for (unsigned r = 0; r < repairs; r++) {
					unsigned i = wheres[w][4 - repairs + r];
					after[r] = i < n ? i : n - 1;
				}
				play_patterns(n, after, repairs);
			}
		}
	}
}

/* Reordered, in bursts, of two classes, over windows that overlap: whatever the repairs that came
 * determine has been delivered in the end, and nothing else but what arrived. */
static void
play_run(uint64_t seed)
{
	struct line l;
	struct rng rng;
	line_open(&l, &(struct line_config){.seed = seed, .first = seed << 20, .cap = 600});
	rng_init(&rng, seed);
	send_wakers(&l);
	double loss = 0.02 + 0.1 * rng_unit(&rng), rate = 0.3 * rng_unit(&rng);
	unsigned window = 1 + (unsigned)rng_below(&rng, 128);
	size_t burst = 1 + rng_below(&rng, 4);
	for (int i = 0; i < 300; i++) {
		size_t len = rng_below(&rng, 4) ? 1 + rng_below(&rng, 1100) + 256
						: PACKET_LEN_MIN + rng_below(&rng, 195);
		line_source(&l, 1, PACKET_UDP, len);
		for (unsigned k = 0; k < 2; k++) {
			if (rng_is_hit(&rng, k ? rate : rate / 4)) {
				line_ahead(&l, (enum wire_ext_class)k, window);
			}
		}
	}
	bool *is_here = calloc(l.n, sizeof(*is_here)), *is_solved = calloc(l.n, sizeof(*is_solved));
	uint64_t *order = malloc(l.n * sizeof(*order));
	assert_true(is_here && is_solved && order);
	for (size_t i = 0, left = 0; i < l.n; i++) {
		left = left > 0 ? left - 1 : rng_is_hit(&rng, loss / (double)burst) ? burst : 0;
		is_here[i] = i < WAKERS ? i != 1 : left == 0;
		order[i] = i;
	}
	for (size_t i = WAKERS; seed % 3 && i + 1 < l.n; i++) {
		size_t k = i + 1 + rng_below(&rng, seed % 3 == 1 ? 2 : 40);
		if (k < l.n && rng_below(&rng, 4) == 0) {
			uint64_t t = order[i];
			order[i] = order[k];
			order[k] = t;
		}
	}
	for (size_t i = 0; i < l.n; i++) {
		if (is_here[order[i]]) {
			line_arrive(&l, 2, l.first + order[i]);
			line_take(&l, 2);
		}
	}
	struct naive naive;
	naive_init(&naive, l.n, l.n);
	for (size_t i = WAKERS; i < l.n; i++) {
		if (is_here[i] && !l.sent[i].is_source) {
			naive_add_repair(&naive, &l, l.first + i, is_here);
		}
	}
	naive_solve(&naive, is_solved);
	for (size_t i = 0; i < l.n; i++) {
		const struct line_sent *s = &l.sent[i];
		if (s->is_source && (s->delivered_ns != 0) != (is_here[i] || is_solved[i])) {
			fail_msg("seed %llu: number %zu", (unsigned long long)seed, i);
		}
	}
	assert_int_equal(l.refused, 0);
	naive_fini(&naive);
	free(is_here);
	free(is_solved);
	free(order);
	line_close(&l);
}

static void
long_runs_recover_what_gaussian_elimination_does(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 150; seed++) {
		play_run(seed);
	}
}

static void
it_sleeps_until_the_first_gap_and_after_ten_thousand_packets_without(void **state)
{
	(void)state;
	struct line l;
	line_open(&l, &(struct line_config){.seed = 1, .cap = 100});
	struct mono t = {1};
	struct wire_ext_feedback f;
	assert_true(fec_decoder_skip(l.d, t, 1u << 30, 1000));
	assert_true(fec_decoder_skip(l.d, t, (1u << 30) + 1000, 64));
	assert_false(fec_decoder_skip(l.d, t, (1u << 30) + 1065, 64)); /* one is missing */
	assert_false(fec_decoder_skip(l.d, t, (1u << 30) + 1000, 64)); /* came before */
	assert_true(fec_decoder_deadline(l.d).ns == INT64_MAX);
	uint8_t packet[PACKET_LEN_MAX];
	size_t len = packet_make(packet, 1, 1, PACKET_UDP, 0, 100);
	struct fec_packet room[1];
	uint64_t next = (1u << 30) + 1065;
	for (int i = 0; i < 2; i++) {
		struct fec_out out = {.packets = room, .cap = 1};
		fec_decoder_packet(
			l.d, t, &(struct fec_arrival){next++, packet, len, 2, true}, &out);
		assert_int_equal(out.n, 1);
		assert_ptr_equal(room[0].data, packet);
		assert_int_equal(room[0].ecn, 2);
		assert_false(fec_decoder_skip(l.d, t, next, 1));
	}
	/* Given up, and said. */
	for (int i = 0; i < 1000; i++) {
		t.ns += MS;
		fec_decoder_feedback(l.d, t, &f);
	}
	assert_int_equal(line_stats(&l).given_up, 1);
	size_t n = 0;
	while (!fec_decoder_skip(l.d, t, next, 1)) {
		struct fec_out out = {.packets = room, .cap = 1};
		fec_decoder_packet(
			l.d, t, &(struct fec_arrival){next++, packet, len, 0, true}, &out);
		assert_int_equal(out.n, 1);
		n++;
	}
	assert_in_range(n, 9990, 10001);
	assert_int_equal(line_stats(&l).received, 1064 + 2 + n + 1);
	assert_int_equal(line_stats(&l).lost, 1);
	line_close(&l);
}

static void
a_jump_beyond_the_records_starts_afresh_and_loses_nothing_held(void **state)
{
	(void)state;
	for (uint64_t jump = 1020; jump <= 1030; jump++) {
		struct line l;
		line_open(&l, &(struct line_config){.seed = jump, .first = 7, .cap = 4000});
		send_wakers(&l);
		for (uint64_t c = 7; c < 10; c++) {
			if (c != 8) {
				line_arrive(&l, 1, c);
			}
		}
		/* TCP held behind a gap that is not asked for yet. */
		line_source(&l, 1, PACKET_TCP_DATA, 1000);
		for (int i = 0; i < 5; i++) {
			line_arrive(&l, 2, line_source(&l, 2, PACKET_TCP_DATA, 1000));
		}
		assert_int_equal(l.log_n, 2);
		while (l.n < 9 + jump) {
			line_keepalive(&l);
		}
		uint64_t c = line_source(&l, 3, PACKET_TCP_DATA, 1000);
		line_arrive(&l, 3, c);
		line_take(&l, 3);
		struct fec_decoder_stats s = line_stats(&l);
		/* Of 1024 records half may wait, so the last does not either. */
		assert_int_equal(l.log_n, 2 + 5 + 1);
		for (uint64_t i = 0; i < 5; i++) {
			assert_int_equal(l.log[2 + i], 11 + i);
		}
		/* From 1024 on there is no record of what was before. */
		if (jump >= 1024) {
			assert_int_equal(s.lost, 2 + jump);
			assert_int_equal(s.given_up, 2 + jump);
		}
		/* And it goes on as ever. */
		fec_encoder_pause(l.e);
		line_arrive(&l, 4, line_source(&l, 4, PACKET_UDP, 700));
		uint64_t lost = line_source(&l, 4, PACKET_UDP, 700);
		line_arrive(&l, 5, line_source(&l, 5, PACKET_UDP, 700));
		line_arrive(&l, 5, line_ahead(&l, LARGE, 3));
		line_take(&l, 5);
		assert_true(line_at(&l, lost)->is_recovered);
		line_close(&l);
	}
}

static void
what_is_older_than_the_records_is_delivered(void **state)
{
	(void)state;
	struct line l;
	line_open(
		&l, &(struct line_config){.seed = 1, .cap = 1000, .records = 256, .bytes = 65536});
	for (int i = 0; i < 600; i++) {
		line_source(&l, 1, PACKET_TCP_DATA, 300);
	}
	for (uint64_t c = 1; c < 600; c++) {
		line_arrive(&l, 1, c == 1 ? 0 : c);
		line_take(&l, 1);
	}
	assert_int_equal(line_stats(&l).given_up, 1);
	line_arrive(&l, 2, 1);
	assert_true(line_is_delivered(&l, 1));
	line_close(&l);
}

/* A frame that cannot be true is refused, and no packet comes of it. */
static void
contradictions_are_refused(void **state)
{
	(void)state;
	static const char *const cases[] = {"a keepalive as source", "a small one as large",
		"a payload shorter than a source", "a source of both classes",
		"bytes that no "
		"packet has",
		"reaches below zero", "not noted", "true"};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct line l;
		line_open(&l,
			&(struct line_config){.seed = 1, .first = i == 5 ? 0 : 1000, .cap = 50});
		send_wakers(&l);
		wake(&l, 1);
		uint64_t a = line_source(&l, 1, PACKET_UDP, 1000);
		uint64_t lost = line_source(&l, 1, PACKET_UDP, 900);
		uint64_t small = line_source(&l, 1, PACKET_UDP, 100);
		uint64_t keepalive = line_keepalive(&l);
		line_arrive(&l, 1, a);
		line_arrive(&l, 1, small);
		line_arrive(&l, 1, keepalive);
		uint64_t own = line_ahead(&l, LARGE, 2);
		struct line_sent *s = line_at(&l, own);
		struct wire_ext_repair r;
		assert_true(wire_ext_repair_decode(s->bytes, s->len, &r));
		assert_int_equal(r.span, 2);
		assert_int_equal(r.back, 4);
		struct fec_packet room[1];
		struct fec_out out = {.packets = room, .cap = 1};
		if (i != 6) {
			fec_decoder_packet(l.d, (struct mono){2},
				&(struct fec_arrival){own, s->bytes, s->len, 0, false}, &out);
		}
		switch (i) {
		case 0:
			r.span = 4;
			r.sources[0] = 3 | 8;
			break;
		case 1:
			r.span = 3;
			r.sources[0] = 7;
			break;
		case 2:
			r.payload_len = 1001;
			break;
		case 3:
			r.span = 1;
			r.back = 3;
			r.sources[0] = 1;
			r.class = SMALL;
			r.payload_len = 22;
			fec_decoder_repair(l.d, (struct mono){2}, own, &r); /* garbage */
			assert_true(wire_ext_repair_decode(s->bytes, s->len, &r));
			break;
		case 4:
			s->bytes[s->len - 1] ^= 1; /* where zeros follow the packet */
			break;
		case 5:
			r.back = 65535;
			break;
		default:
			break;
		}
		bool is_true = i + 1 == sizeof(cases) / sizeof(cases[0]);
		size_t refused = (size_t)line_stats(&l).repairs_refused;
		if (fec_decoder_repair(l.d, (struct mono){2}, own, &r) != is_true) {
			fail_msg("%s: %s", cases[i], is_true ? "refused" : "taken");
		}
		assert_int_equal(line_stats(&l).repairs_refused, refused + !is_true);
		line_take(&l, 2);
		assert_int_equal(line_at(&l, lost)->is_recovered, is_true);
		line_close(&l);
	}
}

static void
useless_repairs_are_counted_and_nothing_else(void **state)
{
	(void)state;
	struct line l;
	line_open(&l, &(struct line_config){.seed = 1, .first = 1000, .cap = 50});
	line_arrive(&l, 1, line_source(&l, 1, PACKET_UDP, 1000));
	line_arrive(&l, 1, line_ahead(&l, LARGE, 1)); /* wakes it; nothing is stored yet */
	line_arrive(&l, 1, line_source(&l, 1, PACKET_UDP, 1000));
	uint64_t lost = line_source(&l, 1, PACKET_UDP, 1000);
	uint64_t ahead = line_ahead(&l, LARGE, 3); /* over the first too: of no use */
	line_arrive(&l, 1, ahead);
	line_take(&l, 1);
	assert_int_equal(line_stats(&l).repairs_useless, 2);
	assert_false(line_is_delivered(&l, lost));
	line_arrive(&l, 1, line_ahead(&l, LARGE, 2));
	line_take(&l, 1);
	assert_true(line_is_delivered(&l, lost));
	line_arrive(&l, 1, line_ahead(&l, LARGE, 2)); /* all is known */
	assert_int_equal(line_stats(&l).repairs_useless, 3);
	assert_int_equal(line_stats(&l).repairs, 4);
	assert_int_equal(l.refused, 0);
	/* One that is longer than what this side can store. */
	struct wire_ext_repair r = {.class = LARGE, .span = 1, .back = 1, .sources = {1}};
	uint8_t payload[LINE_PACKET_MAX + 3] = {0};
	r.payload = payload;
	r.payload_len = sizeof(payload);
	line_source(&l, 1, PACKET_UDP, 1000);
	uint64_t own = line_keepalive(&l);
	line_arrive(&l, 1, own);
	assert_true(fec_decoder_repair(l.d, (struct mono){1}, own, &r));
	assert_int_equal(line_stats(&l).repairs_useless, 4);
	line_close(&l);
}

/* The caller's window decides between a recovered packet and its own that came meanwhile. */
static void
a_late_original_is_delivered_once(void **state)
{
	(void)state;
	for (int is_taken = 0; is_taken < 2; is_taken++) {
		struct line l;
		line_open(&l, &(struct line_config){.seed = 1, .first = 1000, .cap = 50});
		send_wakers(&l);
		wake(&l, 1);
		uint64_t lost = line_source(&l, 1, PACKET_UDP, 1000);
		line_arrive(&l, 1, line_source(&l, 1, PACKET_UDP, 1000));
		line_arrive(&l, 2, line_ahead(&l, LARGE, 2));
		if (is_taken) {
			line_take(&l, 2);
		}
		line_arrive(&l, 3, lost);
		line_take(&l, 3);
		assert_true(line_is_delivered(&l, lost));
		assert_int_equal(line_at(&l, lost)->is_recovered, is_taken);
		assert_int_equal(line_stats(&l).recovered_ahead, 1);
		line_close(&l);
	}
}

/* Loses one of three, and recovers it. */
static void
lose_and_recover(struct line *l, int64_t now_ns)
{
	line_arrive(l, now_ns, line_source(l, now_ns, PACKET_UDP, 1000));
	uint64_t lost = line_source(l, now_ns, PACKET_UDP, 1000);
	line_arrive(l, now_ns, line_source(l, now_ns, PACKET_UDP, 1000));
	assert_true(fec_decoder_rest_at(l->d, S).ns == MONO_NEVER.ns);
	line_arrive(l, now_ns, line_ahead(l, LARGE, 2));
	line_take(l, now_ns);
	assert_true(line_is_delivered(l, lost));
}

static void
memory_goes_back_when_nothing_comes_and_nothing_waits(void **state)
{
	(void)state;
	struct line l;
	struct wire_ext_feedback f;
	line_open(&l, &(struct line_config){.seed = 1, .first = 1000, .cap = 50});
	send_wakers(&l);
	wake(&l, 1);
	for (uint64_t i = 0; i < 3; i++) {
		int64_t at = (int64_t)(1 + i) * 10 * S;
		lose_and_recover(&l, at);
		/* The totals are to be said first. */
		fec_decoder_rest(l.d, (struct mono){at + 5 * S}, S);
		for (int64_t t = at; t < at + S; t += 5 * MS) {
			line_take(&l, t);
			(void)fec_decoder_feedback(l.d, (struct mono){t}, &f);
		}
		assert_true(fec_decoder_rest_at(l.d, 5 * S).ns == at + 5 * S);
		fec_decoder_rest(l.d, (struct mono){at + 5 * S - 1}, 5 * S);
		assert_true(fec_decoder_rest_at(l.d, 5 * S).ns == at + 5 * S);
		fec_decoder_rest(l.d, (struct mono){at + 5 * S}, 5 * S);
		assert_true(fec_decoder_rest_at(l.d, 5 * S).ns == MONO_NEVER.ns);
		assert_true(fec_decoder_deadline(l.d).ns == MONO_NEVER.ns);
		assert_int_equal(line_stats(&l).recovered_ahead, i + 1);
		assert_int_equal(line_stats(&l).lost, i + 2); /* and that of wake() */
	}
	line_close(&l);
}

static void
nothing_is_allocated_once_it_is_awake(void **state)
{
	(void)state;
	if (!allocations_begin()) {
		skip();
	}
	struct line l;
	struct rng rng;
	line_open(
		&l, &(struct line_config){.seed = 9, .cap = 9000, .records = 256, .bytes = 65536});
	rng_init(&rng, 9);
	size_t before = allocations_count();
	for (int i = 0; i < 100; i++) {
		line_arrive(&l, 1, line_source(&l, 1, PACKET_TCP_DATA, 1000));
	}
	assert_int_equal(allocations_count(), before);
	line_source(&l, 1, PACKET_TCP_DATA, 1000);
	line_arrive(&l, 1, line_source(&l, 1, PACKET_TCP_DATA, 1000));
	assert_true(allocations_count() > before);
	before = allocations_count();
	struct wire_ext_feedback f;
	for (int64_t i = 0; l.n < 8900; i++) {
		uint64_t c = line_source(&l, i * MS, PACKET_TCP_DATA, 100 + rng_below(&rng, 1000));
		if (rng_below(&rng, 5)) {
			line_arrive(&l, i * MS, c);
		}
		c = line_ahead(&l, i % 3 ? LARGE : SMALL, 32);
		if (c != UINT64_MAX && rng_below(&rng, 3)) {
			line_arrive(&l, i * MS, c);
		}
		line_take(&l, i * MS);
		fec_decoder_feedback(l.d, (struct mono){i * MS}, &f);
	}
	assert_true(line_stats(&l).recovered_ahead > 100);
	assert_int_equal(allocations_count(), before);
	line_close(&l);
}

static void
settings_out_of_range_are_refused(void **state)
{
	(void)state;
	const struct fec_decoder_config good = {.gf = gf256_get(GF256_ISA_AUTO),
		.records = 256,
		.bytes = 65536,
		.packet_max = 1420};
	struct fec_decoder_config bad[8];
	for (size_t i = 0; i < 8; i++) {
		bad[i] = good;
	}
	bad[0].gf = NULL;
	bad[1].records = 128;
	bad[2].records = 300;
	bad[3].records = 131072;
	bad[4].bytes = 65535;
	bad[5].bytes = (64u << 20) + 1;
	bad[6].packet_max = 19;
	bad[7].packet_max = 65534;
	struct fec_decoder *d = NULL;
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(fec_decoder_new(&bad[i], &d), WEFT_EINVAL);
		assert_null(d);
	}
	assert_int_equal(fec_decoder_new(&good, &d), WEFT_OK);
	fec_decoder_free(d);
	fec_decoder_free(NULL);
}

static void
gaps_after_an_overflow_of_our_own_socket_are_nobodys_loss(void **state)
{
	(void)state;
	struct fec_decoder *d;
	const struct fec_decoder_config c = {.gf = gf256_get(GF256_ISA_AUTO),
		.records = 256,
		.bytes = 65536,
		.packet_max = 1420};
	struct fec_packet packets[8];
	struct fec_out out = {.packets = packets, .cap = 8};
	struct fec_decoder_stats stats;
	struct wire_ext_feedback f;
	uint8_t byte = 0;
	assert_int_equal(fec_decoder_new(&c, &d), WEFT_OK);
	assert_true(fec_decoder_skip(d, (struct mono){1 * MS}, 0, 10));
	/* Idle: it stays so. */
	fec_decoder_set_overflow(d, true);
	assert_false(fec_decoder_skip(d, (struct mono){2 * MS}, 30, 10));
	fec_decoder_packet(
		d, (struct mono){2 * MS}, &(struct fec_arrival){30, &byte, 0, 0, false}, &out);
	fec_decoder_set_overflow(d, false);
	assert_true(fec_decoder_skip(d, (struct mono){2 * MS}, 31, 9));
	assert_int_equal(fec_decoder_deadline(d).ns, INT64_MAX);
	/* Awake after a true loss of one, which alone is told of. */
	fec_decoder_packet(
		d, (struct mono){3 * MS}, &(struct fec_arrival){41, &byte, 1, 0, true}, &out);
	fec_decoder_set_overflow(d, true);
	fec_decoder_packet(
		d, (struct mono){3 * MS}, &(struct fec_arrival){50, &byte, 1, 0, true}, &out);
	fec_decoder_set_overflow(d, false);
	assert_true(fec_decoder_feedback(d, (struct mono){60 * MS}, &f));
	assert_int_equal(f.lost, 1);
	assert_int_equal(f.blocks_n, 1);
	assert_int_equal(f.blocks[0].span, 1);
	fec_decoder_stats(d, &stats);
	assert_int_equal(stats.overflowed, 20 + 8);
	assert_int_equal(stats.lost, 1);
	fec_decoder_free(d);
}

/* A gap, and more TCP behind it than half of what the decoder starts with. */
static void
it_grows_with_what_waits_and_within_the_budget(void **state)
{
	(void)state;
	enum { WAITING = 100 };
	for (int is_poor = 0; is_poor < 2; is_poor++) {
		struct line l;
		struct fec_budget budget = {.bytes_max = is_poor ? 300000 : 3000000};
		line_open(&l, &(struct line_config){.seed = 3, .first = 7, .cap = 1000});
		l.config.records = 256;
		l.config.bytes = 65536;
		l.config.records_max = 4096;
		l.config.bytes_max = 1u << 20;
		l.config.budget = &budget;
		line_restart(&l);
		send_wakers(&l);
		wake(&l, 1);
		line_arrive(&l, 1, l.first + 1);
		/* The rings of what waits have gone round when they grow. */
		for (int k = 0; k < 6; k++) {
			line_source(&l, 1, PACKET_TCP_DATA, 300);
			for (int i = 0; i < 40; i++) {
				line_arrive(&l, 1, line_source(&l, 1, PACKET_TCP_DATA, 300));
			}
			line_arrive(&l, 1, line_ahead(&l, LARGE, 41));
			line_take(&l, 1);
		}
		uint64_t first = line_source(&l, 1, PACKET_TCP_DATA, 1000);
		size_t before = l.log_n;
		for (int i = 0; i < WAITING; i++) {
			line_arrive(&l, 2, line_source(&l, 2, PACKET_TCP_DATA, 1000));
			assert_int_equal(fec_decoder_grow(l.d) || is_poor, true);
		}
		line_take(&l, 2);
		if (is_poor) {
			/* Not enough for all, so waits ended; nothing is lost by it. */
			assert_in_range(l.log_n - before, 1, WAITING);
		} else {
			assert_int_equal(l.log_n, before);
			line_arrive(&l, 3, line_ahead(&l, LARGE, WAITING + 1));
			line_take(&l, 3);
			for (uint64_t i = 0; i <= WAITING; i++) {
				assert_int_equal(l.log[before + i], first + i);
			}
		}
		line_take(&l, 1000 * MS);
		assert_in_range(l.log_n - before, WAITING, WAITING + 1);
		assert_in_range(budget.bytes, 1, budget.bytes_max);
		line_close(&l);
		assert_int_equal(budget.bytes, 0);
	}
}

/* Three of a size that the budget allows to one: the others recover with less. */
static void
what_has_no_room_for_the_usual_recovers_with_less(void **state)
{
	(void)state;
	enum { LINES = 3 };
	static struct line lines[LINES];
	struct fec_budget budget = {.bytes_max = 1500000};
	uint64_t taken = 0;
	for (int i = 0; i < LINES; i++) {
		struct line *l = &lines[i];
		line_open(l, &(struct line_config){.seed = 3, .first = 7, .cap = 1000});
		l->config.records = 4096;
		l->config.bytes = 512u << 10;
		l->config.budget = &budget;
		line_restart(l);
		send_wakers(l);
		wake(l, 1);
		line_arrive(l, 1, l->first + 1);
		uint64_t lost = line_source(l, 1, PACKET_UDP, 1000);
		for (int k = 0; k < 60; k++) {
			line_arrive(l, 1, line_source(l, 1, PACKET_UDP, 1000));
		}
		line_arrive(l, 1, line_ahead(l, LARGE, 61));
		line_take(l, 1);
		assert_int_equal(l->log[l->log_n - 1], lost);
		uint64_t size = budget.bytes - taken;
		assert_in_range(size, i == 0 ? 700000 : 150000, i == 0 ? 1000000 : 300000);
		taken = budget.bytes;
	}
	for (int i = 0; i < LINES; i++) {
		line_close(&lines[i]);
	}
	assert_int_equal(budget.bytes, 0);
}

/* Records made are the work that a gap causes, so they are counted instead of the time. */
static void
counters_that_jump_cost_a_bounded_number_of_records(void **state)
{
	(void)state;
	static const struct {
		uint64_t skip; /* before each packet */
		bool is_looked_for;
	} cases[] = {{1, true}, {31, true}, {32, true}, {40, false}, {1000, false}, {4095, false},
		{4097, false}, {20000, false}, {UINT64_C(1) << 40, false}};
	enum { N = 20000 };
	const struct fec_decoder_config c = {.gf = gf256_get(GF256_ISA_AUTO),
		.records = 16384,
		.bytes = 65536,
		.packet_max = 1420};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fec_decoder *d;
		struct fec_packet packets[1];
		struct fec_decoder_stats s;
		uint8_t byte = 0;
		uint64_t counter = 0;
		assert_int_equal(fec_decoder_new(&c, &d), WEFT_OK);
		for (int64_t k = 0; k < N; k++) {
			struct fec_out out = {.packets = packets, .cap = 1};
			fec_decoder_packet(d, (struct mono){k * 10000},
				&(struct fec_arrival){counter, &byte, 1, 0, true}, &out);
			assert_int_equal(out.n, 1);
			counter += cases[i].skip + 1;
		}
		fec_decoder_stats(d, &s);
		assert_true(d->gaps.made_n <= N * (1 + 32) + 4096);
		assert_int_equal(s.jumps > 0, !cases[i].is_looked_for);
		if (cases[i].skip > 4096) {
			assert_int_equal(s.jumps, N - 1);
			assert_int_equal(s.lost, (N - 1) * cases[i].skip);
		}
		fec_decoder_free(d);
	}
}

/* Else two idle sides ask each other about lost FEEDBACKs for ever. */
static void
frames_alone_make_no_feedback(void **state)
{
	(void)state;
	struct fec_decoder *d;
	const struct fec_decoder_config c = {.gf = gf256_get(GF256_ISA_AUTO),
		.records = 256,
		.bytes = 65536,
		.packet_max = 1420};
	struct fec_packet packets[8];
	struct fec_out out = {.packets = packets, .cap = 8};
	struct fec_decoder_stats stats;
	struct wire_ext_feedback f;
	uint8_t byte = 0;
	assert_int_equal(fec_decoder_new(&c, &d), WEFT_OK);
	assert_true(fec_decoder_skip(d, (struct mono){1 * MS}, 0, 10));
	for (uint64_t i = 0; i < 50; i++) {
		struct mono now = {(2 + 20 * (int64_t)i) * MS};
		fec_decoder_packet(
			d, now, &(struct fec_arrival){11 + 2 * i, &byte, 1, 0, false}, &out);
		assert_false(fec_decoder_feedback(d, mono_add_ns(now, 19 * MS), &f));
		assert_int_equal(fec_decoder_deadline(d).ns, INT64_MAX);
	}
	/* A source shows them, and they have been missing since then. */
	struct mono now = {2000 * MS};
	fec_decoder_packet(d, now, &(struct fec_arrival){110, &byte, 1, 0, true}, &out);
	assert_false(fec_decoder_feedback(d, now, &f));
	assert_true(fec_decoder_feedback(d, mono_add_ns(now, MS), &f));
	assert_int_equal(f.lost, 50);
	assert_in_range(f.blocks_n, 1, 8);
	fec_decoder_stats(d, &stats);
	assert_int_equal(stats.given_up, 0);
	fec_decoder_free(d);
}

static void
decoder_grows_again_after_memory_was_refused_in_part(void **state)
{
	(void)state;
	struct fec_budget budget = {.bytes_max = 16u << 20};
	const struct fec_decoder_config c = {.gf = gf256_get(GF256_ISA_AUTO),
		.records = 256,
		.bytes = 65536,
		.records_max = 4096,
		.bytes_max = 1u << 20,
		.packet_max = 1420,
		.budget = &budget};
	struct fec_decoder *d;
	assert_int_equal(fec_decoder_new(&c, &d), WEFT_OK);
	assert_true(fec_decoder_wake(d, 0));
	uint64_t before = budget.bytes;
	assert_int_equal(fec_decoder_size(d), before);
	assert_true(allocations_refuse_aligned(true));
	d->is_short_of_bytes = true;
	assert_false(fec_decoder_grow(d));
	(void)allocations_refuse_aligned(false);
	assert_int_equal(budget.bytes, before);
	assert_int_equal(fec_decoder_size(d), before);
	d->is_short_of_records = true;
	assert_true(fec_decoder_grow(d));
	assert_int_equal(d->records, 512);
	assert_in_range(budget.bytes, before + 1, before + 65535);
	d->is_short_of_bytes = true;
	assert_true(fec_decoder_grow(d));
	assert_int_equal(d->bytes, 131072);
	fec_decoder_free(d);
	assert_int_equal(budget.bytes, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_small_pattern_is_recovered_when_it_can_be),
		cmocka_unit_test(long_runs_recover_what_gaussian_elimination_does),
		cmocka_unit_test(
			it_sleeps_until_the_first_gap_and_after_ten_thousand_packets_without),
		cmocka_unit_test(a_jump_beyond_the_records_starts_afresh_and_loses_nothing_held),
		cmocka_unit_test(what_is_older_than_the_records_is_delivered),
		cmocka_unit_test(contradictions_are_refused),
		cmocka_unit_test(useless_repairs_are_counted_and_nothing_else),
		cmocka_unit_test(a_late_original_is_delivered_once),
		cmocka_unit_test(memory_goes_back_when_nothing_comes_and_nothing_waits),
		cmocka_unit_test(nothing_is_allocated_once_it_is_awake),
		cmocka_unit_test(gaps_after_an_overflow_of_our_own_socket_are_nobodys_loss),
		cmocka_unit_test(it_grows_with_what_waits_and_within_the_budget),
		cmocka_unit_test(what_has_no_room_for_the_usual_recovers_with_less),
		cmocka_unit_test(counters_that_jump_cost_a_bounded_number_of_records),
		cmocka_unit_test(frames_alone_make_no_feedback),
		cmocka_unit_test(settings_out_of_range_are_refused),
		/* The last: under a sanitizer the allocator is not ours to refuse anything. */
		cmocka_unit_test(decoder_grows_again_after_memory_was_refused_in_part),
	};
	size_t n = WEFT_ARRAY_LEN(tests) - !allocations_refuse_aligned(false);
	return _cmocka_run_group_tests("fec/decoder", tests, n, NULL, NULL);
}

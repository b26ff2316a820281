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
#include "fec/encoder.h"
#include "fec/gf256.h"
#include "fec/store.h"
#include "fec/symbol.h"
#include "packets.h"

#define PACKET_MAX 1420
#define FRAME_MAX 1440
#define COUNTERS 3000

/* What was given, counter by counter; len 0 is no source. */
struct given {
	uint64_t first;
	size_t n;
	struct {
		size_t len;
		uint8_t bytes[PACKET_LEN_MAX];
	} at[COUNTERS];
};

static struct fec_encoder *
new_encoder(uint32_t records, uint32_t bytes, uint16_t frame_max)
{
	struct fec_encoder_config c = {
		.gf = gf256_get(GF256_ISA_AUTO),
		.records = records,
		.bytes = bytes,
		.packet_max = PACKET_MAX,
		.frame_max = frame_max,
	};
	struct fec_encoder *e;
	assert_int_equal(fec_encoder_new(&c, &e), WEFT_OK);
	return e;
}

static void
give(struct fec_encoder *e, struct given *g, size_t len)
{
	size_t i = g->n++;
	assert_true(i < COUNTERS);
	g->at[i].len = len;
	if (len > 0) {
		packet_make(g->at[i].bytes, 1, i, PACKET_UDP, 0, len);
		fec_encoder_source(e, (struct mono){(int64_t)i}, g->first + i, g->at[i].bytes, len);
	}
}

static bool
bit(const uint8_t *bits, size_t i)
{
	return bits[i / 8] >> (i % 8) & 1;
}

/* The payload by the definition: byte after byte. */
static void
check_payload(const struct given *g, uint64_t own, const struct wire_ext_repair *r)
{
	uint8_t sum[2 + PACKET_LEN_MAX] = {0}, row[FEC_COEFS_MAX];
	size_t longest = 0;
	fec_coefs(fec_key(own), row, r->span);
	for (size_t i = 0; i < r->span; i++) {
		if (!bit(r->sources, i)) {
			continue;
		}
		size_t at = (size_t)(own - r->back + i - g->first);
		assert_true(at < g->n && g->at[at].len > 0);
		size_t len = g->at[at].len;
		assert_int_equal(fec_class((uint32_t)len), r->class);
		longest = len > longest ? len : longest;
		sum[0] ^= gf256_mul(row[i], (uint8_t)len);
		sum[1] ^= gf256_mul(row[i], (uint8_t)(len >> 8));
		for (size_t b = 0; b < len; b++) {
			sum[2 + b] ^= gf256_mul(row[i], g->at[at].bytes[b]);
		}
	}
	assert_int_equal(r->payload_len, longest ? 2 + longest : 0);
	assert_memory_equal(r->payload, sum, r->payload_len);
}

/* Of the given counters, from `last` down: has the span all of the class, and nothing else? */
static void
check_sources(const struct given *g, uint64_t own, const struct wire_ext_repair *r)
{
	bool is_alone = true;
	for (size_t i = 0; i < r->span; i++) {
		size_t at = (size_t)(own - r->back + i - g->first);
		size_t len = at < g->n ? g->at[at].len : 0;
		bool is_source = len > 0 && len <= PACKET_MAX;
		bool is_of_class = is_source && fec_class((uint32_t)len) == r->class;
		assert_int_equal(bit(r->sources, i), is_of_class);
		is_alone = is_alone && (!is_source || is_of_class);
	}
	assert_int_equal(r->is_alone, is_alone);
}

static size_t
any_len(struct rng *rng)
{
	switch (rng_below(rng, 6)) {
	case 0:
		return 0;
	case 1:
		return PACKET_MAX;
	case 2:
		return 256 + rng_below(rng, 2);
	case 3:
		return PACKET_LEN_MIN + rng_below(rng, 200);
	case 4:
		return rng_below(rng, 30) ? 257 + rng_below(rng, 1000) : PACKET_MAX + 1;
	default:
		return 1200;
	}
}

static void
repair_is_the_combination_that_its_header_says(void **state)
{
	(void)state;
	struct given *g = malloc(sizeof(*g));
	assert_non_null(g);
	for (uint64_t seed = 1; seed <= 12; seed++) {
		print_message("seed %llu\n", (unsigned long long)seed);
		struct rng rng;
		rng_init(&rng, seed);
		g->n = 0;
		g->first = seed % 2 ? rng_u64(&rng) >> 8 : 0;
		struct fec_encoder *e = new_encoder(256, 65536, FRAME_MAX);
		while (g->n < COUNTERS - 1) {
			give(e, g, any_len(&rng));
			if (rng_below(&rng, 8)) {
				continue;
			}
			enum wire_ext_class class =
				rng_below(&rng, 2) ? WIRE_EXT_CLASS_LARGE : WIRE_EXT_CLASS_SMALL;
			unsigned window = 1 + (unsigned)rng_below(&rng, 128);
			uint64_t own = g->first + g->n;
			uint8_t frame[FRAME_MAX];
			unsigned skip = rng_below(&rng, 2) ? (unsigned)rng_below(&rng, 40) : 0;
			size_t len = fec_encoder_ahead(e, class, window, skip, WIRE_EXT_WHY_AHEAD,
				&(struct fec_place){own, frame, sizeof(frame)});
			struct wire_ext_repair r;
			if (len > 0) {
				assert_true(wire_ext_repair_decode(frame, len, &r));
				assert_int_equal(r.class, class);
				check_sources(g, own, &r);
				check_payload(g, own, &r);
				assert_true(bit(r.sources, 0) && bit(r.sources, r.span - 1u));
			}
			g->at[g->n++].len = 0; /* the repair itself */
		}
		fec_encoder_free(e);
	}
	free(g);
}

static void
window_counts_sources_of_the_class_from_the_last(void **state)
{
	(void)state;
	struct given *g = calloc(1, sizeof(*g));
	assert_non_null(g);
	struct fec_encoder *e = new_encoder(1024, 1 << 20, FRAME_MAX);
	uint8_t frame[FRAME_MAX];
	struct wire_ext_repair r;
	/* small, nothing, large; over and over */
	for (int i = 0; i < 60; i++) {
		give(e, g, 100);
		give(e, g, 0);
		give(e, g, 1000);
	}
	for (unsigned window = 1; window <= 128; window++) {
		size_t len = fec_encoder_ahead(e, WIRE_EXT_CLASS_SMALL, window, 0,
			WIRE_EXT_WHY_TAIL, &(struct fec_place){g->n, frame, sizeof(frame)});
		assert_true(wire_ext_repair_decode(frame, len, &r));
		size_t k = window < 43 ? window : 43; /* 3 * 42 + 1 = 127 counters */
		assert_int_equal(r.span, 3 * (k - 1) + 1);
		assert_int_equal(r.back, r.span + 2);
		assert_int_equal(r.is_alone, window == 1);
		assert_int_equal(r.why, WIRE_EXT_WHY_TAIL);
		check_sources(g, g->n, &r);
	}
	for (unsigned skip = 0; skip < 60; skip++) {
		size_t len = fec_encoder_ahead(e, WIRE_EXT_CLASS_SMALL, 5, skip, WIRE_EXT_WHY_AHEAD,
			&(struct fec_place){g->n, frame, sizeof(frame)});
		assert_true(wire_ext_repair_decode(frame, len, &r));
		size_t k = 60 - skip < 5 ? 60 - skip : 5;
		assert_int_equal(r.span, 3 * (k - 1) + 1);
		assert_int_equal(r.back, r.span + 2 + 3 * skip);
		check_sources(g, g->n, &r);
	}
	size_t len = fec_encoder_ahead(e, WIRE_EXT_CLASS_SMALL, 5, 60, WIRE_EXT_WHY_AHEAD,
		&(struct fec_place){g->n, frame, sizeof(frame)});
	assert_true(wire_ext_repair_decode(frame, len, &r));
	assert_int_equal(r.back, r.span + 2); /* as if none were left out */
	fec_encoder_free(e);
	free(g);
}

static void
span_shrinks_to_keep_the_frame_short_enough(void **state)
{
	(void)state;
	struct given *g = calloc(1, sizeof(*g));
	assert_non_null(g);
	uint8_t frame[FRAME_MAX + 16], all[16];
	memset(all, 0xff, sizeof(all));
	struct wire_ext_repair r;
	for (uint16_t frame_max = PACKET_MAX + 6; frame_max <= PACKET_MAX + 24; frame_max++) {
		struct fec_encoder *e = new_encoder(256, 1 << 20, frame_max);
		g->n = 0;
		for (int i = 0; i < 128; i++) {
			give(e, g, i % 16 == 15 ? 0 : PACKET_MAX);
		}
		give(e, g, PACKET_MAX);
		uint64_t own = g->n;
		size_t len = fec_encoder_ahead(e, WIRE_EXT_CLASS_LARGE, 128, 0, WIRE_EXT_WHY_AHEAD,
			&(struct fec_place){own, frame, sizeof(frame)});
		assert_in_range(len, 0, frame_max);
		/* 5 of header, 2 of length: then a byte more for 8 counters each. */
		size_t room = frame_max - PACKET_MAX;
		assert_int_equal(len > 0, room >= 7);
		if (len > 0) {
			assert_true(wire_ext_repair_decode(frame, len, &r));
			check_sources(g, own, &r);
			check_payload(g, own, &r);
			size_t span = 8 * (room - 7);
			assert_in_range(r.span, span > 2 ? (span < 128 ? span - 1 : 127) : 1,
				span > 1 ? span : 1);
		}
		/* Two answers together reach both ends of what was asked for. */
		for (uint64_t k = 0; k < 2 && room >= 7; k++) {
			len = fec_encoder_answer(e,
				&(struct fec_wanted){WIRE_EXT_CLASS_LARGE, 0, 128, all},
				&(struct fec_place){200 + k, frame, sizeof(frame)});
			assert_in_range(len, 1, frame_max);
			assert_true(wire_ext_repair_decode(frame, len, &r));
			check_sources(g, 200 + k, &r);
			check_payload(g, 200 + k, &r);
			uint64_t first = 200 + k - r.back;
			assert_true(k ? first == 0 : first + r.span == 128);
		}
		fec_encoder_free(e);
	}
	free(g);
}

static void
answer_brings_what_was_asked_for_and_names_what_is_no_source(void **state)
{
	(void)state;
	struct given *g = calloc(1, sizeof(*g));
	assert_non_null(g);
	struct fec_encoder *e = new_encoder(256, 1 << 20, FRAME_MAX);
	static const size_t lens[] = {100, 1000, 0, 1001, 101, 1002, 0, 102};
	for (size_t i = 0; i < 8; i++) {
		give(e, g, lens[i]);
	}
	uint8_t frame[FRAME_MAX];
	struct wire_ext_repair r;
	static const struct {
		enum wire_ext_class class;
		uint8_t missing, sources;
		bool is_alone;
	} cases[] = {
		{WIRE_EXT_CLASS_LARGE, 0xff, 0x2a, false},
		{WIRE_EXT_CLASS_SMALL, 0xff, 0x91, false},
		{WIRE_EXT_CLASS_LARGE, 0x66, 0x22, true}, /* small ones were not asked for */
		{WIRE_EXT_CLASS_SMALL, 0x44, 0, true},
		{WIRE_EXT_CLASS_LARGE, 0x11, 0, false},
		{WIRE_EXT_CLASS_SMALL, 0x91, 0x91, true},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len = fec_encoder_answer(e,
			&(struct fec_wanted){cases[i].class, 0, 8, &cases[i].missing},
			&(struct fec_place){20 + i, frame, sizeof(frame)});
		assert_true(wire_ext_repair_decode(frame, len, &r));
		assert_int_equal(r.why, WIRE_EXT_WHY_ANSWER);
		assert_int_equal(r.class, cases[i].class);
		assert_int_equal(r.span, 8);
		assert_int_equal(r.sources[0], cases[i].sources);
		assert_int_equal(r.is_alone, cases[i].is_alone);
		check_payload(g, 20 + i, &r);
	}
	/* What came after the last source carries none. */
	uint8_t missing = 3;
	size_t len =
		fec_encoder_answer(e, &(struct fec_wanted){WIRE_EXT_CLASS_SMALL, 7, 2, &missing},
			&(struct fec_place){30, frame, sizeof(frame)});
	assert_true(wire_ext_repair_decode(frame, len, &r));
	assert_int_equal(r.sources[0], 1);
	assert_true(r.is_alone);
	fec_encoder_free(e);
	free(g);
}

static void
nothing_forgotten_is_covered(void **state)
{
	(void)state;
	struct given *g = calloc(1, sizeof(*g));
	assert_non_null(g);
	uint8_t frame[FRAME_MAX], all[16];
	memset(all, 0xff, sizeof(all));
	struct wire_ext_repair r;
	struct mono sent;
	/* By bytes: 64 KiB hold 46 packets of 1402. By counters: 256. */
	for (int by_bytes = 0; by_bytes < 2; by_bytes++) {
		struct fec_encoder *e = new_encoder(256, by_bytes ? 65536 : 1 << 20, FRAME_MAX);
		g->n = 0;
		g->first = 1000;
		for (int i = 0; i < 400; i++) {
			give(e, g, 1400);
		}
		uint64_t oldest = 1400 - (by_bytes ? 46 : 256);
		assert_true(fec_encoder_sent_at(e, oldest, &sent));
		assert_int_equal(sent.ns, oldest - 1000);
		assert_false(fec_encoder_sent_at(e, oldest - 1, &sent));
		assert_true(fec_encoder_has(e, oldest, WIRE_EXT_CLASS_LARGE));
		assert_false(fec_encoder_has(e, oldest, WIRE_EXT_CLASS_SMALL));
		assert_false(fec_encoder_has(e, oldest - 1, WIRE_EXT_CLASS_LARGE));
		assert_false(fec_encoder_has(e, 1400, WIRE_EXT_CLASS_LARGE));
		size_t len = fec_encoder_ahead(e, WIRE_EXT_CLASS_LARGE, 128, 0, WIRE_EXT_WHY_AHEAD,
			&(struct fec_place){1400, frame, sizeof(frame)});
		assert_true(wire_ext_repair_decode(frame, len, &r));
		assert_int_equal(r.back, by_bytes ? 46 : 128);
		len = fec_encoder_answer(e,
			&(struct fec_wanted){WIRE_EXT_CLASS_LARGE, oldest - 50, 60, all},
			&(struct fec_place){1400, frame, sizeof(frame)});
		assert_true(wire_ext_repair_decode(frame, len, &r));
		assert_int_equal(1400 - r.back, oldest);
		assert_int_equal(r.span, 10);
		assert_int_equal(
			fec_encoder_answer(e,
				&(struct fec_wanted){WIRE_EXT_CLASS_LARGE, oldest - 50, 50, all},
				&(struct fec_place){1400, frame, sizeof(frame)}),
			0);
		fec_encoder_free(e);
	}
	free(g);
}

static void
repairs_do_not_reach_back_beyond_a_pause(void **state)
{
	(void)state;
	struct given *g = calloc(1, sizeof(*g));
	assert_non_null(g);
	struct fec_encoder *e = new_encoder(256, 1 << 20, FRAME_MAX);
	uint8_t frame[FRAME_MAX], all[16];
	memset(all, 0xff, sizeof(all));
	struct wire_ext_repair r;
	assert_int_equal(fec_encoder_ahead(e, WIRE_EXT_CLASS_LARGE, 8, 0, WIRE_EXT_WHY_AHEAD,
				 &(struct fec_place){5, frame, sizeof(frame)}),
		0);
	for (int i = 0; i < 10; i++) {
		give(e, g, 1000);
	}
	fec_encoder_pause(e);
	/* What was given before is still answered, but not what follows. */
	size_t len = fec_encoder_answer(e, &(struct fec_wanted){WIRE_EXT_CLASS_LARGE, 8, 20, all},
		&(struct fec_place){50, frame, sizeof(frame)});
	assert_true(wire_ext_repair_decode(frame, len, &r));
	assert_int_equal(r.back, 42);
	assert_int_equal(r.span, 2);
	g->n = 30;
	give(e, g, 1000);
	give(e, g, 1000);
	len = fec_encoder_ahead(e, WIRE_EXT_CLASS_LARGE, 8, 0, WIRE_EXT_WHY_AHEAD,
		&(struct fec_place){32, frame, sizeof(frame)});
	assert_true(wire_ext_repair_decode(frame, len, &r));
	assert_int_equal(r.span, 2);
	assert_int_equal(
		fec_encoder_answer(e, &(struct fec_wanted){WIRE_EXT_CLASS_LARGE, 8, 20, all},
			&(struct fec_place){50, frame, sizeof(frame)}),
		0);
	fec_encoder_free(e);
	free(g);
}

static void
padding_is_no_part_of_a_source(void **state)
{
	(void)state;
	uint8_t packet[PACKET_LEN_MAX] = {0}, bare[FRAME_MAX], padded[FRAME_MAX];
	size_t lens[2];
	packet_make(packet, 1, 1, PACKET_UDP, 0, 100);
	for (int i = 0; i < 2; i++) {
		struct fec_encoder *e = new_encoder(256, 65536, FRAME_MAX);
		fec_encoder_source(e, (struct mono){1}, 7, packet, i ? 112 : 100);
		packet[3]++; /* longer than what is there: not protected */
		fec_encoder_source(e, (struct mono){1}, 8, packet, 100);
		packet[3]--;
		lens[i] = fec_encoder_ahead(e, WIRE_EXT_CLASS_SMALL, 8, 0, WIRE_EXT_WHY_AHEAD,
			&(struct fec_place){9, i ? padded : bare, FRAME_MAX});
		fec_encoder_free(e);
	}
	assert_int_equal(lens[0], 5 + 2 + 100);
	assert_int_equal(lens[1], lens[0]);
	assert_memory_equal(bare, padded, lens[0]);
}

static void
settings_out_of_range_are_refused(void **state)
{
	(void)state;
	const struct fec_encoder_config good = {.gf = gf256_get(GF256_ISA_AUTO),
		.records = 256,
		.bytes = 65536,
		.packet_max = 1420,
		.frame_max = 1440};
	struct fec_encoder_config bad[9];
	for (size_t i = 0; i < 9; i++) {
		bad[i] = good;
	}
	bad[0].gf = NULL;
	bad[1].records = 255;
	bad[2].records = 257;
	bad[3].records = 131072;
	bad[4].bytes = 65535;
	bad[5].bytes = (64u << 20) + 1;
	bad[6].packet_max = 19;
	bad[7].packet_max = 65534;
	bad[8].frame_max = 63;
	struct fec_encoder *e = NULL;
	for (size_t i = 0; i < 9; i++) {
		assert_int_equal(fec_encoder_new(&bad[i], &e), WEFT_EINVAL);
		assert_null(e);
	}
	assert_int_equal(fec_encoder_new(&good, &e), WEFT_OK);
	fec_encoder_free(e);
	fec_encoder_free(NULL);
}

static void
growth_keeps_what_is_remembered_and_knows_what_is_not(void **state)
{
	(void)state;
	static struct given g;
	g = (struct given){.first = 1000};
	struct fec_encoder *e = new_encoder(256, 65536, FRAME_MAX);
	for (int i = 0; i < 700; i++) {
		give(e, &g, i % 7 == 3 ? 0 : 100 + (size_t)i % 900);
	}
	bool had[COUNTERS];
	for (size_t i = 0; i < g.n; i++) {
		had[i] = fec_encoder_has(e, g.first + i, WIRE_EXT_CLASS_SMALL) ||
			 fec_encoder_has(e, g.first + i, WIRE_EXT_CLASS_LARGE);
	}
	assert_false(had[0]);
	assert_true(had[g.n - 1]);
	assert_true(fec_encoder_grow(e, 16384, 1u << 20, FEC_BUDGET_NEED));
	for (size_t i = 0; i < g.n; i++) {
		assert_int_equal(
			had[i], fec_encoder_has(e, g.first + i, WIRE_EXT_CLASS_SMALL) ||
					fec_encoder_has(e, g.first + i, WIRE_EXT_CLASS_LARGE));
	}
	/* Old and new ones in one repair, and more than the old ring held. */
	for (unsigned round = 0; round < 40; round++) {
		uint8_t frame[FRAME_MAX];
		struct wire_ext_repair r;
		uint64_t own = g.first + g.n;
		size_t len = fec_encoder_ahead(e, WIRE_EXT_CLASS_LARGE, 40, 0, WIRE_EXT_WHY_AHEAD,
			&(struct fec_place){own, frame, sizeof(frame)});
		assert_true(len > 0);
		assert_true(wire_ext_repair_decode(frame, len, &r));
		check_payload(&g, own, &r);
		give(e, &g, 0);
		for (int i = 0; i < 10; i++) {
			give(e, &g, 600);
		}
	}
	assert_true(fec_encoder_has(e, g.first + g.n - 200, WIRE_EXT_CLASS_LARGE));
	/* What the small ring had written over is not said to be no source. */
	uint8_t frame[FRAME_MAX], one[WIRE_EXT_BITMAP_MAX] = {1};
	assert_int_equal(fec_encoder_answer(e,
				 &(struct fec_wanted){WIRE_EXT_CLASS_LARGE, g.first + 1, 1, one},
				 &(struct fec_place){g.first + g.n, frame, sizeof(frame)}),
		0);
	fec_encoder_free(e);
}

/* Packets of 1000 bytes are 1 ns apart here, and 64 in each block of bytes. */
static void
it_is_short_when_it_would_forget_what_is_too_young(void **state)
{
	(void)state;
	static struct given g;
	uint32_t records, bytes;
	g = (struct given){.first = 1000};
	struct fec_encoder *e = new_encoder(512, 2 * FEC_STORE_BLOCK, FRAME_MAX);
	give(e, &g, 1000);
	assert_false(fec_encoder_is_short(e, INT64_MAX, &records, &bytes));
	for (int i = 1; i < 250; i++) {
		give(e, &g, 1000);
	}
	/* The older block's youngest was given before counter 1192. */
	assert_false(fec_encoder_is_short(e, 57, &records, &bytes));
	assert_true(fec_encoder_is_short(e, 58, &records, &bytes));
	assert_int_equal(records, 512);
	assert_in_range(bytes, 3 * FEC_STORE_BLOCK, 4 * FEC_STORE_BLOCK);
	assert_true(fec_encoder_grow(e, records, bytes, FEC_BUDGET_NEED));
	assert_false(fec_encoder_is_short(e, 100, &records, &bytes));
	for (int i = 250; i < 1000; i++) {
		give(e, &g, 1000);
		if (fec_encoder_is_short(e, 300, &records, &bytes)) {
			assert_true(fec_encoder_grow(e, 512, bytes, FEC_BUDGET_NEED));
		}
		assert_true(
			i < 600 || fec_encoder_has(e, g.first + g.n - 300, WIRE_EXT_CLASS_LARGE));
	}
	assert_true(fec_encoder_is_short(e, 1000, &records, &bytes));
	assert_int_equal(records, 1024);
	fec_encoder_free(e);
}

static void
it_follows_what_is_worth_keeping_down_as_well(void **state)
{
	(void)state;
	static struct given g;
	uint32_t records, bytes;
	struct fec_budget budget = {.bytes_max = 8u << 20};
	struct fec_encoder_config c = {.gf = gf256_get(GF256_ISA_AUTO),
		.records = 4096,
		.bytes = FEC_STORE_BLOCK,
		.packet_max = PACKET_MAX,
		.frame_max = FRAME_MAX,
		.use = FEC_BUDGET_NEED,
		.budget = &budget};
	struct fec_encoder *e;
	uint64_t most = 0;
	g = (struct given){.first = 1000};
	assert_int_equal(fec_encoder_new(&c, &e), WEFT_OK);
	for (int i = 0; i < 1800; i++) {
		int64_t keep_ns = i < 900 ? 500 : 100;
		give(e, &g, 1000);
		if (fec_encoder_is_short(e, keep_ns, &records, &bytes)) {
			assert_true(fec_encoder_grow(e, records, bytes, FEC_BUDGET_NEED));
		} else {
			fec_encoder_shrink(e, keep_ns, 2 * FEC_STORE_BLOCK);
		}
		most = budget.bytes > most ? budget.bytes : most;
		assert_int_equal(budget.bytes, fec_encoder_size(e));
		if (i % 900 > 600) {
			uint8_t frame[FRAME_MAX], one[WIRE_EXT_BITMAP_MAX] = {1};
			uint64_t own = g.first + g.n, old = own - (uint64_t)keep_ns;
			struct wire_ext_repair r;
			size_t len = fec_encoder_answer(e,
				&(struct fec_wanted){WIRE_EXT_CLASS_LARGE, old, 1, one},
				&(struct fec_place){own, frame, sizeof(frame)});
			assert_true(wire_ext_repair_decode(frame, len, &r));
			assert_int_equal(r.payload_len, 1002);
			check_payload(&g, own, &r);
		}
	}
	assert_true(most > 8 * FEC_STORE_BLOCK);
	assert_in_range(budget.bytes, 1, most - 5 * FEC_STORE_BLOCK);
	fec_encoder_free(e);
	assert_int_equal(budget.bytes, 0);
}

static void
what_it_takes_is_in_the_budget_until_it_is_freed(void **state)
{
	(void)state;
	struct fec_budget budget = {.bytes_max = 400000};
	struct fec_encoder_config c = {.gf = gf256_get(GF256_ISA_AUTO),
		.records = 256,
		.bytes = 65536,
		.packet_max = PACKET_MAX,
		.frame_max = FRAME_MAX,
		.use = FEC_BUDGET_NEED,
		.budget = &budget};
	struct fec_encoder *e, *other;
	assert_int_equal(fec_encoder_new(&c, &e), WEFT_OK);
	uint64_t least = budget.bytes;
	assert_in_range(least, 65536, 65536 * 2);
	assert_int_equal(fec_encoder_size(e), least);
	assert_true(fec_encoder_grow(e, 1024, 131072, FEC_BUDGET_NEED));
	assert_in_range(budget.bytes, least + 65536, 400000);
	assert_int_equal(fec_encoder_size(e), budget.bytes);
	assert_false(fec_encoder_grow(e, 1024, 1u << 20, FEC_BUDGET_NEED));
	assert_int_equal(fec_encoder_size(e), budget.bytes);
	c.bytes = 262144;
	assert_int_equal(fec_encoder_new(&c, &other), WEFT_ENOMEM);
	assert_int_equal(fec_encoder_size(e), budget.bytes);
	fec_encoder_free(e);
	assert_int_equal(budget.bytes, 0);
}

static void
repairs_computed_together_are_those_computed_alone(void **state)
{
	(void)state;
	static struct given g;
	struct rng rng;
	rng_init(&rng, 7);
	g = (struct given){.first = 500};
	struct fec_encoder *e = new_encoder(1024, 1u << 20, FRAME_MAX);
	for (unsigned round = 0; round < 100; round++) {
		for (uint64_t i = rng_below(&rng, 20) + 1; i > 0; i--) {
			give(e, &g, 300 + rng_below(&rng, 1100));
		}
		/* More and fewer than expected, and with a hole among the counters. */
		unsigned n = 1 + (unsigned)rng_below(&rng, 7);
		fec_encoder_expect(e, g.first + g.n, 1 + (unsigned)rng_below(&rng, 7));
		for (unsigned i = 0; i < n && g.n + 2 < COUNTERS; i++) {
			uint8_t frame[FRAME_MAX];
			struct wire_ext_repair r;
			if (rng_is_hit(&rng, 0.1)) {
				give(e, &g, 0);
			}
			uint64_t own = g.first + g.n;
			size_t len = fec_encoder_ahead(e, WIRE_EXT_CLASS_LARGE,
				rng_is_hit(&rng, 0.1) ? 5 : 32, 0, WIRE_EXT_WHY_AHEAD,
				&(struct fec_place){own, frame, sizeof(frame)});
			assert_true(len > 0);
			assert_true(wire_ext_repair_decode(frame, len, &r));
			check_payload(&g, own, &r);
			give(e, &g, 0);
		}
	}
	fec_encoder_free(e);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repair_is_the_combination_that_its_header_says),
		cmocka_unit_test(window_counts_sources_of_the_class_from_the_last),
		cmocka_unit_test(span_shrinks_to_keep_the_frame_short_enough),
		cmocka_unit_test(answer_brings_what_was_asked_for_and_names_what_is_no_source),
		cmocka_unit_test(nothing_forgotten_is_covered),
		cmocka_unit_test(repairs_do_not_reach_back_beyond_a_pause),
		cmocka_unit_test(padding_is_no_part_of_a_source),
		cmocka_unit_test(settings_out_of_range_are_refused),
		cmocka_unit_test(growth_keeps_what_is_remembered_and_knows_what_is_not),
		cmocka_unit_test(it_is_short_when_it_would_forget_what_is_too_young),
		cmocka_unit_test(it_follows_what_is_worth_keeping_down_as_well),
		cmocka_unit_test(what_it_takes_is_in_the_budget_until_it_is_freed),
		cmocka_unit_test(repairs_computed_together_are_those_computed_alone),
	};
	return cmocka_run_group_tests_name("fec/encoder", tests, NULL, NULL);
}

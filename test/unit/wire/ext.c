/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "ext_model.h"
#include "wire/ext.h"

#define SEEDS 3000u
#define PAYLOAD_MAX 200u
#define FRAME_MAX (WIRE_EXT_REPAIR_HEADER_MAX + PAYLOAD_MAX + WIRE_EXT_FEEDBACK_MAX)

/* Decoded by the true decoder and by the model. */
struct decoded {
	bool is_good;
	struct wire_ext_hello hello;
	struct wire_ext_repair repair;
	struct wire_ext_feedback feedback;
};

static struct decoded
decode(enum wire_ext_type type, const uint8_t *data, size_t len)
{
	struct decoded d;
	memset(&d, 0xa5, sizeof(d));
	struct decoded before = d;
	d.is_good = false;
	switch (type) {
	case WIRE_EXT_TYPE_HELLO:
		d.is_good = wire_ext_hello_decode(data, len, &d.hello);
		break;
	case WIRE_EXT_TYPE_REPAIR:
		d.is_good = wire_ext_repair_decode(data, len, &d.repair);
		break;
	case WIRE_EXT_TYPE_FEEDBACK:
		d.is_good = wire_ext_feedback_decode(data, len, &d.feedback);
		break;
	case WIRE_EXT_TYPE_NONE:
		break;
	}
	if (!d.is_good) {
		assert_memory_equal(&d.hello, &before.hello, sizeof(d.hello));
		assert_memory_equal(&d.repair, &before.repair, sizeof(d.repair));
		assert_memory_equal(&d.feedback, &before.feedback, sizeof(d.feedback));
	}
	return d;
}

static struct decoded
decode_by_model(enum wire_ext_type type, const uint8_t *data, size_t len)
{
	struct decoded d = {.is_good = false};
	switch (type) {
	case WIRE_EXT_TYPE_HELLO:
		d.is_good = ext_model_hello(data, len, &d.hello);
		break;
	case WIRE_EXT_TYPE_REPAIR:
		d.is_good = ext_model_repair(data, len, &d.repair);
		break;
	case WIRE_EXT_TYPE_FEEDBACK:
		d.is_good = ext_model_feedback(data, len, &d.feedback);
		break;
	case WIRE_EXT_TYPE_NONE:
		break;
	}
	return d;
}

static bool
is_same(enum wire_ext_type type, const struct decoded *a, const struct decoded *b)
{
	if (!a->is_good || !b->is_good) {
		return a->is_good == b->is_good;
	}
	switch (type) {
	case WIRE_EXT_TYPE_HELLO:
		return ext_model_same_hello(&a->hello, &b->hello);
	case WIRE_EXT_TYPE_REPAIR:
		return ext_model_same_repair(&a->repair, &b->repair);
	case WIRE_EXT_TYPE_FEEDBACK:
		return ext_model_same_feedback(&a->feedback, &b->feedback);
	case WIRE_EXT_TYPE_NONE:
		break;
	}
	return false;
}

/* --- random frames within bounds --- */

/* Small, large and extreme numbers alike. */
static uint32_t
any(struct rng *r, uint32_t min, uint32_t max)
{
	switch (rng_below(r, 4)) {
	case 0:
		return min;
	case 1:
		return max;
	default:
		return min + (uint32_t)rng_below(r, (uint64_t)max - min + 1);
	}
}

static void
any_bits(struct rng *r, uint8_t *bits, unsigned span)
{
	uint64_t kind = rng_below(r, 3);
	for (unsigned i = 0; i < span; i++) {
		if (kind == 0 || (kind == 1 && rng_below(r, 2))) {
			bits[i / 8] = (uint8_t)(bits[i / 8] | 1u << (i % 8));
		}
	}
}

static bool
has_bits(const uint8_t *bits)
{
	for (size_t i = 0; i < WIRE_EXT_BITMAP_MAX; i++) {
		if (bits[i]) {
			return true;
		}
	}
	return false;
}

static size_t
any_hello(struct rng *r, struct decoded *d, uint8_t *out)
{
	struct wire_ext_hello *h = &d->hello;
	h->is_answer = rng_below(r, 2);
	h->version_min = (uint8_t)any(r, 1, 255);
	h->version_max = (uint8_t)any(r, h->version_min, 255);
	h->ciphers = (uint8_t)any(r, 0, 255);
	h->features = any(r, 0, UINT32_MAX);
	h->datagram_max = (uint16_t)any(r, 0, 65535);
	h->clock_us = any(r, 0, UINT32_MAX);
	h->echo_us = h->is_answer ? any(r, 0, UINT32_MAX) : 0;
	h->delay_us = h->is_answer ? any(r, 0, UINT32_MAX) : 0;
	h->name_len = (uint8_t)any(r, 0, WIRE_EXT_NAME_MAX);
	for (size_t i = 0; i < h->name_len; i++) {
		h->name[i] = (char)any(r, 0x21, 0x7e);
	}
	size_t len = wire_ext_hello_encode(h, out, FRAME_MAX);
	assert_int_equal(len, 24 + h->name_len);
	return len;
}

static size_t
any_repair(struct rng *r, struct decoded *d, uint8_t *out, uint8_t *payload)
{
	struct wire_ext_repair *f = &d->repair;
	f->class = rng_below(r, 2) ? WIRE_EXT_CLASS_LARGE : WIRE_EXT_CLASS_SMALL;
	f->why = (enum wire_ext_repair_why)rng_below(r, 3);
	f->is_alone = rng_below(r, 2);
	f->span = (uint8_t)any(r, 1, WIRE_EXT_SPAN_MAX);
	f->back = (uint16_t)any(r, f->span, 65535);
	any_bits(r, f->sources, f->span);
	f->payload_len = has_bits(f->sources) ? any(r, 22, PAYLOAD_MAX) : 0;
	rng_fill(r, payload, PAYLOAD_MAX);
	f->payload = payload;
	size_t len = wire_ext_repair_encode(f, out, FRAME_MAX);
	assert_in_range(len, 5, WIRE_EXT_REPAIR_HEADER_MAX);
	memcpy(out + len, payload, f->payload_len);
	return len + f->payload_len;
}

static size_t
any_feedback(struct rng *r, struct decoded *d, uint8_t *out)
{
	struct wire_ext_feedback *f = &d->feedback;
	uint32_t *totals[9] = {&f->highest, &f->received, &f->lost, &f->runs, &f->recovered_ahead,
		&f->recovered_answer, &f->given_up, &f->clock_us, &f->delay_us};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(totals); i++) {
		*totals[i] = any(r, 0, UINT32_MAX);
	}
	f->blocks_n = (uint8_t)any(r, 0, WIRE_EXT_BLOCKS_MAX);
	for (size_t i = 0; i < f->blocks_n; i++) {
		struct wire_ext_block *b = &f->blocks[i];
		b->span = (uint8_t)any(r, 1, WIRE_EXT_SPAN_MAX);
		b->back = (uint16_t)any(r, b->span - 1u, 65535);
		b->want = (uint8_t)any(r, 0, 64);
		any_bits(r, b->missing, b->span);
	}
	f->edge_back = (uint16_t)any(r, 0, 65535);
	f->edge_us = f->edge_back ? any(r, 0, UINT32_MAX) : 0;
	size_t len = wire_ext_feedback_encode(f, out, FRAME_MAX);
	assert_in_range(len, 38, WIRE_EXT_FEEDBACK_MAX);
	return len;
}

/* out has room for FRAME_MAX, payload for PAYLOAD_MAX. */
static size_t
any_frame(struct rng *r, enum wire_ext_type type, struct decoded *d, uint8_t *out, uint8_t *payload)
{
	memset(d, 0, sizeof(*d));
	d->is_good = true;
	return type == WIRE_EXT_TYPE_HELLO    ? any_hello(r, d, out)
	       : type == WIRE_EXT_TYPE_REPAIR ? any_repair(r, d, out, payload)
					      : any_feedback(r, d, out);
}

#define TYPE_OF(seed) ((enum wire_ext_type)(1 + (seed) % 3))

static void
decoders_read_what_encoders_wrote(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct rng r;
		struct decoded want;
		uint8_t frame[FRAME_MAX], payload[PAYLOAD_MAX];
		rng_init(&r, seed);
		size_t len = any_frame(&r, TYPE_OF(seed), &want, frame, payload);
		struct decoded got = decode(TYPE_OF(seed), frame, len);
		if (!got.is_good || !is_same(TYPE_OF(seed), &want, &got) ||
			!wire_ext_is_frame(frame, len) ||
			wire_ext_type(frame, len) != TYPE_OF(seed)) {
			fail_msg("seed %llu", (unsigned long long)seed);
		}
	}
}

static void
encoders_write_nothing_past_what_they_are_given(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct rng r;
		struct decoded d;
		uint8_t frame[FRAME_MAX], again[FRAME_MAX + 1], payload[PAYLOAD_MAX];
		rng_init(&r, seed);
		enum wire_ext_type type = TYPE_OF(seed);
		size_t len = any_frame(&r, type, &d, frame, payload) -
			     (type == WIRE_EXT_TYPE_REPAIR ? d.repair.payload_len : 0);
		for (size_t cap = 0; cap <= len; cap++) {
			again[cap] = 0x5a;
			size_t n = type == WIRE_EXT_TYPE_HELLO
					   ? wire_ext_hello_encode(&d.hello, again, cap)
				   : type == WIRE_EXT_TYPE_REPAIR
					   ? wire_ext_repair_encode(&d.repair, again, cap)
					   : wire_ext_feedback_encode(&d.feedback, again, cap);
			if (n != (cap == len ? len : 0) || again[cap] != 0x5a) {
				fail_msg("seed %llu cap %zu", (unsigned long long)seed, cap);
			}
		}
		assert_memory_equal(again, frame, len);
	}
}

static void
decoders_agree_with_the_model_on_damaged_frames(void **state)
{
	(void)state;
	unsigned good = 0, bad = 0;
	for (uint64_t seed = 0; seed < 20 * SEEDS; seed++) {
		struct rng r;
		struct decoded d;
		uint8_t frame[FRAME_MAX], payload[PAYLOAD_MAX];
		rng_init(&r, seed);
		size_t len = any_frame(&r, TYPE_OF(seed), &d, frame, payload);
		for (uint64_t n = rng_below(&r, 3); n > 0; n--) {
			frame[rng_below(&r, rng_below(&r, 2) ? 6 : len)] ^=
				(uint8_t)(1u << rng_below(&r, 8));
		}
		len = rng_below(&r, 4) ? len : rng_below(&r, len + 1);
		struct decoded want = decode_by_model(TYPE_OF(seed), frame, len);
		struct decoded got = decode(TYPE_OF(seed), frame, len);
		if (!is_same(TYPE_OF(seed), &want, &got)) {
			fail_msg("seed %llu: decoder %d, model %d", (unsigned long long)seed,
				got.is_good, want.is_good);
		}
		good += got.is_good;
		bad += !got.is_good;
	}
	assert_true(good > SEEDS && bad > SEEDS);
}

static void
cut_frames_are_refused_at_every_length(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct rng r;
		struct decoded d;
		uint8_t frame[FRAME_MAX], payload[PAYLOAD_MAX];
		rng_init(&r, seed);
		enum wire_ext_type type = TYPE_OF(seed);
		size_t len = any_frame(&r, type, &d, frame, payload);
		/* A shorter combination is one, too: only below the shortest is it known as cut. */
		size_t shortest = type == WIRE_EXT_TYPE_REPAIR && d.repair.payload_len
					  ? len - d.repair.payload_len + 22
					  : len;
		/* Without its edge a FEEDBACK is whole. */
		bool has_edge = type == WIRE_EXT_TYPE_FEEDBACK && d.feedback.edge_back != 0;
		shortest -= has_edge ? 6 : 0;
		for (size_t n = shortest; has_edge && n < len; n++) {
			struct decoded cut = decode(type, frame, n);
			assert_true(cut.is_good);
			assert_int_equal(cut.feedback.edge_back, 0);
		}
		for (size_t n = 0; n < shortest; n++) {
			if (decode(type, frame, n).is_good) {
				fail_msg("seed %llu length %zu", (unsigned long long)seed, n);
			}
		}
	}
}

static void
bytes_behind_a_hello_or_feedback_are_ignored(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct rng r;
		struct decoded d;
		uint8_t frame[FRAME_MAX], payload[PAYLOAD_MAX];
		rng_init(&r, seed);
		enum wire_ext_type type = seed % 2 ? WIRE_EXT_TYPE_HELLO : WIRE_EXT_TYPE_FEEDBACK;
		size_t len = any_frame(&r, type, &d, frame, payload);
		rng_fill(&r, frame + len, 20);
		if (type == WIRE_EXT_TYPE_FEEDBACK && d.feedback.edge_back == 0) {
			memset(frame + len, 0, 2); /* else it would have one */
		}
		struct decoded got = decode(type, frame, len + 20);
		if (!got.is_good || !is_same(type, &d, &got)) {
			fail_msg("seed %llu", (unsigned long long)seed);
		}
	}
}

/* --- the bytes themselves, and every bound --- */

static const uint8_t hello_bytes[] = {1, 1, 1, 2, 3, 4, 0xdc, 0x05, 1, 0, 0, 0x80, 0x11, 0x22, 0x33,
	0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 'h', 'o', 'm', '~'};
/* Large, on request, span 11, 300 back, bits 0, 8 and 10. */
static const uint8_t repair_bytes[] = {2, 1 | 2 | 8, 10, 0x2c, 1, 0x01, 0x05, 0, 20, 0x45, 1, 2, 3,
	4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
/* One block: 7 back, span 8, 9 wanted, bits 1 and 7. */
static const uint8_t feedback_bytes[] = {3, 1, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0,
	0, 0, 6, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0xff, 7, 0, 7, 9, 0x82};

static void
fields_lie_where_the_protocol_draws_them(void **state)
{
	(void)state;
	struct decoded d = decode(WIRE_EXT_TYPE_HELLO, hello_bytes, sizeof(hello_bytes));
	assert_true(d.is_good);
	assert_true(d.hello.is_answer);
	assert_int_equal(d.hello.version_min, 1);
	assert_int_equal(d.hello.version_max, 2);
	assert_int_equal(d.hello.ciphers, 3);
	assert_int_equal(d.hello.datagram_max, 1500);
	assert_int_equal(d.hello.features, 0x80000001);
	assert_int_equal(d.hello.clock_us, 0x44332211);
	assert_int_equal(d.hello.echo_us, 0x88776655);
	assert_int_equal(d.hello.delay_us, 0xccbbaa99);
	assert_int_equal(d.hello.name_len, 4);
	assert_string_equal(d.hello.name, "hom~");

	d = decode(WIRE_EXT_TYPE_REPAIR, repair_bytes, sizeof(repair_bytes));
	assert_true(d.is_good);
	assert_int_equal(d.repair.class, WIRE_EXT_CLASS_LARGE);
	assert_int_equal(d.repair.why, WIRE_EXT_WHY_ANSWER);
	assert_false(d.repair.is_alone);
	assert_int_equal(d.repair.span, 11);
	assert_int_equal(d.repair.back, 300);
	assert_int_equal(d.repair.sources[0], 1);
	assert_int_equal(d.repair.sources[1], 5);
	assert_ptr_equal(d.repair.payload, repair_bytes + 7);
	assert_int_equal(d.repair.payload_len, 22);

	d = decode(WIRE_EXT_TYPE_FEEDBACK, feedback_bytes, sizeof(feedback_bytes));
	assert_true(d.is_good);
	assert_int_equal(d.feedback.highest, 1);
	assert_int_equal(d.feedback.received, 2);
	assert_int_equal(d.feedback.lost, 3);
	assert_int_equal(d.feedback.runs, 4);
	assert_int_equal(d.feedback.recovered_ahead, 5);
	assert_int_equal(d.feedback.recovered_answer, 6);
	assert_int_equal(d.feedback.given_up, 7);
	assert_int_equal(d.feedback.clock_us, 8);
	assert_int_equal(d.feedback.delay_us, 0xff000009);
	assert_int_equal(d.feedback.blocks_n, 1);
	assert_int_equal(d.feedback.blocks[0].back, 7);
	assert_int_equal(d.feedback.blocks[0].span, 8);
	assert_int_equal(d.feedback.blocks[0].want, 9);
	assert_int_equal(d.feedback.blocks[0].missing[0], 0x82);
}

static void
every_bound_is_where_the_header_says(void **state)
{
	(void)state;
	static const struct {
		const char *what;
		enum wire_ext_type type;
		uint8_t at, value;
		bool is_good;
	} cases[] = {
		{"another type", WIRE_EXT_TYPE_HELLO, 0, 2, false},
		{"unknown flags of a HELLO", WIRE_EXT_TYPE_HELLO, 1, 0xff, true},
		{"a request with an echo", WIRE_EXT_TYPE_HELLO, 1, 0, false},
		{"version 0", WIRE_EXT_TYPE_HELLO, 2, 0, false},
		{"one version", WIRE_EXT_TYPE_HELLO, 2, 2, true},
		{"versions upside down", WIRE_EXT_TYPE_HELLO, 2, 3, false},
		{"version 255", WIRE_EXT_TYPE_HELLO, 3, 255, true},
		{"unknown ciphers", WIRE_EXT_TYPE_HELLO, 4, 255, true},
		{"no cipher", WIRE_EXT_TYPE_HELLO, 4, 0, true},
		{"a name past the end", WIRE_EXT_TYPE_HELLO, 5, 5, false},
		{"a name too long", WIRE_EXT_TYPE_HELLO, 5, 64, false},
		{"no name", WIRE_EXT_TYPE_HELLO, 5, 0, true},
		{"a space in the name", WIRE_EXT_TYPE_HELLO, 25, ' ', false},
		{"the least character", WIRE_EXT_TYPE_HELLO, 25, 0x21, true},
		{"NUL in the name", WIRE_EXT_TYPE_HELLO, 24, 0, false},
		{"DEL in the name", WIRE_EXT_TYPE_HELLO, 27, 0x7f, false},
		{"8 bits in the name", WIRE_EXT_TYPE_HELLO, 27, 0xa1, false},

		{"another type", WIRE_EXT_TYPE_REPAIR, 0, 1, false},
		{"small class", WIRE_EXT_TYPE_REPAIR, 1, 2 | 8, true},
		{"the last reason", WIRE_EXT_TYPE_REPAIR, 1, 1 | 4 | 8, true},
		{"unknown reason", WIRE_EXT_TYPE_REPAIR, 1, 1 | 6 | 8, false},
		{"alone", WIRE_EXT_TYPE_REPAIR, 1, 1 | 2 | 8 | 16, true},
		{"unknown flag", WIRE_EXT_TYPE_REPAIR, 1, 1 | 2 | 8 | 32, false},
		{"unknown last flag", WIRE_EXT_TYPE_REPAIR, 1, 1 | 2 | 8 | 128, false},
		{"no bitmap, two bytes more of payload", WIRE_EXT_TYPE_REPAIR, 1, 3, true},
		{"a bit beyond the span", WIRE_EXT_TYPE_REPAIR, 6, 0x0d, false},
		{"a bit at the span's end", WIRE_EXT_TYPE_REPAIR, 6, 0x04, true},
		{"a bitmap that does not go with the span", WIRE_EXT_TYPE_REPAIR, 2, 9, false},
		{"span too large", WIRE_EXT_TYPE_REPAIR, 2, 128, false},
		{"span far too large", WIRE_EXT_TYPE_REPAIR, 2, 255, false},

		{"another type", WIRE_EXT_TYPE_FEEDBACK, 0, 2, false},
		{"no block, and bytes behind", WIRE_EXT_TYPE_FEEDBACK, 1, 0, true},
		{"a block past the end", WIRE_EXT_TYPE_FEEDBACK, 1, 2, false},
		{"too many blocks", WIRE_EXT_TYPE_FEEDBACK, 1, 9, false},
		{"back less than the span allows", WIRE_EXT_TYPE_FEEDBACK, 38, 6, false},
		{"span too large", WIRE_EXT_TYPE_FEEDBACK, 40, 128, false},
		{"a bitmap past the end", WIRE_EXT_TYPE_FEEDBACK, 40, 8, false},
		{"a bit beyond the span", WIRE_EXT_TYPE_FEEDBACK, 40, 6, false},
		{"64 wanted", WIRE_EXT_TYPE_FEEDBACK, 41, 64, true},
		{"65 wanted", WIRE_EXT_TYPE_FEEDBACK, 41, 65, false},
		{"nothing missing", WIRE_EXT_TYPE_FEEDBACK, 42, 0, true},
	};
	static const struct {
		const uint8_t *bytes;
		size_t len;
	} good[] = {{NULL, 0}, {hello_bytes, sizeof(hello_bytes)},
		{repair_bytes, sizeof(repair_bytes)}, {feedback_bytes, sizeof(feedback_bytes)}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		uint8_t frame[64];
		enum wire_ext_type type = cases[i].type;
		memcpy(frame, good[type].bytes, good[type].len);
		frame[cases[i].at] = cases[i].value;
		if (decode(type, frame, good[type].len).is_good != cases[i].is_good) {
			fail_msg(
				"%s: %s", cases[i].what, cases[i].is_good ? "refused" : "accepted");
		}
	}
}

static void
repair_may_reach_back_to_just_before_itself(void **state)
{
	(void)state;
	uint8_t frame[sizeof(repair_bytes)];
	memcpy(frame, repair_bytes, sizeof(frame));
	frame[3] = 11; /* the span */
	frame[4] = 0;
	assert_true(decode(WIRE_EXT_TYPE_REPAIR, frame, sizeof(frame)).is_good);
	frame[3] = 10;
	assert_false(decode(WIRE_EXT_TYPE_REPAIR, frame, sizeof(frame)).is_good);
}

static void
repair_of_nothing_has_no_payload(void **state)
{
	(void)state;
	uint8_t frame[] = {2, 8, 10, 0x2c, 1, 0, 0, 0};
	struct decoded d = decode(WIRE_EXT_TYPE_REPAIR, frame, 7);
	assert_true(d.is_good);
	assert_int_equal(d.repair.payload_len, 0);
	assert_false(decode(WIRE_EXT_TYPE_REPAIR, frame, 8).is_good);
}

static void
repair_with_a_full_bitmap_leaves_it_out(void **state)
{
	(void)state;
	for (unsigned span = 1; span <= WIRE_EXT_SPAN_MAX; span++) {
		struct wire_ext_repair f = {.span = (uint8_t)span, .back = 128};
		for (unsigned i = 0; i < span; i++) {
			f.sources[i / 8] = (uint8_t)(f.sources[i / 8] | 1u << (i % 8));
		}
		uint8_t frame[5 + WIRE_EXT_BITMAP_MAX + 22] = {0};
		assert_int_equal(wire_ext_repair_encode(&f, frame, sizeof(frame)), 5);
		struct decoded d = decode(WIRE_EXT_TYPE_REPAIR, frame, 5 + 22);
		assert_true(d.is_good);
		assert_memory_equal(d.repair.sources, f.sources, sizeof(f.sources));
		/* The same with its bitmap is not a second way to say it. */
		frame[1] |= 8;
		memcpy(frame + 5, f.sources, (span + 7) / 8);
		assert_false(decode(WIRE_EXT_TYPE_REPAIR, frame, sizeof(frame)).is_good);
		frame[5] &= 0xfe;
		assert_int_equal(
			decode(WIRE_EXT_TYPE_REPAIR, frame, sizeof(frame)).is_good, span > 1);
	}
}

static void
frames_are_told_from_packets_by_their_first_nibble(void **state)
{
	(void)state;
	for (unsigned first = 0; first < 256; first++) {
		uint8_t byte = (uint8_t)first;
		assert_int_equal(wire_ext_is_frame(&byte, 1), first / 16 != 4 && first / 16 != 6);
		assert_int_equal(wire_ext_type(&byte, 1), first <= 3 ? first : 0);
	}
	assert_false(wire_ext_is_frame(NULL, 0)); /* a keepalive */
	assert_int_equal(wire_ext_type(NULL, 0), WIRE_EXT_TYPE_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decoders_read_what_encoders_wrote),
		cmocka_unit_test(encoders_write_nothing_past_what_they_are_given),
		cmocka_unit_test(decoders_agree_with_the_model_on_damaged_frames),
		cmocka_unit_test(cut_frames_are_refused_at_every_length),
		cmocka_unit_test(bytes_behind_a_hello_or_feedback_are_ignored),
		cmocka_unit_test(fields_lie_where_the_protocol_draws_them),
		cmocka_unit_test(every_bound_is_where_the_header_says),
		cmocka_unit_test(repair_may_reach_back_to_just_before_itself),
		cmocka_unit_test(repair_of_nothing_has_no_payload),
		cmocka_unit_test(repair_with_a_full_bitmap_leaves_it_out),
		cmocka_unit_test(frames_are_told_from_packets_by_their_first_nibble),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

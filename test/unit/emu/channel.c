/* SPDX-License-Identifier: Apache-2.0 */
/* Delay, rate, order and bookkeeping of a channel. The statistics of chance are in chance.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "emu/channel.h"

#define MS WEFT_NS_PER_MS
#define US WEFT_NS_PER_US

static struct mono
at(int64_t ns)
{
	return (struct mono){ns};
}

static void
init(struct emu_channel *c, const struct emu_settings *s, size_t ring_bytes, uint64_t seed)
{
	struct emu_channel_params p = {
		.seed = seed, .ring_bytes = ring_bytes, .packets_max = 65536};
	assert_int_equal(emu_channel_init(c, &p, s), WEFT_OK);
}

static void
assert_balance(const struct emu_channel *c)
{
	const struct emu_counters *n = &c->counters;
	assert_int_equal(n->in + n->duplicated,
		n->out + n->lost + n->queue_dropped + n->mtu_dropped + emu_channel_pending(c));
}

static void
packet_is_due_after_the_delay_to_the_nanosecond(void **state)
{
	(void)state;
	struct emu_settings s = {.delay_ns = 5 * MS};
	struct emu_channel c;
	struct emu_packet p;
	init(&c, &s, 1 << 20, 1);
	assert_true(emu_channel_next(&c).ns == MONO_NEVER.ns);
	for (int64_t t = 1; t < 100 * MS; t += 777 * US + 1) {
		char text[] = "twelve bytes";
		assert_int_equal(emu_channel_push(&c, at(t), text, 12, (uint64_t)t), 1);
		memset(text, 'x', sizeof(text)); /* the channel has its own copy */
		assert_true(emu_channel_next(&c).ns == t + 5 * MS);
		assert_false(emu_channel_pop(&c, at(t + 5 * MS - 1), &p));
		assert_true(emu_channel_pop(&c, at(t + 5 * MS), &p));
		assert_true(p.due.ns == t + 5 * MS && p.tag == (uint64_t)t && p.len == 12);
		assert_memory_equal(p.data, "twelve bytes", 12);
		assert_false(p.is_copy || p.is_corrupt);
		assert_false(emu_channel_pop(&c, at(t + 6 * MS), &p));
	}
	assert_balance(&c);
	emu_channel_fini(&c);
}

static void
channel_without_ring_carries_tags_alone(void **state)
{
	(void)state;
	struct emu_settings s = {.delay_ns = MS, .corrupt = {.share = 1, .bits = 1}};
	struct emu_channel c;
	struct emu_packet p;
	init(&c, &s, 0, 1);
	assert_int_equal(emu_channel_push(&c, at(0), NULL, 1400, 42), 1);
	assert_true(emu_channel_pop(&c, at(MS), &p));
	assert_true(p.data == NULL && p.len == 1400 && p.tag == 42 && p.is_corrupt);
	emu_channel_fini(&c);
}

/* The line as a list of bytes that drain one a microsecond (8 Mbit/s). */
struct naive_line {
	int64_t now_us, backlog;
};

/* Due time in us, or -1 for a drop. */
static int64_t
naive_push(struct naive_line *l, int64_t now_us, int64_t len, int64_t limit)
{
	for (; l->now_us < now_us; l->now_us++) {
		l->backlog -= l->backlog > 0;
	}
	if (l->backlog > 0 && l->backlog + len > limit) {
		return -1;
	}
	l->backlog += len;
	return now_us + l->backlog;
}

static void
rate_and_queue_equal_a_byte_by_byte_line(void **state)
{
	(void)state;
	uint64_t drops_of_all = 0;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct rng rng;
		rng_init(&rng, seed);
		int64_t limit = 100 + (int64_t)rng_below(&rng, 20000);
		struct emu_settings s = {.rate_bps = 8000000, .queue = {.bytes = (uint64_t)limit}};
		struct emu_channel c;
		struct naive_line line = {0};
		struct emu_packet p;
		uint64_t drops = 0;
		init(&c, &s, 0, seed);
		c.params.overhead_bytes = 28;
		int64_t now_us = 0;
		for (int i = 0; i < 2000; i++) {
			now_us += (int64_t)rng_below(&rng, 1500);
			uint32_t len = (uint32_t)rng_below(&rng, 1400);
			int64_t due_us = naive_push(&line, now_us, len + 28, limit);
			unsigned copies = emu_channel_push(&c, at(now_us * US), NULL, len, 0);
			drops += due_us < 0;
			if (copies != (due_us >= 0)) {
				fail_msg("seed %lu packet %d: %u copies, naive due %ld",
					(unsigned long)seed, i, copies, (long)due_us);
			}
			if (copies && c.line_free.ns != due_us * US) {
				fail_msg("seed %lu packet %d: due %ld, naive %ld us",
					(unsigned long)seed, i, (long)c.line_free.ns, (long)due_us);
			}
			while (emu_channel_pop(&c, at(now_us * US), &p)) {
			}
		}
		assert_int_equal(c.counters.queue_dropped, drops);
		assert_int_equal(c.counters.ring_full, 0);
		assert_balance(&c);
		emu_channel_fini(&c);
		drops_of_all += drops;
	}
	assert_true(drops_of_all > 1000);
}

static void
rate_does_not_drift_over_many_packets(void **state)
{
	(void)state;
	/* 7 Mbit/s: 1400 B take 1,600,000 ns exactly, 1401 B do not. */
	struct emu_settings s = {.rate_bps = 7000000, .queue = {.ns = 3600 * WEFT_NS_PER_S}};
	struct emu_channel c;
	init(&c, &s, 0, 1);
	for (int i = 0; i < 60000; i++) {
		assert_int_equal(emu_channel_push(&c, at(0), NULL, 1401, 0), 1);
	}
	/* 60000 x 1401 x 8 / 7e6 s = 96.068571428...s */
	assert_true(c.line_free.ns == INT64_C(60000) * 1401 * 8 * 1000 / 7);
	emu_channel_fini(&c);
}

static void
idle_line_takes_a_packet_longer_than_the_queue(void **state)
{
	(void)state;
	struct emu_settings s = {.rate_bps = 8000000, .queue = {.bytes = 100}};
	struct emu_channel c;
	init(&c, &s, 0, 1);
	assert_int_equal(emu_channel_push(&c, at(0), NULL, 1400, 0), 1);
	assert_int_equal(emu_channel_push(&c, at(0), NULL, 50, 0), 0);
	assert_int_equal(emu_channel_push(&c, at(1399 * US), NULL, 100, 0), 0);
	assert_int_equal(emu_channel_push(&c, at(1399 * US), NULL, 99, 0), 1);
	emu_channel_fini(&c);
}

static void
waiting_bytes_stay_as_many_when_the_rate_changes(void **state)
{
	(void)state;
	struct emu_settings s = {.rate_bps = 8000000, .queue = {.ns = WEFT_NS_PER_S}};
	struct emu_channel c;
	init(&c, &s, 0, 1);
	for (int i = 0; i < 10; i++) {
		emu_channel_push(&c, at(0), NULL, 1000, 0);
	}
	assert_int_equal(emu_channel_wait_ns(&c, at(2 * MS)), 8 * MS);
	s.rate_bps = 16000000;
	emu_channel_set(&c, at(2 * MS), &s);
	assert_int_equal(emu_channel_wait_ns(&c, at(2 * MS)), 4 * MS);
	s.rate_bps = 0;
	emu_channel_set(&c, at(2 * MS), &s);
	assert_int_equal(emu_channel_wait_ns(&c, at(2 * MS)), 0);
	emu_channel_fini(&c);
}

static struct emu_settings
draw_settings(struct rng *rng)
{
	struct emu_settings s = {.delay_ns = (int64_t)rng_below(rng, 20 * MS),
		.queue = {.ns = 10 * MS},
		.loss = {.in_good = rng_unit(rng) / 4}};
	if (rng_is_hit(rng, 0.5)) {
		s.jitter.ns = (int64_t)rng_below(rng, 10 * MS);
		s.jitter.shape = rng_is_hit(rng, 0.5) ? EMU_JITTER_NORMAL : EMU_JITTER_UNIFORM;
	}
	if (rng_is_hit(rng, 0.5)) {
		s.rate_bps = 100000 + rng_below(rng, 100000000);
	}
	if (rng_is_hit(rng, 0.3)) {
		s.loss = (struct emu_loss){
			.to_bad = 0.1, .to_good = 0.3, .in_bad = 0.9, .in_good = 0.01};
	}
	s.duplicate = rng_is_hit(rng, 0.5) ? rng_unit(rng) : 0;
	s.corrupt.bits = 2;
	s.corrupt.share = rng_is_hit(rng, 0.3) ? rng_unit(rng) : 0;
	s.mtu = rng_is_hit(rng, 0.3) ? 700 + (uint32_t)rng_below(rng, 700) : 0;
	return s;
}

/* Order, counters and due times under settings that change at random in mid-run. */
static void
no_packet_overtakes_another_without_being_asked(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct rng rng;
		rng_init(&rng, seed);
		struct emu_settings s = draw_settings(&rng);
		struct emu_channel c;
		struct emu_packet p;
		init(&c, &s, 256 << 10, seed);
		uint64_t last_tag = 0;
		int64_t now = 0, last_due = 0;
		uint8_t data[1500] = {0};
		for (uint64_t tag = 1; tag <= 3000; tag++) {
			now += (int64_t)rng_below(&rng, 200 * US);
			if (tag % 500 == 0) {
				s = draw_settings(&rng);
				emu_channel_set(&c, at(now), &s);
			}
			emu_channel_push(&c, at(now), data, (uint32_t)rng_below(&rng, 1500), tag);
			assert_balance(&c);
			while (emu_channel_pop(&c, at(now), &p)) {
				if (p.due.ns < last_due || (!p.is_copy && p.tag <= last_tag)) {
					fail_msg("seed %lu: %lu after %lu", (unsigned long)seed,
						(unsigned long)p.tag, (unsigned long)last_tag);
				}
				last_due = p.due.ns;
				last_tag = p.tag;
			}
		}
		while (emu_channel_pop(&c, MONO_NEVER, &p)) {
		}
		assert_int_equal(c.counters.reordered, 0);
		assert_int_equal(emu_channel_pending(&c), 0);
		assert_balance(&c);
		emu_channel_fini(&c);
	}
}

static void
same_seed_gives_the_same_run(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, 7);
	for (int round = 0; round < 20; round++) {
		struct emu_settings s = draw_settings(&rng);
		s.reorder =
			(struct emu_reorder){.share = 0.1, .distance_min = 1, .distance_max = 9};
		struct emu_channel a, b;
		struct emu_packet p, q;
		init(&a, &s, 1 << 20, 99);
		init(&b, &s, 0, 99); /* with and without copying: the same fate */
		uint8_t data[1400] = {0};
		for (int64_t i = 0; i < 2000; i++) {
			int64_t now = i * 100 * US;
			assert_int_equal(emu_channel_push(&a, at(now), data, 1400, (uint64_t)i),
				emu_channel_push(&b, at(now), NULL, 1400, (uint64_t)i));
			bool is_out;
			while ((is_out = emu_channel_pop(&a, at(now), &p)) ==
					emu_channel_pop(&b, at(now), &q) &&
				is_out) {
				assert_true(p.due.ns == q.due.ns && p.tag == q.tag);
				assert_true(p.is_copy == q.is_copy);
				assert_true(p.is_corrupt == q.is_corrupt);
			}
			assert_false(is_out);
		}
		emu_channel_fini(&a);
		emu_channel_fini(&b);
	}
}

static void
packet_reordered_by_time_leaves_that_much_later(void **state)
{
	(void)state;
	struct emu_settings s = {.delay_ns = 5 * MS, .reorder = {.share = 0.1, .extra_ns = 3 * MS}};
	struct emu_channel c;
	struct emu_packet p;
	enum { PACKETS = 10000 };
	static bool is_late[PACKETS];
	uint64_t late = 0, overtaken = 0, n = 0;
	init(&c, &s, 0, 3);
	for (int64_t i = 0; i < PACKETS; i++) {
		emu_channel_push(&c, at(i * MS), NULL, 100, (uint64_t)i);
	}
	while (emu_channel_pop(&c, MONO_NEVER, &p)) {
		int64_t took = p.due.ns - (int64_t)p.tag * MS;
		assert_true(took == 5 * MS || took == 8 * MS);
		is_late[p.tag] = took == 8 * MS;
		n++;
	}
	/* A late one is overtaken by the next two if one of them is on time; the third is due
	 * at the same moment and does not overtake. */
	for (int i = 0; i < PACKETS; i++) {
		late += is_late[i];
		overtaken += is_late[i] && ((i + 1 < PACKETS && !is_late[i + 1]) ||
						   (i + 2 < PACKETS && !is_late[i + 2]));
	}
	assert_int_equal(n, PACKETS);
	assert_in_range(late, 850, 1150); /* 5 deviations of 30 */
	assert_int_equal(c.counters.reordered, overtaken);
	emu_channel_fini(&c);
}

static void
packet_reordered_by_distance_lets_that_many_pass(void **state)
{
	(void)state;
	struct emu_settings s = {.delay_ns = 5 * MS,
		.reorder = {.share = 0.01, .distance_min = 3, .distance_max = 30}};
	struct emu_channel c;
	struct emu_packet p;
	uint64_t held = 0, last = 0;
	init(&c, &s, 0, 4);
	for (int64_t i = 1; i <= 20000; i++) {
		emu_channel_push(&c, at(i * 10 * US), NULL, 100, (uint64_t)i);
	}
	while (emu_channel_pop(&c, MONO_NEVER, &p)) {
		if (p.tag < last) {
			uint64_t distance = last - p.tag;
			held++;
			/* One more when the releasing packet was itself held. */
			if ((distance < 3 && last < 20000) || distance > 32) {
				fail_msg("packet %lu left behind %lu", (unsigned long)p.tag,
					(unsigned long)last);
			}
			/* With the one that released it; or by itself, after the end. */
			assert_true(p.due.ns == (int64_t)last * 10 * US + 5 * MS ||
				    (last == 20000 && p.due.ns == (int64_t)p.tag * 10 * US +
									  5 * MS + WEFT_NS_PER_S));
		} else {
			last = p.tag;
		}
	}
	assert_int_equal(c.counters.reordered, held);
	assert_in_range(held, 130, 270); /* 200, 5 deviations of 14 */
	assert_balance(&c);
	emu_channel_fini(&c);
}

static void
held_packet_leaves_within_a_second_without_followers(void **state)
{
	(void)state;
	struct emu_settings s = {.reorder = {.share = 1, .distance_min = 5, .distance_max = 5}};
	struct emu_channel c;
	struct emu_packet p;
	init(&c, &s, 0, 1);
	emu_channel_push(&c, at(10), NULL, 100, 1);
	emu_channel_push(&c, at(20), NULL, 100, 2);
	assert_false(emu_channel_pop(&c, at(WEFT_NS_PER_S + 9), &p));
	assert_true(emu_channel_pop(&c, at(WEFT_NS_PER_S + 10), &p) && p.tag == 1);
	assert_true(emu_channel_pop(&c, at(WEFT_NS_PER_S + 20), &p) && p.tag == 2);
	assert_int_equal(c.counters.reordered, 0);
	/* What is left of the two in the heap of held ones finds nobody. */
	s.reorder.share = 0;
	emu_channel_set(&c, at(3 * WEFT_NS_PER_S), &s);
	for (uint64_t i = 3; i < 20; i++) {
		emu_channel_push(&c, at(3 * WEFT_NS_PER_S), NULL, 100, i);
		assert_true(emu_channel_pop(&c, at(3 * WEFT_NS_PER_S), &p) && p.tag == i);
	}
	assert_int_equal(c.held_n, 0);
	emu_channel_fini(&c);
}

static void
mtu_swallows_longer_packets_without_a_word(void **state)
{
	(void)state;
	struct emu_settings s = {.mtu = 1400};
	struct emu_channel_params params = {
		.ring_bytes = 1 << 16, .packets_max = 10, .overhead_bytes = -14};
	struct emu_channel c;
	uint8_t data[1500] = {0};
	assert_int_equal(emu_channel_init(&c, &params, &s), WEFT_OK);
	assert_int_equal(emu_channel_push(&c, at(0), data, 1414, 0), 1);
	assert_int_equal(emu_channel_push(&c, at(0), data, 1415, 0), 0);
	assert_int_equal(emu_channel_push(&c, at(0), data, 5, 0), 1);
	assert_int_equal(c.counters.mtu_dropped, 1);
	assert_balance(&c);
	emu_channel_fini(&c);
}

static void
full_ring_counts_as_queue_drop(void **state)
{
	(void)state;
	struct emu_settings s = {.delay_ns = MS, .duplicate = 1};
	struct emu_channel_params params = {.ring_bytes = 16384, .packets_max = 8};
	struct emu_channel c;
	struct emu_packet p;
	uint8_t data[1500] = {0};
	assert_int_equal(emu_channel_init(&c, &params, &s), WEFT_OK);
	/* Eight slots: four packets and their copies. */
	for (int i = 0; i < 10; i++) {
		assert_int_equal(emu_channel_push(&c, at(0), data, 100, 0), i < 4 ? 2 : 0);
	}
	assert_true(c.counters.queue_dropped == 6 && c.counters.ring_full == 6);
	assert_int_equal(c.counters.duplicated, 4);
	while (emu_channel_pop(&c, at(MS), &p)) {
	}
	assert_int_equal(c.counters.out, 8);
	assert_balance(&c);
	emu_channel_fini(&c);

	/* 16 KiB: ten blocks of 1504 + 16 B. */
	params.packets_max = 100;
	assert_int_equal(emu_channel_init(&c, &params, &s), WEFT_OK);
	for (int i = 0; i < 10; i++) {
		emu_channel_push(&c, at(0), data, 1500, 0);
	}
	assert_int_equal(emu_channel_pending(&c), 16384 / (1504 + 16));
	assert_true(c.counters.ring_full > 0);
	assert_balance(&c);
	emu_channel_fini(&c);
}

static void
channel_refuses_a_table_of_no_packets(void **state)
{
	(void)state;
	struct emu_channel c;
	struct emu_channel_params params = {.ring_bytes = 100};
	assert_int_equal(emu_channel_init(&c, &params, &emu_settings_default), WEFT_EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packet_is_due_after_the_delay_to_the_nanosecond),
		cmocka_unit_test(channel_without_ring_carries_tags_alone),
		cmocka_unit_test(rate_and_queue_equal_a_byte_by_byte_line),
		cmocka_unit_test(rate_does_not_drift_over_many_packets),
		cmocka_unit_test(idle_line_takes_a_packet_longer_than_the_queue),
		cmocka_unit_test(waiting_bytes_stay_as_many_when_the_rate_changes),
		cmocka_unit_test(no_packet_overtakes_another_without_being_asked),
		cmocka_unit_test(same_seed_gives_the_same_run),
		cmocka_unit_test(packet_reordered_by_time_leaves_that_much_later),
		cmocka_unit_test(packet_reordered_by_distance_lets_that_many_pass),
		cmocka_unit_test(held_packet_leaves_within_a_second_without_followers),
		cmocka_unit_test(mtu_swallows_longer_packets_without_a_word),
		cmocka_unit_test(full_ring_counts_as_queue_drop),
		cmocka_unit_test(channel_refuses_a_table_of_no_packets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics of loss, jitter, duplication and corruption. Bounds are five standard
 * deviations of what the model gives, so a wrong model fails and a right one passes for
 * nearly every seed; the seeds are fixed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "emu/channel.h"
#include "emu/text.h"

#define N 400000
#define SIGMAS 5
#define MS WEFT_NS_PER_MS

struct tally {
	uint64_t lost, bursts;
	uint8_t *is_lost; /* N */
};

static void
init(struct emu_channel *c, const struct emu_settings *s, size_t ring_bytes, uint64_t seed)
{
	struct emu_channel_params p = {
		.seed = seed, .ring_bytes = ring_bytes, .packets_max = 16, .corrupt_offset = 14};
	assert_int_equal(emu_channel_init(c, &p, s), WEFT_OK);
}

static void
run(const struct emu_settings *s, uint64_t seed, struct tally *t)
{
	struct emu_channel c;
	struct emu_packet p;
	*t = (struct tally){.is_lost = malloc(N)};
	assert_non_null(t->is_lost);
	init(&c, s, 0, seed);
	for (int i = 0; i < N; i++) {
		struct mono now = {i * MS};
		t->is_lost[i] = emu_channel_push(&c, now, NULL, 100, 0) == 0;
		t->lost += t->is_lost[i];
		t->bursts += t->is_lost[i] && (i == 0 || !t->is_lost[i - 1]);
		while (emu_channel_pop(&c, now, &p)) {
		}
	}
	assert_int_equal(c.counters.lost, t->lost);
	emu_channel_fini(&c);
}

static void
assert_near(double got, double want, double variance, uint64_t seed, const char *what)
{
	double off = got - want;
	if (off * off > SIGMAS * SIGMAS * variance) {
		fail_msg("seed %lu: %s is %g, not %g (variance %g)", (unsigned long)seed, what, got,
			want, variance);
	}
}

static void
independent_loss_has_its_share_and_no_memory(void **state)
{
	(void)state;
	static const double shares[] = {0.001, 0.01, 0.05, 0.2, 0.5};
	for (uint64_t seed = 1; seed <= WEFT_ARRAY_LEN(shares); seed++) {
		double p = shares[seed - 1];
		struct emu_settings s = {.loss = {.in_good = p}};
		struct tally t;
		run(&s, seed, &t);
		assert_near((double)t.lost / N, p, p * (1 - p) / N, seed, "share");
		/* Bursts of independent loss are geometric with mean 1 / (1 - p). */
		double mean = 1 / (1 - p);
		assert_near((double)t.lost / (double)t.bursts, mean,
			mean * (mean - 1) / (double)t.bursts, seed, "burst");
		free(t.is_lost);
	}
}

static void
loss_of_0_and_100_percent_has_no_exception(void **state)
{
	(void)state;
	struct tally t;
	struct emu_settings s = {0};
	run(&s, 1, &t);
	assert_int_equal(t.lost, 0);
	free(t.is_lost);
	s.loss.in_good = 1;
	run(&s, 1, &t);
	assert_int_equal(t.lost, N);
	free(t.is_lost);
}

/* Variance of the share of a two-state chain over N steps: that of independent draws, times
 * (1 + l) / (1 - l) with l the chain's second eigenvalue. */
static double
chain_variance(const struct emu_loss *l)
{
	double share = l->to_bad / (l->to_bad + l->to_good);
	double eigen = 1 - l->to_bad - l->to_good;
	return share * (1 - share) / N * (1 + eigen) / (1 - eigen);
}

static void
gilbert_loss_has_its_share_and_mean_burst(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		double share, burst;
	} cases[] = {{"5%,4", 0.05, 4}, {"1%,1", 0.01, 1}, {"10%,8", 0.1, 8}, {"50%,2", 0.5, 2}};
	for (uint64_t seed = 1; seed <= WEFT_ARRAY_LEN(cases); seed++) {
		const char *text = cases[seed - 1].text;
		double share = cases[seed - 1].share, burst = cases[seed - 1].burst;
		struct emu_settings s[2] = {{.delay_ns = 0}, {.delay_ns = 0}};
		struct emu_assign a;
		struct emu_error e;
		struct tally t;
		assert_int_equal(emu_assign_parse(EMU_KEY_LOSS_GILBERT, text, strlen(text), &a, &e),
			WEFT_OK);
		emu_settings_assign(s, &a);
		run(&s[0], seed, &t);
		assert_near((double)t.lost / N, share, chain_variance(&s[0].loss), seed, "share");
		assert_near((double)t.lost / (double)t.bursts, burst,
			burst * (burst - 1) / (double)t.bursts + 1e-18, seed, "burst");
		free(t.is_lost);
	}
}

static void
elliott_loss_mixes_its_two_states(void **state)
{
	(void)state;
	struct emu_settings s = {
		.loss = {.to_bad = 0.02, .to_good = 0.1, .in_bad = 0.7, .in_good = 0.01}};
	struct tally t;
	run(&s, 11, &t);
	double bad = 0.02 / 0.12;
	double want = bad * 0.7 + (1 - bad) * 0.01;
	double variance = chain_variance(&s.loss) * 0.69 * 0.69 + want * (1 - want) / N;
	assert_near((double)t.lost / N, want, variance, 11, "share");
	free(t.is_lost);
}

static void
pattern_of_loss_is_that_of_the_seed_whatever_else_happens(void **state)
{
	(void)state;
	struct emu_settings plain = {.loss = {.in_good = 0.1}};
	struct emu_settings busy = plain;
	busy.jitter = (struct emu_jitter){.ns = MS, .may_reorder = true};
	busy.duplicate = 0.3;
	busy.corrupt = (struct emu_corrupt){.share = 0.2, .bits = 1};
	busy.reorder = (struct emu_reorder){.share = 0.1, .extra_ns = 3 * MS};
	struct tally a, b, other;
	run(&plain, 5, &a);
	run(&busy, 5, &b);
	run(&plain, 6, &other);
	assert_memory_equal(a.is_lost, b.is_lost, N);
	assert_memory_not_equal(a.is_lost, other.is_lost, N);
	free(a.is_lost);
	free(b.is_lost);
	free(other.is_lost);
}

static void
measure_jitter(const struct emu_settings *s, double *mean, double *variance, double *most)
{
	struct emu_channel c;
	struct emu_packet p;
	double sum = 0, squares = 0;
	*most = 0;
	init(&c, s, 0, 21);
	for (int i = 0; i < N; i++) {
		/* One at a time, so that order plays no part. */
		struct mono now = {i * 1000 * MS};
		emu_channel_push(&c, now, NULL, 100, 0);
		assert_true(emu_channel_pop(&c, MONO_NEVER, &p));
		double off = (double)(p.due.ns - now.ns - s->delay_ns) / (double)MS;
		sum += off;
		squares += off * off;
		*most = off * off > *most * *most ? (off < 0 ? -off : off) : *most;
	}
	*mean = sum / N;
	*variance = squares / N - *mean * *mean;
	emu_channel_fini(&c);
}

static void
jitter_has_the_shape_asked_for(void **state)
{
	(void)state;
	double mean, variance, most;
	struct emu_settings s = {.delay_ns = 100 * MS, .jitter = {.ns = 10 * MS}};
	measure_jitter(&s, &mean, &variance, &most);
	/* Over -10..10: variance 100 / 3, fourth moment 10^4 / 5. */
	assert_near(mean, 0, 100.0 / 3 / N, 21, "mean of uniform");
	assert_near(variance, 100.0 / 3, (2000 - 10000.0 / 9) / N, 21, "variance of uniform");
	assert_true(most <= 10 && most > 9.99);
	s.jitter.shape = EMU_JITTER_NORMAL;
	measure_jitter(&s, &mean, &variance, &most);
	assert_near(mean, 0, 100.0 / N, 21, "mean of normal");
	assert_near(variance, 100, 2 * 10000.0 / N, 21, "variance of normal");
	assert_true(most > 35 && most <= 60);
	s.delay_ns = 0; /* never earlier than it came */
	struct emu_channel c;
	init(&c, &s, 0, 21);
	for (int i = 0; i < 16; i++) {
		emu_channel_push(&c, (struct mono){MS}, NULL, 100, 0);
	}
	assert_true(emu_channel_next(&c).ns >= MS);
	emu_channel_fini(&c);
}

static void
duplicates_are_counted_and_come_out_twice(void **state)
{
	(void)state;
	struct emu_settings s = {.duplicate = 0.1, .delay_ns = 1};
	struct emu_channel c;
	struct emu_packet p;
	uint64_t copies = 0, out = 0;
	init(&c, &s, 4096, 31);
	for (int i = 0; i < N; i++) {
		uint8_t data[50];
		memset(data, i, sizeof(data));
		emu_channel_push(&c, (struct mono){i}, data, sizeof(data), (uint64_t)i);
		while (emu_channel_pop(&c, (struct mono){i + 1}, &p)) {
			assert_int_equal(p.tag, i);
			assert_memory_equal(p.data, data, sizeof(data));
			copies += p.is_copy;
			out++;
		}
	}
	assert_int_equal(copies, c.counters.duplicated);
	assert_int_equal(out, N + copies);
	assert_near((double)copies / N, 0.1, 0.1 * 0.9 / N, 31, "share");
	emu_channel_fini(&c);
}

static unsigned
bits_that_differ(const uint8_t *a, const uint8_t *b, size_t len)
{
	unsigned n = 0;
	for (size_t i = 0; i < len; i++) {
		for (uint8_t x = a[i] ^ b[i]; x; x &= (uint8_t)(x - 1)) {
			n++;
		}
	}
	return n;
}

static void
corruption_flips_bits_behind_the_protected_front(void **state)
{
	(void)state;
	struct emu_settings s = {.corrupt = {.share = 0.25, .bits = 1}};
	struct emu_channel c;
	struct emu_packet p;
	uint8_t data[60], seen[60] = {0};
	memset(data, 0x5a, sizeof(data));
	init(&c, &s, 4096, 41);
	for (int i = 0; i < N; i++) {
		emu_channel_push(&c, (struct mono){i}, data, sizeof(data), 0);
		assert_true(emu_channel_pop(&c, (struct mono){i}, &p));
		unsigned bits = bits_that_differ(p.data, data, sizeof(data));
		assert_int_equal(bits, p.is_corrupt ? 1 : 0);
		assert_memory_equal(p.data, data, 14);
		for (size_t k = 0; p.is_corrupt && k < sizeof(data); k++) {
			seen[k] |= p.data[k] ^ data[k];
		}
	}
	/* Every bit behind the front was hit at some time. */
	for (size_t k = 14; k < sizeof(data); k++) {
		assert_int_equal(seen[k], 0xff);
	}
	assert_near((double)c.counters.corrupted / N, 0.25, 0.25 * 0.75 / N, 41, "share");
	/* Packets of nothing but the protected front stay whole. */
	emu_channel_push(&c, (struct mono){N}, data, 14, 0);
	assert_true(emu_channel_pop(&c, (struct mono){N}, &p));
	assert_memory_equal(p.data, data, 14);
	emu_channel_fini(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(independent_loss_has_its_share_and_no_memory),
		cmocka_unit_test(loss_of_0_and_100_percent_has_no_exception),
		cmocka_unit_test(gilbert_loss_has_its_share_and_mean_burst),
		cmocka_unit_test(elliott_loss_mixes_its_two_states),
		cmocka_unit_test(pattern_of_loss_is_that_of_the_seed_whatever_else_happens),
		cmocka_unit_test(jitter_has_the_shape_asked_for),
		cmocka_unit_test(duplicates_are_counted_and_come_out_twice),
		cmocka_unit_test(corruption_flips_bits_behind_the_protected_front),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

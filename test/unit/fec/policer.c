/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "fec/policer.h"

#define LIMIT 2000.0 /* packets a second that a policer lets through */

struct story {
	struct fec_policer p;
	struct rng rng;
	struct mono now;
	uint64_t sent;
	double pps;
};

static void
story_begin(struct story *s, uint64_t seed)
{
	*s = (struct story){.now = {1000 * WEFT_NS_PER_S}, .pps = 1500};
	rng_init(&s->rng, seed);
}

/* 10 ms at a rate, and what a report says of them: nothing where nothing was lost. */
static void
pass(struct story *s, double loss)
{
	uint32_t n = (uint32_t)(s->pps / 100), lost = 0;
	for (uint32_t i = 0; i < n; i++) {
		lost += rng_is_hit(&s->rng, loss);
	}
	s->sent += n;
	s->now = mono_add_ns(s->now, 10 * WEFT_NS_PER_MS);
	fec_policer_report(&s->p, s->now, s->now, s->sent, lost, n - lost);
}

/* A sawtooth, as TCP goes. */
static void
change_rate(struct story *s)
{
	s->pps = s->pps > 1.4 * LIMIT ? 0.8 * LIMIT : s->pps * 1.01;
}

static void
losses_of_all_beyond_a_rate_are_a_policer_s(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct story s;
		story_begin(&s, seed);
		unsigned n = 0;
		for (; !fec_policer_is_there(&s.p, s.now); n++) {
			pass(&s, s.pps > LIMIT ? 1 - LIMIT / s.pps : 0);
			change_rate(&s);
			assert_in_range(n, 0, 400);
		}
		/* It is forgotten when nothing speaks for it any more. */
		for (n = 0; n < 3500; n++) {
			pass(&s, 0.01);
			change_rate(&s);
		}
		assert_false(fec_policer_is_there(&s.p, s.now));
	}
}

static void
a_line_that_loses_at_any_rate_is_none(void **state)
{
	(void)state;
	static const double losses[] = {0.001, 0.01, 0.05, 0.2, 0.5};
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct story s;
		story_begin(&s, seed);
		for (int i = 0; i < 5000; i++) {
			pass(&s, losses[seed % 5]);
			change_rate(&s);
			if (fec_policer_is_there(&s.p, s.now)) {
				fail_msg("seed %d, after %d ms", (int)seed, i * 10);
			}
		}
	}
}

/* Its loss changes; TCP slows down where it rises, and others do not care. */
static void
a_line_whose_loss_changes_is_none(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct story s;
		story_begin(&s, seed);
		for (int i = 0; i < 5000; i++) {
			double loss = i / 300 % 2 == 0 ? 0.02 : 0.15;
			pass(&s, loss);
			if (seed % 2 == 0) {
				s.pps = loss > 0.1 ? 800 : 2000;
			}
			if (fec_policer_is_there(&s.p, s.now)) {
				fail_msg("seed %d, after %d ms", (int)seed, i * 10);
			}
		}
	}
}

static void
a_steady_rate_tells_nothing(void **state)
{
	(void)state;
	struct story s;
	story_begin(&s, 1);
	s.pps = 1.5 * LIMIT;
	for (int i = 0; i < 5000; i++) {
		pass(&s, 1 / 3.0);
		assert_false(fec_policer_is_there(&s.p, s.now));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(losses_of_all_beyond_a_rate_are_a_policer_s),
		cmocka_unit_test(a_line_that_loses_at_any_rate_is_none),
		cmocka_unit_test(a_line_whose_loss_changes_is_none),
		cmocka_unit_test(a_steady_rate_tells_nothing),
	};
	return cmocka_run_group_tests_name("policer", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "fec/estimate.h"

static void
losses_that_are_told_all_at_once_are_no_burst(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct fec_estimate e;
		struct rng rng;
		rng_init(&rng, seed);
		fec_estimate_reset(&e);
		for (int i = 0; i < 30; i++) {
			struct fec_evidence v = {.recent = 32, .is_spread = true};
			for (int k = 0; k < 1000; k++) {
				bool is_lost = rng_is_hit(&rng, 0.05);
				v.lost += is_lost;
				v.received += !is_lost;
			}
			v.runs = v.lost;
			fec_estimate_add(&e, &v);
			if (e.share < 0.025 || e.share > 0.08) {
				fail_msg("seed %d, report %d: %.3f", (int)seed, i, e.share);
			}
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(losses_that_are_told_all_at_once_are_no_burst),
	};
	return cmocka_run_group_tests_name("estimate", tests, NULL, NULL);
}

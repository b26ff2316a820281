/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator's program. Without arguments all families run as tests. Otherwise:
 *
 *   sim-node --list
 *   sim-node --family F [--seed N] [--count N] [-v]
 *
 * runs seeds N, N+1, ... of one family; -v tells the whole story. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "family.h"

#define FAILURES_SHOWN 3

/* For the handler of a failed assertion in the code under test. */
static struct {
	const char *family;
	volatile uint64_t seed;
} running;

static void
say_how(char *out, size_t cap, const char *family, uint64_t seed)
{
	snprintf(out, cap, "rerun: build-test/test/sim-node --seed %llu --family %s -v",
		(unsigned long long)seed, family);
}

static void
on_abort(int sig)
{
	char text[160];
	say_how(text, sizeof(text), running.family, running.seed);
	(void)!write(STDERR_FILENO, text, strlen(text));
	(void)!write(STDERR_FILENO, "\n", 1);
	signal(sig, SIG_DFL);
	raise(sig);
}

/* True when the seed's run kept every promise; else says what it broke. */
static bool
run_seed(const struct sim_family *f, uint64_t seed, bool is_verbose, uint64_t *sums, uint64_t *hash)
{
	struct sim_world *w = malloc(sizeof(*w));
	struct sim_report *r = calloc(1, sizeof(*r));
	char how[160];
	w->report = r;
	r->seed = seed;
	r->is_verbose = is_verbose;
	running.family = f->name;
	running.seed = seed;
	bool is_good = setjmp(r->failed) == 0;
	if (is_good) {
		f->run(w, sums);
		free(w);
	} else {
		say_how(how, sizeof(how), f->name, seed);
		print_message("family %s, seed %llu, step %llu, at %.6f s: %s\n  %s\n", f->name,
			(unsigned long long)seed, (unsigned long long)r->step,
			(double)r->now.ns / 1e9, r->text, how);
	}
	if (hash) {
		*hash = r->hash;
	}
	free(r);
	return is_good;
}

static unsigned
seeds_of(const struct sim_family *f)
{
	const char *stage = getenv("WEFT_TEST_STAGE");
	unsigned divisor = stage && strcmp(stage, "asan") == 0   ? 4
			   : stage && strcmp(stage, "tsan") == 0 ? 10
								 : 1;
	return f->seeds / divisor > 0 ? f->seeds / divisor : 1;
}

/* So many runs must have met what the family is about. */
static bool
has_seen_all(const struct sim_family *f, const uint64_t *sums)
{
	bool is_good = true;
	for (unsigned i = 0; i < SIM_SUM_COUNT; i++) {
		if (f->must_see & UINT64_C(1) << i && sums[i] == 0) {
			print_message("family %s: sum %u is 0\n", f->name, i);
			is_good = false;
		}
	}
	return is_good;
}

static void
family_holds(void **state)
{
	const struct sim_family *f = *state;
	uint64_t sums[SIM_SUM_COUNT] = {0};
	unsigned seeds = seeds_of(f), failures = 0;
	for (uint64_t seed = 1; seed <= seeds && failures < FAILURES_SHOWN; seed++) {
		failures += !run_seed(f, seed, false, sums, NULL);
	}
	print_message("# %s: %u seeds, %llu packets delivered\n", f->name, seeds,
		(unsigned long long)sums[SIM_SUM_DELIVERED]);
	if (failures) {
		fail_msg("%u seeds of family %s failed", failures, f->name);
	}
	assert_true(has_seen_all(f, sums));
}

/* What a failed seed prints can be seen again. */
static void
equal_seeds_tell_equal_stories(void **state)
{
	(void)state;
	uint64_t sums[SIM_SUM_COUNT] = {0}, a, b, c;
	const struct sim_family *chaos = &sim_families[sim_families_n - 1];
	for (uint64_t seed = 1; seed <= 3; seed++) {
		assert_true(run_seed(chaos, seed, false, sums, &a));
		assert_true(run_seed(chaos, seed, false, sums, &b));
		assert_true(run_seed(chaos, seed + 100, false, sums, &c));
		assert_true(a == b);
		assert_true(a != c);
	}
}

static int
run_all(void)
{
	struct CMUnitTest tests[32] = {cmocka_unit_test(equal_seeds_tell_equal_stories)};
	unsigned total = 0;
	for (unsigned i = 0; i < sim_families_n; i++) {
		tests[1 + i] = (struct CMUnitTest){.name = sim_families[i].claim,
			.test_func = family_holds,
			.initial_state = (void *)(uintptr_t)&sim_families[i]};
		total += seeds_of(&sim_families[i]);
	}
	for (unsigned i = 1 + sim_families_n; i < WEFT_ARRAY_LEN(tests); i++) {
		tests[i] = tests[0];
	}
	print_message("# %u seeds in %u families\n", total, sim_families_n);
	return _cmocka_run_group_tests("sim-node", tests, 1 + sim_families_n, NULL, NULL);
}

static const struct sim_family *
find(const char *name)
{
	for (unsigned i = 0; i < sim_families_n; i++) {
		if (strcmp(sim_families[i].name, name) == 0) {
			return &sim_families[i];
		}
	}
	return NULL;
}

static int
run_some(const struct sim_family *f, uint64_t seed, uint64_t count, bool is_verbose)
{
	uint64_t sums[SIM_SUM_COUNT] = {0}, failures = 0;
	for (uint64_t i = 0; i < count; i++) {
		failures += !run_seed(f, seed + i, is_verbose, sums, NULL);
	}
	printf("family %s, %llu seeds from %llu: %llu failed; sums", f->name,
		(unsigned long long)count, (unsigned long long)seed, (unsigned long long)failures);
	for (unsigned i = 0; i < SIM_SUM_COUNT; i++) {
		printf(" %llu", (unsigned long long)sums[i]);
	}
	printf("\n");
	return failures || (count >= f->seeds && !has_seen_all(f, sums)) ? 1 : 0;
}

static int
usage(void)
{
	fprintf(stderr, "usage: sim-node [--list | --family F [--seed N] [--count N] [-v]]\n");
	return 2;
}

int
main(int argc, char **argv)
{
	const struct sim_family *f = NULL;
	uint64_t seed = 1, count = 1;
	bool is_verbose = false;
	signal(SIGABRT, on_abort);
	if (argc == 1) {
		return run_all();
	}
	for (int i = 1; i < argc; i++) {
		bool has_value = i + 1 < argc;
		if (strcmp(argv[i], "--list") == 0) {
			for (unsigned k = 0; k < sim_families_n; k++) {
				printf("%-10s %4u %s\n", sim_families[k].name,
					sim_families[k].seeds, sim_families[k].claim);
			}
			return 0;
		} else if (strcmp(argv[i], "-v") == 0) {
			is_verbose = true;
		} else if (strcmp(argv[i], "--family") == 0 && has_value) {
			f = find(argv[++i]);
		} else if (strcmp(argv[i], "--seed") == 0 && has_value) {
			seed = strtoull(argv[++i], NULL, 0);
		} else if (strcmp(argv[i], "--count") == 0 && has_value) {
			count = strtoull(argv[++i], NULL, 0);
		} else {
			return usage();
		}
	}
	return f ? run_some(f, seed, count, is_verbose) : usage();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Who is being run, what it has done, and how it failed. */
#ifndef WEFT_TEST_SIM_REPORT_H
#define WEFT_TEST_SIM_REPORT_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/mono.h"

struct sim_report {
	uint64_t seed;
	bool is_verbose;
	struct mono now; /* virtual time of the world, from 0 */
	uint64_t step;   /* events taken */
	uint64_t hash;   /* of everything that happened; equal seeds give equal hashes */
	jmp_buf failed;
	char text[400]; /* why */
};

/* Ends the run. What it has allocated is lost, which a failing test may do. */
WEFT_NORETURN WEFT_PRINTF(2, 3) void sim_fail(struct sim_report *r, const char *fmt, ...);
/* A line of the verbose trace. */
WEFT_PRINTF(2, 3) void sim_trace(struct sim_report *r, const char *fmt, ...);
void sim_hash(struct sim_report *r, uint64_t value);

#define sim_check(r, cond, ...)                                                                    \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			sim_fail(r, __VA_ARGS__);                                                  \
		}                                                                                  \
	} while (0)

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>

void
sim_fail(struct sim_report *r, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, args);
	va_end(args);
	longjmp(r->failed, 1);
}

void
sim_trace(struct sim_report *r, const char *fmt, ...)
{
	if (!r->is_verbose) {
		return;
	}
	va_list args;
	va_start(args, fmt);
	printf("%8llu %12.6f ", (unsigned long long)r->step, (double)r->now.ns / 1e9);
	vprintf(fmt, args);
	putchar('\n');
	va_end(args);
}

void
sim_hash(struct sim_report *r, uint64_t value)
{
	r->hash = (r->hash ^ value) * UINT64_C(0x100000001b3);
	r->hash ^= r->hash >> 29;
}

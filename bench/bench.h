/* SPDX-License-Identifier: Apache-2.0 */
/* What a bench sees: it measures, and hands in rows of results.
 *
 * To add one: a function in micro/ or path/ that calls bench_time() or bench_add(), its
 * declaration below, its line in the table of main.c. */
#ifndef WEFT_BENCH_BENCH_H
#define WEFT_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct bench; /* one run of `weft bench` */

struct bench_case {
	const char *name; /* as on the command line */
	const char *what; /* one line */
	bool is_pinned;   /* runs on one processor; false when it starts threads of its own */
	void (*run)(struct bench *b);
};

/* Where a result stands: rows of one plot share a diagram and a table. Strings are copied. */
struct bench_label {
	const char *plot;   /* title of the diagram */
	const char *series; /* one line, or one colour of bars, in it */
	const char *x_name; /* what x counts, with its unit; NULL: the plot has no x */
	const char *x_text; /* x as a word; NULL: see x */
	double x;
	const char *unit; /* of the value: "ns/packet" */
	bool more_is_better;
};

/* Does the measured thing n times, n >= 1. */
typedef void bench_step(void *ctx, uint64_t n);

/* Time to spend on one row, warm-up excepted. */
double bench_seconds(const struct bench *b);
/* Into how many windows it is cut. */
unsigned bench_rounds(const struct bench *b);
/* Runs step in windows of equal work after a warm-up, and adds their times: nanoseconds per
 * item, items being how many of them one step handles. Returns the median, 0 on failure. */
double bench_time(
	struct bench *b, const struct bench_label *l, bench_step *step, void *ctx, unsigned items);
/* The same for a step that uses up what it works on: prepare runs before each, unmeasured. A
 * step takes some microseconds at least, since the clock is read around each. */
struct bench_steps {
	void (*prepare)(void *ctx);
	void (*step)(void *ctx);
};
void bench_time_steps(struct bench *b, const struct bench_label *l, const struct bench_steps *steps,
	void *ctx, unsigned items);
/* Adds values measured otherwise, n >= 1 of them: the median counts, and is returned. */
double bench_add(struct bench *b, const struct bench_label *l, const double *values, size_t n);
/* A remark that is printed with the results: what could not be measured, and why. */
WEFT_PRINTF(2, 3) void bench_note(struct bench *b, const char *fmt, ...);
/* Marks the run as failed: a result would be wrong. Printed at once. */
WEFT_PRINTF(2, 3) void bench_fail(struct bench *b, const char *fmt, ...);
/* Takes a value that the measured code made, so that the compiler cannot leave it out. */
void bench_use(struct bench *b, uint64_t value);

/* The command: argv[0] is "bench". Returns the exit status. */
int bench_main(int argc, char **argv);

void bench_crypto(struct bench *b);     /* micro/crypto.c */
void bench_split_join(struct bench *b); /* micro/split_join.c */
void bench_trie(struct bench *b);       /* micro/trie.c */
void bench_engine(struct bench *b);     /* micro/engine.c */
void bench_extract(struct bench *b);    /* micro/extract.c */
void bench_fec(struct bench *b);        /* micro/fec.c */
void bench_recovery(struct bench *b);   /* micro/recovery.c */
void bench_tx(struct bench *b);         /* path/tx.c */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Results of a run: rows, remarks, the machine; and their three forms. */
#ifndef WEFT_BENCH_REPORT_H
#define WEFT_BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/compiler.h"
#include "base/err.h"
#include "bench/bench.h"

#define REPORT_SCHEMA "weft-bench-1"
#define REPORT_COLOURS 8 /* classes s0 to s7; further series repeat them in another manner */

struct report_row {
	char *bench;
	char *plot;
	char *series;
	char *x_name; /* NULL: no x */
	char *x_text; /* NULL: x is a number */
	double x;
	char *unit;
	bool more_is_better;
	bool is_derived; /* a ratio of other rows: shown, and not written to JSON again */
	double median, min, max;
	double *rounds;
	size_t rounds_n;
};

struct report_note {
	char *bench;
	char *text;
};

struct report {
	char *title;   /* name of the bench, or "weft bench" */
	char *command; /* as typed */
	char *time;    /* UTC, ISO 8601 */
	char *version; /* of weft; NULL: unknown */
	char *cpu, *kernel, *system;
	unsigned cores;
	struct report_row *rows;
	size_t rows_n, rows_cap;
	struct report_note *notes;
	size_t notes_n, notes_cap;
};

/* Memory that is short ends the program: this is a tool that runs for seconds. */
void report_init(struct report *r);
void report_fini(struct report *r);
/* The command line as one text, which the caller frees. */
char *report_command(int argc, char **argv);
/* Fills in command, time, version and machine. */
void report_describe(struct report *r, const char *command);
/* values are copied; n >= 1. */
struct report_row *report_add(struct report *r, const char *bench, const struct bench_label *l,
	const double *values, size_t n);
void report_add_note(struct report *r, const char *bench, const char *text);

/* Rows of one plot as a grid: series down, x across, both in order of appearance. */
struct report_plot {
	const struct report_row *first; /* gives bench, plot, unit, x_name, better */
	size_t series_n, xs_n;
	const struct report_row **series; /* one row of each, for its name */
	const struct report_row **xs;     /* one row of each, for its x */
	const struct report_row **cells;  /* series_n x xs_n; NULL: not measured */
};

/* All plots of the report in order of appearance; *n of them. report_plots_free() them. */
struct report_plot *report_plots(const struct report *r, size_t *n);
void report_plots_free(struct report_plot *plots, size_t n);
static inline const struct report_row *
report_cell(const struct report_plot *p, size_t series, size_t x)
{
	return p->cells[series * p->xs_n + x];
}

/* "1,420" and "0.27": three to four figures that count. */
#define REPORT_NUMBER_MAX 32
char *report_number(double v, char out[REPORT_NUMBER_MAX]);
/* x as text; "" without x. */
char *report_x_text(const struct report_row *row, char out[64]);

/* Aligned tables for a terminal. */
void report_table(const struct report *r, FILE *out);
/* The schema is in README.md. */
WEFT_MUST_CHECK enum weft_err report_to_json(const struct report *r, const char *path);
/* why: what is wrong, on failure. */
WEFT_MUST_CHECK enum weft_err report_from_json(
	struct report *r, const char *path, char *why, size_t why_cap);
/* One page that needs nothing else. */
WEFT_MUST_CHECK enum weft_err report_to_html(const struct report *r, const char *path);
void report_html(const struct report *r, FILE *out);
/* A diagram of the plot: lines over numbers, bars over words. */
void report_svg(const struct report_plot *p, FILE *out);
/* Text with &, <, > and quotes escaped. */
void report_escape(const char *text, FILE *out);

#endif

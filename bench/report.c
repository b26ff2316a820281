/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/assert.h"
#include "os/file.h"
#include "os/process.h"
#include "weft_config.h"

static void *
grown(void *p, size_t n, size_t *cap, size_t size)
{
	if (n < *cap) {
		return p;
	}
	*cap = *cap ? *cap * 2 : 16;
	p = realloc(p, *cap * size);
	weft_assert(p);
	return p;
}

static char *
copied(const char *text)
{
	if (!text) {
		return NULL;
	}
	char *p = strdup(text);
	weft_assert(p);
	return p;
}

void
report_init(struct report *r)
{
	*r = (struct report){.title = copied("weft bench")};
}

void
report_fini(struct report *r)
{
	for (size_t i = 0; i < r->rows_n; i++) {
		struct report_row *row = &r->rows[i];
		free(row->bench);
		free(row->plot);
		free(row->series);
		free(row->x_name);
		free(row->x_text);
		free(row->unit);
		free(row->rounds);
	}
	for (size_t i = 0; i < r->notes_n; i++) {
		free(r->notes[i].bench);
		free(r->notes[i].text);
	}
	free(r->rows);
	free(r->notes);
	free(r->title);
	free(r->command);
	free(r->time);
	free(r->version);
	free(r->cpu);
	free(r->kernel);
	free(r->system);
	*r = (struct report){0};
}

static char *
cpu_model(void)
{
	char *text = NULL, *model = NULL;
	size_t len;
	if (os_file_read("/proc/cpuinfo", 1 << 20, &text, &len) != WEFT_OK) {
		return NULL;
	}
	/* arm64 names no model; what it names says little to a reader. */
	char *line = strstr(text, "model name");
	char *colon = line ? strchr(line, ':') : NULL;
	if (colon) {
		colon += strspn(colon, ": \t");
		colon[strcspn(colon, "\n")] = 0;
		model = copied(colon);
	}
	free(text);
	return model;
}

char *
report_command(int argc, char **argv)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	weft_assert(f);
	fputs("weft bench", f);
	for (int i = 1; i < argc; i++) {
		fprintf(f, strpbrk(argv[i], " '\"\\$") || !argv[i][0] ? " '%s'" : " %s", argv[i]);
	}
	fclose(f);
	return text;
}

void
report_describe(struct report *r, const char *command)
{
	struct utsname u;
	char when[32];
	time_t now = time(NULL);
	struct tm utc;
	gmtime_r(&now, &utc);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
	r->command = copied(command);
	r->time = copied(when);
	r->version = copied(WEFT_VERSION);
	r->cpu = cpu_model();
	r->cores = os_process_cpus();
	if (uname(&u) == 0) {
		r->kernel = copied(u.release);
		r->system = copied(u.machine);
	}
}

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct report_row *
report_add(struct report *r, const char *bench, const struct bench_label *l, const double *values,
	size_t n)
{
	weft_assert(n > 0);
	r->rows = grown(r->rows, r->rows_n, &r->rows_cap, sizeof(*r->rows));
	struct report_row *row = &r->rows[r->rows_n++];
	double *sorted = malloc(n * sizeof(*sorted));
	double *rounds = malloc(n * sizeof(*rounds));
	weft_assert(sorted && rounds);
	memcpy(rounds, values, n * sizeof(*rounds));
	memcpy(sorted, values, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_doubles);
	*row = (struct report_row){
		.bench = copied(bench),
		.plot = copied(l->plot),
		.series = copied(l->series),
		.x_name = copied(l->x_name),
		.x_text = copied(l->x_text),
		.x = l->x,
		.unit = copied(l->unit),
		.more_is_better = l->more_is_better,
		.median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2,
		.min = sorted[0],
		.max = sorted[n - 1],
		.rounds = rounds,
		.rounds_n = n,
	};
	free(sorted);
	return row;
}

void
report_add_note(struct report *r, const char *bench, const char *text)
{
	r->notes = grown(r->notes, r->notes_n, &r->notes_cap, sizeof(*r->notes));
	r->notes[r->notes_n++] = (struct report_note){copied(bench), copied(text)};
}

static bool
is_same_plot(const struct report_row *a, const struct report_row *b)
{
	return strcmp(a->bench, b->bench) == 0 && strcmp(a->plot, b->plot) == 0 &&
	       strcmp(a->unit, b->unit) == 0;
}

static bool
is_same_series(const struct report_row *a, const struct report_row *b)
{
	return strcmp(a->series, b->series) == 0;
}

static bool
is_same_x(const struct report_row *a, const struct report_row *b)
{
	if (a->x_text || b->x_text) {
		return a->x_text && b->x_text && strcmp(a->x_text, b->x_text) == 0;
	}
	return a->x == b->x;
}

/* Index of the row in list that equals row, which is appended when there is none. */
static size_t
index_in(const struct report_row **list, size_t *n, const struct report_row *row,
	bool (*is_same)(const struct report_row *, const struct report_row *))
{
	for (size_t i = 0; i < *n; i++) {
		if (is_same(list[i], row)) {
			return i;
		}
	}
	list[*n] = row;
	return (*n)++;
}

static int
compare_x(const void *a, const void *b)
{
	const struct report_row *const *x = a, *const *y = b;
	return ((*x)->x > (*y)->x) - ((*x)->x < (*y)->x);
}

static void
plot_fill(const struct report *r, struct report_plot *p)
{
	p->series = calloc(r->rows_n, sizeof(*p->series));
	p->xs = calloc(r->rows_n, sizeof(*p->xs));
	weft_assert(p->series && p->xs);
	bool has_words = false;
	for (size_t i = 0; i < r->rows_n; i++) {
		if (is_same_plot(p->first, &r->rows[i])) {
			index_in(p->series, &p->series_n, &r->rows[i], is_same_series);
			index_in(p->xs, &p->xs_n, &r->rows[i], is_same_x);
			has_words |= r->rows[i].x_text != NULL;
		}
	}
	if (!has_words) {
		qsort(p->xs, p->xs_n, sizeof(*p->xs), compare_x);
	}
	p->cells = calloc(p->series_n * p->xs_n, sizeof(*p->cells));
	weft_assert(p->cells);
	for (size_t i = 0; i < r->rows_n; i++) {
		if (is_same_plot(p->first, &r->rows[i])) {
			size_t s = index_in(p->series, &p->series_n, &r->rows[i], is_same_series);
			size_t x = index_in(p->xs, &p->xs_n, &r->rows[i], is_same_x);
			p->cells[s * p->xs_n + x] = &r->rows[i];
		}
	}
}

struct report_plot *
report_plots(const struct report *r, size_t *n)
{
	const struct report_row **firsts = calloc(r->rows_n + 1, sizeof(*firsts));
	weft_assert(firsts);
	*n = 0;
	for (size_t i = 0; i < r->rows_n; i++) {
		index_in(firsts, n, &r->rows[i], is_same_plot);
	}
	struct report_plot *plots = calloc(*n + 1, sizeof(*plots));
	weft_assert(plots);
	for (size_t i = 0; i < *n; i++) {
		plots[i].first = firsts[i];
		plot_fill(r, &plots[i]);
	}
	free(firsts);
	return plots;
}

void
report_plots_free(struct report_plot *plots, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(plots[i].series);
		free(plots[i].xs);
		free(plots[i].cells);
	}
	free(plots);
}

/* Puts a comma before each three digits of the whole part: one that stands alone is hard to
 * read from 10,000 on. */
static void
group_digits(const char *digits, char out[REPORT_NUMBER_MAX])
{
	size_t n = strspn(digits, "-0123456789"), k = 0;
	bool is_long = n - (digits[0] == '-') >= 5;
	for (size_t i = 0; digits[i] && k + 2 < REPORT_NUMBER_MAX; i++) {
		if (is_long && i > 0 && i < n && (n - i) % 3 == 0 && digits[i - 1] != '-') {
			out[k++] = ',';
		}
		out[k++] = digits[i];
	}
	out[k] = 0;
}

char *
report_number(double v, char out[REPORT_NUMBER_MAX])
{
	double a = fabs(v);
	char digits[REPORT_NUMBER_MAX];
	if (!isfinite(v) || a >= 1e15) {
		snprintf(out, REPORT_NUMBER_MAX, "%.3g", v);
		return out;
	}
	int decimals = a >= 99.95 || a == 0 ? 0 : a >= 9.995 ? 1 : a >= 0.0995 ? 2 : 3;
	snprintf(digits, sizeof(digits), "%.*f", decimals, v);
	group_digits(digits, out);
	return out;
}

char *
report_x_text(const struct report_row *row, char out[64])
{
	if (row->x_text) {
		snprintf(out, 64, "%s", row->x_text);
	} else if (row->x_name) {
		char digits[REPORT_NUMBER_MAX], number[REPORT_NUMBER_MAX];
		snprintf(digits, sizeof(digits), "%.15g", row->x);
		group_digits(digits, number);
		snprintf(out, 64, "%s", number);
	} else {
		out[0] = 0;
	}
	return out;
}

void
report_escape(const char *text, FILE *out)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		case '\'':
			fputs("&#39;", out);
			break;
		default:
			fputc(*text, out);
		}
	}
}

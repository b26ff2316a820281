/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of a terminal: a line a series, a column an x, numbers aligned to the right. */
#include "bench/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

/* Columns that a UTF-8 text takes, every character being one wide. */
static size_t
width_of(const char *text)
{
	size_t n = 0;
	for (; *text; text++) {
		n += ((unsigned char)*text & 0xc0) != 0x80;
	}
	return n;
}

static void
print_cell(FILE *out, const char *text, size_t width, bool is_left)
{
	int fill = (int)(width > width_of(text) ? width - width_of(text) : 0);
	if (is_left) {
		fprintf(out, "%s%*s", text, fill, "");
	} else {
		fprintf(out, "  %*s%s", fill, "", text);
	}
}

static char *
cell_text(const struct report_plot *p, size_t series, size_t x, char out[REPORT_NUMBER_MAX])
{
	const struct report_row *row = report_cell(p, series, x);
	if (!row) {
		return strcpy(out, "-");
	}
	return report_number(row->median, out);
}

static void
print_plot(const struct report_plot *p, FILE *out)
{
	const struct report_row *f = p->first;
	size_t first_width = f->x_name ? width_of(f->x_name) : 0;
	size_t *widths = calloc(p->xs_n, sizeof(*widths));
	char text[64], number[REPORT_NUMBER_MAX];
	weft_assert(widths);

	for (size_t s = 0; s < p->series_n; s++) {
		size_t w = width_of(p->series[s]->series);
		first_width = w > first_width ? w : first_width;
	}
	for (size_t x = 0; x < p->xs_n; x++) {
		widths[x] = width_of(report_x_text(p->xs[x], text));
		for (size_t s = 0; s < p->series_n; s++) {
			size_t w = width_of(cell_text(p, s, x, number));
			widths[x] = w > widths[x] ? w : widths[x];
		}
	}

	fprintf(out, "%s, %s (%s is better)\n", f->plot, f->unit,
		f->more_is_better ? "more" : "less");
	if (f->x_name || p->xs[0]->x_text) {
		print_cell(out, f->x_name ? f->x_name : "", first_width, true);
		for (size_t x = 0; x < p->xs_n; x++) {
			print_cell(out, report_x_text(p->xs[x], text), widths[x], false);
		}
		fputc('\n', out);
	}
	for (size_t s = 0; s < p->series_n; s++) {
		print_cell(out, p->series[s]->series, first_width, true);
		for (size_t x = 0; x < p->xs_n; x++) {
			print_cell(out, cell_text(p, s, x, number), widths[x], false);
		}
		fputc('\n', out);
	}
	free(widths);
}

void
report_table(const struct report *r, FILE *out)
{
	size_t n;
	struct report_plot *plots = report_plots(r, &n);
	const char *bench = "";
	for (size_t i = 0; i < n; i++) {
		if (strcmp(bench, plots[i].first->bench) != 0) {
			bench = plots[i].first->bench;
			fprintf(out, "\n%s\n", bench);
			for (size_t k = width_of(bench); k > 0; k--) {
				fputc('=', out);
			}
			fputc('\n', out);
		} else {
			fputc('\n', out);
		}
		print_plot(&plots[i], out);
	}
	for (size_t i = 0; i < r->notes_n; i++) {
		fprintf(out, "%s%s: %s\n", i == 0 ? "\n" : "", r->notes[i].bench, r->notes[i].text);
	}
	report_plots_free(plots, n);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Diagrams as SVG. Colours are classes s0 to s7 of the page's style sheet, so that one drawing
 * serves light and dark. Three or more numeric x make lines, everything else grouped bars. A
 * value axis begins at 0, unless the values span more than SPAN_MAX: then it is logarithmic,
 * and says so. Zeros among them lie on its base line, a decade below the least of the others. */
#include "bench/report.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define WIDTH 860
#define HEIGHT 360
#define LEFT 66
#define RIGHT 18
#define TOP 26
#define BOTTOM 56
#define PLOT_W (WIDTH - LEFT - RIGHT)
#define PLOT_H (HEIGHT - TOP - BOTTOM)
#define COLOURS REPORT_COLOURS
#define SPAN_MAX 40.0
#define GLYPH_W 6.4 /* of a digit at the font size of the axes */

struct axis {
	double min, max;
	double step; /* between ticks; with is_log unused */
	bool is_log;
	bool has_zero; /* with is_log: min stands for 0 */
};

struct drawing {
	const struct report_plot *p;
	FILE *out;
	struct axis y;
	bool is_bars;
	bool is_x_log;
};

static double
y_of(const struct drawing *d, double v)
{
	double share;
	if (d->y.is_log) {
		share = log(fmax(v, d->y.min) / d->y.min) / log(d->y.max / d->y.min);
	} else {
		share = (v - d->y.min) / (d->y.max - d->y.min);
	}
	return TOP + PLOT_H * (1 - share);
}

static double
x_of(const struct drawing *d, size_t i)
{
	const struct report_plot *p = d->p;
	if (d->is_bars) {
		return LEFT + PLOT_W * ((double)i + 0.5) / (double)p->xs_n;
	}
	double first = p->xs[0]->x, last = p->xs[p->xs_n - 1]->x, x = p->xs[i]->x;
	double share =
		d->is_x_log ? log(x / first) / log(last / first) : (x - first) / (last - first);
	return LEFT + 14 + (PLOT_W - 28) * share;
}

/* The largest of 1, 2 and 5 times a power of ten that cuts span into at least four. */
static double
nice_step(double span)
{
	double power = pow(10, floor(log10(span / 4)));
	double ratio = span / 4 / power;
	return power * (ratio >= 5 ? 5 : ratio >= 2 ? 2 : 1);
}

static struct axis
value_axis(const struct report_plot *p)
{
	double low = DBL_MAX, high = 0;
	bool has_zero = false;
	for (size_t i = 0; i < p->series_n * p->xs_n; i++) {
		if (p->cells[i] && p->cells[i]->median > 0) {
			low = fmin(low, p->cells[i]->median);
			high = fmax(high, p->cells[i]->median);
		} else if (p->cells[i]) {
			has_zero = true;
		}
	}
	if (high <= 0) {
		return (struct axis){.max = 1, .step = 0.25};
	}
	if (high / low > SPAN_MAX) {
		return (struct axis){.min = pow(10, floor(log10(low * 0.999)) - has_zero),
			.max = pow(10, ceil(log10(high))),
			.is_log = true,
			.has_zero = has_zero};
	}
	double step = nice_step(high * 1.06);
	return (struct axis){.max = ceil(high * 1.06 / step) * step, .step = step};
}

/* at: where it stands; v: what it says. */
static void
draw_tick(const struct drawing *d, double at, double v)
{
	char number[REPORT_NUMBER_MAX];
	double y = y_of(d, at);
	if (v == floor(v) && v < 1e15) {
		struct report_row row = {.x = v, .x_name = (char[]){""}};
		char text[64];
		snprintf(number, sizeof(number), "%s", report_x_text(&row, text));
	} else {
		snprintf(number, sizeof(number), "%.10g", v);
	}
	fprintf(d->out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
		LEFT, WIDTH - RIGHT, y, y);
	fprintf(d->out, "<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
		LEFT - 8, y + 4, number);
}

static void
draw_value_axis(const struct drawing *d)
{
	if (d->y.is_log) {
		for (double v = d->y.min; v <= d->y.max * 1.001; v *= 10) {
			draw_tick(d, v, d->y.has_zero && v == d->y.min ? 0 : v);
		}
	} else {
		int ticks = (int)lround(d->y.max / d->y.step);
		for (int i = 0; i <= ticks; i++) {
			double v = round(i * d->y.step * 1e9) / 1e9;
			draw_tick(d, v, v);
		}
	}
	fprintf(d->out, "<text class=\"name\" x=\"%d\" y=\"14\">", LEFT - 58);
	report_escape(d->p->first->unit, d->out);
	fprintf(d->out, "%s</text>\n",
		!d->y.is_log    ? ""
		: d->y.has_zero ? ", logarithmic above 0"
				: ", logarithmic");
}

static void
draw_x_axis(const struct drawing *d)
{
	const struct report_plot *p = d->p;
	double free_up_to = WIDTH; /* labels that would overlap one to their right are left out */
	double room = d->is_bars ? (double)PLOT_W / (double)p->xs_n / GLYPH_W : 64;
	fprintf(d->out, "<line class=\"base\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", LEFT,
		WIDTH - RIGHT, HEIGHT - BOTTOM, HEIGHT - BOTTOM);
	for (size_t i = p->xs_n; i-- > 0;) {
		char text[64];
		report_x_text(p->xs[i], text);
		size_t len = strlen(text);
		if (room < (double)len && room > 4) {
			size_t keep = (size_t)room - 1;
			while (keep > 0 && ((unsigned char)text[keep] & 0xc0) == 0x80) {
				keep--; /* not within a character */
			}
			snprintf(text + keep, sizeof(text) - keep, "…");
			len = keep + 1;
		}
		double x = x_of(d, i), half = (double)len * GLYPH_W / 2;
		if (x + half + 5 > free_up_to) {
			continue;
		}
		free_up_to = x - half;
		fprintf(d->out, "<text class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
			x, HEIGHT - BOTTOM + 19);
		report_escape(text, d->out);
		fputs("</text>\n", d->out);
	}
	if (p->first->x_name) {
		fprintf(d->out, "<text class=\"name\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
			LEFT + PLOT_W / 2, HEIGHT - 12);
		report_escape(p->first->x_name, d->out);
		fputs("</text>\n", d->out);
	}
}

/* Shown when the pointer rests on the mark. */
static void
draw_title(const struct drawing *d, const struct report_row *row)
{
	char x[64], median[REPORT_NUMBER_MAX], min[REPORT_NUMBER_MAX], max[REPORT_NUMBER_MAX];
	fputs("<title>", d->out);
	report_escape(row->series, d->out);
	report_x_text(row, x);
	if (x[0]) {
		fputs(", ", d->out);
		report_escape(x, d->out);
	}
	fprintf(d->out, ": %s ", report_number(row->median, median));
	report_escape(row->unit, d->out);
	fprintf(d->out, " (%s to %s)</title>", report_number(row->min, min),
		report_number(row->max, max));
}

static void
draw_whisker(const struct drawing *d, const struct report_row *row, double x)
{
	double low = fmax(row->min, d->y.min), high = fmin(row->max, d->y.max);
	if (y_of(d, low) - y_of(d, high) > 3) {
		fprintf(d->out,
			"<line class=\"range\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
			x, x, y_of(d, low), y_of(d, high));
	}
}

static void
draw_bars(const struct drawing *d)
{
	const struct report_plot *p = d->p;
	double group = (double)PLOT_W / (double)p->xs_n * 0.82;
	double width = fmin(group / (double)p->series_n, 64);
	for (size_t i = 0; i < p->xs_n; i++) {
		double left = x_of(d, i) - width * (double)p->series_n / 2;
		for (size_t s = 0; s < p->series_n; s++, left += width) {
			const struct report_row *row = report_cell(p, s, i);
			if (!row) {
				continue;
			}
			char number[REPORT_NUMBER_MAX];
			double top = y_of(d, row->median), inner = fmax(width - 2, 1);
			report_number(row->median, number);
			fprintf(d->out,
				"<rect class=\"bar s%zu%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
				"height=\"%.1f\" rx=\"2\">",
				s % COLOURS, s >= COLOURS ? " again" : "", left + 1, top, inner,
				fmax(HEIGHT - BOTTOM - top, 0.5));
			draw_title(d, row);
			fputs("</rect>\n", d->out);
			draw_whisker(d, row, left + width / 2);
			if ((double)strlen(number) * 5.6 < width + 4) {
				fprintf(d->out,
					"<text class=\"value\" x=\"%.1f\" y=\"%.1f\" "
					"text-anchor=\"middle\">%s</text>\n",
					left + width / 2,
					fmin(top, y_of(d, fmin(row->max, d->y.max))) - 5, number);
			}
		}
	}
}

static void
draw_lines(const struct drawing *d)
{
	const struct report_plot *p = d->p;
	for (size_t s = 0; s < p->series_n; s++) {
		const char *again = s >= COLOURS ? " again" : "";
		fprintf(d->out, "<polyline class=\"line s%zu%s\" points=\"", s % COLOURS, again);
		for (size_t i = 0; i < p->xs_n; i++) {
			const struct report_row *row = report_cell(p, s, i);
			if (row) {
				fprintf(d->out, "%.1f,%.1f ", x_of(d, i), y_of(d, row->median));
			}
		}
		fputs("\"/>\n", d->out);
		for (size_t i = 0; i < p->xs_n; i++) {
			const struct report_row *row = report_cell(p, s, i);
			if (row) {
				draw_whisker(d, row, x_of(d, i));
				fprintf(d->out,
					"<circle class=\"dot s%zu\" cx=\"%.1f\" cy=\"%.1f\" "
					"r=\"4\">",
					s % COLOURS, x_of(d, i), y_of(d, row->median));
				draw_title(d, row);
				fputs("</circle>\n", d->out);
			}
		}
	}
}

void
report_svg(const struct report_plot *p, FILE *out)
{
	struct drawing d = {.p = p, .out = out, .y = value_axis(p), .is_bars = p->xs_n < 3};
	for (size_t i = 0; i < p->xs_n; i++) {
		d.is_bars |= p->xs[i]->x_text || !p->xs[i]->x_name;
	}
	double first = p->xs[0]->x, last = p->xs[p->xs_n - 1]->x;
	d.is_x_log = first > 0 && last / first >= 16;
	fprintf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
	report_escape(p->first->plot, out);
	fputs("\">\n", out);
	draw_value_axis(&d);
	draw_x_axis(&d);
	if (d.is_bars) {
		draw_bars(&d);
	} else {
		draw_lines(&d);
	}
	fputs("</svg>\n", out);
}

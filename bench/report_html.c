/* SPDX-License-Identifier: Apache-2.0 */
/* The page: what was run where, then a section a bench with its diagrams and their tables. */
#include "bench/report.h"

#include <stdlib.h>
#include <string.h>

#include "os/file.h"

static const char style[] =
	":root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--ink:#16202c;--soft:#5b6876;"
	"--rule:#dfe4ea;--grid:#e8ecf0;--code:#eef1f4}\n"
	".s0{--c:#2563eb}.s1{--c:#d97706}.s2{--c:#059669}.s3{--c:#dc2626}.s4{--c:#7c3aed}"
	".s5{--c:#0891b2}.s6{--c:#be185d}.s7{--c:#4d7c0f}\n"
	"@media(prefers-color-scheme:dark){:root{--bg:#10151b;--card:#182029;--ink:#e6ebf0;"
	"--soft:#93a1b0;--rule:#2b3641;--grid:#24303b;--code:#222c36}"
	".s0{--c:#60a5fa}.s1{--c:#fbbf24}.s2{--c:#34d399}.s3{--c:#f87171}.s4{--c:#a78bfa}"
	".s5{--c:#22d3ee}.s6{--c:#f472b6}.s7{--c:#a3e635}}\n"
	"*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);"
	"font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}\n"
	"main{max-width:960px;margin:0 auto;padding:28px 20px 60px}\n"
	"h1{font-size:26px;margin:0 0 4px;letter-spacing:-.01em}"
	"h2{font-size:20px;margin:38px 0 12px}h3{font-size:16px;margin:0}\n"
	"p{margin:0 0 10px}.soft{color:var(--soft)}\n"
	"code{background:var(--code);border-radius:5px;padding:2px 7px;"
	"font:13px ui-monospace,Menlo,Consolas,monospace;overflow-wrap:anywhere}\n"
	"dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 18px;margin:16px 0 0}"
	"dt{color:var(--soft)}dd{margin:0}\n"
	"nav{margin:18px 0 0}nav a{color:inherit;margin-right:16px}\n"
	".card{background:var(--card);border:1px solid var(--rule);border-radius:12px;"
	"padding:18px 20px;margin:0 0 18px}\n"
	".head{display:flex;flex-wrap:wrap;justify-content:space-between;gap:4px 16px;"
	"align-items:baseline;margin-bottom:8px}\n"
	"svg{display:block;width:100%;height:auto;overflow:visible}\n"
	".grid{stroke:var(--grid)}.base{stroke:var(--soft)}\n"
	".tick{fill:var(--soft);font-size:12px;font-variant-numeric:tabular-nums}"
	".name{fill:var(--soft);font-size:12px}.value{fill:var(--ink);font-size:11px}\n"
	".bar{fill:var(--c)}.bar.again{fill-opacity:.55}.bar:hover,.dot:hover{filter:"
	"brightness(1.15)}\n"
	".line{fill:none;stroke:var(--c);stroke-width:2.2;stroke-linejoin:round}"
	".line.again{stroke-dasharray:6 4}\n"
	".dot{fill:var(--c);stroke:var(--card);stroke-width:1.5}"
	".range{stroke:var(--ink);stroke-opacity:.45;stroke-width:1.2}\n"
	".legend{list-style:none;display:flex;flex-wrap:wrap;gap:4px 18px;padding:0;"
	"margin:6px 0 14px;font-size:13.5px}\n"
	".legend span{display:inline-block;width:12px;height:12px;border-radius:3px;"
	"background:var(--c);margin-right:7px;vertical-align:-1px}\n"
	".legend .again{opacity:.55}\n"
	".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:13.5px;"
	"font-variant-numeric:tabular-nums}\n"
	"th,td{padding:5px 10px;text-align:right;border-top:1px solid var(--rule);"
	"white-space:nowrap}th{color:var(--soft);font-weight:500}\n"
	"th:first-child,td:first-child{text-align:left;padding-left:0}tr:first-child th{border:0}"
	".best{font-weight:650}\n"
	"footer{color:var(--soft);font-size:13px;margin-top:30px}\n";

static void
put(FILE *out, const char *before, const char *text, const char *after)
{
	fputs(before, out);
	report_escape(text, out);
	fputs(after, out);
}

static void
put_legend(const struct report_plot *p, FILE *out)
{
	if (p->series_n < 2) {
		return;
	}
	fputs("<ul class=\"legend\">", out);
	for (size_t s = 0; s < p->series_n; s++) {
		fprintf(out, "<li><span class=\"s%zu%s\"></span>", s % REPORT_COLOURS,
			s >= REPORT_COLOURS ? " again" : "");
		put(out, "", p->series[s]->series, "</li>");
	}
	fputs("</ul>\n", out);
}

/* The best value of a column, or NULL when there is nothing to choose from. */
static const struct report_row *
best_of(const struct report_plot *p, size_t x)
{
	const struct report_row *best = NULL;
	size_t n = 0;
	for (size_t s = 0; s < p->series_n; s++) {
		const struct report_row *row = report_cell(p, s, x);
		n += row != NULL;
		if (row && (!best || (row->more_is_better ? row->median > best->median
							  : row->median < best->median))) {
			best = row;
		}
	}
	return n > 1 ? best : NULL;
}

static void
put_cell(const struct report_row *row, bool is_best, FILE *out)
{
	char median[REPORT_NUMBER_MAX], min[REPORT_NUMBER_MAX], max[REPORT_NUMBER_MAX];
	if (!row) {
		fputs("<td>–</td>", out);
		return;
	}
	fprintf(out, "<td%s title=\"%s to %s, %zu rounds\">%s</td>",
		is_best ? " class=\"best\"" : "", report_number(row->min, min),
		report_number(row->max, max), row->rounds_n, report_number(row->median, median));
}

static void
put_table(const struct report_plot *p, FILE *out)
{
	char text[64];
	fputs("<div class=\"scroll\"><table>\n<tr>", out);
	put(out, "<th>", p->first->x_name ? p->first->x_name : "", "</th>");
	for (size_t x = 0; x < p->xs_n; x++) {
		report_x_text(p->xs[x], text);
		put(out, "<th>", text[0] ? text : p->first->unit, "</th>");
	}
	fputs("</tr>\n", out);
	for (size_t s = 0; s < p->series_n; s++) {
		put(out, "<tr><td>", p->series[s]->series, "</td>");
		for (size_t x = 0; x < p->xs_n; x++) {
			const struct report_row *row = report_cell(p, s, x);
			put_cell(row, row && row == best_of(p, x), out);
		}
		fputs("</tr>\n", out);
	}
	fputs("</table></div>\n", out);
}

static void
put_plot(const struct report_plot *p, FILE *out)
{
	put(out, "<div class=\"card\"><div class=\"head\"><h3>", p->first->plot, "</h3>");
	put(out, "<span class=\"soft\">", p->first->unit, "");
	fputs(p->first->more_is_better ? ", more is better</span></div>\n"
				       : ", less is better</span></div>\n",
		out);
	report_svg(p, out);
	put_legend(p, out);
	put_table(p, out);
	fputs("</div>\n", out);
}

static void
put_notes(const struct report *r, const char *bench, FILE *out)
{
	for (size_t i = 0; i < r->notes_n; i++) {
		if (strcmp(r->notes[i].bench, bench) == 0) {
			put(out, "<p class=\"soft\">", r->notes[i].text, "</p>\n");
		}
	}
}

static void
put_fact(FILE *out, const char *name, const char *text)
{
	if (text && text[0]) {
		fprintf(out, "<dt>%s</dt>", name);
		put(out, "<dd>", text, "</dd>\n");
	}
}

static void
put_head(const struct report *r, FILE *out)
{
	char text[256];
	fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n",
		out);
	/* The document's own name is that of its bench, or of the command when it has several. */
	bool has_name = strcmp(r->title, "weft bench") != 0;
	put(out, "<title>weft bench ", has_name ? r->title : "", "</title>\n");
	fprintf(out, "<style>\n%s</style></head>\n<body><main>\n", style);
	put(out, "<h1>weft bench ", has_name ? r->title : "", "</h1>\n");
	if (r->command) {
		put(out, "<p><code>", r->command, "</code></p>\n");
	}
	fputs("<dl>\n", out);
	snprintf(text, sizeof(text), "%s%s%u cores%s%s", r->cpu ? r->cpu : "", r->cpu ? ", " : "",
		r->cores, r->system ? ", " : "", r->system ? r->system : "");
	put_fact(out, "Machine", text);
	put_fact(out, "Linux", r->kernel);
	put_fact(out, "weft", r->version);
	put_fact(out, "Date", r->time);
	fputs("</dl>\n", out);
}

void
report_html(const struct report *r, FILE *out)
{
	size_t n;
	struct report_plot *plots = report_plots(r, &n);
	put_head(r, out);
	const char *bench = NULL;
	for (size_t i = 0; i < n; i++) {
		if (!bench || strcmp(bench, plots[i].first->bench) != 0) {
			bench = plots[i].first->bench;
			put(out, "<h2>", bench, "</h2>\n");
			put_notes(r, bench, out);
		}
		put_plot(&plots[i], out);
	}
	fputs("<footer>Medians; a thin line spans the rounds, from least to most. Rest the pointer "
	      "on a mark or a number for its range.</footer>\n</main></body></html>\n",
		out);
	report_plots_free(plots, n);
}

enum weft_err
report_to_html(const struct report *r, const char *path)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	if (!f) {
		return WEFT_ENOMEM;
	}
	report_html(r, f);
	enum weft_err e = fclose(f) == 0 ? os_file_write(path, text, len, 0644) : WEFT_ENOMEM;
	free(text);
	return e;
}

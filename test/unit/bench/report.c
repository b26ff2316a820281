/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "bench/report.h"
#include "os/file.h"

static void
add(struct report *r, const char *plot, const char *series, double x, double v)
{
	struct bench_label l = {
		.plot = plot, .series = series, .x_name = "bytes", .x = x, .unit = "ns/packet"};
	double values[] = {v + 2, v, v - 1};
	report_add(r, "demo", &l, values, 3);
}

static void
add_word(struct report *r, const char *series, const char *x, double v)
{
	struct bench_label l = {.plot = "throughput",
		.series = series,
		.x_text = x,
		.unit = "Mbit/s",
		.more_is_better = true};
	report_add(r, "demo", &l, &v, 1);
}

static void
fill(struct report *r)
{
	report_init(r);
	report_describe(r, "weft bench demo");
	add(r, "seal", "one", 1420, 500);
	add(r, "seal", "one", 64, 100);
	add(r, "seal", "one", 256, 200);
	add(r, "seal", "<two> & \"three\"", 64, 50);
	add_word(r, "wire", "TCP, up", 40000);
	add_word(r, "wire", "TCP, down", 38000);
	add_word(r, "tunnel", "TCP, up", 5123.4);
	report_add_note(r, "demo", "without <that>");
}

static char *
text_of(const struct report *r, void (*print)(const struct report *, FILE *))
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	assert_non_null(f);
	print(r, f);
	fclose(f);
	return text;
}

static void
temporary(char path[64])
{
	strcpy(path, "/tmp/weft-unit-bench-XXXXXX");
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
}

static void
row_counts_by_median_and_keeps_its_range(void **state)
{
	(void)state;
	struct report r;
	report_init(&r);
	struct bench_label l = {.plot = "p", .series = "s", .unit = "ns"};
	double odd[] = {9, 1, 5}, even[] = {4, 1, 2, 9};
	struct report_row *row = report_add(&r, "b", &l, odd, 3);
	assert_true(row->median == 5 && row->min == 1 && row->max == 9);
	assert_true(row->rounds[0] == 9 && row->rounds_n == 3);
	row = report_add(&r, "b", &l, even, 4);
	assert_true(row->median == 3);
	report_fini(&r);
}

static void
number_shows_the_figures_that_count(void **state)
{
	(void)state;
	static const struct {
		double v;
		const char *text;
	} cases[] = {{0, "0"}, {0.0123, "0.012"}, {0.27, "0.27"}, {9.99, "9.99"}, {9.996, "10.0"},
		{42.25, "42.2"}, {99.96, "100"}, {1420, "1420"}, {12345.6, "12,346"},
		{1234567, "1,234,567"}, {-12345, "-12,345"}, {-123456, "-123,456"},
		{2e20, "2e+20"}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		char out[REPORT_NUMBER_MAX];
		assert_string_equal(report_number(cases[i].v, out), cases[i].text);
	}
}

static void
plots_are_grids_in_order_of_appearance_with_numbers_sorted(void **state)
{
	(void)state;
	struct report r;
	fill(&r);
	size_t n;
	struct report_plot *plots = report_plots(&r, &n);
	assert_int_equal(n, 2);
	assert_int_equal(plots[0].series_n, 2);
	assert_int_equal(plots[0].xs_n, 3);
	assert_true(
		plots[0].xs[0]->x == 64 && plots[0].xs[1]->x == 256 && plots[0].xs[2]->x == 1420);
	assert_true(report_cell(&plots[0], 0, 2)->median == 500);
	assert_null(report_cell(&plots[0], 1, 2));
	assert_string_equal(plots[1].xs[0]->x_text, "TCP, up");
	assert_string_equal(plots[1].xs[1]->x_text, "TCP, down");
	report_plots_free(plots, n);
	report_fini(&r);
}

static void
table_aligns_its_columns(void **state)
{
	(void)state;
	struct report r;
	fill(&r);
	char *text = text_of(&r, report_table);
	assert_string_equal(text, "\ndemo\n====\n"
				  "seal, ns/packet (less is better)\n"
				  "bytes              64  256  1420\n"
				  "one               100  200   500\n"
				  "<two> & \"three\"  50.0    -     -\n"
				  "\n"
				  "throughput, Mbit/s (more is better)\n"
				  "        TCP, up  TCP, down\n"
				  "wire     40,000     38,000\n"
				  "tunnel     5123          -\n"
				  "\n"
				  "demo: without <that>\n");
	free(text);
	report_fini(&r);
}

/* A reader that knows as much of HTML as the page uses: every element closes in order. */
static void
assert_is_balanced(const char *html)
{
	static const char *const empty[] = {"meta", "line", "!doctype"};
	char stack[64][16];
	int depth = 0;
	for (const char *p = strchr(html, '<'); p; p = strchr(p + 1, '<')) {
		char name[16];
		bool is_end = p[1] == '/';
		const char *start = p + 1 + is_end, *end = strchr(p, '>');
		assert_non_null(end);
		size_t len = strcspn(start, " >/\n");
		assert_in_range(len, 1, sizeof(name) - 1);
		memcpy(name, start, len);
		name[len] = 0;
		bool is_empty = end[-1] == '/';
		for (size_t i = 0; i < WEFT_ARRAY_LEN(empty); i++) {
			is_empty |= strcmp(name, empty[i]) == 0;
		}
		if (is_end) {
			assert_true(depth > 0);
			assert_string_equal(stack[--depth], name);
		} else if (!is_empty) {
			assert_true(depth < 64);
			strcpy(stack[depth++], name);
		}
	}
	assert_int_equal(depth, 0);
}

static void
page_is_whole_and_escapes_what_it_shows(void **state)
{
	(void)state;
	struct report r;
	fill(&r);
	char *html = text_of(&r, report_html);
	assert_is_balanced(html);
	assert_null(strstr(html, "<two>"));
	assert_null(strstr(html, "<that>"));
	assert_non_null(strstr(html, "&lt;two&gt; &amp; &quot;three&quot;"));
	assert_non_null(strstr(html, "weft bench demo"));
	assert_non_null(strstr(html, "prefers-color-scheme:dark"));
	assert_non_null(strstr(html, "more is better"));
	/* Nothing comes from elsewhere. */
	assert_null(strstr(html, "http"));
	assert_null(strstr(html, "<script"));
	assert_null(strstr(html, "nan"));
	assert_null(strstr(html, "inf"));
	free(html);
	report_fini(&r);
}

static unsigned
count_of(const char *text, const char *word)
{
	unsigned n = 0;
	size_t len = strlen(word);
	for (size_t i = 0; text[i]; i++) {
		n += strncmp(text + i, word, len) == 0;
	}
	return n;
}

static void
diagram_has_a_mark_for_every_row(void **state)
{
	(void)state;
	struct report r;
	fill(&r);
	char *html = text_of(&r, report_html);
	assert_int_equal(count_of(html, "<circle"), 4);   /* seal: lines over numbers */
	assert_int_equal(count_of(html, "<polyline"), 2); /* two series */
	assert_int_equal(count_of(html, "<rect"), 3);     /* throughput: bars over words */
	free(html);
	report_fini(&r);
}

static void
diagram_survives_odd_values(void **state)
{
	(void)state;
	static const double sets[][3] = {{0, 0, 0}, {1e-9, 1, 1e9}, {5, 5, 5}, {0, 1e12, 3}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(sets); i++) {
		struct report r;
		report_init(&r);
		for (int k = 0; k < 3; k++) {
			struct bench_label l = {.plot = "p",
				.series = "s",
				.x_name = "x",
				.x = k, /* from 0: no logarithm of it */
				.unit = "u"};
			report_add(&r, "b", &l, &sets[i][k], 1);
			l.plot = "bars";
			l.x_name = NULL;
			l.series = k ? k > 1 ? "a" : "b" : "c";
			l.x = 0;
			report_add(&r, "b", &l, &sets[i][k], 1);
		}
		char *html = text_of(&r, report_html);
		assert_is_balanced(html);
		assert_null(strstr(html, "nan"));
		assert_null(strstr(html, "\"inf"));
		assert_null(strstr(html, "\"-"));
		free(html);
		report_fini(&r);
	}
}

static void
zero_has_its_place_on_a_logarithmic_axis(void **state)
{
	(void)state;
	struct report r;
	report_init(&r);
	for (int k = 0; k < 3; k++) {
		static const double values[] = {0, 0.02, 9};
		struct bench_label l = {
			.plot = "p", .series = "s", .x_name = "x", .x = k, .unit = "u"};
		report_add(&r, "b", &l, &values[k], 1);
	}
	char *html = text_of(&r, report_html);
	assert_non_null(strstr(html, "u, logarithmic above 0</text>"));
	assert_non_null(strstr(html, ">0</text>"));
	assert_non_null(strstr(html, ">0.01</text>"));
	assert_null(strstr(html, ">0.001</text>")); /* where 0 stands instead */
	free(html);
	report_fini(&r);
}

static void
json_round_trip_keeps_every_row(void **state)
{
	(void)state;
	struct report r, back;
	char path[64], why[256] = "";
	fill(&r);
	temporary(path);
	assert_int_equal(report_to_json(&r, path), WEFT_OK);
	report_init(&back);
	assert_int_equal(report_from_json(&back, path, why, sizeof(why)), WEFT_OK);
	assert_string_equal(why, "");
	assert_int_equal(back.rows_n, r.rows_n);
	char *before = text_of(&r, report_html), *after = text_of(&back, report_html);
	assert_string_equal(before, after);
	free(before);
	free(after);
	report_fini(&r);
	report_fini(&back);
	unlink(path);
}

static enum weft_err
parse(struct report *r, const char *json, char why[256])
{
	char path[64];
	temporary(path);
	assert_int_equal(os_file_write(path, json, strlen(json), 0600), WEFT_OK);
	report_init(r);
	why[0] = 0;
	enum weft_err e = report_from_json(r, path, why, 256);
	unlink(path);
	return e;
}

static void
rows_of_bench_net_become_plots_and_ratios(void **state)
{
	(void)state;
	struct report r;
	char why[256];
	enum weft_err e = parse(&r,
		"{\"schema\":\"weft-bench-1\",\"bench\":\"net\",\"machine\":{\"cpu\":\"c\","
		"\"cores\":2},"
		"\"failures\":[\"round 1 tinc\"],\"results\":["
		"{\"contender\":\"veth\",\"metric\":\"tcp1_up_mbit\",\"what\":\"TCP, 1 stream, "
		"up\","
		"\"unit\":\"Mbit/s\",\"better\":\"more\",\"median\":10,\"min\":9,\"max\":12,"
		"\"rounds\":[9,10,12]},"
		"{\"contender\":\"weft\",\"metric\":\"tcp1_up_mbit\",\"what\":\"TCP, 1 stream, "
		"up\","
		"\"unit\":\"Mbit/s\",\"better\":\"more\",\"median\":5,\"rounds\":[5],"
		"\"times_veth\":0.5},"
		"{\"contender\":\"weft\",\"what\":\"memory\",\"unit\":\"MiB\",\"better\":\"less\","
		"\"median\":7}]}",
		why);
	assert_string_equal(why, "");
	assert_int_equal(e, WEFT_OK);
	size_t n;
	struct report_plot *plots = report_plots(&r, &n);
	assert_int_equal(n, 3);
	assert_string_equal(plots[0].first->plot, "TCP");
	assert_string_equal(plots[0].first->bench, "net");
	assert_string_equal(plots[0].xs[0]->x_text, "1 stream, up");
	assert_int_equal(plots[0].series_n, 2);
	assert_true(plots[0].first->more_is_better);
	assert_string_equal(plots[1].first->plot, "memory");
	assert_string_equal(plots[2].first->plot, "TCP: ratio to veth");
	assert_true(report_cell(&plots[2], 0, 0)->median == 0.5);
	assert_int_equal(r.notes_n, 1);
	report_plots_free(plots, n);
	report_fini(&r);
}

static void
malformed_documents_are_refused_with_a_reason(void **state)
{
	(void)state;
	static const char *const texts[] = {"", "{", "[]", "{}",
		"{\"schema\":\"other\",\"results\":[]}", "{\"schema\":\"weft-bench-1\"}",
		"{\"schema\":\"weft-bench-1\",\"results\":{}}",
		"{\"schema\":\"weft-bench-1\",\"results\":[1]}",
		"{\"schema\":\"weft-bench-1\",\"results\":[{\"plot\":\"p\",\"contender\":\"c\","
		"\"unit\":\"u\"}]}",
		"{\"schema\":\"weft-bench-1\",\"results\":[{\"plot\":\"p\",\"contender\":\"c\","
		"\"unit\":\"u\",\"rounds\":[\"x\"]}]}",
		"{\"schema\":\"weft-bench-1\",\"results\":[{\"contender\":\"c\",\"unit\":\"u\","
		"\"median\":1}]}"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(texts); i++) {
		struct report r;
		char why[256];
		if (parse(&r, texts[i], why) != WEFT_EPARSE || !why[0]) {
			fail_msg("accepted: %s", texts[i]);
		}
		report_fini(&r);
	}
	struct report r;
	char why[256] = "";
	report_init(&r);
	assert_int_equal(report_from_json(&r, "/nonexistent/x", why, sizeof(why)), WEFT_ENOENT);
	assert_true(why[0]);
	report_fini(&r);
}

static void
command_is_quoted_where_a_shell_would_need_it(void **state)
{
	(void)state;
	char *argv[] = {"bench", "crypto", "--json", "a b.json", NULL};
	char *text = report_command(4, argv);
	assert_string_equal(text, "weft bench crypto --json 'a b.json'");
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(row_counts_by_median_and_keeps_its_range),
		cmocka_unit_test(number_shows_the_figures_that_count),
		cmocka_unit_test(plots_are_grids_in_order_of_appearance_with_numbers_sorted),
		cmocka_unit_test(table_aligns_its_columns),
		cmocka_unit_test(page_is_whole_and_escapes_what_it_shows),
		cmocka_unit_test(diagram_has_a_mark_for_every_row),
		cmocka_unit_test(diagram_survives_odd_values),
		cmocka_unit_test(zero_has_its_place_on_a_logarithmic_axis),
		cmocka_unit_test(json_round_trip_keeps_every_row),
		cmocka_unit_test(rows_of_bench_net_become_plots_and_ratios),
		cmocka_unit_test(malformed_documents_are_refused_with_a_reason),
		cmocka_unit_test(command_is_quoted_where_a_shell_would_need_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

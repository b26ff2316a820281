/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "bench/bench.h"
#include "bench/report.h"

#define ARGS_MAX 12

/* Runs the command, its words given up to a NULL. */
static int
bench(const char *first, ...)
{
	char *argv[ARGS_MAX + 2] = {"bench"};
	int argc = 1;
	va_list ap;
	va_start(ap, first);
	for (const char *word = first; word && argc < ARGS_MAX; word = va_arg(ap, const char *)) {
		argv[argc++] = (char *)(uintptr_t)word;
	}
	va_end(ap);
	return bench_main(argc, argv);
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
wrong_arguments_end_with_status_2(void **state)
{
	(void)state;
	assert_int_equal(bench("nonesuch", NULL), 2);
	assert_int_equal(bench("extract", "nonesuch", NULL), 2);
	assert_int_equal(bench("--nonesuch", NULL), 2);
	assert_int_equal(bench("--seconds", NULL), 2);
	assert_int_equal(bench("--seconds", "0", NULL), 2);
	assert_int_equal(bench("--seconds", "nan", NULL), 2);
	assert_int_equal(bench("--seconds", "1x", NULL), 2);
	assert_int_equal(bench("--rounds", "0", NULL), 2);
	assert_int_equal(bench("--rounds", "1.5", NULL), 2);
	assert_int_equal(bench("--rounds", "-3", NULL), 2);
	assert_int_equal(bench("report", "one", NULL), 2);
	assert_int_equal(bench("report", "/nonexistent/in", "/nonexistent/out", NULL), 1);
}

static void
help_and_list_measure_nothing(void **state)
{
	(void)state;
	assert_int_equal(bench("--help", NULL), 0);
	assert_int_equal(bench("--list", NULL), 0);
}

/* In a moment each: that it works, and that what it measures did what it was to do. */
static void
every_bench_runs_and_gives_rows(void **state)
{
	(void)state;
	static const char *const names[] = {
		"crypto", "split-join", "trie", "engine", "extract", "tx"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
		char json[64], html[64], why[256] = "";
		temporary(json);
		temporary(html);
		assert_int_equal(bench("--seconds", "0.003", names[i], "--rounds", "3", "--json",
					 json, "--html", html, NULL),
			0);
		struct report r;
		report_init(&r);
		assert_int_equal(report_from_json(&r, json, why, sizeof(why)), WEFT_OK);
		assert_true(r.rows_n > 0);
		for (size_t k = 0; k < r.rows_n; k++) {
			assert_string_equal(r.rows[k].bench, names[i]);
			assert_true(r.rows[k].median > 0);
		}
		report_fini(&r);
		assert_int_equal(bench("report", json, html, NULL), 0);
		unlink(json);
		unlink(html);
	}
}

static void
result_that_cannot_be_written_fails_the_run(void **state)
{
	(void)state;
	assert_int_equal(bench("extract", "--seconds", "0.001", "--rounds", "1", "--json",
				 "/nonexistent/x.json", NULL),
		1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_arguments_end_with_status_2),
		cmocka_unit_test(help_and_list_measure_nothing),
		cmocka_unit_test(every_bench_runs_and_gives_rows),
		cmocka_unit_test(result_that_cannot_be_written_fails_the_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

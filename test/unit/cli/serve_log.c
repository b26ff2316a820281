/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/serve_log.h"

#define BURST 200

struct capture {
	struct serve_log log;
	FILE *to;
	int old;
	char text[65536];
};

/* Standard error becomes a file, which JOURNAL_STREAM names or not. */
static void
begin(struct capture *c, bool is_journal)
{
	char stream[64];
	struct stat st;
	c->to = tmpfile();
	assert_non_null(c->to);
	assert_int_equal(fstat(fileno(c->to), &st), 0);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev,
		(uintmax_t)st.st_ino + !is_journal);
	setenv("JOURNAL_STREAM", stream, 1);
	c->old = dup(2);
	dup2(fileno(c->to), 2);
	serve_log_init(&c->log, true);
	c->log.is_starting = false;
}

static void
end(struct capture *c)
{
	dup2(c->old, 2);
	close(c->old);
	rewind(c->to);
	c->text[fread(c->text, 1, sizeof(c->text) - 1, c->to)] = 0;
	fclose(c->to);
	serve_log_fini(&c->log);
	unsetenv("JOURNAL_STREAM");
}

static size_t
count(const char *text, const char *what)
{
	size_t n = 0;
	for (const char *p = text; (p = strstr(p, what)) != NULL; p++) {
		n++;
	}
	return n;
}

static void
journal_gets_priorities_and_others_get_words(void **state)
{
	(void)state;
	static struct capture c;
	for (int is_journal = 0; is_journal < 2; is_journal++) {
		begin(&c, is_journal);
		serve_log_line(&c.log, LOG_LEVEL_ERROR, "a");
		serve_log_line(&c.log, LOG_LEVEL_WARN, "b");
		serve_log_line(&c.log, LOG_LEVEL_INFO, "c");
		serve_log_line(&c.log, LOG_LEVEL_DEBUG, "d");
		end(&c);
		assert_string_equal(c.text, is_journal ? "<3>a\n<4>b\n<6>c\n<7>d\n"
						       : "weft: error: a\nweft: warning: b\nweft: "
							 "info: c\nweft: debug: d\n");
	}
}

static void
lines_above_the_rate_are_counted_and_told(void **state)
{
	(void)state;
	static struct capture c;
	begin(&c, false);
	for (int i = 0; i < BURST + 50; i++) {
		serve_log_line(&c.log, LOG_LEVEL_INFO, "again");
	}
	c.log.limit.since.ns -= c.log.limit.period_ns;
	serve_log_line(&c.log, LOG_LEVEL_INFO, "later");
	serve_log_line(&c.log, LOG_LEVEL_INFO, "last");
	end(&c);
	assert_int_equal(count(c.text, "again"), BURST);
	assert_non_null(strstr(c.text, "again\nweft: warning: 50 lines were left out here\nweft: "
				       "info: later\nweft: info: last\n"));
}

static void
lines_for_debugging_are_all_written(void **state)
{
	(void)state;
	static struct capture c;
	begin(&c, false);
	for (int i = 0; i < 3 * BURST; i++) {
		serve_log_line(&c.log, LOG_LEVEL_DEBUG, "again");
	}
	serve_log_line(&c.log, LOG_LEVEL_INFO, "last");
	end(&c);
	assert_int_equal(count(c.text, "again"), 3 * BURST);
	assert_non_null(strstr(c.text, "last"));
	assert_null(strstr(c.text, "left out"));
}

static void
last_error_is_kept_of_start_and_reload_alone(void **state)
{
	(void)state;
	static struct capture c;
	begin(&c, false);
	serve_log_line(&c.log, LOG_LEVEL_ERROR, "one");
	assert_string_equal(c.log.last_error, "");
	c.log.is_reloading = true;
	serve_log_line(&c.log, LOG_LEVEL_ERROR, "two");
	serve_log_line(&c.log, LOG_LEVEL_INFO, "three");
	assert_string_equal(c.log.last_error, "two");
	end(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(journal_gets_priorities_and_others_get_words),
		cmocka_unit_test(lines_above_the_rate_are_counted_and_told),
		cmocka_unit_test(lines_for_debugging_are_all_written),
		cmocka_unit_test(last_error_is_kept_of_start_and_reload_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/mono.h"
#include "os/process.h"
#include "os/signal.h"

static void
child_reports_its_result_and_text(void **state)
{
	(void)state;
	struct os_daemon d;
	assert_int_equal(os_daemon_fork(&d), WEFT_OK);
	if (d.is_child) {
		os_daemon_report(&d, 3, "port 51820 is taken");
		_exit(0);
	}
	assert_int_equal(d.result, 3);
	assert_string_equal(d.text, "port 51820 is taken");
	assert_true(wait(NULL) > 0);
}

static void
child_that_dies_is_told_of(void **state)
{
	(void)state;
	struct os_daemon d;
	assert_int_equal(os_daemon_fork(&d), WEFT_OK);
	if (d.is_child) {
		kill(getpid(), SIGKILL);
		pause();
	}
	assert_int_equal(d.result, 1);
	assert_non_null(strstr(d.text, "signal 9 (KILL)"));
	assert_int_equal(os_daemon_fork(&d), WEFT_OK);
	if (d.is_child) {
		_exit(7);
	}
	assert_int_equal(d.result, 1);
	assert_non_null(strstr(d.text, "status 7"));
}

static void
expect_ready_child_lets_go(bool has_descriptors)
{
	struct os_daemon d;
	int facts[2];
	char text[300] = "";
	assert_int_equal(pipe2(facts, O_CLOEXEC), 0);
	assert_int_equal(os_daemon_fork(&d), WEFT_OK);
	if (d.is_child) {
		char cwd[100], out[3][50] = {"", "", ""};
		os_signal_block_all();
		if (!has_descriptors) {
			setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3});
		}
		os_daemon_report(&d, 0, "");
		os_daemon_report(&d, 5, "twice is ignored");
		for (int fd = 0; fd < 3; fd++) {
			char link[30];
			snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
			ssize_t n = readlink(link, out[fd], sizeof(out[fd]) - 1);
			(void)n;
		}
		dprintf(facts[1], "%s %s %s %s %d", out[0], out[1], out[2],
			getcwd(cwd, sizeof(cwd)), getsid(0) == getpid());
		_exit(0);
	}
	assert_int_equal(d.result, 0);
	assert_string_equal(d.text, "");
	assert_true(read(facts[0], text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "/dev/null /dev/null /dev/null / 1");
	assert_true(wait(NULL) > 0);
	close(facts[0]);
	close(facts[1]);
}

static void
ready_child_lets_go_of_terminal_and_folder(void **state)
{
	(void)state;
	expect_ready_child_lets_go(true);
}

static void
ready_child_lets_go_with_no_descriptor_left(void **state)
{
	(void)state;
	expect_ready_child_lets_go(false);
}

static void
stats_grow_with_work_and_memory(void **state)
{
	(void)state;
	struct os_process_stats a, b, other;
	assert_int_equal(os_process_stats(0, &a), WEFT_OK);
	size_t bytes = 20u << 20;
	volatile char *p = malloc(bytes);
	for (size_t i = 0; i < bytes; i += 4096) {
		p[i] = 1;
	}
	/* Enough for a few of the 10 ms ticks that /proc counts in. */
	do {
		assert_int_equal(os_process_stats(0, &b), WEFT_OK);
	} while (b.user_ns + b.system_ns < 100 * WEFT_NS_PER_MS);
	assert_true(b.user_ns + b.system_ns > a.user_ns + a.system_ns);
	assert_true(b.rss_bytes >= a.rss_bytes + (bytes / 2));
	assert_true(b.rss_peak_bytes >= b.rss_bytes);
	free((void *)p);
	assert_int_equal(os_process_stats(getpid(), &other), WEFT_OK);
	assert_true(other.user_ns + other.system_ns > 0);
	assert_int_equal(os_process_stats(0x7ffffff0, &other), WEFT_ENOENT);
	assert_true(os_process_cpus() >= 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(child_reports_its_result_and_text),
		cmocka_unit_test(child_that_dies_is_told_of),
		cmocka_unit_test(ready_child_lets_go_of_terminal_and_folder),
		cmocka_unit_test(ready_child_lets_go_with_no_descriptor_left),
		cmocka_unit_test(stats_grow_with_work_and_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/exec.h"
#include "os/fd.h"
#include "os/netns.h"

struct world {
	struct os_netns *netns;
	struct os_exec_signals signals;
	int user_ns, net_ns;
};

static int
setup(void **state)
{
	static struct world w;
	struct os_netns_fault why;
	os_exec_signals_hold(&w.signals);
	if (os_netns_open(&w.netns, &why)) {
		fail_msg("%s", why.text);
	}
	assert_int_equal(os_netns_namespaces(w.netns, &w.user_ns, &w.net_ns), WEFT_OK);
	*state = &w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;
	os_fd_close(&w->user_ns);
	os_fd_close(&w->net_ns);
	os_netns_close(w->netns);
	return 0;
}

static const struct os_exec_file files[] = {
	{"/etc/hosts", "10.0.0.2 some-peer\n", 19}, {"/etc/hostname", "", 0}};

static enum weft_err
start(struct world *w, const char *const *programs, char *const *argv, int *pid,
	struct os_exec_fault *fault)
{
	struct os_exec x = {.user_ns = w->user_ns,
		.net_ns = w->net_ns,
		.programs = programs,
		.argv = argv,
		.envp = environ,
		.files = files,
		.files_n = 2,
		.folders = (const char *const[]){"/etc/nothing-there", "/usr/share/doc"},
		.folders_n = 2};
	return os_exec_start(&x, &w->signals, pid, fault);
}

/* The status of a shell that ran it. */
static int
run(struct world *w, const char *command)
{
	const char *const programs[] = {"/nowhere/sh", "/bin/sh", NULL};
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
	struct os_exec_fault fault;
	int pid;
	if (start(w, programs, argv, &pid, &fault)) {
		fail_msg("%s %s: %s", fault.what, fault.path ? fault.path : "",
			strerror(fault.errnum));
	}
	return os_exec_wait(pid);
}

static void
status_is_that_of_the_program_or_its_signal(void **state)
{
	assert_int_equal(run(*state, "exit 0"), 0);
	assert_int_equal(run(*state, "exit 42"), 42);
	assert_int_equal(run(*state, "kill -TERM $$"), 128 + 15);
	assert_int_equal(run(*state, "kill -KILL $$"), 128 + 9);
}

static void
program_has_another_network_and_the_same_user(void **state)
{
	char command[256], link[64] = {0};
	assert_true(readlink("/proc/self/ns/net", link, sizeof(link) - 1) > 0);
	snprintf(command, sizeof(command),
		"test \"$(readlink /proc/self/ns/net)\" != '%s' && test \"$(id -u)\" = %u && "
		"test $(grep -c : /proc/net/dev) = 1",
		link, (unsigned)getuid());
	assert_int_equal(run(*state, command), 0);
}

static void
files_are_covered_for_the_program_alone(void **state)
{
	assert_int_equal(run(*state, "grep -q some-peer /etc/hosts && test ! -s /etc/hostname && "
				     "test -z \"$(ls -A /usr/share/doc)\""),
		0);
	assert_int_not_equal(system("grep -q some-peer /etc/hosts"), 0);
	assert_int_equal(run(*state, "! grep -q tmpfs.*/tmp /proc/self/mounts || "
				     "grep -q tmpfs.*/tmp /proc/$PPID/mounts"),
		0);
}

static void
program_may_ping_and_take_any_port(void **state)
{
	assert_int_equal(
		run(*state, "test $(cat /proc/sys/net/ipv4/ip_unprivileged_port_start) = 0"), 0);
	assert_int_equal(run(*state, "set -- $(cat /proc/sys/net/ipv4/ping_group_range) && "
				     "test $1 -le $(id -g) && test $2 -ge $(id -g)"),
		0);
}

static void
signals_that_are_sent_go_on_to_the_program(void **state)
{
	/* Its parent is this program, which has them blocked and hands them on. */
	assert_int_equal(run(*state, "trap 'exit 7' USR1; kill -USR1 $PPID; "
				     "while :; do sleep 0.01; done"),
		7);
	assert_int_equal(run(*state, "kill -TERM $PPID; sleep 10"), 128 + 15);
}

static void
failures_tell_whose_they_are(void **state)
{
	struct os_exec_fault fault;
	int pid;
	char *argv[] = {(char *)"x", NULL};
	assert_int_equal(
		start(*state, (const char *const[]){"/nowhere/x", NULL}, argv, &pid, &fault),
		WEFT_ENOENT);
	assert_true(fault.is_of_the_program);
	assert_int_equal(fault.errnum, ENOENT);
	assert_int_equal(start(*state, (const char *const[]){"/etc/passwd", "/nowhere/x", NULL},
				 argv, &pid, &fault),
		WEFT_EPERM);
	assert_int_equal(fault.errnum, EACCES);
	struct world bad = *(struct world *)*state;
	bad.net_ns = 0;
	assert_int_not_equal(
		start(&bad, (const char *const[]){"/bin/true", NULL}, argv, &pid, &fault), WEFT_OK);
	assert_false(fault.is_of_the_program);
}

static void
script_without_a_first_line_is_run_by_the_shell(void **state)
{
	char path[] = "/tmp/weft-exec-XXXXXX";
	int fd = mkstemp(path), pid;
	static const char text[] = "test $# = 2 && exit $2\n";
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	assert_int_equal(fchmod(fd, 0755), 0);
	close(fd);
	struct os_exec_fault fault;
	char *argv[] = {(char *)"x", (char *)"a", (char *)"9", NULL};
	assert_int_equal(
		start(*state, (const char *const[]){path, NULL}, argv, &pid, &fault), WEFT_OK);
	assert_int_equal(os_exec_wait(pid), 9);
	unlink(path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_is_that_of_the_program_or_its_signal),
		cmocka_unit_test(program_has_another_network_and_the_same_user),
		cmocka_unit_test(files_are_covered_for_the_program_alone),
		cmocka_unit_test(program_may_ping_and_take_any_port),
		cmocka_unit_test(signals_that_are_sent_go_on_to_the_program),
		cmocka_unit_test(failures_tell_whose_they_are),
		cmocka_unit_test(script_without_a_first_line_is_run_by_the_shell),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

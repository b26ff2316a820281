/* SPDX-License-Identifier: Apache-2.0 */
#include "os/filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"

static bool
is_refused(int64_t result)
{
	return result == -1 && errno == EPERM;
}

static bool
takes_socket(int family, int type, int protocol)
{
	int fd = socket(family, type, protocol);
	return fd >= 0 && close(fd) == 0;
}

/* Each gives the number of what went otherwise than it should; 0: nothing. */
static int
needed_calls_work(void)
{
	char byte;
	int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return fd < 0 || read(fd, &byte, 1) != 1                       ? 1
	       : p == MAP_FAILED || munmap(p, 1 << 20)                 ? 2
	       : !takes_socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0) ? 3
	       : !takes_socket(AF_INET6, SOCK_STREAM, 0)               ? 4
	       : !takes_socket(AF_UNIX, SOCK_DGRAM, 0)                 ? 5
	       : !takes_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)    ? 6
								       : 0;
}

static int
other_calls_are_refused(void)
{
	char *const argv[] = {"/bin/true", NULL};
	return !is_refused(execve("/bin/true", argv, NULL))   ? 1
	       : !is_refused(fork())                          ? 2
	       : !is_refused(ptrace(PTRACE_TRACEME, 0, 0, 0)) ? 3
#ifndef __i386__ /* its socketcall(2) hides them */
	       : !is_refused(socket(AF_PACKET, SOCK_RAW, ETH_P_ALL))      ? 4
	       : !is_refused(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP))     ? 5
	       : !is_refused(socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT)) ? 6
#endif
	       : !is_refused(open("/tmp/weft-filter", O_WRONLY | O_CREAT, 0600)) ? 7
	       : !is_refused(open("/tmp", O_WRONLY | O_TMPFILE, 0600))           ? 8
	       : !is_refused(open("/dev/null", O_WRONLY))                        ? 13
	       : !is_refused(open("/dev/null", O_RDWR | O_CLOEXEC))              ? 14
	       : !is_refused(unlink("/tmp/weft-filter"))                         ? 9
	       : !is_refused(kill(getppid(), 0))                                 ? 10
	       : !is_refused(setuid(0))                                          ? 11
	       : mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
			       MAP_FAILED
		       ? 12
		       : 0;
}

static int
run_filtered(bool is_fatal, int (*call)(void))
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		_exit(os_filter_enter(is_fatal) == WEFT_OK ? call() : 100);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void
what_a_device_needs_goes_on(void **state)
{
	(void)state;
	if (os_filter_is_possible()) {
		assert_int_equal(run_filtered(true, needed_calls_work), 0);
	}
}

static void
what_it_does_not_need_is_refused(void **state)
{
	(void)state;
	if (os_filter_is_possible()) {
		assert_int_equal(run_filtered(false, other_calls_are_refused), 0);
	}
}

static int
just_fork(void)
{
	return fork() < 0;
}

static void
fatal_filter_ends_the_process(void **state)
{
	(void)state;
	if (os_filter_is_possible()) {
		int status = run_filtered(true, just_fork);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
	}
}

static _Atomic int go, result;

static void *
try_in_thread(void *arg)
{
	(void)arg;
	while (!atomic_load(&go)) {
		(void)sched_yield();
	}
	atomic_store(&result, is_refused(kill(getppid(), 0)) ? 1 : 2);
	return NULL;
}

static int
has_reached_thread(void)
{
	atomic_store(&go, 1);
	while (atomic_load(&result) == 0) {
		(void)sched_yield();
	}
	return atomic_load(&result) == 1 ? 0 : 1;
}

static void
threads_that_were_there_before_are_filtered_too(void **state)
{
	(void)state;
	if (!os_filter_is_possible()) {
		return;
	}
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		pthread_t t;
		bool ok = pthread_create(&t, NULL, try_in_thread, NULL) == 0 &&
			  os_filter_enter(false) == WEFT_OK;
		_exit(ok ? has_reached_thread() : 100);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
sanitizers_are_told(void **state)
{
	(void)state;
	if (!os_filter_is_possible()) {
		assert_int_equal(os_filter_enter(false), WEFT_ENOTSUP);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_device_needs_goes_on),
		cmocka_unit_test(what_it_does_not_need_is_refused),
		cmocka_unit_test(fatal_filter_ends_the_process),
		cmocka_unit_test(threads_that_were_there_before_are_filtered_too),
		cmocka_unit_test(sanitizers_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/clock.h"
#include "os/fd.h"
#include "os/loop.h"
#include "os/thread.h"

struct seen {
	struct os_loop *loop;
	unsigned calls;
	uint32_t events;
	int fd;     /* to read from */
	int del_fd; /* to delete; -1 none */
};

static void
on_ready(void *ctx, uint32_t events)
{
	struct seen *s = ctx;
	s->calls++;
	s->events = events;
	if (s->del_fd >= 0) {
		os_loop_del(s->loop, s->del_fd);
	}
}

static void
make_pair(int fds[2])
{
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
}

static struct mono
in_ms(int64_t ms)
{
	return mono_add_ns(os_clock_mono(), ms * WEFT_NS_PER_MS);
}

static void
loop_reports_what_was_asked_for(void **state)
{
	(void)state;
	struct seen s = {.del_fd = -1};
	int fds[2];
	make_pair(fds);
	assert_int_equal(os_loop_new(4, &s.loop), WEFT_OK);
	assert_int_equal(os_loop_add(s.loop, fds[0], OS_READABLE, on_ready, &s), WEFT_OK);
	assert_int_equal(os_loop_add(s.loop, fds[0], OS_READABLE, on_ready, &s), WEFT_EEXIST);
	os_loop_wait(s.loop, in_ms(-1));
	assert_int_equal(s.calls, 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	os_loop_wait(s.loop, MONO_NEVER);
	os_loop_wait(s.loop, MONO_NEVER); /* level-triggered */
	assert_int_equal(s.calls, 2);
	assert_int_equal(s.events, OS_READABLE);
	assert_int_equal(os_loop_mod(s.loop, fds[0], OS_WRITABLE), WEFT_OK);
	os_loop_wait(s.loop, MONO_NEVER);
	assert_int_equal(s.events, OS_WRITABLE);
	assert_int_equal(os_loop_mod(s.loop, fds[0], 0), WEFT_OK);
	os_loop_wait(s.loop, in_ms(-1));
	assert_int_equal(s.calls, 3);
	os_fd_close(&fds[1]);
	os_loop_wait(s.loop, MONO_NEVER);
	assert_int_equal(s.events, OS_READABLE | OS_HANGUP);
	os_loop_del(s.loop, fds[0]);
	os_loop_del(s.loop, fds[0]);
	os_loop_wait(s.loop, in_ms(-1));
	assert_int_equal(s.calls, 4);
	assert_int_equal(os_loop_mod(s.loop, fds[0], 0), WEFT_ENOENT);
	os_loop_free(s.loop);
	os_fd_close(&fds[0]);
}

static void
deleted_watch_gets_no_call_in_the_same_round(void **state)
{
	(void)state;
	int a[2], b[2];
	struct os_loop *l;
	make_pair(a);
	make_pair(b);
	assert_int_equal(os_loop_new(4, &l), WEFT_OK);
	/* Each deletes the other: whichever comes first, the other must not come. */
	struct seen sa = {.loop = l, .del_fd = b[0]}, sb = {.loop = l, .del_fd = a[0]};
	assert_int_equal(os_loop_add(l, a[0], OS_READABLE, on_ready, &sa), WEFT_OK);
	assert_int_equal(os_loop_add(l, b[0], OS_READABLE, on_ready, &sb), WEFT_OK);
	assert_int_equal(write(a[1], "x", 1), 1);
	assert_int_equal(write(b[1], "x", 1), 1);
	os_loop_wait(l, MONO_NEVER);
	assert_int_equal(sa.calls + sb.calls, 1);
	os_loop_free(l);
	for (int i = 0; i < 2; i++) {
		os_fd_close(&a[i]);
		os_fd_close(&b[i]);
	}
}

static void
watches_have_a_limit_and_come_free_again(void **state)
{
	(void)state;
	int fds[2];
	struct os_loop *l;
	struct seen s = {.del_fd = -1};
	make_pair(fds);
	assert_int_equal(os_loop_new(1, &l), WEFT_OK);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(os_loop_add(l, fds[0], OS_READABLE, on_ready, &s), WEFT_OK);
		assert_int_equal(os_loop_add(l, fds[1], OS_READABLE, on_ready, &s), WEFT_ENOMEM);
		os_loop_del(l, fds[0]);
	}
	os_loop_free(l);
	os_fd_close(&fds[0]);
	os_fd_close(&fds[1]);
}

static void
edge_is_told_once_until_more_comes(void **state)
{
	(void)state;
	int fds[2];
	struct seen s = {.del_fd = -1};
	make_pair(fds);
	assert_int_equal(os_loop_new(1, &s.loop), WEFT_OK);
	assert_int_equal(os_loop_add(s.loop, fds[0], OS_READABLE | OS_EDGE, on_ready, &s), WEFT_OK);
	assert_int_equal(write(fds[1], "x", 1), 1);
	os_loop_wait(s.loop, MONO_NEVER);
	os_loop_wait(s.loop, in_ms(-1));
	assert_int_equal(s.calls, 1);
	assert_int_equal(write(fds[1], "x", 1), 1);
	os_loop_wait(s.loop, MONO_NEVER);
	assert_int_equal(s.calls, 2);
	os_loop_free(s.loop);
	os_fd_close(&fds[0]);
	os_fd_close(&fds[1]);
}

static void
many_watches_come_and_go_in_any_order(void **state)
{
	(void)state;
	enum { PAIRS = 200 };
	int fds[PAIRS][2];
	struct seen s = {.del_fd = -1};
	assert_int_equal(os_loop_new(PAIRS, &s.loop), WEFT_OK);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < PAIRS; i++) {
			make_pair(fds[i]);
			assert_int_equal(
				os_loop_add(s.loop, fds[i][0], OS_READABLE, on_ready, &s), WEFT_OK);
		}
		for (int i = round; i < PAIRS; i += 2) {
			os_loop_del(s.loop, fds[i][0]);
		}
		for (int i = 0; i < PAIRS; i++) {
			bool is_watched = i < round || (i - round) % 2 != 0;
			s.calls = 0;
			assert_int_equal(write(fds[i][1], "x", 1), 1);
			os_loop_wait(s.loop, in_ms(-1));
			assert_int_equal(s.calls, is_watched);
			os_loop_del(s.loop, fds[i][0]);
		}
		for (int i = 0; i < PAIRS; i++) {
			os_fd_close(&fds[i][0]);
			os_fd_close(&fds[i][1]);
		}
	}
	os_loop_free(s.loop);
}

/* Waits until the deadline has passed; returns by how much. */
static int64_t
wait_until(struct os_loop *l, struct mono deadline, unsigned *rounds)
{
	*rounds = 0;
	while (mono_is_before(os_clock_mono(), deadline)) {
		os_loop_wait(l, deadline);
		++*rounds;
	}
	return mono_diff_ns(os_clock_mono(), deadline);
}

static void
deadlines_near_and_far_are_kept(void **state)
{
	(void)state;
	struct os_loop *l;
	unsigned rounds;
	assert_int_equal(os_loop_new(1, &l), WEFT_OK);
	for (int64_t us = 50; us <= 20000; us *= 3) {
		struct mono deadline = mono_add_ns(os_clock_mono(), us * WEFT_NS_PER_US);
		(void)wait_until(l, deadline, &rounds);
		assert_true(rounds <= 2); /* slept, did not spin */
	}
	/* Over a second: the timer. One that is armed nearer than a later deadline only costs a
	 * round. */
	os_loop_wait(l, in_ms(-1));
	struct mono first = in_ms(1100), second = in_ms(1300);
	assert_true(wait_until(l, first, &rounds) >= 0);
	assert_true(rounds <= 2);
	assert_true(wait_until(l, second, &rounds) >= 0);
	assert_true(rounds <= 3);
	os_loop_free(l);
}

static void
stop_it(void *arg)
{
	os_clock_sleep_ns(5 * WEFT_NS_PER_MS);
	os_loop_stop(arg);
}

static void
stop_from_another_thread_ends_the_wait(void **state)
{
	(void)state;
	struct os_loop *l;
	struct os_thread t;
	assert_int_equal(os_loop_new(1, &l), WEFT_OK);
	assert_int_equal(os_thread_start(&t, "stopper", 0, stop_it, l), WEFT_OK);
	while (!os_loop_is_stopped(l)) {
		os_loop_wait(l, MONO_NEVER);
	}
	os_loop_wait(l, MONO_NEVER); /* does not block any more */
	os_thread_join(&t);
	os_loop_free(l);
}

/* As filters of containers refuse what they have never heard of. */
static bool
forbid_pwait2(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int
wait_without_pwait2(void)
{
	struct os_loop *l;
	struct mono before = os_clock_mono();
	if (!forbid_pwait2() || os_loop_new(1, &l)) {
		return 2;
	}
	os_loop_wait(l, mono_add_ns(before, 3 * WEFT_NS_PER_MS));
	bool is_late = !mono_is_before(os_clock_mono(), mono_add_ns(before, 3 * WEFT_NS_PER_MS));
	os_loop_free(l);
	return is_late ? 0 : 1;
}

static void
waits_where_a_filter_forbids_the_newer_call(void **state)
{
	(void)state;
	int status = -1;
	pid_t pid = fork();
	if (pid == 0) {
		_exit(wait_without_pwait2());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loop_reports_what_was_asked_for),
		cmocka_unit_test(deleted_watch_gets_no_call_in_the_same_round),
		cmocka_unit_test(watches_have_a_limit_and_come_free_again),
		cmocka_unit_test(edge_is_told_once_until_more_comes),
		cmocka_unit_test(many_watches_come_and_go_in_any_order),
		cmocka_unit_test(deadlines_near_and_far_are_kept),
		cmocka_unit_test(stop_from_another_thread_ends_the_wait),
		cmocka_unit_test(waits_where_a_filter_forbids_the_newer_call),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/clock.h"
#include "os/entropy.h"
#include "os/error.h"
#include "os/signal.h"
#include "os/thread.h"

struct shared {
	struct os_rwlock rw;
	struct os_mutex m;
	struct os_cond c;
	bool is_written;
};

static void
write_once(void *arg)
{
	struct shared *s = arg;
	os_rwlock_write_lock(&s->rw);
	os_mutex_lock(&s->m);
	s->is_written = true;
	os_cond_signal(&s->c);
	os_mutex_unlock(&s->m);
	os_rwlock_write_unlock(&s->rw);
}

static void
read_again_and_again(void *arg)
{
	struct shared *s = arg;
	for (bool is_over = false; !is_over;) {
		os_rwlock_read_lock(&s->rw);
		os_clock_sleep_ns(WEFT_NS_PER_MS);
		os_mutex_lock(&s->m);
		is_over = s->is_written;
		os_mutex_unlock(&s->m);
		os_rwlock_read_unlock(&s->rw);
	}
}

/* Two readers overlap all the time: a lock that prefers readers would never let the writer in. */
static void
waiting_writer_is_not_starved_by_readers(void **state)
{
	(void)state;
	struct shared s = {.is_written = false};
	struct os_thread readers[2], writer;
	os_rwlock_init(&s.rw);
	os_mutex_init(&s.m);
	os_cond_init(&s.c);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			os_thread_start(&readers[i], "reader", 0, read_again_and_again, &s),
			WEFT_OK);
		os_clock_sleep_ns(WEFT_NS_PER_MS / 2);
	}
	assert_int_equal(os_thread_start(&writer, "writer", 0, write_once, &s), WEFT_OK);
	struct mono deadline = mono_add_ns(os_clock_mono(), 5 * WEFT_NS_PER_S);
	os_mutex_lock(&s.m);
	bool is_in_time = true;
	while (!s.is_written && is_in_time) {
		is_in_time = os_cond_wait(&s.c, &s.m, deadline);
	}
	s.is_written = true;
	os_mutex_unlock(&s.m);
	os_thread_join(&writer);
	os_thread_join(&readers[0]);
	os_thread_join(&readers[1]);
	os_thread_join(&readers[1]); /* twice is harmless */
	assert_true(is_in_time);
	os_cond_fini(&s.c);
	os_mutex_fini(&s.m);
	os_rwlock_fini(&s.rw);
}

static void
wait_ends_at_its_deadline(void **state)
{
	(void)state;
	struct os_mutex m;
	struct os_cond c;
	os_mutex_init(&m);
	os_cond_init(&c);
	os_mutex_lock(&m);
	struct mono deadline = mono_add_ns(os_clock_mono(), 20 * WEFT_NS_PER_MS);
	while (os_cond_wait(&c, &m, deadline)) {
	}
	assert_false(mono_is_before(os_clock_mono(), deadline));
	assert_false(os_cond_wait(&c, &m, deadline)); /* past: at once */
	os_mutex_unlock(&m);
	os_cond_fini(&c);
	os_mutex_fini(&m);
}

static void
note_name_and_mask(void *arg)
{
	sigset_t set;
	pthread_getname_np(pthread_self(), arg, 16);
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	if (!sigismember(&set, SIGTERM)) {
		strcpy(arg, "unmasked");
	}
}

static void
thread_has_its_name_and_blocks_signals(void **state)
{
	(void)state;
	struct os_thread t;
	char name[16] = "";
	assert_int_equal(
		os_thread_start(&t, "weft-a-name-too-long", 0, note_name_and_mask, name), WEFT_OK);
	os_thread_join(&t);
	assert_string_equal(name, "weft-a-name-too");
}

static void
wake_is_readable_until_cleared(void **state)
{
	(void)state;
	struct os_wake w;
	assert_int_equal(os_wake_init(&w), WEFT_OK);
	struct pollfd p = {.fd = w.fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 0), 0);
	os_wake_clear(&w);
	os_wake_signal(&w);
	os_wake_signal(&w);
	assert_int_equal(poll(&p, 1, 0), 1);
	os_wake_clear(&w);
	assert_int_equal(poll(&p, 1, 0), 0);
	os_wake_fini(&w);
}

static void
signals_arrive_as_events(void **state)
{
	(void)state;
	int fd;
	enum os_signal s;
	os_signal_block_all();
	assert_int_equal(os_signal_open(&fd), WEFT_OK);
	assert_int_equal(os_signal_take(fd, &s), WEFT_EAGAIN);
	kill(getpid(), SIGHUP);
	assert_int_equal(os_signal_take(fd, &s), WEFT_OK);
	assert_int_equal(s, OS_SIGNAL_RELOAD);
	kill(getpid(), SIGTERM);
	assert_int_equal(os_signal_take(fd, &s), WEFT_OK);
	assert_int_equal(s, OS_SIGNAL_STOP);
	kill(getpid(), SIGINT);
	assert_int_equal(os_signal_take(fd, &s), WEFT_OK);
	assert_int_equal(s, OS_SIGNAL_STOP);
	assert_int_equal(os_signal_take(fd, &s), WEFT_EAGAIN);
	close(fd);
	os_signal_unblock_all();
}

static void
clocks_advance_and_entropy_fills(void **state)
{
	(void)state;
	struct mono a = os_clock_mono();
	int64_t wall = os_clock_wall_ns();
	os_clock_sleep_ns(2 * WEFT_NS_PER_MS);
	assert_true(mono_diff_ns(os_clock_mono(), a) >= 2 * WEFT_NS_PER_MS);
	assert_true(os_clock_wall_ns() != wall);

	struct entropy e = os_entropy();
	static uint8_t x[3][1000];
	for (int i = 0; i < 3; i++) {
		e.fill(e.ctx, x[i], sizeof(x[i]));
	}
	assert_memory_not_equal(x[0], x[1], sizeof(x[0]));
	assert_memory_not_equal(x[1], x[2], sizeof(x[0]));
	e.fill(e.ctx, x, 0);
}

static void
errno_maps_to_results_and_texts(void **state)
{
	(void)state;
	char text[OS_ERROR_TEXT_MAX];
	assert_int_equal(os_error(0), WEFT_EIO);
	assert_int_equal(os_error(EPERM), WEFT_EPERM);
	assert_int_equal(os_error(EBADFD), WEFT_ECLOSED);
	assert_int_equal(os_error(ENODEV), WEFT_ENOENT);
	assert_int_equal(os_error(EAFNOSUPPORT), WEFT_ENOTSUP);
	assert_int_equal(os_error(12345), WEFT_EIO);
	assert_string_equal(os_error_text(EPERM, text, sizeof(text)), "Operation not permitted");
	assert_string_equal(os_error_text(12345, text, sizeof(text)), "error 12345");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waiting_writer_is_not_starved_by_readers),
		cmocka_unit_test(wait_ends_at_its_deadline),
		cmocka_unit_test(thread_has_its_name_and_blocks_signals),
		cmocka_unit_test(wake_is_readable_until_cleared),
		cmocka_unit_test(signals_arrive_as_events),
		cmocka_unit_test(clocks_advance_and_entropy_fills),
		cmocka_unit_test(errno_maps_to_results_and_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/clock.h"
#include "os/error.h"
#include "os/fd.h"

/* A lock that fails is a broken invariant of ours: nothing from outside reaches it. */
#define MUST(call) weft_assert((call) == 0)

static void *
thread_main(void *arg)
{
	struct os_thread *t = arg;
	pthread_setname_np(pthread_self(), t->name);
	t->run(t->arg);
	return NULL;
}

enum weft_err
os_thread_start(struct os_thread *t, const char *name, size_t stack_bytes, void (*run)(void *arg),
	void *arg)
{
	*t = (struct os_thread){.run = run, .arg = arg};
	snprintf(t->name, sizeof(t->name), "%s", name);

	pthread_attr_t attr;
	sigset_t all, before;
	MUST(pthread_attr_init(&attr));
	int e = pthread_attr_setstacksize(&attr, stack_bytes ? stack_bytes : OS_THREAD_STACK_BYTES);
	if (e == 0) {
		sigfillset(&all);
		MUST(pthread_sigmask(SIG_SETMASK, &all, &before));
		e = pthread_create(&t->id, &attr, thread_main, t);
		MUST(pthread_sigmask(SIG_SETMASK, &before, NULL));
	}
	pthread_attr_destroy(&attr);
	if (e) {
		return os_error(e);
	}
	t->is_started = true;
	return WEFT_OK;
}

void
os_thread_join(struct os_thread *t)
{
	if (t->is_started) {
		MUST(pthread_join(t->id, NULL));
		t->is_started = false;
	}
}

void
os_thread_yield(void)
{
	(void)sched_yield();
}

const void *
os_thread_self(void)
{
	return (const void *)(uintptr_t)pthread_self(); /* both in glibc and in musl */
}

enum weft_err
os_thread_pin(unsigned cpu)
{
	cpu_set_t set;
	if (cpu >= CPU_SETSIZE) {
		return WEFT_EINVAL;
	}
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		return os_error(errno);
	}
	return WEFT_OK;
}

void
os_mutex_init(struct os_mutex *m)
{
	MUST(pthread_mutex_init(&m->m, NULL));
}

void
os_mutex_fini(struct os_mutex *m)
{
	MUST(pthread_mutex_destroy(&m->m));
}

void
os_mutex_lock(struct os_mutex *m)
{
	MUST(pthread_mutex_lock(&m->m));
}

void
os_mutex_unlock(struct os_mutex *m)
{
	MUST(pthread_mutex_unlock(&m->m));
}

void
os_cond_init(struct os_cond *c)
{
	pthread_condattr_t attr;
	MUST(pthread_condattr_init(&attr));
	MUST(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
	MUST(pthread_cond_init(&c->c, &attr));
	pthread_condattr_destroy(&attr);
}

void
os_cond_fini(struct os_cond *c)
{
	MUST(pthread_cond_destroy(&c->c));
}

void
os_cond_signal(struct os_cond *c)
{
	MUST(pthread_cond_signal(&c->c));
}

void
os_cond_broadcast(struct os_cond *c)
{
	MUST(pthread_cond_broadcast(&c->c));
}

bool
os_cond_wait(struct os_cond *c, struct os_mutex *m, struct mono deadline)
{
	if (deadline.ns == MONO_NEVER.ns) {
		MUST(pthread_cond_wait(&c->c, &m->m));
		return true;
	}
	int64_t left_ns = mono_diff_ns(deadline, os_clock_mono());
	if (left_ns <= 0) {
		return false;
	}
	/* Condition variables know CLOCK_MONOTONIC only; the difference carries over. */
	struct timespec ts;
	MUST(clock_gettime(CLOCK_MONOTONIC, &ts));
	int64_t ns = ts.tv_nsec + left_ns % WEFT_NS_PER_S;
	ts.tv_sec += (time_t)(left_ns / WEFT_NS_PER_S + ns / WEFT_NS_PER_S);
	ts.tv_nsec = (long)(ns % WEFT_NS_PER_S);
	int e = pthread_cond_timedwait(&c->c, &m->m, &ts);
	weft_assert(e == 0 || e == ETIMEDOUT);
	return e == 0;
}

void
os_rwlock_init(struct os_rwlock *l)
{
	pthread_rwlockattr_t attr;
	MUST(pthread_rwlockattr_init(&attr));
	MUST(pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP));
	MUST(pthread_rwlock_init(&l->l, &attr));
	pthread_rwlockattr_destroy(&attr);
}

void
os_rwlock_fini(struct os_rwlock *l)
{
	MUST(pthread_rwlock_destroy(&l->l));
}

void
os_rwlock_read_lock(struct os_rwlock *l)
{
	MUST(pthread_rwlock_rdlock(&l->l));
}

void
os_rwlock_read_unlock(struct os_rwlock *l)
{
	MUST(pthread_rwlock_unlock(&l->l));
}

void
os_rwlock_write_lock(struct os_rwlock *l)
{
	MUST(pthread_rwlock_wrlock(&l->l));
}

void
os_rwlock_write_unlock(struct os_rwlock *l)
{
	MUST(pthread_rwlock_unlock(&l->l));
}

enum weft_err
os_wake_init(struct os_wake *w)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0) {
		return os_error(errno);
	}
	w->fd = fd;
	return WEFT_OK;
}

void
os_wake_fini(struct os_wake *w)
{
	os_fd_close(&w->fd);
}

void
os_wake_signal(const struct os_wake *w)
{
	/* The counter cannot overflow: EAGAIN would mean 2^64 - 2 signals. */
	uint64_t one = 1;
	ssize_t n;
	do {
		n = write(w->fd, &one, sizeof(one));
	} while (n < 0 && errno == EINTR);
	weft_assert(n == sizeof(one));
}

void
os_wake_clear(const struct os_wake *w)
{
	uint64_t count;
	ssize_t n;
	do {
		n = read(w->fd, &count, sizeof(count));
	} while (n < 0 && errno == EINTR);
	weft_assert(n == sizeof(count) || errno == EAGAIN);
}

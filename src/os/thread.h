/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, locks and wake-ups. Nothing here is taken on the packet path but the reader side of
 * the read-write lock, once a batch. */
#ifndef WEFT_OS_THREAD_H
#define WEFT_OS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mono.h"

#define OS_THREAD_STACK_BYTES (128u * 1024u) /* what os_thread_start() takes for 0 */

struct os_thread {
	pthread_t id;
	void (*run)(void *arg);
	void *arg;
	char name[16];
	bool is_started;
};

/* t must stay in place until joined. All signals are blocked in the new thread. name: at most
 * 15 bytes are kept. */
WEFT_MUST_CHECK enum weft_err os_thread_start(struct os_thread *t, const char *name,
	size_t stack_bytes, void (*run)(void *arg), void *arg);
/* Does nothing when it was not started, or is joined. */
void os_thread_join(struct os_thread *t);
void os_thread_yield(void);
/* Where the C library has the data of the calling thread, errno among them or close by. */
const void *os_thread_self(void);
/* Runs the calling thread on that one processor. */
WEFT_MUST_CHECK enum weft_err os_thread_pin(unsigned cpu);

struct os_mutex {
	pthread_mutex_t m;
};
void os_mutex_init(struct os_mutex *m);
void os_mutex_fini(struct os_mutex *m);
void os_mutex_lock(struct os_mutex *m);
void os_mutex_unlock(struct os_mutex *m);

struct os_cond {
	pthread_cond_t c;
};
void os_cond_init(struct os_cond *c);
void os_cond_fini(struct os_cond *c);
void os_cond_signal(struct os_cond *c);
void os_cond_broadcast(struct os_cond *c);
/* deadline MONO_NEVER waits without end. Returns false when the deadline passed. */
bool os_cond_wait(struct os_cond *c, struct os_mutex *m, struct mono deadline);

/* Prefers a waiting writer, so that a stream of readers cannot starve configuration. A thread
 * must not take the reader side twice. */
struct os_rwlock {
	pthread_rwlock_t l;
};
void os_rwlock_init(struct os_rwlock *l);
void os_rwlock_fini(struct os_rwlock *l);
void os_rwlock_read_lock(struct os_rwlock *l);
void os_rwlock_read_unlock(struct os_rwlock *l);
void os_rwlock_write_lock(struct os_rwlock *l);
void os_rwlock_write_unlock(struct os_rwlock *l);

/* An eventfd: readable from signal until clear. */
struct os_wake {
	int fd;
};
WEFT_MUST_CHECK enum weft_err os_wake_init(struct os_wake *w);
void os_wake_fini(struct os_wake *w);
void os_wake_signal(const struct os_wake *w); /* any thread */
void os_wake_clear(const struct os_wake *w);

#endif

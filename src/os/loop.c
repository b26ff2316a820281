/* SPDX-License-Identifier: Apache-2.0 */
/* The loop over epoll.
 *
 * Near deadlines are the timeout of the wait. Far ones are a timer on CLOCK_BOOTTIME, since an
 * epoll timeout stands still while the machine sleeps: a keepalive due in 20 s must go out at
 * once after a night. The timer is re-armed only when the deadline moves nearer than it; one
 * that fires too early costs an idle round. */
#include "os/loop.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/clock.h"
#include "os/error.h"
#include "os/fd.h"
#include "os/thread.h"

#define ROUND_EVENTS 32
#define FDS_FIRST 64u
#define NEAR_NS WEFT_NS_PER_S /* deadlines nearer than this need no timer */

struct watch {
	int fd;              /* -1: free */
	uint32_t next_free;  /* of a free one: index + 1 of the next, 0 = none */
	uint32_t generation; /* tells an event of a deleted watch from one of its successor */
	os_ready *ready;
	void *ctx;
};

struct os_loop {
	int epoll_fd;
	int timer_fd;
	struct mono timer_at; /* MONO_NEVER: not armed */
	struct os_wake stop_wake;
	atomic_bool is_stopped;
	bool has_pwait2;
	uint32_t *by_fd; /* index + 1 of a descriptor's watch; 0 = none */
	size_t by_fd_n;
	uint32_t free; /* as next_free */
	size_t watches_max, watches_used;
	struct watch watches[];
};

static void
timer_ready(void *ctx, uint32_t events)
{
	struct os_loop *l = ctx;
	(void)events;
	uint64_t count;
	ssize_t n = read(l->timer_fd, &count, sizeof(count));
	(void)n; /* EAGAIN: it was re-armed between the wait and here */
	l->timer_at = MONO_NEVER;
}

static void
stop_ready(void *ctx, uint32_t events)
{
	struct os_loop *l = ctx;
	(void)events;
	os_wake_clear(&l->stop_wake);
}

enum weft_err
os_loop_new(size_t watches_max, struct os_loop **out)
{
	size_t max = watches_max + 2; /* the timer and the stop wake */
	struct os_loop *l = calloc(1, sizeof(*l) + max * sizeof(l->watches[0]));
	if (!l) {
		return WEFT_ENOMEM;
	}
	l->watches_max = max;
	l->has_pwait2 = true;
	l->timer_at = MONO_NEVER;
	l->stop_wake.fd = -1;
	l->timer_fd = -1;
	enum weft_err err = WEFT_OK;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0) {
		err = os_error(errno);
		goto undo;
	}
	l->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (l->timer_fd < 0) {
		err = os_error(errno);
		goto undo;
	}
	err = os_wake_init(&l->stop_wake);
	if (!err) {
		err = os_loop_add(l, l->timer_fd, OS_READABLE, timer_ready, l);
	}
	if (!err) {
		err = os_loop_add(l, l->stop_wake.fd, OS_READABLE, stop_ready, l);
	}
	if (err) {
		goto undo;
	}
	*out = l;
	return WEFT_OK;
undo:
	os_loop_free(l);
	return err;
}

void
os_loop_free(struct os_loop *l)
{
	if (!l) {
		return;
	}
	os_fd_close(&l->epoll_fd);
	os_fd_close(&l->timer_fd);
	os_wake_fini(&l->stop_wake);
	free(l->by_fd);
	free(l);
}

static struct watch *
find(struct os_loop *l, int fd)
{
	uint32_t index = fd >= 0 && (size_t)fd < l->by_fd_n ? l->by_fd[fd] : 0;
	return index ? &l->watches[index - 1] : NULL;
}

static bool
make_room(struct os_loop *l, int fd)
{
	size_t n = l->by_fd_n ? l->by_fd_n : FDS_FIRST;
	while (n <= (size_t)fd) {
		n *= 2;
	}
	if (n == l->by_fd_n) {
		return true;
	}
	uint32_t *bigger = realloc(l->by_fd, n * sizeof(*bigger));
	if (!bigger) {
		return false;
	}
	memset(bigger + l->by_fd_n, 0, (n - l->by_fd_n) * sizeof(*bigger));
	l->by_fd = bigger;
	l->by_fd_n = n;
	return true;
}

/* A place that is not taken from the free ones yet. */
static struct watch *
peek_free(struct os_loop *l)
{
	if (l->free) {
		return &l->watches[l->free - 1];
	}
	return l->watches_used < l->watches_max ? &l->watches[l->watches_used] : NULL;
}

static struct epoll_event
event_of(const struct os_loop *l, const struct watch *w, uint32_t events)
{
	struct epoll_event e = {0};
	e.events = (events & OS_READABLE ? EPOLLIN : 0u) | (events & OS_WRITABLE ? EPOLLOUT : 0u) |
		   (events & OS_EDGE ? (uint32_t)EPOLLET : 0u);
	e.data.u64 = (uint64_t)w->generation << 32 | (uint64_t)(w - l->watches);
	return e;
}

enum weft_err
os_loop_add(struct os_loop *l, int fd, uint32_t events, os_ready *ready, void *ctx)
{
	weft_assert(fd >= 0);
	if (find(l, fd)) {
		return WEFT_EEXIST;
	}
	struct watch *w = peek_free(l);
	if (!w || !make_room(l, fd)) {
		return WEFT_ENOMEM;
	}
	w->generation++;
	struct epoll_event e = event_of(l, w, events);
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &e)) {
		return os_error(errno);
	}
	if (l->free) {
		l->free = w->next_free;
	} else {
		l->watches_used++;
	}
	l->by_fd[fd] = (uint32_t)(w - l->watches) + 1;
	w->fd = fd;
	w->ready = ready;
	w->ctx = ctx;
	return WEFT_OK;
}

enum weft_err
os_loop_mod(struct os_loop *l, int fd, uint32_t events)
{
	struct watch *w = find(l, fd);
	if (!w) {
		return WEFT_ENOENT;
	}
	struct epoll_event e = event_of(l, w, events);
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, fd, &e)) {
		return os_error(errno);
	}
	return WEFT_OK;
}

void
os_loop_del(struct os_loop *l, int fd)
{
	struct watch *w = find(l, fd);
	if (!w) {
		return;
	}
	/* Fails only when the caller has closed it already, which removed it. */
	(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	l->by_fd[fd] = 0;
	w->fd = -1;
	w->generation++;
	w->next_free = l->free;
	l->free = (uint32_t)(w - l->watches) + 1;
}

/* How long the wait may last: -1 without end. Arms the timer when it must. */
static int64_t
timeout_ns(struct os_loop *l, struct mono deadline)
{
	if (os_loop_is_stopped(l)) {
		return 0;
	}
	if (deadline.ns == MONO_NEVER.ns) {
		return -1;
	}
	int64_t left_ns = mono_diff_ns(deadline, os_clock_mono());
	if (left_ns <= 0) {
		return 0;
	}
	if (left_ns < NEAR_NS) {
		return left_ns;
	}
	if (mono_is_before(deadline, l->timer_at)) {
		struct itimerspec at = {
			.it_value = {.tv_sec = (time_t)(deadline.ns / WEFT_NS_PER_S),
				.tv_nsec = (long)(deadline.ns % WEFT_NS_PER_S)}};
		weft_assert(timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &at, NULL) == 0);
		l->timer_at = deadline;
	}
	return -1;
}

static int
wait_events(struct os_loop *l, struct epoll_event *events, int64_t ns)
{
	if (l->has_pwait2) {
		struct timespec ts = {.tv_sec = (time_t)(ns / WEFT_NS_PER_S),
			.tv_nsec = (long)(ns % WEFT_NS_PER_S)};
		int n = epoll_pwait2(l->epoll_fd, events, ROUND_EVENTS, ns < 0 ? NULL : &ts, NULL);
		if (n >= 0 || (errno != ENOSYS && errno != EPERM)) {
			return n;
		}
		/* Linux before 5.11, or the filter of a container that is older than this call. */
		l->has_pwait2 = false;
	}
	/* Rounded up: a wait that ends early would spin until the deadline. */
	int64_t ms = ns < 0 ? -1 : (ns + WEFT_NS_PER_MS - 1) / WEFT_NS_PER_MS;
	return epoll_wait(l->epoll_fd, events, ROUND_EVENTS, (int)ms);
}

void
os_loop_wait(struct os_loop *l, struct mono deadline)
{
	struct epoll_event events[ROUND_EVENTS];
	int n = wait_events(l, events, timeout_ns(l, deadline));
	weft_assert(n >= 0 || errno == EINTR);
	for (int i = 0; i < n; i++) {
		struct watch *w = &l->watches[events[i].data.u64 & UINT32_MAX];
		if (w->fd < 0 || w->generation != (uint32_t)(events[i].data.u64 >> 32)) {
			continue; /* deleted by an earlier callback of this round */
		}
		uint32_t e = events[i].events;
		bool is_hangup = (e & (EPOLLERR | EPOLLHUP)) != 0;
		w->ready(w->ctx, (e & EPOLLIN || is_hangup ? OS_READABLE : 0u) |
					 (e & EPOLLOUT ? OS_WRITABLE : 0u) |
					 (is_hangup ? OS_HANGUP : 0u));
	}
}

void
os_loop_stop(struct os_loop *l)
{
	atomic_store(&l->is_stopped, true);
	os_wake_signal(&l->stop_wake);
}

bool
os_loop_is_stopped(const struct os_loop *l)
{
	return atomic_load(&l->is_stopped);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "node/runner.h"

#include <stdio.h>
#include <string.h>

#include "node/crew.h"
#include "node/node.h"
#include "os/clock.h"

/* The wake, the port, and a link of two sockets beside the one that it replaces. */
#define RUNNER_WATCHES 6
/* Turns of helping others without finding work before a worker of a crew sleeps: about as long
 * as waking it again would take. */
#define HELP_SPINS 200

static void
on_port(void *ctx, uint32_t events)
{
	struct runner *r = ctx;
	(void)events;
	r->ready |= WORKER_READY_PORT;
}

static void
on_link(void *ctx, uint32_t events)
{
	struct runner *r = ctx;
	(void)events;
	r->ready |= WORKER_READY_LINK;
}

static void
on_wake(void *ctx, uint32_t events)
{
	struct runner *r = ctx;
	(void)events;
	os_wake_clear(&r->wake);
}

enum weft_err
runner_init(struct runner *r, struct worker *w)
{
	r->worker = w;
	r->port_fd = -1;
	enum weft_err e = os_loop_new(RUNNER_WATCHES, &r->loop);
	if (e) {
		return e;
	}
	e = os_wake_init(&r->wake);
	if (e) {
		goto undo_loop;
	}
	e = os_loop_add(r->loop, r->wake.fd, OS_READABLE, on_wake, r);
	if (e) {
		goto undo_wake;
	}
	os_mutex_init(&r->mutex);
	os_cond_init(&r->done);
	return WEFT_OK;

undo_wake:
	os_wake_fini(&r->wake);
undo_loop:
	os_loop_free(r->loop);
	return e;
}

enum weft_err
runner_watch_port(struct runner *r, int fd)
{
	enum weft_err e = os_loop_add(r->loop, fd, OS_READABLE, on_port, r);
	if (!e) {
		r->port_fd = fd;
		r->ready |= WORKER_READY_PORT;
	}
	return e;
}

enum weft_err
runner_watch_link(struct runner *r, const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		enum weft_err e = os_loop_add(r->loop, fds[i], OS_READABLE, on_link, r);
		if (e) {
			runner_unwatch_link(r, fds, i);
			return e;
		}
	}
	r->ready |= WORKER_READY_LINK;
	return WEFT_OK;
}

void
runner_unwatch_link(struct runner *r, const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		os_loop_del(r->loop, fds[i]);
	}
}

/* Returns whether to stop. */
static bool
take_news(struct runner *r)
{
	os_mutex_lock(&r->mutex);
	atomic_store_explicit(&r->has_news, false, memory_order_relaxed);
	if (r->ask) {
		r->ask(r, r->ask_arg);
		r->ask = NULL;
		os_cond_broadcast(&r->done);
	}
	bool is_stopping = r->is_stopping;
	os_mutex_unlock(&r->mutex);
	return is_stopping;
}

static struct mono
deadline_of(const struct runner *r)
{
	if (r->worker->index != 0) {
		return MONO_NEVER;
	}
	return worker_deadline(r->worker);
}

static void
wait_for_work(struct runner *r, struct mono until, struct mono now)
{
	struct crew *crew = r->worker->env.crew;
	if (crew && crew_set_idle(crew, r->worker->index, true)) {
		r->ready |= WORKER_READY_HELP;
		return;
	}
	until = mono_min(until, deadline_of(r));
	gap_expect(&r->gap, now, until);
	os_loop_wait(r->loop, until);
	if (crew) {
		crew_set_idle(crew, r->worker->index, false);
		r->ready |= WORKER_READY_HELP;
	}
}

static void
look_for_gap(struct runner *r, struct wg_time now)
{
	struct mono since;
	if (r->worker->index == 0 &&
		gap_check(&r->gap, now.mono, os_clock_suspended_ns(), &since)) {
		worker_wake(r->worker, since, now);
	}
}

static void
run(void *arg)
{
	struct runner *r = arg;
	unsigned spins = 0;
	gap_init(&r->gap, os_clock_suspended_ns());
	for (;;) {
		if (atomic_load_explicit(&r->has_news, memory_order_acquire) && take_news(r)) {
			return;
		}
		struct wg_time now = node_time();
		look_for_gap(r, now);
		gap_expect(&r->gap, now.mono, now.mono); /* unless it waits */
		unsigned ready = r->ready;
		r->ready = 0;
		unsigned more = ready ? worker_turn(r->worker, now, ready) : 0;
		/* Behind what has come: after a pause the sockets may hold what a timer would give
		 * up, a packet that is only late above all. */
		if (!mono_is_before(now.mono, deadline_of(r))) {
			worker_tick(r->worker, now);
		}
		struct mono rest = worker_rest(r->worker, now.mono);
		if (r->worker->is_closed) {
			r->worker->is_closed = false;
			os_loop_del(r->loop, r->port_fd);
			r->port_fd = -1;
			r->closed(r->ctx);
		}
		if (more & (WORKER_READY_LINK | WORKER_READY_PORT)) {
			/* Trying a side that is empty costs as much as asking whether it is. */
			r->ready = WORKER_READY_LINK | WORKER_READY_PORT;
			spins = 0;
		} else if ((more & WORKER_READY_HELP) ||
			   (r->worker->env.crew && spins < HELP_SPINS)) {
			spins = more & WORKER_READY_HELP ? 0 : spins + 1;
			os_loop_wait(r->loop, (struct mono){0});
			r->ready |= WORKER_READY_HELP;
		} else {
			wait_for_work(r, rest, now.mono);
			spins = 0;
		}
	}
}

enum weft_err
runner_start(struct runner *r)
{
	char name[16];
	snprintf(name, sizeof(name), "weft-%u", r->worker->index);
	return os_thread_start(&r->thread, name, 0, run, r);
}

void
runner_wake(struct runner *r)
{
	os_wake_signal(&r->wake);
}

void
runner_ask(struct runner *r, void (*ask)(struct runner *r, void *arg), void *arg)
{
	os_mutex_lock(&r->mutex);
	r->ask = ask;
	r->ask_arg = arg;
	atomic_store_explicit(&r->has_news, true, memory_order_release);
	runner_wake(r);
	while (r->ask) {
		os_cond_wait(&r->done, &r->mutex, MONO_NEVER);
	}
	os_mutex_unlock(&r->mutex);
}

void
runner_stop(struct runner *r)
{
	os_mutex_lock(&r->mutex);
	r->is_stopping = true;
	atomic_store_explicit(&r->has_news, true, memory_order_release);
	os_mutex_unlock(&r->mutex);
	runner_wake(r);
	os_thread_join(&r->thread);
}

void
runner_fini(struct runner *r)
{
	worker_free(r->worker);
	os_mutex_fini(&r->mutex);
	os_cond_fini(&r->done);
	os_wake_fini(&r->wake);
	os_loop_free(r->loop);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's thread: waits for its link and port, keeps the engine's timers (worker 0), and
 * does what control asks between two turns. */
#ifndef WEFT_NODE_RUNNER_H
#define WEFT_NODE_RUNNER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "node/gap.h"
#include "node/worker.h"
#include "os/loop.h"
#include "os/thread.h"

struct runner {
	struct worker *worker;     /* owned */
	void (*closed)(void *ctx); /* the port is gone; called once, on the runner's thread */
	void *ctx;
	struct os_thread thread;
	struct os_loop *loop;
	struct os_wake wake;
	struct gap gap;        /* worker 0's */
	unsigned ready;        /* what the loop's callbacks saw */
	int port_fd;           /* watched; -1: none */
	_Atomic bool has_news; /* stop or ask is set: look under the mutex */
	struct os_mutex mutex; /* guards the rest */
	struct os_cond done;
	bool is_stopping;
	void (*ask)(struct runner *r, void *arg);
	void *ask_arg;
};

/* The worker must have been made; on failure it stays the caller's. */
WEFT_MUST_CHECK enum weft_err runner_init(struct runner *r, struct worker *w);
WEFT_MUST_CHECK enum weft_err runner_start(struct runner *r);
/* Ends the thread. Other workers may still wake this one, until runner_fini(). */
void runner_stop(struct runner *r);
/* Frees the worker too. When no runner of the node has a thread any more. */
void runner_fini(struct runner *r);
/* Watches the port, or descriptors of a link besides those it has. On failure none of them. On
 * the runner's thread, or before its start. */
WEFT_MUST_CHECK enum weft_err runner_watch_port(struct runner *r, int fd);
WEFT_MUST_CHECK enum weft_err runner_watch_link(struct runner *r, const int *fds, size_t n);
/* Those that are watched. */
void runner_unwatch_link(struct runner *r, const int *fds, size_t n);
/* Runs ask on the runner's thread between two turns and waits for it. Not under the node's
 * lock, which a turn may be waiting for. */
void runner_ask(struct runner *r, void (*ask)(struct runner *r, void *arg), void *arg);
void runner_wake(struct runner *r);

#endif

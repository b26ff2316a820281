/* SPDX-License-Identifier: Apache-2.0 */
#include "node/crew.h"

#include <stdlib.h>

#include "base/assert.h"
#include "node/egress.h"
#include "node/ingress.h"

/* Jobs that must wait for a hand before a sleeping worker is woken: waking costs the waker
 * about 28 us, as much as sealing a batch and a half. */
#define WAKE_BACKLOG 3
/* Batches of one kind in a turn: others' hands empty the lane while it is filled, so its depth is
 * no bound. About 1 ms, in which the other side and the timers wait. */
#define TURN_BATCHES 16

/* Jobs from tail to head are in use, in order; both are the owner's. */
struct lane {
	struct job *jobs[CREW_LANE_DEPTH];
	unsigned head; /* next to fill */
	unsigned tail; /* oldest not finished */
};

#define CREW_MAX 16

struct crew {
	unsigned n;
	void (*wake)(void *ctx, unsigned i);
	void *ctx;
	_Atomic uint32_t idle; /* bit i: worker i waits, or is about to */
	struct lane lanes[CREW_MAX][2];
};

static struct job *
job_new(enum job_kind kind)
{
	if (kind == JOB_KIND_EGRESS) {
		struct egress_job *j = malloc(sizeof(*j));
		if (j) {
			egress_job_init(j);
		}
		return j ? &j->job : NULL;
	}
	struct ingress_job *j = malloc(sizeof(*j) + JOB_ARENA_LEN);
	if (!j) {
		return NULL;
	}
	ingress_job_init(j);
	j->buf = (uint8_t *)(j + 1);
	j->buf_len = JOB_ARENA_LEN;
	return &j->job;
}

enum weft_err
crew_new(unsigned workers, void (*wake)(void *ctx, unsigned i), void *ctx, struct crew **out)
{
	weft_assert(workers <= CREW_MAX);
	struct crew *c = calloc(1, sizeof(*c));
	if (!c) {
		return WEFT_ENOMEM;
	}
	c->n = workers;
	c->wake = wake;
	c->ctx = ctx;
	for (unsigned i = 0; i < workers; i++) {
		for (unsigned kind = 0; kind < 2; kind++) {
			for (unsigned k = 0; k < CREW_LANE_DEPTH; k++) {
				struct job *j = job_new((enum job_kind)kind);
				if (!j) {
					crew_free(c);
					return WEFT_ENOMEM;
				}
				c->lanes[i][kind].jobs[k] = j;
			}
		}
	}
	*out = c;
	return WEFT_OK;
}

void
crew_free(struct crew *c)
{
	for (unsigned i = 0; i < c->n; i++) {
		for (unsigned kind = 0; kind < 2; kind++) {
			for (unsigned k = 0; k < CREW_LANE_DEPTH; k++) {
				free(c->lanes[i][kind].jobs[k]);
			}
		}
	}
	free(c);
}

static bool
claim(struct job *j)
{
	int ready = JOB_STATE_READY;
	return atomic_load_explicit(&j->state, memory_order_relaxed) == JOB_STATE_READY &&
	       atomic_compare_exchange_strong_explicit(&j->state, &ready, JOB_STATE_CLAIMED,
		       memory_order_acquire, memory_order_relaxed);
}

/* The middle stage of a claimed job. */
static void
work(struct worker *w, struct job *j)
{
	w->has_used_keys = true;
	if (j->kind == JOB_KIND_EGRESS) {
		egress_seal(w->aead, (struct egress_job *)j);
	} else {
		ingress_open(w->aead, (struct ingress_job *)j);
	}
	atomic_store_explicit(&j->state, JOB_STATE_DONE, memory_order_release);
}

/* Takes one ready job of anybody but w. */
static bool
help_one(struct crew *c, struct worker *w)
{
	for (unsigned d = 1; d < c->n; d++) {
		unsigned i = (w->index + d) % c->n;
		for (unsigned kind = 0; kind < 2; kind++) {
			for (unsigned k = 0; k < CREW_LANE_DEPTH; k++) {
				struct job *j = c->lanes[i][kind].jobs[k];
				if (claim(j)) {
					work(w, j);
					return true;
				}
			}
		}
	}
	return false;
}

static void
wake_one(struct crew *c, unsigned self)
{
	uint32_t idle = atomic_load_explicit(&c->idle, memory_order_relaxed) & ~(1u << self);
	if (idle == 0) {
		return;
	}
	unsigned i = 0;
	while (!(idle & (1u << i))) {
		i++;
	}
	/* Whoever clears the bit does the waking, so one sleeper is woken once. */
	if (atomic_fetch_and_explicit(&c->idle, ~(1u << i), memory_order_seq_cst) & (1u << i)) {
		c->wake(c->ctx, i);
	}
}

static bool
fill(struct worker *w, struct job *j, struct wg_time now, bool *is_empty)
{
	if (j->kind == JOB_KIND_EGRESS) {
		return egress_fill(w, (struct egress_job *)j, now, is_empty);
	}
	return ingress_fill(w, (struct ingress_job *)j, now, is_empty);
}

static void
finish(struct worker *w, struct job *j, struct wg_time now)
{
	if (j->kind == JOB_KIND_EGRESS) {
		egress_send(w, (struct egress_job *)j, now);
	} else {
		ingress_deliver(w, (struct ingress_job *)j, now);
	}
	atomic_store_explicit(&j->state, JOB_STATE_EMPTY, memory_order_relaxed);
}

static void
finish_done(struct worker *w, struct lane *l, struct wg_time now)
{
	while (l->tail != l->head) {
		struct job *j = l->jobs[l->tail % CREW_LANE_DEPTH];
		if (atomic_load_explicit(&j->state, memory_order_acquire) != JOB_STATE_DONE) {
			return;
		}
		finish(w, j, now);
		l->tail++;
	}
}

/* Fills the lane as far as there is input and time, then works it off. Returns whether input is
 * left. */
static bool
turn_lane(struct crew *c, struct worker *w, struct lane *l, struct wg_time now)
{
	bool is_empty = false;
	for (unsigned i = 0; i < TURN_BATCHES && !is_empty && l->head - l->tail < CREW_LANE_DEPTH;
		i++) {
		struct job *j = l->jobs[l->head % CREW_LANE_DEPTH];
		if (fill(w, j, now, &is_empty)) {
			atomic_store_explicit(&j->state, JOB_STATE_READY, memory_order_release);
			l->head++;
			if (l->head - l->tail >= WAKE_BACKLOG) {
				wake_one(c, w->index);
			}
		}
		finish_done(w, l, now);
	}
	for (unsigned k = l->tail; k != l->head; k++) {
		struct job *j = l->jobs[k % CREW_LANE_DEPTH];
		if (claim(j)) {
			work(w, j);
		}
	}
	/* What is left is in somebody's hands and takes some tens of microseconds. */
	while (l->tail != l->head) {
		finish_done(w, l, now);
		if (l->tail != l->head && !help_one(c, w)) {
			os_thread_yield();
		}
	}
	return !is_empty;
}

unsigned
crew_turn(struct crew *c, struct worker *w, struct wg_time now, unsigned ready)
{
	unsigned more = 0;
	if ((ready & WORKER_READY_LINK) &&
		turn_lane(c, w, &c->lanes[w->index][JOB_KIND_INGRESS], now)) {
		more |= WORKER_READY_LINK;
	}
	if ((ready & WORKER_READY_PORT) &&
		turn_lane(c, w, &c->lanes[w->index][JOB_KIND_EGRESS], now)) {
		more |= WORKER_READY_PORT;
	}
	if (w->ready_n > 0) {
		egress_flush_ready(w, now);
	}
	if (more == 0 && help_one(c, w)) {
		more |= WORKER_READY_HELP;
	}
	return more;
}

bool
crew_set_idle(struct crew *c, unsigned i, bool is_idle)
{
	if (!is_idle) {
		atomic_fetch_and_explicit(&c->idle, ~(1u << i), memory_order_relaxed);
		return false;
	}
	/* The bit first, then the look: a job made ready between the two is seen by one side. */
	atomic_fetch_or_explicit(&c->idle, 1u << i, memory_order_seq_cst);
	for (unsigned k = 0; k < c->n; k++) {
		for (unsigned kind = 0; kind < 2; kind++) {
			for (unsigned m = 0; m < CREW_LANE_DEPTH; m++) {
				if (k != i &&
					atomic_load_explicit(&c->lanes[k][kind].jobs[m]->state,
						memory_order_seq_cst) == JOB_STATE_READY) {
					atomic_fetch_and_explicit(
						&c->idle, ~(1u << i), memory_order_relaxed);
					return true;
				}
			}
		}
	}
	return false;
}

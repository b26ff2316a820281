/* SPDX-License-Identifier: Apache-2.0 */
/* A pump is two ways. A way reads at one end when that has something and writes at the other
 * while that takes it:
 *
 *   OPEN -- end of stream --> ENDING -- all written, end handed on --> ENDED
 *
 * Descriptors are watched for edges, once, so a busy pump makes no calls but those that move
 * bytes: whether an end is ready is remembered until a call says WEFT_EAGAIN.
 *
 * What was read and could not be written is held: copied to the heap, or left in the pipe of a
 * splice. Pipes are lent from a pool while there is something in them, so that connections that
 * rest have none.
 *
 * When an end fails, the way into it is dead. The way out of it may still bring what came before
 * the failure (an answer, and then a reset because nobody read the question), so it is emptied
 * first. Then the other end is reset, when its peer has acknowledged all of that: a reset throws
 * away what the kernel has not sent yet. Without progress for LINGER_NS it is reset anyway. */
#include "cli/pump.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/list.h"
#include "os/error.h"
#include "os/fd.h"
#include "os/loop.h"
#include "os/stream.h"

#define SCRATCH_BYTES (64u << 10)
#define TURN_BYTES (512u << 10) /* that a way moves before others have their turn */
#define PIPES_MAX 64u           /* their memory: PIPES_MAX x PUMP_HELD_MAX when all are full */
/* So many reads in a row that fill half of the scratch are a long transfer: super-frames are a
 * little shorter than it is. */
#define SPLICE_AFTER 8u
/* A splice that moves less than this costs more than a copy. */
#define SPLICE_BYTES_MIN (16u << 10)
#define LINGER_NS WEFT_NS_PER_S
#define LINGER_LOOK_NS (5 * WEFT_NS_PER_MS)

struct pipe {
	int fds[2];
	size_t cap;
};

enum way_state {
	WAY_OPEN,
	WAY_ENDING,
	WAY_ENDED,
};

struct end {
	struct pump *pump;
	int in, out;
	bool is_socket;
	bool can_read, can_write; /* as far as is known */
	bool has_hung_up;         /* an error may wait at the socket */
	bool has_failed;
};

struct way {
	enum way_state state;
	bool can_splice;
	unsigned full_reads; /* in a row */
	uint8_t *held;       /* NULL: nothing is held there */
	size_t held_at, held_len;
	struct pipe *pipe; /* NULL: none is lent */
	size_t piped;      /* bytes in it */
	uint64_t bytes;
};

struct pump {
	struct pumps *all;
	struct list link; /* among the ready, the lingering, or alone */
	bool is_ready;
	struct end end[PUMP_ENDS];
	struct way way[PUMP_ENDS]; /* out of that end */
	struct pump_result result;
	struct mono linger_until; /* moves with progress */
	uint64_t linger_mark;     /* what progress is told by */
	pump_done *done;
	void *ctx;
};

struct pumps {
	struct os_loop *loop;
	struct list ready, lingering;
	struct pipe *spare[PIPES_MAX];
	size_t spare_n, pipes_n;
	size_t n;
	bool is_copying;
	uint8_t scratch[SCRATCH_BYTES];
};

enum weft_err
pumps_new(struct os_loop *loop, struct pumps **out)
{
	struct pumps *all = malloc(sizeof(*all));
	if (!all) {
		return WEFT_ENOMEM;
	}
	memset(all, 0, offsetof(struct pumps, scratch));
	all->loop = loop;
	list_init(&all->ready);
	list_init(&all->lingering);
	*out = all;
	return WEFT_OK;
}

static void
pipe_free(struct pumps *all, struct pipe *p)
{
	os_fd_close(&p->fds[0]);
	os_fd_close(&p->fds[1]);
	free(p);
	all->pipes_n--;
}

void
pumps_free(struct pumps *all)
{
	if (!all) {
		return;
	}
	weft_assert(all->n == 0);
	while (all->spare_n > 0) {
		pipe_free(all, all->spare[--all->spare_n]);
	}
	weft_assert(all->pipes_n == 0);
	free(all);
}

void
pumps_set_copying(struct pumps *all)
{
	all->is_copying = true;
}

/* NULL: there are no more. */
static struct pipe *
pipe_lend(struct pumps *all)
{
	if (all->spare_n > 0) {
		return all->spare[--all->spare_n];
	}
	if (all->pipes_n == PIPES_MAX) {
		return NULL;
	}
	struct pipe *p = malloc(sizeof(*p));
	if (!p || os_stream_pipe(PUMP_HELD_MAX, p->fds, &p->cap)) {
		free(p);
		return NULL;
	}
	all->pipes_n++;
	return p;
}

/* One with something in it cannot be lent again. */
static void
pipe_return(struct pumps *all, struct way *w)
{
	if (w->pipe && w->piped > 0) {
		pipe_free(all, w->pipe);
	} else if (w->pipe) {
		all->spare[all->spare_n++] = w->pipe;
	}
	w->pipe = NULL;
	w->piped = 0;
}

static void
make_ready(struct pump *p)
{
	if (!p->is_ready) {
		p->is_ready = true;
		list_remove(&p->link);
		list_push_back(&p->all->ready, &p->link);
	}
}

static void
end_ready(void *ctx, uint32_t events)
{
	struct end *e = ctx;
	e->can_read |= (events & OS_READABLE) != 0;
	e->can_write |= (events & (OS_WRITABLE | OS_HANGUP)) != 0;
	e->has_hung_up |= (events & OS_HANGUP) != 0;
	make_ready(e->pump);
}

static void
out_ready(void *ctx, uint32_t events)
{
	struct end *e = ctx;
	(void)events;
	e->can_write = true;
	make_ready(e->pump);
}

static void
unwatch(struct pump *p, struct end *e)
{
	os_loop_del(p->all->loop, e->in);
	os_loop_del(p->all->loop, e->out);
}

static enum weft_err
watch_one(struct pump *p, int fd, uint32_t events, os_ready *ready, struct end *e)
{
	enum weft_err err = os_loop_add(p->all->loop, fd, events | OS_EDGE, ready, e);
	return err == WEFT_EPERM ? WEFT_OK : err; /* a regular file, always ready */
}

static enum weft_err
watch(struct pump *p, struct end *e)
{
	if (e->in == e->out) {
		return watch_one(p, e->in, OS_READABLE | OS_WRITABLE, end_ready, e);
	}
	enum weft_err err = watch_one(p, e->in, OS_READABLE, end_ready, e);
	return err ? err : watch_one(p, e->out, OS_WRITABLE, out_ready, e);
}

static void
close_end(struct end *e, bool is_reset)
{
	if (e->in != e->out) {
		os_fd_close(&e->in);
	}
	e->in = -1;
	if (is_reset && e->is_socket) {
		os_stream_reset(&e->out);
	} else {
		os_fd_close(&e->out);
	}
}

static void
destroy(struct pump *p, bool is_reset)
{
	for (int i = 0; i < PUMP_ENDS; i++) {
		unwatch(p, &p->end[i]);
		close_end(&p->end[i], is_reset);
		pipe_return(p->all, &p->way[i]);
		free(p->way[i].held);
	}
	list_remove(&p->link);
	p->all->n--;
	free(p);
}

enum weft_err
pump_new(struct pumps *all, const struct pump_config *c, struct pump **out)
{
	struct pump *p = calloc(1, sizeof(*p));
	if (!p) {
		return WEFT_ENOMEM;
	}
	p->all = all;
	p->done = c->done;
	p->ctx = c->ctx;
	list_init(&p->link);
	enum weft_err err = WEFT_OK;
	for (int i = 0; i < PUMP_ENDS && !err; i++) {
		struct end *e = &p->end[i];
		e->pump = p;
		e->in = c->end[i].in;
		e->out = c->end[i].out;
		e->is_socket = e->in == e->out && os_stream_kind(e->in) == OS_STREAM_SOCKET;
		e->can_read = true; /* a first try is cheap, and files are never told of */
		e->can_write = true;
		err = watch(p, e);
	}
	if (err) {
		for (int i = 0; i < PUMP_ENDS; i++) {
			unwatch(p, &p->end[i]);
		}
		free(p);
		return err;
	}
	for (int i = 0; i < PUMP_ENDS; i++) {
		p->way[i].can_splice = p->end[0].is_socket && p->end[1].is_socket;
	}
	all->n++;
	make_ready(p);
	*out = p;
	return WEFT_OK;
}

void
pump_free(struct pump *p)
{
	destroy(p, true);
}

void
pump_close(struct pump *p)
{
	destroy(p, false);
}

bool
pump_has_ended(const struct pump *p, enum pump_end from)
{
	return p->way[from].state == WAY_ENDED;
}

uint64_t
pump_bytes(const struct pump *p, enum pump_end from)
{
	return p->way[from].bytes;
}

static struct end *
other(struct pump *p, const struct end *e)
{
	return e == &p->end[PUMP_A] ? &p->end[PUMP_B] : &p->end[PUMP_A];
}

static void
drop_held(struct pump *p, struct way *w)
{
	pipe_return(p->all, w);
	free(w->held);
	w->held = NULL;
	w->full_reads = 0;
}

/* The first failure is the one that is told. */
static void
fail(struct pump *p, struct end *e, enum weft_err err, int os_errno)
{
	if (!p->result.err) {
		p->result.err = err;
		p->result.os_errno = os_errno;
		p->result.end = e == &p->end[PUMP_A] ? PUMP_A : PUMP_B;
	}
	e->has_failed = true;
	struct way *into = &p->way[other(p, e) - p->end];
	drop_held(p, into);
	into->state = WAY_ENDED;
}

static bool
holds(const struct way *w)
{
	return w->held || w->piped > 0;
}

/* What is left of a read goes to the heap: the scratch is everybody's. */
static enum weft_err
hold(struct way *w, const uint8_t *data, size_t len)
{
	w->held = malloc(len);
	if (!w->held) {
		return WEFT_ENOMEM;
	}
	memcpy(w->held, data, len);
	w->held_at = 0;
	w->held_len = len;
	return WEFT_OK;
}

/* Writes what it can. WEFT_EAGAIN: to is full. */
static enum weft_err
write_some(struct pump *p, struct way *w, struct end *to, const uint8_t *data, size_t *len)
{
	size_t n, left = *len;
	int os_errno = 0;
	enum weft_err err = WEFT_OK;
	while (left > 0 && !err) {
		err = os_stream_write(to->out, data + (*len - left), left, &n, &os_errno);
		if (!err) {
			left -= n;
			w->bytes += n;
		}
	}
	*len -= left;
	if (err == WEFT_EAGAIN) {
		to->can_write = false;
	} else if (err) {
		fail(p, to, err, os_errno);
	}
	return err;
}

/* A target that no splice can write (a file opened for appending): back to copying. */
static enum weft_err
unsplice(struct way *w)
{
	size_t n, got = 0;
	int os_errno;
	w->can_splice = false;
	w->held = malloc(w->piped);
	w->held_at = 0;
	w->held_len = w->piped;
	while (w->held && got < w->held_len) {
		if (os_stream_read(
			    w->pipe->fds[0], w->held + got, w->held_len - got, &n, &os_errno)) {
			return WEFT_EIO;
		}
		got += n;
		w->piped -= n;
	}
	return w->held ? WEFT_OK : WEFT_ENOMEM;
}

static enum weft_err
flush_pipe(struct pump *p, struct way *w, struct end *to)
{
	while (w->piped > 0) {
		size_t n = 0;
		int os_errno = 0;
		enum weft_err err =
			os_stream_splice(w->pipe->fds[0], to->out, w->piped, &n, &os_errno);
		if (err == WEFT_EAGAIN) {
			to->can_write = false;
			return err;
		}
		if (err == WEFT_EINVAL) {
			err = unsplice(w);
			if (!err) {
				return WEFT_OK;
			}
		}
		if (err) {
			fail(p, to, err, os_errno);
			return err;
		}
		w->piped -= n;
		w->bytes += n;
	}
	return WEFT_OK;
}

/* WEFT_EAGAIN: something is still held. */
static enum weft_err
flush(struct pump *p, struct way *w, struct end *to)
{
	enum weft_err err = flush_pipe(p, w, to);
	if (!err && w->held) {
		size_t len = w->held_len - w->held_at;
		err = write_some(p, w, to, w->held + w->held_at, &len);
		w->held_at += len;
		if (!err) {
			free(w->held);
			w->held = NULL;
		}
	}
	return err;
}

/* What a read that gave no bytes means. */
static void
take_end(struct pump *p, struct way *w, struct end *from, enum weft_err err, int os_errno)
{
	if (err == WEFT_EAGAIN) {
		from->can_read = false;
	} else {
		if (err) {
			fail(p, from, err, os_errno);
		}
		w->state = WAY_ENDING;
	}
}

/* Returns bytes moved. */
static size_t
move_copying(struct pump *p, struct way *w, struct end *from, struct end *to)
{
	uint8_t *data = p->all->scratch;
	size_t n = 0;
	int os_errno = 0;
	enum weft_err err = os_stream_read(from->in, data, SCRATCH_BYTES, &n, &os_errno);
	if (err || n == 0) {
		take_end(p, w, from, err, os_errno);
		return 0;
	}
	w->full_reads = n >= SCRATCH_BYTES / 2 ? w->full_reads + 1 : 0;
	size_t len = n;
	if (write_some(p, w, to, data, &len) == WEFT_EAGAIN && hold(w, data + len, n - len)) {
		fail(p, from, WEFT_ENOMEM, 0);
		w->state = WAY_ENDED; /* what follows must not come behind a gap */
	}
	return n;
}

static size_t
move_splicing(struct pump *p, struct way *w, struct end *from, struct end *to)
{
	size_t n = 0;
	int os_errno = 0;
	enum weft_err err =
		os_stream_splice(from->in, w->pipe->fds[1], w->pipe->cap, &n, &os_errno);
	if (err == WEFT_EINVAL) {
		w->can_splice = false;
		pipe_return(p->all, w);
		return 1; /* once more, by copying */
	}
	if (err || n == 0) {
		take_end(p, w, from, err, os_errno);
		return 0;
	}
	w->piped = n;
	(void)flush_pipe(p, w, to);
	if (n < SPLICE_BYTES_MIN) {
		w->full_reads = 0;
	}
	return n;
}

/* Splice or copy, by what the last reads were like. */
static size_t
move(struct pump *p, struct way *w, struct end *from, struct end *to)
{
	bool is_long = w->can_splice && w->full_reads >= SPLICE_AFTER && !p->all->is_copying;
	if (is_long && !w->pipe) {
		w->pipe = pipe_lend(p->all);
	}
	return is_long && w->pipe ? move_splicing(p, w, from, to) : move_copying(p, w, from, to);
}

static void
hand_on_end(struct pump *p, struct way *w, struct end *to)
{
	w->state = WAY_ENDED;
	if (p->result.err) {
		return; /* a reset follows */
	}
	if (os_stream_kind(to->out) == OS_STREAM_SOCKET) {
		os_stream_finish(to->out);
	} else if (to->in != to->out) {
		os_loop_del(p->all->loop, to->out);
		os_fd_close(&to->out);
	}
}

/* Returns whether it has used up its turn. */
static bool
run_way(struct pump *p, enum pump_end i)
{
	struct way *w = &p->way[i];
	struct end *from = &p->end[i], *to = other(p, from);
	size_t moved = 0;
	while (w->state != WAY_ENDED && moved < TURN_BYTES) {
		if (holds(w) && (!to->can_write || flush(p, w, to))) {
			break;
		}
		if (w->state == WAY_ENDING) {
			hand_on_end(p, w, to);
			break;
		}
		if (!from->can_read) {
			break;
		}
		moved += move(p, w, from, to);
	}
	if (w->pipe && w->piped == 0) {
		pipe_return(p->all, w);
	}
	return moved >= TURN_BYTES;
}

static void
finish(struct pump *p, bool is_reset)
{
	struct pump_result r = p->result;
	pump_done *done = p->done;
	void *ctx = p->ctx;
	for (int i = 0; i < PUMP_ENDS; i++) {
		r.bytes[i] = p->way[i].bytes;
	}
	destroy(p, is_reset);
	done(ctx, &r);
}

/* One end has failed. True: the other has what there was for it, or will not get it. */
static bool
has_lingered(struct pump *p, struct mono now)
{
	struct end *failed = &p->end[p->result.end], *to = other(p, failed);
	struct way *rest = &p->way[p->result.end];
	if (to->has_failed || !failed->is_socket) {
		return true;
	}
	if (!to->is_socket) {
		return rest->state == WAY_ENDED; /* no reset follows that could hurt */
	}
	size_t unsent = os_stream_unsent(to->out);
	if (rest->state == WAY_ENDED && unsent == 0) {
		return true;
	}
	/* Either part of the mark changes when something moves. */
	uint64_t mark = rest->bytes * 31 - unsent;
	if (mark != p->linger_mark || p->linger_until.ns == 0) {
		p->linger_mark = mark;
		p->linger_until = mono_add_ns(now, LINGER_NS);
	}
	return !mono_is_before(now, p->linger_until);
}

static void
linger(struct pump *p, struct mono now)
{
	if (has_lingered(p, now)) {
		finish(p, true);
	} else if (!p->is_ready && p->end[1 - p->result.end].is_socket) {
		list_remove(&p->link);
		list_push_back(&p->all->lingering, &p->link);
	}
}

/* A way that is held up reads nothing, and would not learn of a reset. */
static void
look_for_failure(struct pump *p, struct end *e)
{
	int os_errno = e->has_hung_up && e->is_socket ? os_stream_take_error(e->in) : 0;
	e->has_hung_up = false;
	if (os_errno) {
		fail(p, e, os_error(os_errno), os_errno);
	}
}

static void
run(struct pump *p, struct mono now)
{
	p->is_ready = false;
	list_remove(&p->link);
	look_for_failure(p, &p->end[PUMP_A]);
	look_for_failure(p, &p->end[PUMP_B]);
	bool has_more = run_way(p, PUMP_A);
	has_more |= run_way(p, PUMP_B);
	if (has_more) {
		make_ready(p);
	}
	if (p->result.err) {
		linger(p, now);
	} else if (p->way[PUMP_A].state == WAY_ENDED && p->way[PUMP_B].state == WAY_ENDED) {
		finish(p, false);
	}
}

struct mono
pumps_run(struct pumps *all, struct mono now)
{
	struct list round = {0};
	/* done() may free any pump, so no place in a list is kept across it. What becomes ready
	 * meanwhile waits for the next call: descriptors must have their turn. */
	list_init(&round);
	while (!list_is_empty(&all->ready)) {
		struct list *first = all->ready.next;
		list_remove(first);
		list_push_back(&round, first);
	}
	while (!list_is_empty(&round)) {
		run(WEFT_CONTAINER_OF(round.next, struct pump, link), now);
	}
	while (!list_is_empty(&all->lingering)) {
		struct list *first = all->lingering.next;
		list_remove(first);
		list_push_back(&round, first);
	}
	while (!list_is_empty(&round)) {
		linger(WEFT_CONTAINER_OF(round.next, struct pump, link), now);
	}
	return !list_is_empty(&all->ready)       ? now
	       : !list_is_empty(&all->lingering) ? mono_add_ns(now, LINGER_LOOK_NS)
						 : MONO_NEVER;
}

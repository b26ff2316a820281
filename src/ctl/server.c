/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/server.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/log.h"
#include "crypto/secret.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/loop.h"
#include "os/unixsock.h"

#define IN_BYTES (16u << 10)
#define OUT_BYTES (16u << 10)
/* Reads, writes and pieces of one client before the others get their turn. */
#define STEPS_A_TURN 64

struct client {
	struct ctl_server *server;
	int fd;
	uint64_t active;  /* the server's turn when bytes last moved */
	uint32_t events;  /* that the loop watches for */
	bool has_ended;   /* the client sends no more */
	bool is_replying; /* produce() has not said that it is done */
	bool is_closing;  /* the connection ends when out is empty */
	size_t in_len, out_len, out_at;
	char in[IN_BYTES];
	uint8_t out[OUT_BYTES];
	uint64_t state[]; /* aligned for whatever the protocol keeps */
};

struct ctl_server {
	struct ctl_server_config config;
	char *path;
	int fd;
	bool leaves_file;
	int spare_fd; /* for turning clients away when the process has no descriptor left */
	uint64_t turn;
	struct client *clients[CTL_CLIENTS_MAX];
};

enum io {
	IO_DONE,  /* something moved */
	IO_WAIT,  /* the descriptor is not ready */
	IO_ENDED, /* the connection is gone */
};

static void
drop(struct client *c)
{
	struct ctl_server *s = c->server;
	for (size_t i = 0; i < CTL_CLIENTS_MAX; i++) {
		if (s->clients[i] == c) {
			s->clients[i] = NULL;
		}
	}
	os_loop_del(s->config.loop, c->fd);
	os_fd_close(&c->fd);
	s->config.protocol->fini(s->config.ctx, c->state);
	/* The buffers may hold keys. */
	secret_wipe(c, sizeof(*c));
	free(c);
}

static enum io
flush(struct client *c)
{
	size_t n;
	enum weft_err e = os_fd_write(c->fd, c->out + c->out_at, c->out_len - c->out_at, &n);
	if (e) {
		return e == WEFT_EAGAIN ? IO_WAIT : IO_ENDED;
	}
	c->active = ++c->server->turn;
	c->out_at += n;
	if (c->out_at == c->out_len) {
		secret_wipe(c->out, c->out_len);
		c->out_at = c->out_len = 0;
	}
	return IO_DONE;
}

static enum io
fill(struct client *c)
{
	size_t n;
	enum weft_err e = os_fd_read(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, &n);
	if (e == WEFT_ECLOSED) {
		c->has_ended = true;
		return IO_DONE;
	}
	if (e) {
		return e == WEFT_EAGAIN ? IO_WAIT : IO_ENDED;
	}
	c->active = ++c->server->turn;
	c->in_len += n;
	return IO_DONE;
}

static void
take_request(struct client *c)
{
	const struct ctl_server_config *k = &c->server->config;
	size_t used = 0;
	enum ctl_step step = k->protocol->receive(k->ctx, c->state, c->in, c->in_len, &used);
	weft_assert(used <= c->in_len && (used == c->in_len || step == CTL_STEP_REPLY));
	memmove(c->in, c->in + used, c->in_len - used);
	secret_wipe(c->in + c->in_len - used, used);
	c->in_len -= used;
	c->is_replying = step == CTL_STEP_REPLY;
}

static void
make_reply(struct client *c)
{
	const struct ctl_server_config *k = &c->server->config;
	struct writer w;
	writer_init(&w, c->out, sizeof(c->out));
	enum ctl_step step = k->protocol->produce(k->ctx, c->state, &w);
	weft_assert(!w.failed);
	c->out_len = (size_t)(w.p - c->out);
	c->is_replying = step == CTL_STEP_MORE;
	c->is_closing = step == CTL_STEP_CLOSE;
}

static bool
has_word(const struct client *c)
{
	const struct ctl_server_config *k = &c->server->config;
	return k->protocol->has_word && k->protocol->has_word(k->ctx, c->state);
}

/* The client sends no more. */
static enum io
listen_no_more(const struct client *c)
{
	const struct ctl_server_config *k = &c->server->config;
	bool may = k->protocol->may_speak && k->protocol->may_speak(k->ctx, c->state);
	return may ? IO_WAIT : IO_ENDED;
}

/* Does the next thing that can be done. events: what to wait for with IO_WAIT. */
static enum io
step(struct client *c, uint32_t *events)
{
	const struct ctl_server_config *k = &c->server->config;
	bool had_reply = c->is_replying || c->out_len > 0;
	*events = OS_WRITABLE;
	if (c->out_len > 0) {
		enum io io = flush(c);
		if (io != IO_DONE || c->out_len > 0) {
			return io;
		}
	} else if (c->is_replying) {
		make_reply(c);
		if (c->out_len > 0 || c->is_replying) {
			return IO_DONE;
		}
	}
	if (had_reply && !c->is_replying) {
		k->protocol->sent(k->ctx, c->state);
	}
	if (c->is_closing) {
		return IO_ENDED;
	}
	if (had_reply) {
		return IO_DONE;
	}
	if (c->in_len > 0) {
		take_request(c);
		return IO_DONE;
	}
	c->is_replying = has_word(c);
	if (c->is_replying) {
		return IO_DONE;
	}
	*events = c->has_ended ? 0 : OS_READABLE; /* a hang-up shows in any case */
	return c->has_ended ? listen_no_more(c) : fill(c);
}

static void
client_ready(void *ctx, uint32_t ready)
{
	struct client *c = ctx;
	/* Otherwise a hang-up shows in the read or the write. */
	if (c->has_ended && (ready & OS_HANGUP)) {
		drop(c);
		return;
	}
	for (unsigned i = 0; i < STEPS_A_TURN; i++) {
		uint32_t events;
		enum io io = step(c, &events);
		if (io == IO_DONE) {
			continue;
		}
		if (io == IO_WAIT && events != c->events &&
			os_loop_mod(c->server->config.loop, c->fd, events) == WEFT_OK) {
			c->events = events;
		}
		if (io == IO_ENDED || events != c->events) {
			drop(c);
		}
		return;
	}
	/* A socket with room is ready at once: the next turn comes after the others'. */
	if (c->events != OS_WRITABLE &&
		os_loop_mod(c->server->config.loop, c->fd, OS_WRITABLE) != WEFT_OK) {
		drop(c);
		return;
	}
	c->events = OS_WRITABLE;
}

/* The place of the client that has been quiet longest; CTL_CLIENTS_MAX when there is none. */
static size_t
find_quietest(const struct ctl_server *s)
{
	size_t quietest = CTL_CLIENTS_MAX;
	for (size_t i = 0; i < CTL_CLIENTS_MAX; i++) {
		if (s->clients[i] &&
			(quietest == CTL_CLIENTS_MAX ||
				s->clients[i]->active < s->clients[quietest]->active)) {
			quietest = i;
		}
	}
	return quietest;
}

/* A free place; the quietest client makes one when there is none. */
static size_t
find_place(struct ctl_server *s)
{
	for (size_t i = 0; i < CTL_CLIENTS_MAX; i++) {
		if (!s->clients[i]) {
			return i;
		}
	}
	size_t quietest = find_quietest(s);
	log_debug(
		s->config.log, "%s: %d clients; the quietest is dropped", s->path, CTL_CLIENTS_MAX);
	drop(s->clients[quietest]);
	return quietest;
}

static void
add_client(struct ctl_server *s, int fd)
{
	size_t place = find_place(s);
	struct client *c = calloc(1, sizeof(*c) + s->config.protocol->state_bytes);
	if (!c) {
		os_fd_close(&fd);
		return;
	}
	c->server = s;
	c->fd = fd;
	c->active = ++s->turn;
	c->events = OS_READABLE;
	if (os_loop_add(s->config.loop, fd, OS_READABLE, client_ready, c)) {
		log_warn(s->config.log, "%s: no room for another client", s->path);
		os_fd_close(&c->fd);
		free(c);
		return;
	}
	s->clients[place] = c;
}

/* Out of descriptors. Who waits would keep the listener ready and the loop awake: the quietest
 * client goes for the new one, or, without clients, the new one goes. */
static void
make_descriptor(struct ctl_server *s)
{
	size_t quietest = find_quietest(s);
	log_debug(s->config.log, "%s: no descriptor for another client", s->path);
	if (quietest < CTL_CLIENTS_MAX) {
		drop(s->clients[quietest]);
	} else {
		os_unixsock_refuse(s->fd, &s->spare_fd);
	}
}

static void
listener_ready(void *ctx, uint32_t events)
{
	struct ctl_server *s = ctx;
	int fd;
	(void)events;
	for (unsigned i = 0; i < CTL_CLIENTS_MAX; i++) {
		enum weft_err e = os_unixsock_accept(s->fd, &fd);
		if (e == WEFT_ENOMEM) {
			make_descriptor(s);
		} else if (e) {
			return;
		} else {
			add_client(s, fd);
		}
	}
}

static void
close_listener(struct ctl_server *s)
{
	os_fd_close(&s->fd);
	os_fd_close(&s->spare_fd);
	enum weft_err err = s->leaves_file ? WEFT_OK : os_file_remove(s->path);
	if (err && err != WEFT_ENOENT) {
		log_warn(s->config.log, "%s: %s", s->path, weft_err_text(err));
	}
}

static enum weft_err
make_folder(struct ctl_server *s)
{
	char *slash = strrchr(s->path, '/');
	if (!slash || slash == s->path) {
		return WEFT_OK;
	}
	*slash = 0;
	enum weft_err err = os_file_mkdir(s->path, s->config.folder_mode);
	*slash = '/';
	return err;
}

enum weft_err
ctl_server_open(const struct ctl_server_config *c, struct ctl_server **out)
{
	struct ctl_server *s = calloc(1, sizeof(*s));
	if (!s) {
		return WEFT_ENOMEM;
	}
	s->config = *c;
	s->fd = -1;
	s->spare_fd = -1;
	enum weft_err err = WEFT_ENOMEM;
	size_t path_len = strlen(c->path) + 1;
	s->path = malloc(path_len);
	if (!s->path) {
		goto undo_alloc;
	}
	memcpy(s->path, c->path, path_len);
	err = make_folder(s);
	if (err) {
		goto undo_alloc;
	}
	err = os_unixsock_listen(s->path, c->mode, &s->fd);
	if (err) {
		goto undo_alloc;
	}
	err = os_unixsock_spare(s->fd, &s->spare_fd);
	if (!err) {
		err = os_loop_add(c->loop, s->fd, OS_READABLE, listener_ready, s);
	}
	if (err) {
		goto undo_listen;
	}
	*out = s;
	return WEFT_OK;
undo_listen:
	close_listener(s);
undo_alloc:
	free(s->path);
	free(s);
	return err;
}

void
ctl_server_wake(struct ctl_server *s)
{
	for (size_t i = 0; i < CTL_CLIENTS_MAX; i++) {
		struct client *c = s->clients[i];
		/* One that waits for room is told of that. */
		if (c && c->events != OS_WRITABLE && has_word(c) &&
			os_loop_mod(s->config.loop, c->fd, OS_WRITABLE) == WEFT_OK) {
			c->events = OS_WRITABLE;
		}
	}
}

/* Requests are not heard any more. */
static void
say_last(struct client *c)
{
	const struct ctl_server_config *k = &c->server->config;
	while (has_word(c) || c->is_replying || c->out_len > 0) {
		if (c->out_len == 0) {
			make_reply(c);
		}
		while (c->out_len > 0) {
			if (flush(c) != IO_DONE) {
				return;
			}
		}
		if (!c->is_replying) {
			k->protocol->sent(k->ctx, c->state);
		}
		if (c->is_closing) {
			return;
		}
	}
}

void
ctl_server_sift(struct ctl_server *s, bool (*keep)(const void *state))
{
	for (size_t i = 0; i < CTL_CLIENTS_MAX; i++) {
		if (s->clients[i] && !keep(s->clients[i]->state)) {
			if (has_word(s->clients[i])) {
				say_last(s->clients[i]);
			}
			drop(s->clients[i]);
		}
	}
}

void
ctl_server_leave_file(struct ctl_server *s)
{
	s->leaves_file = true;
}

void
ctl_server_close(struct ctl_server *s)
{
	if (!s) {
		return;
	}
	for (size_t i = 0; i < CTL_CLIENTS_MAX; i++) {
		if (s->clients[i]) {
			drop(s->clients[i]);
		}
	}
	os_loop_del(s->config.loop, s->fd);
	close_listener(s);
	free(s->path);
	free(s);
}

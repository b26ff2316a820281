/* SPDX-License-Identifier: Apache-2.0 */
/* A reply is made of pieces, each a text of its own, so that a status of many peers needs no
 * more memory than one of them. */
#include "ctl/control.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "ctl/field.h"
#include "ctl/peers.h"
#include "ctl/server.h"
#include "ctl/set.h"
#include "ctl/status.h"
#include "ctl/watch.h"
#include "ctl/why.h"
#include "node/node.h"

#define RELOAD_TEXT_MAX 4096

enum phase {
	PHASE_LAST,    /* nothing follows the piece at hand */
	PHASE_PEERS,   /* the next peer, or the end of the list */
	PHASE_ALLOWED, /* prefixes of the peer at hand */
};

/* Of a client. */
struct session {
	char *line; /* an unfinished request */
	size_t line_len, line_cap;
	/* The reply. */
	char *piece; /* its next text */
	size_t piece_len, piece_at;
	enum phase phase;
	bool is_first; /* peer, or prefix: no comma before it */
	bool is_last_reply;
	bool has_stop;    /* the owner is to be told when the reply has left */
	bool has_told;    /* it was told */
	bool is_speaking; /* unasked; the piece is a line of it */
	struct ctl_peers peers;
	struct ctl_peer peer;
	size_t allowed_at;
	struct ctl_watcher *watcher; /* NULL: it does not watch */
};

struct ctl_control {
	struct ctl_control_config config;
	struct ctl_server *server;
	struct ctl_watch *watch;
};

/* Used where a reply cannot be made for want of memory. */
static const char text_no_memory[] =
	"{\"error\":{\"code\":\"memory\",\"text\":\"out of memory\"}}\n";
static const char text_allowed[] = ",\"allowed_ips\":[";
/* The comma before it, the peer, the text above. */
#define PEER_ROOM (1 + CTL_PEER_TEXT_MAX + sizeof(text_allowed))
_Static_assert(PEER_ROOM <= CTL_ROOM_MIN, "a peer does not fit where there is most room");

/* Takes the text over. NULL: out of memory, which ends the connection. */
static void
set_piece(struct session *s, char *text)
{
	free(s->piece);
	s->piece = text;
	s->piece_len = text ? strlen(text) : 0;
	s->piece_at = 0;
	s->is_last_reply |= !text;
}

/* The text of o, which is given up, without its last cut characters and with tail behind. */
static char *
dump(json_t *o, size_t cut, const char *tail)
{
	char *text = o ? json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
	json_decref(o);
	if (!text) {
		return NULL;
	}
	size_t len = strlen(text) - cut, tail_len = strlen(tail);
	char *longer = realloc(text, len + tail_len + 1);
	if (!longer) {
		free(text);
		return NULL;
	}
	memcpy(longer + len, tail, tail_len + 1);
	return longer;
}

static void
reply(struct session *s, json_t *o)
{
	s->phase = PHASE_LAST;
	set_piece(s, dump(o, 0, "\n"));
}

static void
reply_error(struct session *s, const char *code, const char *text)
{
	reply(s, json_pack("{s:{s:s, s:s}}", "error", "code", code, "text", text));
}

static void
op_version(struct ctl_control *c, struct session *s, const json_t *request)
{
	(void)request;
	reply(s, json_pack("{s:s}", "version", c->config.version));
}

static void
op_stop(struct ctl_control *c, struct session *s, const json_t *request)
{
	(void)c;
	(void)request;
	s->has_stop = true;
	reply(s, json_pack("{s:b}", "ok", 1));
}

static void
op_set(struct ctl_control *c, struct session *s, const json_t *request)
{
	struct ctl_set_error error;
	ctl_set(c->config.node, request, &error);
	if (error.code) {
		reply_error(s, error.code, error.text);
	} else {
		reply(s, json_pack("{s:b}", "ok", 1));
	}
}

static json_t *
sandbox_json(const struct ctl_sandbox *b)
{
	return b && b->is_on ? json_pack("{s:s?, s:b}", "user", b->user[0] ? b->user : NULL,
				       "seccomp", (int)b->has_filter)
			     : json_null();
}

/* NULL: no memory. */
static json_t *
device_json(const struct ctl_control *c)
{
	json_t *o = ctl_status_device(c->config.node, c->config.version);
	if (o && json_object_set_new(json_object_get(o, "device"), "sandbox",
			 sandbox_json(c->config.sandbox))) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static void
op_status(struct ctl_control *c, struct session *s, const json_t *request)
{
	(void)request;
	if (ctl_peers_take(c->config.node, &s->peers)) {
		reply_error(s, "memory", "out of memory");
		return;
	}
	set_piece(s, dump(device_json(c), 1, ",\"peers\":["));
	s->phase = PHASE_PEERS;
	s->is_first = true;
}

static void
op_reload(struct ctl_control *c, struct session *s, const json_t *request)
{
	const json_t *file = json_object_get(request, "file");
	char why[RELOAD_TEXT_MAX] = "";
	if (file && (!json_is_string(file) || json_string_value(file)[0] != '/')) {
		reply_error(s, "value", "file: the absolute path of a file is wanted");
		return;
	}
	enum weft_err e = c->config.reload ? c->config.reload(c->config.ctx,
						     json_string_value(file), why, sizeof(why))
					   : WEFT_ENOTSUP;
	if (e) {
		reply_error(s, "config", why[0] ? why : weft_err_text(e));
	} else {
		reply(s, json_pack("{s:b}", "ok", 1));
	}
}

static void
op_save(struct ctl_control *c, struct session *s, const json_t *request)
{
	char why[RELOAD_TEXT_MAX] = "";
	(void)request;
	enum weft_err e =
		c->config.save ? c->config.save(c->config.ctx, why, sizeof(why)) : WEFT_ENOTSUP;
	if (e) {
		reply_error(s, "config", why[0] ? why : weft_err_text(e));
	} else {
		reply(s, json_pack("{s:b}", "ok", 1));
	}
}

static void
op_watch(struct ctl_control *c, struct session *s, const json_t *request)
{
	const json_t *every = json_object_get(request, "every_ms");
	json_int_t ms = json_integer_value(every);
	if (every && (!json_is_integer(every) || ms < CTL_EVERY_MS_MIN || ms > CTL_EVERY_MS_MAX)) {
		reply_error(s, "value", "every_ms: a number from 100 to 60000 is wanted");
		return;
	}
	if (s->watcher) {
		ctl_watcher_set(s->watcher, (unsigned)ms);
	} else if (ctl_watcher_open(c->watch, (unsigned)ms, &s->watcher)) {
		s->watcher = NULL;
		reply_error(s, "memory", "out of memory");
		return;
	}
	reply(s, json_pack("{s:b}", "ok", 1));
}

static void
op_why(struct ctl_control *c, struct session *s, const json_t *request)
{
	reply(s, ctl_why(c->config.node, c->config.keeper, request));
}

struct op {
	const char *name;
	void (*run)(struct ctl_control *c, struct session *s, const json_t *request);
};

static const struct op ops[] = {
	{"reload", op_reload},
	{"save", op_save},
	{"set", op_set},
	{"status", op_status},
	{"stop", op_stop},
	{"version", op_version},
	{"watch", op_watch},
	{"why", op_why},
};

static void
run_request(struct ctl_control *c, struct session *s, const char *text, size_t len)
{
	json_error_t error;
	json_t *o = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	const char *name = json_string_value(json_object_get(o, "op"));

	if (!o) {
		/* jansson's own words may repeat pieces of the request. */
		reply_error(s, "parse", "the request is not one JSON object on a line");
	} else if (!name) {
		reply_error(s, "request", "the request has no \"op\" that is a string");
	} else {
		size_t i = 0;
		while (i < WEFT_ARRAY_LEN(ops) && strcmp(ops[i].name, name) != 0) {
			i++;
		}
		if (i < WEFT_ARRAY_LEN(ops)) {
			ops[i].run(c, s, o);
		} else {
			reply_error(s, "unknown_op",
				"no such operation; known: reload, save, set, status, stop, "
				"version, watch, why");
		}
	}
	json_decref(o);
}

static bool
keep(struct session *s, const char *data, size_t len)
{
	if (len == 0) {
		return true;
	}
	if (s->line_cap - s->line_len < len) {
		size_t cap = s->line_cap ? s->line_cap : 1024;
		while (cap - s->line_len < len) {
			cap *= 2;
		}
		char *line = realloc(s->line, cap);
		if (!line) {
			return false;
		}
		s->line = line;
		s->line_cap = cap;
	}
	memcpy(s->line + s->line_len, data, len);
	s->line_len += len;
	return true;
}

static enum ctl_step
receive(void *ctx, void *state, const char *data, size_t len, size_t *used)
{
	struct session *s = state;
	const char *end = memchr(data, '\n', len);
	size_t n = end ? (size_t)(end - data) : len;

	*used = end ? n + 1 : n;
	if (s->line_len + n > CTL_REQUEST_MAX) {
		reply_error(s, "too_long", "the request is longer than 64 KiB");
		s->is_last_reply = true;
		return CTL_STEP_REPLY;
	}
	if (!keep(s, data, n)) {
		reply_error(s, "memory", "out of memory");
		s->is_last_reply = true;
		return CTL_STEP_REPLY;
	}
	if (!end) {
		return CTL_STEP_MORE;
	}
	size_t line_len = s->line_len;
	s->line_len = 0;
	run_request(ctx, s, s->line, line_len);
	return CTL_STEP_REPLY;
}

/* The peer without its prefixes, which follow. */
static void
put_peer(struct ctl_control *c, struct session *s, struct writer *w)
{
	enum weft_err e = ctl_peers_next(c->config.node, &s->peers, &s->peer);
	if (e) {
		s->phase = e == WEFT_ENOENT ? PHASE_LAST : PHASE_PEERS;
		set_piece(s, e == WEFT_ENOENT ? strdup("]}\n") : NULL);
		return;
	}
	writer_copy(w, ",", s->is_first ? 0 : 1);
	ctl_field_write_peer(w, &s->peer, node_time());
	writer_copy(w, text_allowed, sizeof(text_allowed) - 1);
	s->phase = PHASE_ALLOWED;
	s->is_first = false;
	s->allowed_at = 0;
}

/* Prefixes are made of digits, letters, '.', ':' and '/': no escapes are needed. */
static void
put_allowed(struct session *s, struct writer *w)
{
	while ((size_t)(w->end - w->p) >= IP_PREFIX_TEXT_MAX + 4) {
		if (s->allowed_at == s->peer.allowed_n) {
			writer_copy(w, "]}", 2);
			s->phase = PHASE_PEERS;
			return;
		}
		char text[IP_PREFIX_TEXT_MAX], item[IP_PREFIX_TEXT_MAX + 4];
		const struct ip_prefix *prefix = &s->peer.allowed[s->allowed_at];
		int n = snprintf(item, sizeof(item), "%s\"%s\"", s->allowed_at > 0 ? "," : "",
			ip_prefix_format(prefix, text));
		s->allowed_at++;
		writer_copy(w, item, (size_t)n);
	}
}

/* As many as there is room for. */
static void
put_peers(struct ctl_control *c, struct session *s, struct writer *w)
{
	do {
		if (s->phase == PHASE_PEERS) {
			put_peer(c, s, w);
		} else {
			put_allowed(s, w);
		}
	} while (s->piece && s->phase != PHASE_LAST && (size_t)(w->end - w->p) >= PEER_ROOM);
}

static void
put_piece(struct session *s, struct writer *w)
{
	size_t room = (size_t)(w->end - w->p), left = s->piece_len - s->piece_at;
	size_t n = left < room ? left : room;
	writer_copy(w, s->piece + s->piece_at, n);
	s->piece_at += n;
}

/* Lines that nobody asked for, as many as have room; the last of them may be begun. */
static enum ctl_step
put_words(struct session *s, struct writer *w)
{
	while (w->p < w->end) {
		if (s->piece_at == s->piece_len) {
			free(s->piece);
			s->piece = ctl_watcher_take(s->watcher);
			s->piece_len = s->piece ? strlen(s->piece) : 0;
			s->piece_at = 0;
		}
		if (!s->piece) {
			s->is_speaking = false;
			return CTL_STEP_DONE;
		}
		put_piece(s, w);
	}
	return CTL_STEP_MORE;
}

static enum ctl_step
produce(void *ctx, void *state, struct writer *w)
{
	struct session *s = state;
	if (!s->piece && !s->is_last_reply && s->watcher) {
		s->is_speaking = true;
	}
	if (s->is_speaking) {
		return put_words(s, w);
	}
	if (!s->piece) {
		/* Memory ran out: within a reply there is nothing to be said. */
		if (s->phase == PHASE_LAST) {
			writer_copy(w, text_no_memory, sizeof(text_no_memory) - 1);
		}
		return CTL_STEP_CLOSE;
	}
	if (s->piece_at < s->piece_len) {
		put_piece(s, w);
		return CTL_STEP_MORE;
	}
	if (s->phase != PHASE_LAST) {
		put_peers(ctx, s, w);
		return CTL_STEP_MORE;
	}
	return s->is_last_reply ? CTL_STEP_CLOSE : CTL_STEP_DONE;
}

static void
end_reply(struct session *s)
{
	free(s->piece);
	s->piece = NULL;
	s->piece_len = s->piece_at = 0;
	ctl_peers_fini(&s->peers);
	ctl_peer_fini(&s->peer);
}

static void
tell_stop(struct ctl_control *c, struct session *s)
{
	if (s->has_stop) {
		s->has_stop = false;
		s->has_told = true;
		c->config.stop(c->config.ctx);
	}
}

static void
sent(void *ctx, void *state)
{
	struct session *s = state;
	end_reply(s);
	tell_stop(ctx, s);
}

static void
fini(void *ctx, void *state)
{
	struct session *s = state;
	end_reply(s);
	ctl_watcher_close(s->watcher);
	free(s->line);
	/* Who asked for the end and did not wait for the answer meant it all the same. */
	tell_stop(ctx, s);
}

static bool
has_word(void *ctx, const void *state)
{
	const struct session *s = state;
	(void)ctx;
	return s->watcher && ctl_watcher_has_line(s->watcher);
}

static bool
may_speak(void *ctx, const void *state)
{
	(void)ctx;
	return ((const struct session *)state)->watcher;
}

static void
wake(void *ctx)
{
	struct ctl_control *c = ctx;
	if (c->server) {
		ctl_server_wake(c->server);
	}
}

static const struct conf *
conf_in_force(void *ctx)
{
	const struct ctl_control *c = ctx;
	return c->config.conf ? c->config.conf(c->config.ctx) : NULL;
}

static const struct ctl_protocol protocol = {
	.state_bytes = sizeof(struct session),
	.receive = receive,
	.produce = produce,
	.sent = sent,
	.fini = fini,
	.has_word = has_word,
	.may_speak = may_speak,
};

enum weft_err
ctl_control_open(const struct ctl_control_config *config, struct ctl_control **out)
{
	struct ctl_control *c = calloc(1, sizeof(*c));
	if (!c) {
		return WEFT_ENOMEM;
	}
	c->config = *config;
	const struct ctl_server_config server = {.loop = config->loop,
		.path = config->path,
		.folder_mode = 0755,
		.mode = 0600,
		.protocol = &protocol,
		.ctx = c,
		.log = config->log};
	const struct ctl_watch_config watch = {
		.node = config->node, .wake = wake, .conf = conf_in_force, .ctx = c};
	enum weft_err e = ctl_watch_new(&watch, &c->watch);
	if (!e) {
		e = ctl_server_open(&server, &c->server);
	}
	if (e) {
		ctl_watch_free(c->watch);
		free(c);
		return e;
	}
	*out = c;
	return WEFT_OK;
}

struct mono
ctl_control_deadline(const struct ctl_control *c)
{
	return ctl_watch_deadline(c->watch);
}

void
ctl_control_turn(struct ctl_control *c, struct mono now)
{
	ctl_watch_turn(c->watch, now);
}

void
ctl_control_reloaded(struct ctl_control *c, const char *file, const char *why)
{
	ctl_watch_reloaded(c->watch, file, why);
}

void
ctl_control_stopping(struct ctl_control *c)
{
	ctl_watch_stopping(c->watch);
}

void
ctl_control_leave_file(struct ctl_control *c)
{
	ctl_server_leave_file(c->server);
}

static bool
has_asked_for_the_end(const void *state)
{
	return ((const struct session *)state)->has_told;
}

void
ctl_control_drain(struct ctl_control *c)
{
	ctl_server_sift(c->server, has_asked_for_the_end);
	ctl_watch_end(c->watch);
}

void
ctl_control_close(struct ctl_control *c)
{
	if (!c) {
		return;
	}
	ctl_server_close(c->server);
	ctl_watch_free(c->watch);
	free(c);
}

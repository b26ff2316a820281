/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/http.h"

#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "base/log.h"
#include "ctl/metrics.h"
#include "ctl/peers.h"
#include "ctl/status.h"
#include "node/node.h"
#include "os/clock.h"
#include "os/loop.h"
#include "weft_config.h"

#ifdef WEFT_HAVE_MICROHTTPD

#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>

#include "os/error.h"
#include "os/inet.h"

#define LIBRARY "libmicrohttpd.so.12"
#define KEEP_NS (1 * WEFT_NS_PER_S) /* that a text is served again */
#define PEERS_A_TURN 64
#define PIECES_MAX 256
/* Of what a client sends: far above any scraper's headers. */
#define CONNECTION_BYTES (16u << 10)

/* What is used of the library. */
struct calls {
	WEFT_TYPEOF(MHD_start_daemon) * start;
	WEFT_TYPEOF(MHD_stop_daemon) * stop;
	WEFT_TYPEOF(MHD_run) * run;
	WEFT_TYPEOF(MHD_get_timeout) * timeout;
	WEFT_TYPEOF(MHD_get_daemon_info) * info;
	WEFT_TYPEOF(MHD_create_response_from_buffer) * make;
	WEFT_TYPEOF(MHD_create_response_from_iovec) * make_of;
	WEFT_TYPEOF(MHD_add_response_header) * head;
	WEFT_TYPEOF(MHD_queue_response) * queue;
	WEFT_TYPEOF(MHD_destroy_response) * put;
	WEFT_TYPEOF(MHD_suspend_connection) * suspend;
	WEFT_TYPEOF(MHD_resume_connection) * resume;
};

/* A text that is being made. */
struct build {
	struct ctl_metrics *metrics; /* NULL: none is */
	struct ctl_peers peers;
	struct ctl_peer peer;
};

struct ctl_http {
	struct ctl_http_config config;
	void *library;
	struct calls calls;
	struct MHD_Daemon *daemon;
	int epoll_fd;                /* the library's, watched by the loop */
	struct MHD_Response *answer; /* the last, with a reference of ours; NULL: none */
	struct mono answer_until;
	struct build build;
	/* Whoever waits for it. The library does not look at them meanwhile. */
	struct MHD_Connection *waiting[CTL_HTTP_CLIENTS_MAX];
	size_t waiting_n;
};

static void
forget_answer(struct ctl_http *h)
{
	if (h->answer) {
		h->calls.put(h->answer);
	}
	h->answer = NULL;
	h->answer_until = MONO_NEVER;
}

static void
free_metrics(void *metrics)
{
	ctl_metrics_free(metrics);
}

/* The text is the library's from here on. NULL: out of memory. */
static struct MHD_Response *
make_response(struct ctl_http *h, struct ctl_metrics *m)
{
	struct MHD_IoVec pieces[PIECES_MAX];
	const char *text;
	size_t len;
	unsigned n = 0;
	for (size_t i = 0; ctl_metrics_piece(m, i, &text, &len); i++) {
		if (len > 0) {
			weft_assert(n < PIECES_MAX);
			pieces[n++] = (struct MHD_IoVec){text, len};
		}
	}
	struct MHD_Response *r = h->calls.make_of(pieces, n, free_metrics, m);
	if (!r) {
		ctl_metrics_free(m);
		return NULL;
	}
	h->calls.head(r, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
	return r;
}

static void
resume_all(struct ctl_http *h)
{
	while (h->waiting_n > 0) {
		h->calls.resume(h->waiting[--h->waiting_n]);
	}
}

static void
drop_build(struct ctl_http *h)
{
	ctl_peers_fini(&h->build.peers);
	ctl_peer_fini(&h->build.peer);
	ctl_metrics_free(h->build.metrics);
	h->build = (struct build){0};
}

/* Without memory there is no answer; then those who waited are told. */
static void
end_build(struct ctl_http *h, enum weft_err e)
{
	struct build *b = &h->build;
	e = e ? e : ctl_metrics_end(b->metrics);
	if (!e) {
		h->answer = make_response(h, b->metrics);
		b->metrics = NULL;
	}
	drop_build(h);
	h->answer_until = mono_add_ns(os_clock_mono(), KEEP_NS);
	resume_all(h);
}

/* Between two turns of the loop: some 0.2 ms. */
static void
build_some(struct ctl_http *h)
{
	struct build *b = &h->build;
	enum weft_err e = WEFT_OK;
	for (size_t i = 0; !e && i < PEERS_A_TURN; i++) {
		e = ctl_peers_next(h->config.node, &b->peers, &b->peer);
		if (!e) {
			ctl_metrics_add_peer(b->metrics, &b->peer, node_time());
		}
	}
	if (e) {
		end_build(h, e == WEFT_ENOENT ? WEFT_OK : e);
	}
}

static enum weft_err
begin_build(struct ctl_http *h)
{
	struct build *b = &h->build;
	b->metrics = ctl_metrics_new();
	json_t *status = ctl_status_device(h->config.node, h->config.version);
	enum weft_err e = b->metrics && status ? WEFT_OK : WEFT_ENOMEM;
	if (!e) {
		ctl_metrics_add_device(b->metrics, status);
		e = ctl_peers_take(h->config.node, &b->peers);
	}
	json_decref(status);
	if (e) {
		drop_build(h);
	}
	return e;
}

static enum MHD_Result
answer_text(struct ctl_http *h, struct MHD_Connection *to, unsigned status, const char *text)
{
	/* The library does not write to what is persistent. */
	void *p = (void *)(uintptr_t)text;
	struct MHD_Response *r = h->calls.make(strlen(text), p, MHD_RESPMEM_PERSISTENT);
	if (!r) {
		return MHD_NO;
	}
	h->calls.head(r, "Content-Type", "text/plain");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
		h->calls.head(r, "Allow", "GET, HEAD");
	}
	enum MHD_Result result = h->calls.queue(to, status, r);
	h->calls.put(r);
	return result;
}

static enum MHD_Result
answer(void *ctx, struct MHD_Connection *to, const char *url, const char *method,
	const char *version, const char *body, size_t *body_len, void **state)
{
	struct ctl_http *h = ctx;
	(void)version;
	(void)body;
	(void)state;
	*body_len = 0;
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
		return answer_text(h, to, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	}
	if (strcmp(url, "/metrics") != 0) {
		return answer_text(h, to, MHD_HTTP_NOT_FOUND, "see /metrics\n");
	}
	struct mono now = os_clock_mono();
	if (!mono_is_before(now, h->answer_until)) {
		forget_answer(h);
	}
	if (h->answer) {
		return h->calls.queue(to, MHD_HTTP_OK, h->answer);
	}
	bool has_failed = h->answer_until.ns != MONO_NEVER.ns;
	if (has_failed || (!h->build.metrics && begin_build(h) != WEFT_OK) ||
		h->waiting_n == CTL_HTTP_CLIENTS_MAX) {
		return answer_text(
			h, to, MHD_HTTP_INTERNAL_SERVER_ERROR, weft_err_text(WEFT_ENOMEM));
	}
	/* It is asked again when it goes on. */
	h->waiting[h->waiting_n++] = to;
	h->calls.suspend(to);
	return MHD_YES;
}

static void
on_ready(void *ctx, uint32_t events)
{
	struct ctl_http *h = ctx;
	(void)events;
	h->calls.run(h->daemon);
}

static void *
find(struct ctl_http *h, const char *name, bool *ok)
{
	void *p = dlsym(h->library, name);
	*ok &= p != NULL;
	return p;
}

static bool
load(struct ctl_http *h)
{
	bool ok = true;
	h->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!h->library) {
		return false;
	}
	h->calls = (struct calls){
		.start = find(h, "MHD_start_daemon", &ok),
		.stop = find(h, "MHD_stop_daemon", &ok),
		.run = find(h, "MHD_run", &ok),
		.timeout = find(h, "MHD_get_timeout", &ok),
		.info = find(h, "MHD_get_daemon_info", &ok),
		.make = find(h, "MHD_create_response_from_buffer", &ok),
		.head = find(h, "MHD_add_response_header", &ok),
		.queue = find(h, "MHD_queue_response", &ok),
		.make_of = find(h, "MHD_create_response_from_iovec", &ok),
		.put = find(h, "MHD_destroy_response", &ok),
		.suspend = find(h, "MHD_suspend_connection", &ok),
		.resume = find(h, "MHD_resume_connection", &ok),
	};
	return ok;
}

static bool
start(struct ctl_http *h)
{
	struct os_inet_name name;
	const struct endpoint *at = h->config.at;
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
	os_inet_name(&at->addr, at->port, at->scope_id, &name);
	if (at->addr.family == IP_FAMILY_V6) {
		flags |= MHD_USE_IPv6;
	}
	h->daemon = h->calls.start(flags, 0, NULL, NULL, answer, h, MHD_OPTION_SOCK_ADDR, &name.at,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)CTL_HTTP_CLIENTS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CTL_HTTP_TIMEOUT_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END);
	return h->daemon != NULL;
}

enum weft_err
ctl_http_open(const struct ctl_http_config *c, struct ctl_http **out)
{
	char where[ENDPOINT_TEXT_MAX];
	struct ctl_http *h = calloc(1, sizeof(*h));
	enum weft_err e = h ? WEFT_OK : WEFT_ENOMEM;
	if (e) {
		return e;
	}
	h->config = *c;
	h->epoll_fd = -1;
	h->answer_until = MONO_NEVER;
	endpoint_format(c->at, where);
	errno = 0;
	if (!load(h)) {
		log_error(c->log, "metrics need " LIBRARY " (package libmicrohttpd12)");
		e = WEFT_ENOTSUP;
	} else if (!start(h)) {
		int errnum = errno;
		char why[OS_ERROR_TEXT_MAX];
		log_error(c->log, "metrics cannot be served at %s: %s", where,
			os_error_text(errnum, why, sizeof(why)));
		e = os_error(errnum);
	}
	if (!e) {
		h->epoll_fd = h->calls.info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
		e = os_loop_add(c->loop, h->epoll_fd, OS_READABLE, on_ready, h);
	}
	if (e) {
		ctl_http_close(h);
		return e;
	}
	h->config.at = NULL; /* the caller's */
	log_info(c->log, "metrics are at http://%s/metrics", where);
	*out = h;
	return WEFT_OK;
}

struct mono
ctl_http_deadline(const struct ctl_http *h)
{
	MHD_UNSIGNED_LONG_LONG ms;
	if (!h) {
		return MONO_NEVER;
	}
	if (h->build.metrics) {
		return (struct mono){0};
	}
	if (h->calls.timeout(h->daemon, &ms) != MHD_YES) {
		return h->answer_until;
	}
	struct mono at = mono_add_ns(os_clock_mono(), (int64_t)ms * WEFT_NS_PER_MS);
	return mono_min(at, h->answer_until);
}

void
ctl_http_turn(struct ctl_http *h, struct mono now)
{
	if (!h) {
		return;
	}
	if (h->build.metrics) {
		build_some(h);
	}
	h->calls.run(h->daemon);
	if (!mono_is_before(now, h->answer_until)) {
		forget_answer(h);
	}
}

void
ctl_http_close(struct ctl_http *h)
{
	if (!h) {
		return;
	}
	if (h->epoll_fd >= 0) {
		os_loop_del(h->config.loop, h->epoll_fd);
	}
	forget_answer(h);
	drop_build(h);
	resume_all(h);
	if (h->daemon) {
		h->calls.stop(h->daemon);
	}
	if (h->library) {
		dlclose(h->library);
	}
	free(h);
}

#else

enum weft_err
ctl_http_open(const struct ctl_http_config *c, struct ctl_http **out)
{
	(void)out;
	log_error(c->log, "this build has no metrics over HTTP");
	return WEFT_ENOTSUP;
}

struct mono
ctl_http_deadline(const struct ctl_http *h)
{
	(void)h;
	return MONO_NEVER;
}

void
ctl_http_turn(struct ctl_http *h, struct mono now)
{
	(void)h;
	(void)now;
}

void
ctl_http_close(struct ctl_http *h)
{
	(void)h;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/http.h"

#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
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
	WEFT_TYPEOF(MHD_add_response_header) * head;
	WEFT_TYPEOF(MHD_queue_response) * queue;
	WEFT_TYPEOF(MHD_destroy_response) * put;
};

struct ctl_http {
	struct ctl_http_config config;
	void *library;
	struct calls calls;
	struct MHD_Daemon *daemon;
	int epoll_fd;                /* the library's, watched by the loop */
	struct MHD_Response *answer; /* the last, with a reference of ours; NULL: none */
	struct mono answer_until;
};

struct text {
	char *p;
	size_t len, cap;
	bool has_failed;
};

static void
text_put(void *ctx, const char *piece, size_t len)
{
	struct text *t = ctx;
	if (t->cap - t->len < len && !t->has_failed) {
		size_t cap = t->cap ? t->cap : 4096;
		while (cap - t->len < len) {
			cap *= 2;
		}
		char *p = realloc(t->p, cap);
		t->has_failed = !p;
		t->p = p ? p : t->p;
		t->cap = p ? cap : t->cap;
	}
	if (!t->has_failed) {
		memcpy(t->p + t->len, piece, len);
		t->len += len;
	}
}

/* NULL: out of memory. */
static json_t *
make_status(struct ctl_http *h)
{
	struct ctl_peers peers = {0};
	struct ctl_peer peer = {0};
	json_t *status = ctl_status_device(h->config.node, h->config.version);
	json_t *list = json_array();
	enum weft_err e = status && list ? ctl_peers_take(h->config.node, &peers) : WEFT_ENOMEM;
	while (!e) {
		e = ctl_peers_next(h->config.node, &peers, &peer);
		if (!e && json_array_append_new(list, ctl_status_peer(&peer, node_time()))) {
			e = WEFT_ENOMEM;
		}
	}
	ctl_peers_fini(&peers);
	ctl_peer_fini(&peer);
	if (e != WEFT_ENOENT || json_object_set(status, "peers", list)) {
		json_decref(status);
		status = NULL;
	}
	json_decref(list);
	return status;
}

/* The text is the library's from here on. */
static struct MHD_Response *
make_metrics(struct ctl_http *h)
{
	struct text t = {0};
	json_t *status = make_status(h);
	json_t *all = status ? json_pack("[o]", status) : NULL;
	if (!all) {
		return NULL;
	}
	ctl_metrics_write(all, text_put, &t);
	json_decref(all);
	struct MHD_Response *r =
		t.has_failed ? NULL : h->calls.make(t.len, t.p, MHD_RESPMEM_MUST_FREE);
	if (!r) {
		free(t.p);
		return NULL;
	}
	h->calls.head(r, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
	return r;
}

static void
forget_answer(struct ctl_http *h)
{
	if (h->answer) {
		h->calls.put(h->answer);
	}
	h->answer = NULL;
	h->answer_until = MONO_NEVER;
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
	if (!h->answer) {
		h->answer = make_metrics(h);
		h->answer_until = h->answer ? mono_add_ns(now, KEEP_NS) : MONO_NEVER;
	}
	if (!h->answer) {
		return answer_text(
			h, to, MHD_HTTP_INTERNAL_SERVER_ERROR, weft_err_text(WEFT_ENOMEM));
	}
	return h->calls.queue(to, MHD_HTTP_OK, h->answer);
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
		.put = find(h, "MHD_destroy_response", &ok),
	};
	return ok;
}

static bool
start(struct ctl_http *h)
{
	struct os_inet_name name;
	const struct endpoint *at = h->config.at;
	unsigned flags = MHD_USE_EPOLL;
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "cli/cli.h"
#include "ctl/control.h"
#include "ctl/path.h"
#include "ctl/uapi.h"
#include "node/apply.h"
#include "node/node.h"
#include "os/clock.h"
#include "os/loop.h"
#include "os/memory.h"
#include "os/process.h"
#include "os/signal.h"
#include "weft_config.h"

#define STATE_DIR "/var/lib/weft"
#define LOOP_WATCHES 512
/* Names that did not resolve at the start are asked again after 5 s, then ever later, up to a
 * minute. */
#define RESOLVE_FIRST_NS (5 * WEFT_NS_PER_S)
/* Memory is looked at so soon after a new session, and again and again while there is traffic;
 * otherwise once in so long. Less CPU time than this in between is nothing, and a greater share of
 * the time than this is traffic. */
#define TRIM_SOON_NS (3 * WEFT_NS_PER_S)
#define TRIM_NS (30 * WEFT_NS_PER_S)
#define TRIM_IDLE_CPU_NS (1 * WEFT_NS_PER_MS)
#define TRIM_BUSY_SHARE 300
#define RESOLVE_MAX_NS (60 * WEFT_NS_PER_S)

/* The last error line is kept, so that the process that started us can show it. */
struct serve_log {
	bool is_foreground;
	/* Still attached to the terminal of the caller. Workers log, too. */
	_Atomic bool is_starting;
	char last_error[OS_DAEMON_TEXT_MAX];
};

struct server {
	const struct serve_options *o;
	struct serve_log *sink;
	struct log log;
	struct node *node;
	struct os_loop *loop;
	struct ctl_uapi *uapi;
	struct ctl_control *control;
	struct apply_traces traces;
	bool has_traces;
	int signal_fd;
	bool *is_resolved; /* one a peer of the file */
	struct mono resolve_at;
	int64_t resolve_wait_ns;
	struct mono trim_at;
	struct mono looked_at; /* at memory */
	bool has_worked;       /* since the last trim */
	int64_t trim_cpu_ns;   /* used by this process when it was last looked at */
};

static void
log_line(void *ctx, enum log_level level, const char *text)
{
	struct serve_log *s = ctx;
	static const char *const names[] = {"error", "warning", "info", "debug"};
	static const int priorities[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};
	if (level == LOG_LEVEL_ERROR && s->is_starting) {
		snprintf(s->last_error, sizeof(s->last_error), "%s", text);
	}
	if (s->is_foreground || (s->is_starting && level == LOG_LEVEL_WARN)) {
		fprintf(stderr, "weft: %s: %s\n", names[level], text);
	} else if (!s->is_starting || level != LOG_LEVEL_ERROR) {
		syslog(priorities[level], "%s", text);
	}
}

static void
on_signal(void *ctx, uint32_t events)
{
	struct server *s = ctx;
	enum os_signal sig;
	(void)events;
	while (os_signal_take(s->signal_fd, &sig) == WEFT_OK) {
		if (sig == OS_SIGNAL_STOP) {
			os_loop_stop(s->loop);
		}
	}
}

static void
on_node(void *ctx, uint32_t events)
{
	struct server *s = ctx;
	(void)events;
	node_take_events(s->node);
	if (node_has_session(s->node)) {
		s->trim_at = mono_min(s->trim_at, mono_add_ns(os_clock_mono(), TRIM_SOON_NS));
	}
	if (node_is_gone(s->node)) {
		log_info(&s->log, "%s: the interface is gone; stopping", s->o->name);
		os_loop_stop(s->loop);
	}
}

static void
on_monitor(void *ctx, uint32_t events)
{
	struct server *s = ctx;
	(void)events;
	node_monitor(s->node);
}

static enum aead_backend
choose_aead(const struct serve_options *o)
{
	if (o->has_aead || !o->conf) {
		return o->aead;
	}
	switch (o->conf->interface.aead) {
	case CONF_AEAD_LIBCRYPTO:
		return AEAD_BACKEND_LIBCRYPTO;
	case CONF_AEAD_IPSEC_MB:
		return AEAD_BACKEND_IPSEC_MB;
	case CONF_AEAD_AUTO:
		break;
	}
	return AEAD_BACKEND_AUTO;
}

static enum weft_err
start_node(struct server *s)
{
	const struct serve_options *o = s->o;
	const struct conf_interface *i = o->conf ? &o->conf->interface : NULL;
	struct node_config nc = {
		.name = o->name,
		.log = &s->log,
		.workers = o->workers ? o->workers
			   : i        ? i->workers
				      : 0,
		.aead = choose_aead(o),
		.has_offload = !i || i->has_offload,
		.mtu = o->conf ? apply_choose_mtu(o->conf) : NODE_MTU_DEFAULT,
		.state_dir = STATE_DIR,
	};
	enum weft_err e = node_new(&nc, &s->node);
	if (e) {
		if (s->sink->last_error[0] == 0) {
			log_error(&s->log, "%s: cannot start: %s", o->name, weft_err_text(e));
		}
		return e;
	}
	if (o->conf) {
		s->is_resolved = calloc(o->conf->peers_n + 1, sizeof(bool));
		if (!s->is_resolved) {
			return WEFT_ENOMEM;
		}
		e = apply_conf(s->node, o->conf, s->is_resolved, &s->log, &s->traces);
		s->has_traces = e == WEFT_OK;
	}
	return e;
}

static void
on_stop(void *ctx)
{
	struct server *s = ctx;
	os_loop_stop(s->loop);
}

static enum weft_err
open_control(struct server *s)
{
	char path[CTL_PATH_MAX];
	enum weft_err e = ctl_path_make(CTL_UAPI_DIR, s->o->name, path);
	if (!e) {
		e = ctl_uapi_open(s->node, s->loop, path, &s->log, &s->uapi);
	}
	if (!e) {
		e = ctl_path_make(CTL_CONTROL_DIR, s->o->name, path);
	}
	if (e) {
		return e;
	}
	struct ctl_control_config c = {.node = s->node,
		.loop = s->loop,
		.path = path,
		.version = WEFT_VERSION,
		.log = &s->log,
		.stop = on_stop,
		.ctx = s};
	return ctl_control_open(&c, &s->control);
}

static enum weft_err
start_loop(struct server *s)
{
	enum weft_err e = os_signal_open(&s->signal_fd);
	if (!e) {
		e = os_loop_new(LOOP_WATCHES, &s->loop);
	}
	if (!e) {
		e = os_loop_add(s->loop, s->signal_fd, OS_READABLE, on_signal, s);
	}
	if (!e) {
		e = os_loop_add(s->loop, node_event_fd(s->node), OS_READABLE, on_node, s);
	}
	if (!e) {
		e = os_loop_add(s->loop, node_monitor_fd(s->node), OS_READABLE, on_monitor, s);
	}
	if (!e) {
		e = open_control(s);
	}
	if (e && s->sink->last_error[0] == 0) {
		log_error(&s->log, "%s: cannot open its control sockets: %s", s->o->name,
			weft_err_text(e));
	}
	return e;
}

/* Endpoints given by name that did not resolve before. */
static void
resolve(struct server *s)
{
	size_t left;
	apply_resolve(s->node, s->o->conf, s->is_resolved, &s->log, &left);
	if (left == 0) {
		s->resolve_at = MONO_NEVER;
		return;
	}
	s->resolve_at = mono_add_ns(os_clock_mono(), s->resolve_wait_ns);
	s->resolve_wait_ns *= 2;
	if (s->resolve_wait_ns > RESOLVE_MAX_NS) {
		s->resolve_wait_ns = RESOLVE_MAX_NS;
	}
}

static int64_t
used_cpu_ns(const struct server *s)
{
	struct os_process_stats now;
	return os_process_stats(0, &now) == WEFT_OK ? now.user_ns + now.system_ns : s->trim_cpu_ns;
}

static void
trim(struct server *s)
{
	os_memory_trim();
	s->looked_at = os_clock_mono();
	s->trim_at = mono_add_ns(s->looked_at, TRIM_NS);
	s->trim_cpu_ns = used_cpu_ns(s);
	s->has_worked = false;
}

/* The first packets and handshakes touch 3 MB of libraries; a device that is quiet again need not
 * keep them. One that works is left alone until it does not, and so is one that did nothing. */
static void
trim_when_idle(struct server *s)
{
	struct mono now = os_clock_mono();
	int64_t took_ns = mono_diff_ns(now, s->looked_at);
	int64_t used_ns = used_cpu_ns(s) - s->trim_cpu_ns;
	s->looked_at = now;
	s->trim_cpu_ns += used_ns;
	s->has_worked |= node_has_session(s->node) || used_ns > TRIM_IDLE_CPU_NS;
	node_take_session(s->node);
	if (used_ns > took_ns / TRIM_BUSY_SHARE) {
		s->trim_at = mono_add_ns(now, TRIM_SOON_NS);
	} else if (s->has_worked) {
		trim(s);
	} else {
		s->trim_at = mono_add_ns(now, TRIM_NS);
	}
}

static void
stop(struct server *s)
{
	if (s->uapi) {
		ctl_uapi_close(s->uapi);
	}
	if (s->control) {
		/* Replies half-way hold references to peers. */
		ctl_control_drain(s->control);
	}
	if (s->has_traces) {
		apply_undo(&s->traces, &s->log);
	}
	if (s->node) {
		node_free(s->node);
	}
	/* The last, so that `weft down` sees the end of its connection when all is gone. */
	if (s->control) {
		ctl_control_close(s->control);
	}
	if (s->loop) {
		os_loop_free(s->loop);
	}
	free(s->is_resolved);
}

/* In the process that stays. report is NULL in the foreground. */
static int
run(const struct serve_options *o, struct os_daemon *report)
{
	struct serve_log sink = {.is_foreground = o->is_foreground, .is_starting = true};
	struct server s = {.o = o,
		.sink = &sink,
		.log = {.sink = log_line, .ctx = &sink, .level = o->log_level},
		.resolve_at = MONO_NEVER,
		.resolve_wait_ns = RESOLVE_FIRST_NS};
	openlog("weft", LOG_PID, LOG_DAEMON);
	os_signal_block_all();
	enum weft_err e = start_node(&s);
	if (!e) {
		e = start_loop(&s);
	}
	if (report) {
		os_daemon_report(report, e ? CLI_FAILED : CLI_OK, sink.last_error);
	}
	sink.is_starting = false;
	if (!e) {
		trim(&s);
		if (s.is_resolved) {
			s.resolve_at = mono_add_ns(os_clock_mono(), s.resolve_wait_ns);
		}
		while (!os_loop_is_stopped(s.loop)) {
			os_loop_wait(s.loop, mono_min(s.resolve_at, s.trim_at));
			if (!mono_is_before(os_clock_mono(), s.trim_at)) {
				trim_when_idle(&s);
			}
			if (s.resolve_at.ns != INT64_MAX &&
				!mono_is_before(os_clock_mono(), s.resolve_at)) {
				resolve(&s);
			}
		}
	}
	stop(&s);
	return e ? CLI_FAILED : CLI_OK;
}

int
serve(const struct serve_options *o)
{
	if (o->is_foreground) {
		return run(o, NULL);
	}
	struct os_daemon d;
	enum weft_err e = os_daemon_fork(&d);
	if (e) {
		return cli_fail("cannot go to the background: %s", weft_err_text(e));
	}
	if (d.is_child) {
		return run(o, &d);
	}
	if (d.result != CLI_OK) {
		return cli_fail("%s", d.text[0] ? d.text : "the device did not start");
	}
	return CLI_OK;
}

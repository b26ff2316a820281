/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/conffile.h"
#include "cli/sandbox.h"
#include "cli/serve_log.h"
#include "cli/service.h"
#include "ctl/control.h"
#include "ctl/http.h"
#include "ctl/path.h"
#include "ctl/uapi.h"
#include "node/keeper.h"
#include "node/node.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/loop.h"
#include "os/memory.h"
#include "os/process.h"
#include "os/signal.h"
#include "quick/steward.h"
#include "weft_config.h"

#define STATE_DIR "/var/lib/weft"
#define LOOP_WATCHES 512
#define SERVE_PATH_MAX WIRE_STEWARD_PATH_MAX
#define RELOAD_TEXT_MAX 4096
/* Memory is looked at so soon after a new session, and again and again while there is traffic;
 * otherwise once in so long. Less CPU time than this in between is nothing, and a greater share of
 * the time than this is traffic. */
#define TRIM_SOON_NS (3 * WEFT_NS_PER_S)
#define TRIM_NS (10 * WEFT_NS_PER_S)
#define TRIM_IDLE_CPU_NS (1 * WEFT_NS_PER_MS)
#define TRIM_BUSY_SHARE 300

struct server {
	struct serve_options *o;
	struct serve_log *sink;
	struct log log;
	struct service service;
	struct os_loop *loop;
	struct keeper *keeper;
	struct node *node; /* the keeper's */
	struct ctl_uapi *uapi;
	struct ctl_control *control;
	struct ctl_http *http; /* NULL: nobody asked for it */
	int signal_fd;
	struct steward steward;
	struct ctl_sandbox sandbox;
	char sockets[OFFICE_SOCKETS][CTL_PATH_MAX]; /* of the UAPI, of control */
	struct os_daemon *report;                   /* NULL: in the foreground, or told */
	bool is_running;                            /* between the hooks of start and end */
	bool is_stopping;
	struct mono trim_at;
	struct mono looked_at; /* at memory */
	bool has_worked;       /* since the last trim */
	int64_t trim_cpu_ns;   /* used by this process when it was last looked at */
};

static uint32_t
current_mark(const struct server *s)
{
	struct node_facts facts;
	node_facts(s->node, &facts);
	return facts.fwmark;
}

static enum weft_err
save(void *ctx, char *why, size_t cap)
{
	struct server *s = ctx;
	return steward_save(&s->steward, s->node, why, cap);
}

static void
save_at_end(struct server *s)
{
	const struct conf *c = keeper_conf(s->keeper);
	char why[SERVE_PATH_MAX * 3] = "";
	if (!steward_is_up(&s->steward) || !c || !c->interface.save_config) {
		return;
	}
	enum weft_err e = save(s, why, sizeof(why));
	if (e) {
		log_warn(&s->log, "SaveConfig: %s", why[0] ? why : weft_err_text(e));
	}
}

static void
turn_early(void *ctx, struct mono until)
{
	struct server *s = ctx;
	os_loop_wait(s->loop, until);
}

static void
turn(void *ctx, struct mono until)
{
	struct server *s = ctx;
	os_loop_wait(s->loop, mono_min(keeper_deadline(s->keeper), until));
	keeper_turn(s->keeper, os_clock_mono());
}

/* What was read is in force, or not. Called from the loop, which must not turn meanwhile. */
static enum weft_err
put_in_force(struct server *s, struct conf *fresh, char *why, size_t cap)
{
	serve_log_begin_reload(s->sink);
	enum weft_err e = keeper_reload(s->keeper, fresh);
	serve_log_end_reload(s->sink, why, cap);
	if (e) {
		steward_refuse(&s->steward);
		conf_free(fresh);
		if (!why[0]) {
			snprintf(why, cap, "%s", weft_err_text(e));
		}
		return e;
	}
	steward_adopt(&s->steward, keeper_conf(s->keeper), current_mark(s));
	log_info(&s->log, "%s: %s is in force", s->o->name, s->steward.path);
	return WEFT_OK;
}

static enum weft_err
load(struct server *s, const char *file, char *why, size_t cap)
{
	struct conf *fresh;
	if (!s->is_running) {
		snprintf(why, cap, "%s is about to start or to end", s->o->name);
		return WEFT_EAGAIN; /* a hook works with the configuration */
	}
	if (!steward_set_apart(&s->steward)) {
		snprintf(why, cap, "%s", weft_err_text(WEFT_ENOMEM));
		return WEFT_ENOMEM;
	}
	enum weft_err e = steward_read(&s->steward, file, &fresh, why, cap);
	if (e && !why[0]) {
		snprintf(why, cap, "%s", weft_err_text(e));
	}
	e = e ? e : put_in_force(s, fresh, why, cap);
	steward_set_back(&s->steward);
	return e;
}

static enum weft_err
reload(void *ctx, const char *file, char *why, size_t cap)
{
	struct server *s = ctx;
	if (!s->is_running) { /* READY=1 would end a start that may fail yet */
		return load(s, file, why, cap);
	}
	service_reloading(&s->service);
	enum weft_err e = load(s, file, why, cap);
	ctl_control_reloaded(s->control, file ? file : s->steward.path, e ? why : NULL);
	if (e) {
		service_ready(&s->service, "a reload changed nothing: %s", why);
	} else {
		service_ready(&s->service, "%s is in force", s->steward.path);
	}
	return e;
}

static void
on_signal(void *ctx, uint32_t events)
{
	struct server *s = ctx;
	enum os_signal sig;
	(void)events;
	while (os_signal_take(s->signal_fd, &sig) == WEFT_OK) {
		if (sig == OS_SIGNAL_STOP) {
			s->is_stopping = true;
		} else if (sig == OS_SIGNAL_RELOAD) {
			char why[RELOAD_TEXT_MAX];
			if (reload(s, NULL, why, sizeof(why)) != WEFT_OK) {
				log_error(&s->log, "%s: nothing is changed: %s", s->o->name, why);
			}
		}
	}
}

static void
on_gone(void *ctx)
{
	struct server *s = ctx;
	log_info(&s->log, "%s: the interface is gone; stopping", s->o->name);
	s->is_stopping = true;
}

static void
on_news(void *ctx)
{
	struct server *s = ctx;
	if (s->node && node_has_session(s->node)) {
		s->trim_at = mono_min(s->trim_at, mono_add_ns(os_clock_mono(), TRIM_SOON_NS));
	}
}

static void
on_stop(void *ctx)
{
	struct server *s = ctx;
	s->is_stopping = true;
}

static const struct conf *
conf_in_force(void *ctx)
{
	const struct server *s = ctx;
	return keeper_conf(s->keeper);
}

static enum weft_err
open_control(struct server *s)
{
	enum weft_err e = ctl_uapi_open(s->node, s->loop, s->sockets[0], &s->log, &s->uapi);
	if (e) {
		return e;
	}
	s->steward.sockets |= 1u;
	struct ctl_control_config c = {.node = s->node,
		.keeper = s->keeper,
		.loop = s->loop,
		.path = s->sockets[1],
		.version = WEFT_VERSION,
		.log = &s->log,
		.sandbox = &s->sandbox,
		.stop = on_stop,
		.reload = reload,
		.save = save,
		.conf = conf_in_force,
		.ctx = s};
	e = ctl_control_open(&c, &s->control);
	s->steward.sockets |= e ? 0u : 2u;
	return e;
}

static enum weft_err
open_metrics(struct server *s)
{
	struct ctl_http_config c = {.node = s->node,
		.loop = s->loop,
		.at = &s->o->metrics,
		.version = WEFT_VERSION,
		.log = &s->log};
	return s->o->metrics.port ? ctl_http_open(&c, &s->http) : WEFT_OK;
}

static enum weft_err
start_loop(struct server *s)
{
	enum weft_err e = os_loop_new(LOOP_WATCHES, &s->loop);
	if (!e) {
		e = os_signal_open(&s->signal_fd);
	}
	if (!e) {
		e = os_loop_add(s->loop, s->signal_fd, OS_READABLE, on_signal, s);
	}
	return e;
}

/* While it starts: a signal, or the caller is gone. */
static bool
is_called_off(void *ctx)
{
	struct server *s = ctx;
	return s->is_stopping || (s->report && os_daemon_is_abandoned(s->report));
}

static enum weft_err
start_around(struct server *s)
{
	const struct quick_host host = {.loop = s->loop,
		.log = &s->log,
		.name = s->o->name,
		.turn = turn_early, /* until there is a keeper */
		.is_over = is_called_off,
		.ctx = s,
		.is_attached = true,
		.is_at_terminal = s->o->is_foreground};
	return steward_begin(&s->steward, &host, s->o->conf);
}

/* The steward does from now on what needs more. */
static enum weft_err
enter_sandbox(struct server *s)
{
	const struct conf *c = s->o->conf;
	const struct sandbox_config config = {.node = s->node,
		.log = &s->log,
		.name = s->o->name,
		.user = s->o->user,
		.has_low_port = c && c->interface.listen_port > 0 &&
				c->interface.listen_port < SANDBOX_LOW_PORTS};
	if (s->o->has_no_sandbox) {
		return WEFT_OK;
	}
	ctl_uapi_leave_file(s->uapi);
	ctl_control_leave_file(s->control);
	return sandbox_enter(&config, &s->sandbox);
}

/* Sockets of control and metrics are open before the rights to open them go, and those go before a
 * packet can come: the loop does not turn before the keeper is there. */
static enum weft_err
prepare(void *ctx, struct keeper *k)
{
	struct server *s = ctx;
	s->keeper = k;
	s->node = keeper_node(k);
	enum weft_err e = open_control(s);
	if (e && s->sink->last_error[0] == 0) {
		log_error(&s->log, "%s: cannot open its control sockets: %s", s->o->name,
			weft_err_text(e));
	}
	e = e ? e : open_metrics(s);
	return e ? e : enter_sandbox(s);
}

static void
unprepare(void *ctx)
{
	struct server *s = ctx;
	ctl_http_close(s->http);
	s->http = NULL;
	if (s->uapi) {
		ctl_uapi_close(s->uapi);
		s->uapi = NULL;
	}
	ctl_control_close(s->control);
	s->control = NULL;
	s->keeper = NULL;
	s->node = NULL;
}

static enum weft_err
start_keeper(struct server *s)
{
	struct serve_options *o = s->o;
	struct keeper_config kc = {
		.name = o->name,
		.conf = o->conf,
		.log = &s->log,
		.workers = o->workers,
		.has_aead = o->has_aead,
		.aead = o->aead,
		.state_dir = STATE_DIR,
		.left = &s->steward.left,
		.prepare = prepare,
		.unprepare = unprepare,
		.gone = on_gone,
		.news = on_news,
		.ctx = s,
	};
	enum weft_err e = keeper_new(&kc, s->loop, &s->keeper);
	if (e) {
		return e;
	}
	o->conf = NULL; /* the keeper's */
	steward_set_turn(&s->steward, turn);
	return WEFT_OK;
}

static enum weft_err
start(struct server *s)
{
	enum weft_err e = start_loop(s);
	e = e ? e : start_around(s);
	e = e ? e : start_keeper(s);
	return e ? e : steward_bring_up(&s->steward, keeper_conf(s->keeper), current_mark(s));
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
	node_look(s->node);
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
	struct conf *conf = NULL;
	service_stopping(&s->service);
	if (s->control) {
		ctl_control_stopping(s->control);
	}
	if (s->keeper) {
		steward_pre_down(&s->steward, keeper_conf(s->keeper));
		save_at_end(s);
		steward_take_down(&s->steward);
	}
	ctl_http_close(s->http);
	if (s->uapi) {
		ctl_uapi_close(s->uapi);
	}
	if (s->control) {
		/* Replies half-way hold references to peers. */
		ctl_control_drain(s->control);
	}
	if (s->keeper) {
		conf = keeper_end(s->keeper);
		s->keeper = NULL;
	}
	if (steward_set_apart(&s->steward)) {
		steward_end(&s->steward, conf);
		steward_set_back(&s->steward);
	}
	steward_close(&s->steward);
	conf_free(conf);
	/* The last, so that `weft down` sees the end of its connection when all is gone. */
	if (s->control) {
		ctl_control_close(s->control);
	}
	if (s->loop) {
		os_loop_free(s->loop);
	}
	service_fini(&s->service);
}

static void
work(struct server *s)
{
	trim(s);
	while (!s->is_stopping) {
		struct mono at = mono_min(keeper_deadline(s->keeper), s->trim_at);
		at = mono_min(at, ctl_control_deadline(s->control));
		os_loop_wait(s->loop, mono_min(at, ctl_http_deadline(s->http)));
		struct mono now = os_clock_mono();
		if (!mono_is_before(now, s->trim_at)) {
			trim_when_idle(s);
		}
		ctl_http_turn(s->http, now);
		keeper_turn(s->keeper, now);
		ctl_control_turn(s->control, now);
	}
}

static void
detach(void *ctx)
{
	struct server *s = ctx;
	if (s->report) {
		os_daemon_detach(s->report);
	}
}

static void
on_steward_died(void *ctx)
{
	struct server *s = ctx;
	log_error(&s->log, "%s: the steward process is gone; stopping", s->o->name);
	s->is_stopping = true;
}

/* *is_steward: this is the other process. */
static enum weft_err
open_steward(struct server *s, bool *is_steward)
{
	struct serve_options *o = s->o;
	enum weft_err e = ctl_path_make(CTL_UAPI_DIR, o->name, s->sockets[0]);
	e = e ? e : ctl_path_make(CTL_CONTROL_DIR, o->name, s->sockets[1]);
	const struct office_config c = {.name = o->name,
		.path = o->path ? o->path : "",
		.sockets = {s->sockets[0], s->sockets[1]},
		.log = &s->log,
		.is_foreground = o->is_foreground,
		.conf = o->conf,
		.load = conffile_load_text,
		.detach = detach,
		.ctx = s};
	e = e ? e : steward_open(&s->steward, &c, !o->has_no_sandbox, is_steward);
	s->steward.died = on_steward_died;
	return e;
}

static int
be_steward(struct server *s)
{
	if (s->report) {
		os_fd_close(&s->report->report_fd); /* the other process tells */
	}
	s->o->conf = NULL; /* the steward's */
	steward_work(&s->steward);
	serve_log_fini(s->sink);
	return CLI_OK;
}

/* report: as in struct server. */
static int
run_device(struct server *s)
{
	struct serve_log *sink = s->sink;
	enum weft_err e = start(s);
	if (e && sink->last_error[0] == 0) {
		log_error(&s->log, "%s: cannot start: %s", s->o->name, weft_err_text(e));
	}
	if (e) {
		stop(s); /* before the caller learns of it: then nothing is left */
	} else if (!s->o->is_foreground) {
		steward_detach(&s->steward);
	}
	if (s->report) {
		os_daemon_report(s->report, e ? CLI_FAILED : CLI_OK, sink->last_error);
		s->report = NULL;
	}
	sink->is_starting = false;
	if (!e) {
		service_ready(&s->service, "%s is up", s->o->name);
		s->is_running = true;
		work(s);
		s->is_running = false;
		stop(s);
	}
	serve_log_fini(sink);
	return e ? CLI_FAILED : CLI_OK;
}

/* In the process that stays. report is NULL in the foreground. */
static int
run(struct serve_options *o, struct os_daemon *report)
{
	struct serve_log sink;
	bool is_steward;
	serve_log_init(&sink, o->is_foreground);
	struct server s = {.o = o,
		.sink = &sink,
		.log = {.sink = serve_log_line, .ctx = &sink, .level = o->log_level},
		.service = SERVICE_NONE,
		.report = report,
		.trim_at = MONO_NEVER};
	os_signal_block_all();
	enum weft_err e = open_steward(&s, &is_steward);
	if (e) {
		return cli_fail("cannot start: %s", weft_err_text(e));
	}
	if (is_steward) {
		return be_steward(&s);
	}
	if (o->is_foreground) {
		service_init(&s.service);
	}
	return run_device(&s);
}

int
serve(struct serve_options *o)
{
	char path[SERVE_PATH_MAX] = "";
	/* In the background the working folder is another. */
	if (o->path && os_file_absolute(o->path, path, sizeof(path)) == WEFT_OK) {
		o->path = path;
	}
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

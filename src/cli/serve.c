/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/conffile.h"
#include "cli/serve_log.h"
#include "cli/service.h"
#include "ctl/control.h"
#include "ctl/http.h"
#include "ctl/path.h"
#include "ctl/uapi.h"
#include "node/keeper.h"
#include "node/node.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/loop.h"
#include "os/memory.h"
#include "os/process.h"
#include "os/signal.h"
#include "quick/around.h"
#include "quick/save.h"
#include "weft_config.h"

#define STATE_DIR "/var/lib/weft"
#define LOOP_WATCHES 512
#define LOOP_WATCHES_APART 8 /* for a program */
#define SERVE_PATH_MAX 4096
#define RELOAD_TEXT_MAX 4096
/* Memory is looked at so soon after a new session, and again and again while there is traffic;
 * otherwise once in so long. Less CPU time than this in between is nothing, and a greater share of
 * the time than this is traffic. */
#define TRIM_SOON_NS (3 * WEFT_NS_PER_S)
#define TRIM_NS (30 * WEFT_NS_PER_S)
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
	struct around around;
	struct save_base base;
	struct os_daemon *report; /* NULL: in the foreground, or told */
	bool is_running;          /* between the hooks of start and end */
	bool is_stopping;
	char path[SERVE_PATH_MAX]; /* of the configuration, absolute; empty: none */
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

/* A configuration has come into force. */
static void
note_base(struct server *s)
{
	const struct conf *c = keeper_conf(s->keeper);
	s->base = (struct save_base){.sum = c ? c->text_sum : 0, .mark = current_mark(s)};
}

static enum weft_err
save(void *ctx, char *why, size_t cap)
{
	struct server *s = ctx;
	if (!s->path[0]) {
		snprintf(why, cap, "%s was started without a file", s->o->name);
		return WEFT_ENOENT;
	}
	return save_write(s->node, s->path, &s->base, why, cap);
}

static void
save_at_end(struct server *s)
{
	const struct conf *c = keeper_conf(s->keeper);
	char why[SERVE_PATH_MAX * 3];
	if (s->around.is_up && c && c->interface.save_config && save(s, why, sizeof(why))) {
		log_warn(&s->log, "SaveConfig: %s", why);
	}
}

static void
turn_apart(void *ctx, struct mono until)
{
	struct server *s = ctx;
	os_loop_wait(s->around.host.loop, until);
}

/* Programs are waited for on a loop of their own: the first would call what we are called by, or
 * what is gone. NULL: no memory; else to be freed. */
static struct os_loop *
set_apart(struct server *s)
{
	struct os_loop *apart;
	if (os_loop_new(LOOP_WATCHES_APART, &apart)) {
		return NULL;
	}
	s->around.host.loop = apart;
	s->around.host.turn = turn_apart;
	return apart;
}

static void
turn(void *ctx, struct mono until)
{
	struct server *s = ctx;
	os_loop_wait(s->loop, mono_min(keeper_deadline(s->keeper), until));
	keeper_turn(s->keeper, os_clock_mono());
}

static void
change_around(struct server *s)
{
	struct os_loop *apart = set_apart(s);
	if (!apart) {
		log_warn(&s->log, "%s: no memory to change DNS and firewall", s->o->name);
		return;
	}
	around_change(&s->around, keeper_conf(s->keeper), current_mark(s));
	s->around.host.loop = s->loop;
	s->around.host.turn = turn;
	os_loop_free(apart);
}

static enum weft_err
load(struct server *s, const char *file, char *why, size_t cap)
{
	struct conf *fresh;
	if (!s->is_running) {
		snprintf(why, cap, "%s is about to start or to end", s->o->name);
		return WEFT_EAGAIN; /* a hook works with the configuration */
	}
	if (!file && !s->path[0]) {
		snprintf(why, cap, "it was started without a file; give one");
		return WEFT_ENOENT;
	}
	enum weft_err e = conffile_load(file ? file : s->path, &fresh, why, cap);
	if (e) {
		return e;
	}
	serve_log_begin_reload(s->sink);
	e = keeper_reload(s->keeper, fresh);
	serve_log_end_reload(s->sink, why, cap);
	if (e) {
		conf_free(fresh);
		if (!why[0]) {
			snprintf(why, cap, "%s", weft_err_text(e));
		}
		return e;
	}
	if (file) {
		snprintf(s->path, sizeof(s->path), "%s", file);
	}
	note_base(s);
	change_around(s);
	log_info(&s->log, "%s: %s is in force", s->o->name, s->path);
	return WEFT_OK;
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
	ctl_control_reloaded(s->control, file ? file : s->path, e ? why : NULL);
	if (e) {
		service_ready(&s->service, "a reload changed nothing: %s", why);
	} else {
		service_ready(&s->service, "%s is in force", s->path);
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
		.left_path = s->around.left_path,
		.gone = on_gone,
		.news = on_news,
		.ctx = s,
	};
	enum weft_err e = keeper_new(&kc, s->loop, &s->keeper);
	if (e) {
		return e;
	}
	o->conf = NULL; /* the keeper's */
	s->node = keeper_node(s->keeper);
	s->around.host.turn = turn;
	note_base(s);
	return WEFT_OK;
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
		.keeper = s->keeper,
		.loop = s->loop,
		.path = path,
		.version = WEFT_VERSION,
		.log = &s->log,
		.stop = on_stop,
		.reload = reload,
		.save = save,
		.conf = conf_in_force,
		.ctx = s};
	return ctl_control_open(&c, &s->control);
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
		.path = s->path,
		.turn = turn_apart, /* until there is a keeper */
		.is_over = is_called_off,
		.ctx = s,
		.is_attached = true,
		.is_at_terminal = s->o->is_foreground};
	return around_begin(&s->around, &host, s->o->conf);
}

static enum weft_err
start(struct server *s)
{
	enum weft_err e = start_loop(s);
	e = e ? e : start_around(s);
	e = e ? e : start_keeper(s);
	if (!e) {
		e = open_control(s);
		if (e && s->sink->last_error[0] == 0) {
			log_error(&s->log, "%s: cannot open its control sockets: %s", s->o->name,
				weft_err_text(e));
		}
	}
	if (!e) {
		e = open_metrics(s);
	}
	return e ? e : around_bring_up(&s->around, keeper_conf(s->keeper), current_mark(s));
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
	s->around.host.is_over = NULL;
	if (s->keeper) {
		around_pre_down(&s->around, keeper_conf(s->keeper));
		save_at_end(s);
		around_take_down(&s->around);
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
	struct os_loop *apart = set_apart(s);
	if (apart) {
		around_end(&s->around, conf);
		os_loop_free(apart);
	}
	conf_free(conf);
	/* The last, so that `weft down` sees the end of its connection when all is gone. */
	if (s->control) {
		ctl_control_close(s->control);
	}
	if (s->loop) {
		os_loop_free(s->loop);
	}
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

/* In the process that stays. report is NULL in the foreground. */
static int
run(struct serve_options *o, struct os_daemon *report)
{
	struct serve_log sink;
	serve_log_init(&sink, o->is_foreground);
	struct server s = {.o = o,
		.sink = &sink,
		.log = {.sink = serve_log_line, .ctx = &sink, .level = o->log_level},
		.around = {.lock_fd = -1},
		.report = report,
		.trim_at = MONO_NEVER};
	if (o->path) {
		snprintf(s.path, sizeof(s.path), "%s", o->path);
	}
	if (o->is_foreground) {
		service_init(&s.service);
	}
	os_signal_block_all();
	enum weft_err e = start(&s);
	if (e && sink.last_error[0] == 0) {
		log_error(&s.log, "%s: cannot start: %s", o->name, weft_err_text(e));
	}
	if (e) {
		stop(&s); /* before the caller learns of it: then nothing is left */
	}
	if (report) {
		os_daemon_report(report, e ? CLI_FAILED : CLI_OK, sink.last_error);
		s.report = NULL;
	}
	sink.is_starting = false;
	if (!e) {
		service_ready(&s.service, "%s is up", o->name);
		s.around.host.is_attached = o->is_foreground;
		s.is_running = true;
		work(&s);
		s.is_running = false;
		stop(&s);
	}
	serve_log_fini(&sink);
	return e ? CLI_FAILED : CLI_OK;
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

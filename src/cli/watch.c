/* SPDX-License-Identifier: Apache-2.0 */
/* The live view: listens to devices, draws on a terminal, or prints lines elsewhere. */
#include "cli/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/number.h"
#include "cli/recovery.h"
#include "cli/reply.h"
#include "cli/screen.h"
#include "cli/stream.h"
#include "ctl/path.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/loop.h"
#include "os/signal.h"
#include "os/terminal.h"

/* To a device that has ended, and to see whether there are others. */
#define RETRY_NS (1 * WEFT_NS_PER_S)
/* Pictures are drawn no oftener, whatever comes. */
#define DRAW_NS (100 * WEFT_NS_PER_MS)
#define LOOP_WATCHES 1024
#define OUTPUT_BYTES (64u << 10) /* a picture leaves in one piece */
#define INPUT_FD 0
#define OUTPUT_FD 1

struct watch;

struct watched {
	struct watch *watch;
	struct watch_device model;
	struct stream stream;
};

struct watch {
	const char *name;   /* NULL: all */
	struct watched **v; /* sorted by name */
	size_t n;
	struct watch_events events;
	struct screen screen;
	bool is_terminal; /* the output */
	bool wants_draw;
	struct mono drawn_at, retry_at;
	struct os_terminal *input;
	struct os_loop *loop;
	int signal_fd;
	enum weft_err failed; /* it is no use to go on */
	const char *failed_name;
};

/* --- the devices --- */

static void print_device(const struct watch_device *d);

static void
on_line(void *ctx, const json_t *o, const char *text)
{
	struct watched *d = ctx;
	struct watch *w = d->watch;
	if (json_object_get(o, "event")) {
		watch_note(&w->events, d->model.name, o);
		w->wants_draw = true;
		return;
	}
	switch (watch_feed(&d->model, o, text)) {
	case WATCH_STEP_WHOLE:
		w->wants_draw = true;
		if (!w->is_terminal) {
			print_device(&d->model);
		}
		break;
	case WATCH_STEP_NO_MEMORY:
		w->failed = WEFT_ENOMEM;
		w->failed_name = d->model.name;
		break;
	case WATCH_STEP_MORE:
		break;
	}
}

static void
on_ended(void *ctx, enum weft_err e)
{
	struct watched *d = ctx;
	struct watch *w = d->watch;
	watch_forget(&d->model);
	w->wants_draw = true;
	if (!w->is_terminal) {
		printf("%s does not run\n", d->model.name);
	}
	w->retry_at = mono_add_ns(os_clock_mono(), RETRY_NS);
	if (e == WEFT_ENOTSUP || e == WEFT_ENOMEM) {
		w->failed = e;
		w->failed_name = d->model.name;
	}
}

static enum weft_err
open_stream(struct watched *d)
{
	const struct stream_sink sink = {.line = on_line, .ended = on_ended, .ctx = d};
	return stream_open(&d->stream, d->model.name, WATCH_EVERY_MS, d->watch->loop, &sink);
}

static struct watched *
find(const struct watch *w, const char *name)
{
	for (size_t i = 0; i < w->n; i++) {
		if (strcmp(w->v[i]->model.name, name) == 0) {
			return w->v[i];
		}
	}
	return NULL;
}

static int
compare_devices(const void *a, const void *b)
{
	const struct watched *const *x = a, *const *y = b;
	return strcmp((*x)->model.name, (*y)->model.name);
}

static void
drop(struct watched *d)
{
	stream_close(&d->stream);
	watch_forget(&d->model);
	free(d);
}

/* NULL: no memory. */
static struct watched *
add(struct watch *w, const char *name)
{
	struct watched **v = realloc(w->v, (w->n + 1) * sizeof(struct watched *));
	w->v = v ? v : w->v;
	struct watched *d = v ? calloc(1, sizeof(*d)) : NULL;
	if (!d) {
		return NULL;
	}
	d->watch = w;
	d->stream.fd = -1;
	snprintf(d->model.name, sizeof(d->model.name), "%s", name);
	w->v[w->n++] = d;
	return d;
}

static bool
is_among(const struct cli_devices *found, const char *name)
{
	for (size_t i = 0; i < found->n; i++) {
		if (strcmp(found->names[i], name) == 0) {
			return true;
		}
	}
	return false;
}

/* Without a name: which devices there are now. */
static void
follow_devices(struct watch *w)
{
	struct cli_devices found;
	size_t kept = 0;
	if (w->name || cli_devices_find(CTL_CONTROL_DIR, &found)) {
		return;
	}
	for (size_t i = 0; i < w->n; i++) {
		if (stream_is_open(&w->v[i]->stream) || is_among(&found, w->v[i]->model.name)) {
			w->v[kept++] = w->v[i];
		} else {
			drop(w->v[i]);
			w->wants_draw = true;
		}
	}
	w->n = kept;
	for (size_t i = 0; i < found.n; i++) {
		if (!find(w, found.names[i]) && !add(w, found.names[i])) {
			w->failed = WEFT_ENOMEM;
			w->failed_name = "weft";
		}
	}
	if (w->n > 1) {
		qsort(w->v, w->n, sizeof(*w->v), compare_devices);
	}
	cli_devices_fini(&found);
}

static void
reconnect(struct watch *w)
{
	bool has_any = false;
	follow_devices(w);
	for (size_t i = 0; i < w->n; i++) {
		if (!stream_is_open(&w->v[i]->stream)) {
			enum weft_err e = open_stream(w->v[i]);
			(void)e; /* it is tried again */
		}
		has_any |= stream_is_open(&w->v[i]->stream);
	}
	/* A picture of nothing, else there is one when the first sample is here. */
	w->wants_draw |= !has_any;
	w->retry_at = mono_add_ns(os_clock_mono(), RETRY_NS);
}

/* --- what is shown --- */

static void
draw(struct watch *w)
{
	unsigned rows = 24, columns = 80;
	const struct watch_device **models = calloc(w->n + 1, sizeof(struct watch_device *));
	if (!models) {
		return;
	}
	for (size_t i = 0; i < w->n; i++) {
		models[i] = &w->v[i]->model;
	}
	(void)os_terminal_size(OUTPUT_FD, &rows, &columns);
	screen_begin(&w->screen, rows, columns);
	watch_draw(&w->screen, models, w->n, &w->events);
	screen_finish(&w->screen);
	if (!w->screen.has_failed) {
		fwrite(w->screen.text, 1, w->screen.len, stdout);
	}
	free(models);
}

static void
print_peer(const char *clock, const char *device, const struct watch_peer *p)
{
	json_t *o = json_loads(p->text, 0, NULL);
	const json_t *f = json_object_get(o, "fec"), *rx = json_object_get(f, "rx");
	char in[NUMBER_TEXT_MAX], out[NUMBER_TEXT_MAX], loss[NUMBER_TEXT_MAX],
		residual[NUMBER_TEXT_MAX], overhead[NUMBER_TEXT_MAX], hold[NUMBER_TEXT_MAX];
	printf("%s %s %.8s in %s out %s", clock, device, p->key,
		number_rate(watch_flow_in(&p->flow), in),
		number_rate(watch_flow_out(&p->flow), out));
	if (recovery_is_running(o)) {
		printf(" loss %s residual %s overhead %s held %s %s",
			number_share(reply_number(f, "loss"), loss),
			number_share(reply_number(f, "residual"), residual),
			number_share(reply_number(f, "overhead"), overhead),
			number_ms(reply_number(rx, "hold_avg_ms"), hold),
			reply_text(f, "why", "?"));
	}
	putchar('\n');
	json_decref(o);
}

static void
print_device(const struct watch_device *d)
{
	time_t now = (time_t)reply_number(d->status, "time_s");
	struct tm tm;
	char clock[16] = "";
	if (localtime_r(&now, &tm)) {
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	}
	/* The first sample has no rate. */
	for (size_t i = 0; i < d->peers_n; i++) {
		if (d->peers[i].flow.n > 0) {
			print_peer(clock, d->name, &d->peers[i]);
		}
	}
	for (unsigned i = 0; d->drops_n > 1 && i < DROP_COUNT; i++) {
		uint64_t more = d->drops[d->drops_n - 1][i] - d->drops[d->drops_n - 2][i];
		char count[NUMBER_TEXT_MAX];
		if (more > 0) {
			printf("%s %s dropped %s %s\n", clock, d->name, number_count(more, count),
				drop_name((enum drop_reason)i));
		}
	}
}

/* --- the loop --- */

static void
on_signal(void *ctx, uint32_t events)
{
	struct watch *w = ctx;
	enum os_signal sig;
	(void)events;
	while (os_signal_take(w->signal_fd, &sig) == WEFT_OK) {
		if (sig == OS_SIGNAL_RESIZE) {
			w->wants_draw = true;
			w->drawn_at = (struct mono){0};
		} else {
			/* HUP, too: the terminal is gone. */
			os_loop_stop(w->loop);
		}
	}
}

static void
on_key(void *ctx, uint32_t events)
{
	struct watch *w = ctx;
	char keys[64];
	size_t n;
	(void)events;
	enum weft_err e = os_fd_read(INPUT_FD, keys, sizeof(keys), &n);
	if (e && e != WEFT_EAGAIN) {
		os_loop_del(w->loop, INPUT_FD);
		return;
	}
	if (!e && (memchr(keys, 'q', n) || memchr(keys, 'Q', n))) {
		os_loop_stop(w->loop);
	}
}

static enum weft_err
open_loop(struct watch *w)
{
	os_signal_block_all();
	enum weft_err e = os_loop_new(LOOP_WATCHES, &w->loop);
	if (!e) {
		e = os_signal_open(&w->signal_fd);
	}
	if (!e) {
		e = os_loop_add(w->loop, w->signal_fd, OS_READABLE, on_signal, w);
	}
	return e;
}

static bool
locale_is_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
		const char *v = getenv(names[i]);
		if (v && v[0]) {
			return strcasestr(v, "utf-8") || strcasestr(v, "utf8");
		}
	}
	return false;
}

/* https://no-color.org */
static bool
wants_colors(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	return !(no && no[0]) && term && strcmp(term, "dumb") != 0;
}

/* False: nobody reads. */
static bool
show(struct watch *w)
{
	if (w->is_terminal) {
		draw(w);
	}
	w->wants_draw = false;
	w->drawn_at = os_clock_mono();
	return fflush(stdout) == 0;
}

static int
run(struct watch *w)
{
	while (!os_loop_is_stopped(w->loop) && !w->failed) {
		struct mono now = os_clock_mono();
		if (!mono_is_before(now, w->retry_at)) {
			reconnect(w);
		}
		struct mono draw_at = mono_add_ns(w->drawn_at, DRAW_NS);
		if (w->wants_draw && !mono_is_before(now, draw_at) && !show(w)) {
			return CLI_FAILED;
		}
		os_loop_wait(w->loop, w->wants_draw ? mono_min(draw_at, w->retry_at) : w->retry_at);
	}
	return CLI_OK;
}

static int
start(struct watch *w)
{
	enum weft_err e = open_loop(w);
	if (e) {
		return cli_fail("%s", weft_err_text(e));
	}
	if (!w->name) {
		return CLI_OK;
	}
	/* A mistyped name is told at once; one that goes later may come back. */
	struct watched *d = add(w, w->name);
	e = d ? open_stream(d) : WEFT_ENOMEM;
	return e ? stream_fail(w->name, e) : CLI_OK;
}

/* The terminal is ours until leave(). */
static enum weft_err
enter(struct watch *w)
{
	if (!w->is_terminal) {
		return WEFT_OK;
	}
	setvbuf(stdout, NULL, _IOFBF, OUTPUT_BYTES);
	fputs(SCREEN_BEGIN, stdout);
	return os_terminal_take(INPUT_FD, &w->input) == WEFT_OK
		       ? os_loop_add(w->loop, INPUT_FD, OS_READABLE, on_key, w)
		       : WEFT_OK;
}

static void
leave(struct watch *w)
{
	fputs(w->is_terminal ? SCREEN_END : "", stdout);
	fflush(stdout);
	os_terminal_give_back(w->input);
}

int
watch_run(const char *name)
{
	struct watch w = {.name = name,
		.signal_fd = -1,
		.is_terminal = os_fd_is_terminal(OUTPUT_FD),
		.screen.is_utf8 = locale_is_utf8(),
		.screen.has_colors = wants_colors()};
	int rc = start(&w);
	if (!rc) {
		enum weft_err e = enter(&w);
		if (e) {
			w.failed = e;
			w.failed_name = "terminal";
		}
		rc = run(&w);
		leave(&w);
		/* When the terminal shows it. */
		rc = w.failed ? stream_fail(w.failed_name, w.failed) : rc;
	}
	for (size_t i = 0; i < w.n; i++) {
		drop(w.v[i]);
	}
	free(w.v);
	screen_fini(&w.screen);
	os_loop_free(w.loop);
	os_fd_close(&w.signal_fd);
	return rc;
}

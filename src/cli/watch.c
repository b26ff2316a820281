/* SPDX-License-Identifier: Apache-2.0 */
/* The live view: asks once a second, draws on a terminal, or prints lines elsewhere. */
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
#include "cli/status.h"
#include "ctl/path.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/loop.h"
#include "os/signal.h"
#include "os/terminal.h"

#define PERIOD_NS WEFT_NS_PER_S
/* A device of many peers takes a while to answer: it is not asked for more than a fifth of the
 * time. */
#define LOAD_MAX 5
#define ANSWER_NS (2 * WEFT_NS_PER_S)
#define INPUT_FD 0
#define OUTPUT_FD 1

struct watch {
	const char *name; /* NULL: all */
	struct watch_device *devices;
	size_t n;
	struct screen screen;
	bool is_terminal; /* the output */
	struct os_terminal *input;
	struct os_loop *loop;
	int signal_fd;
};

static struct watch_device *
find(struct watch *w, const char *name)
{
	for (size_t i = 0; i < w->n; i++) {
		if (strcmp(w->devices[i].name, name) == 0) {
			return &w->devices[i];
		}
	}
	return NULL;
}

/* Keeps what is known of devices that are still there. */
static bool
set_devices(struct watch *w, const char (*names)[CLI_DEVICE_NAME_MAX], size_t n)
{
	struct watch_device *v = calloc(n + 1, sizeof(*v));
	if (!v) {
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		struct watch_device *old = find(w, names[i]);
		if (old) {
			v[i] = *old;
			*old = (struct watch_device){0};
		}
		snprintf(v[i].name, sizeof(v[i].name), "%s", names[i]);
	}
	for (size_t i = 0; i < w->n; i++) {
		watch_device_fini(&w->devices[i]);
	}
	free(w->devices);
	w->devices = v;
	w->n = n;
	return true;
}

/* Without a name: which devices there are now. */
static bool
follow_devices(struct watch *w)
{
	struct cli_devices found;
	if (w->name || cli_devices_find(CTL_CONTROL_DIR, &found)) {
		return true;
	}
	bool ok = set_devices(w, (const char(*)[CLI_DEVICE_NAME_MAX])found.names, found.n);
	cli_devices_fini(&found);
	return ok;
}

static bool
sample(struct watch *w)
{
	if (!follow_devices(w)) {
		return false;
	}
	for (size_t i = 0; i < w->n; i++) {
		json_t *status = NULL;
		if (status_ask(
			    w->devices[i].name, mono_add_ns(os_clock_mono(), ANSWER_NS), &status)) {
			status = NULL;
		}
		if (!watch_feed(&w->devices[i], status, os_clock_mono())) {
			return false;
		}
	}
	return true;
}

static void
draw(struct watch *w)
{
	unsigned rows = 24, columns = 80;
	(void)os_terminal_size(OUTPUT_FD, &rows, &columns);
	screen_begin(&w->screen, rows, columns);
	watch_draw(&w->screen, w->devices, w->n);
	screen_finish(&w->screen);
	if (!w->screen.has_failed) {
		fwrite(w->screen.text, 1, w->screen.len, stdout);
	}
}

static void
print_peer(const char *clock, const char *device, const struct watch_peer *p)
{
	const json_t *f = json_object_get(p->json, "fec"), *rx = json_object_get(f, "rx");
	char in[NUMBER_TEXT_MAX], out[NUMBER_TEXT_MAX], loss[NUMBER_TEXT_MAX],
		residual[NUMBER_TEXT_MAX], overhead[NUMBER_TEXT_MAX], hold[NUMBER_TEXT_MAX];
	printf("%s %s %.8s in %s out %s", clock, device, p->key,
		number_rate(watch_flow_in(&p->flow), in),
		number_rate(watch_flow_out(&p->flow), out));
	if (recovery_is_running(p->json)) {
		printf(" loss %s residual %s overhead %s held %s %s",
			number_share(reply_number(f, "loss"), loss),
			number_share(reply_number(f, "residual"), residual),
			number_share(reply_number(f, "overhead"), overhead),
			number_ms(reply_number(rx, "hold_avg_ms"), hold),
			reply_text(f, "why", "?"));
	}
	putchar('\n');
}

static void
print_device(const char *clock, const struct watch_device *d)
{
	if (!d->status) {
		printf("%s %s does not run\n", clock, d->name);
		return;
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

static void
print(struct watch *w)
{
	time_t now = (time_t)(os_clock_wall_ns() / WEFT_NS_PER_S);
	struct tm tm;
	char clock[16] = "";
	if (localtime_r(&now, &tm)) {
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	}
	for (size_t i = 0; i < w->n; i++) {
		print_device(clock, &w->devices[i]);
	}
}

static void
on_signal(void *ctx, uint32_t events)
{
	struct watch *w = ctx;
	enum os_signal sig;
	(void)events;
	while (os_signal_take(w->signal_fd, &sig) == WEFT_OK) {
		/* HUP, too: the terminal is gone. */
		os_loop_stop(w->loop);
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
	enum weft_err e = os_loop_new(2, &w->loop);
	if (!e) {
		e = os_signal_open(&w->signal_fd);
	}
	if (!e) {
		e = os_loop_add(w->loop, w->signal_fd, OS_READABLE, on_signal, w);
	}
	if (!e && w->is_terminal && os_terminal_take(INPUT_FD, &w->input) == WEFT_OK) {
		e = os_loop_add(w->loop, INPUT_FD, OS_READABLE, on_key, w);
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

static int
run(struct watch *w)
{
	while (!os_loop_is_stopped(w->loop)) {
		struct mono began = os_clock_mono();
		if (!sample(w)) {
			return cli_fail("%s", weft_err_text(WEFT_ENOMEM));
		}
		if (w->is_terminal) {
			draw(w);
		} else {
			print(w);
		}
		if (fflush(stdout) != 0) {
			return CLI_FAILED; /* nobody reads */
		}
		int64_t wait_ns = mono_diff_ns(os_clock_mono(), began) * LOAD_MAX;
		struct mono next = mono_add_ns(began, wait_ns > PERIOD_NS ? wait_ns : PERIOD_NS);
		while (!os_loop_is_stopped(w->loop) && mono_is_before(os_clock_mono(), next)) {
			os_loop_wait(w->loop, next);
		}
	}
	return CLI_OK;
}

static int
start(struct watch *w)
{
	if (w->name) {
		/* A mistyped name is told at once; one that goes later may come back. */
		json_t *status;
		char names[1][CLI_DEVICE_NAME_MAX];
		enum weft_err e = status_ask(w->name, cli_device_deadline(), &status);
		if (e) {
			return cli_device_fail(w->name, e);
		}
		json_decref(status);
		snprintf(names[0], sizeof(names[0]), "%s", w->name);
		if (!set_devices(w, (const char(*)[CLI_DEVICE_NAME_MAX])names, 1)) {
			return cli_fail("%s", weft_err_text(WEFT_ENOMEM));
		}
	}
	enum weft_err e = open_loop(w);
	return e ? cli_fail("%s", weft_err_text(e)) : CLI_OK;
}

int
watch_run(const char *name)
{
	struct watch w = {.name = name,
		.signal_fd = -1,
		.is_terminal = os_fd_is_terminal(OUTPUT_FD),
		.screen.is_utf8 = locale_is_utf8()};
	int rc = start(&w);
	if (!rc) {
		fputs(w.is_terminal ? SCREEN_BEGIN : "", stdout);
		rc = run(&w);
		fputs(w.is_terminal ? SCREEN_END : "", stdout);
		fflush(stdout);
	}
	os_terminal_give_back(w.input);
	set_devices(&w, NULL, 0);
	free(w.devices);
	screen_fini(&w.screen);
	os_loop_free(w.loop);
	os_fd_close(&w.signal_fd);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* weft events: what happens to devices, a line an event, until they end. */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/device.h"
#include "cli/event.h"
#include "cli/stream.h"
#include "ctl/path.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/loop.h"
#include "os/signal.h"

#define OUTPUT_FD 1
#define LOOP_WATCHES 1024
#define RETRY_NS (1 * WEFT_NS_PER_S)

static const char help[] =
	"Usage: weft events [--json] [--follow] [NAME]\n"
	"Prints what happens to NAME, or to every running device, as it happens: sessions,\n"
	"endpoints, names, reloads, peers, loss recovery, drops. Ends with the devices.\n\n"
	"  --json    each event as it comes, one JSON object a line (docs/control.md)\n"
	"  --follow  waits for NAME, now and when it ends\n";

struct listener;

struct source {
	struct listener *listener;
	char name[CLI_DEVICE_NAME_MAX];
	struct stream stream;
};

struct listener {
	bool is_json, is_following;
	struct source *sources;
	size_t n;
	struct os_loop *loop;
	int signal_fd;
	bool is_broken; /* nobody reads */
	int rc;
};

static void
print_json(const struct source *s, const json_t *o)
{
	json_t *named = json_pack("{s:s}", "device", s->name);
	if (named && json_object_update(named, (json_t *)(uintptr_t)o) == 0 &&
		json_dumpf(named, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15)) == 0) {
		putchar('\n');
	}
	json_decref(named);
}

static void
on_line(void *ctx, const json_t *o, const char *text)
{
	struct source *s = ctx;
	char clock[EVENT_CLOCK_MAX], words[EVENT_TEXT_MAX];
	(void)text;
	if (!json_object_get(o, "event")) {
		return;
	}
	if (s->listener->is_json) {
		print_json(s, o);
	} else {
		printf("%s %s: %s\n", event_time(o, clock), s->name, event_text(o, words));
	}
	if (fflush(stdout) != 0) {
		s->listener->is_broken = true;
	}
}

static void
on_ended(void *ctx, enum weft_err e)
{
	struct source *s = ctx;
	if (e != WEFT_ECLOSED) {
		s->listener->rc = stream_fail(s->name, e);
	}
}

static void
on_signal(void *ctx, uint32_t events)
{
	struct listener *l = ctx;
	enum os_signal sig;
	(void)events;
	while (os_signal_take(l->signal_fd, &sig) == WEFT_OK) {
		if (sig == OS_SIGNAL_STOP || sig == OS_SIGNAL_RELOAD) {
			os_loop_stop(l->loop);
		}
	}
}

static enum weft_err
open_source(struct source *s)
{
	const struct stream_sink sink = {.line = on_line, .ended = on_ended, .ctx = s};
	return stream_open(&s->stream, s->name, 0, s->listener->loop, &sink);
}

static int
find_sources(struct listener *l, const char *name)
{
	struct cli_devices found = {0};
	enum weft_err e = name ? WEFT_OK : cli_devices_find(CTL_CONTROL_DIR, &found);
	if (e) {
		return cli_fail("%s: %s", CTL_CONTROL_DIR, weft_err_text(e));
	}
	l->n = name ? 1 : found.n;
	l->sources = calloc(l->n + 1, sizeof(*l->sources));
	for (size_t i = 0; l->sources && i < l->n; i++) {
		struct source *s = &l->sources[i];
		s->listener = l;
		s->stream.fd = -1;
		snprintf(s->name, sizeof(s->name), "%s", name ? name : found.names[i]);
	}
	cli_devices_fini(&found);
	return l->sources ? CLI_OK : cli_fail("%s", weft_err_text(WEFT_ENOMEM));
}

/* A socket without anybody behind it is what a killed device left. */
static int
open_sources(struct listener *l, bool is_named)
{
	for (size_t i = 0; i < l->n; i++) {
		enum weft_err e = open_source(&l->sources[i]);
		if (e && !(e == WEFT_ENOENT && (l->is_following || !is_named))) {
			return stream_fail(l->sources[i].name, e);
		}
	}
	return CLI_OK;
}

static size_t
count_open(const struct listener *l)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++) {
		n += stream_is_open(&l->sources[i].stream);
	}
	return n;
}

static void
listen_on(struct listener *l)
{
	while (!os_loop_is_stopped(l->loop) && !l->is_broken && !l->rc) {
		size_t open = count_open(l);
		if (open == 0 && !l->is_following) {
			return;
		}
		bool is_whole = open == l->n;
		os_loop_wait(
			l->loop, is_whole ? MONO_NEVER : mono_add_ns(os_clock_mono(), RETRY_NS));
		for (size_t i = 0; i < l->n && l->is_following && !is_whole; i++) {
			if (!stream_is_open(&l->sources[i].stream)) {
				enum weft_err e = open_source(&l->sources[i]);
				(void)e; /* it is tried again */
			}
		}
	}
}

static int
listen_to(struct listener *l, const char *name)
{
	os_signal_block_own();
	enum weft_err e = os_loop_new(LOOP_WATCHES, &l->loop);
	if (!e) {
		e = os_signal_open(&l->signal_fd);
	}
	if (!e) {
		e = os_loop_add(l->loop, l->signal_fd, OS_READABLE, on_signal, l);
	}
	if (e) {
		return cli_fail("%s", weft_err_text(e));
	}
	int rc = find_sources(l, name);
	if (!rc) {
		rc = open_sources(l, name);
	}
	if (!rc && !l->is_following && count_open(l) == 0) {
		puts("no device is running");
	}
	if (!rc) {
		listen_on(l);
		rc = l->is_broken ? CLI_FAILED : l->rc;
	}
	return rc;
}

int
events_main(int argc, char **argv)
{
	const char *name = NULL;
	struct listener l = {.signal_fd = -1};
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(help, stdout);
			return CLI_OK;
		}
		if (strcmp(argv[i], "--json") == 0) {
			l.is_json = true;
		} else if (strcmp(argv[i], "--follow") == 0) {
			l.is_following = true;
		} else if (argv[i][0] == '-') {
			return cli_misuse("events", "%s is not an option of it", argv[i]);
		} else if (name) {
			return cli_misuse("events", "%s is an argument too many", argv[i]);
		} else {
			name = argv[i];
		}
	}
	if (l.is_following && !name) {
		return cli_misuse("events", "--follow wants a NAME");
	}
	int rc = listen_to(&l, name);
	for (size_t i = 0; i < l.n; i++) {
		stream_close(&l.sources[i].stream);
	}
	free(l.sources);
	os_loop_free(l.loop);
	os_fd_close(&l.signal_fd);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "ctl/client.h"
#include "ctl/path.h"
#include "os/clock.h"
#include "os/loop.h"
#include "quick/around.h"

/* Its hooks may take a while; each is ended after a minute. */
#define STOP_NS (600 * WEFT_NS_PER_S)
#define LOOP_WATCHES 8

static const char help[] =
	"Usage: weft down FILE|NAME\n"
	"Takes down a device that `weft up` or `weft run` started, and everything that\n"
	"came with it: interface, addresses, routes, rules, DNS. PreDown and PostDown are run. "
	"When\n"
	"the device does not run, because its process was killed, what is left of it goes.\n";

static void
print(void *ctx, enum log_level level, const char *text)
{
	(void)ctx;
	(void)level;
	fprintf(stderr, "weft: %s\n", text);
}

static void
turn(void *ctx, struct mono until)
{
	os_loop_wait(ctx, until);
}

static int
clean(const char *name, const char *file)
{
	char control[CTL_PATH_MAX], uapi[CTL_PATH_MAX];
	struct os_loop *loop;
	const struct log log = {.sink = print, .level = LOG_LEVEL_WARN};
	bool was_there = false;
	enum weft_err e = ctl_path_make(CTL_CONTROL_DIR, name, control);
	e = e ? e : ctl_path_make(CTL_UAPI_DIR, name, uapi);
	e = e ? e : os_loop_new(LOOP_WATCHES, &loop);
	if (e) {
		return cli_fail("%s", weft_err_text(e));
	}
	const struct quick_host host = {.loop = loop,
		.log = &log,
		.name = name,
		.path = file,
		.sockets = {control, uapi},
		.turn = turn,
		.ctx = loop,
		.is_attached = true,
		.is_at_terminal = true};
	e = around_clean(&host, &was_there);
	os_loop_free(loop);
	if (e == WEFT_EEXIST) {
		return cli_fail("%s is about to start or to end; try again", name);
	}
	if (e) {
		return cli_fail("%s is not running; what it may have left cannot be removed: %s%s",
			name, weft_err_text(e), e == WEFT_EPERM ? "; try as root" : "");
	}
	if (!was_there) {
		return cli_fail("%s is not running", name);
	}
	fprintf(stderr, "weft: %s was not running; what it had left is removed\n", name);
	return CLI_OK;
}

int
down_main(int argc, char **argv)
{
	struct options o;
	bool is_done;
	int rc = options_parse(&o, "down", help, argc, argv, &is_done);
	if (is_done) {
		return rc;
	}
	if (!options_name_of(o.what, o.name)) {
		return cli_misuse("down", "%s gives no interface name", o.what);
	}
	char path[CTL_PATH_MAX];
	enum weft_err e = ctl_path_make(CTL_CONTROL_DIR, o.name, path);
	if (!e) {
		e = ctl_client_stop(path, mono_add_ns(os_clock_mono(), STOP_NS));
	}
	if (e == WEFT_ENOENT) {
		options_look(o.what, o.path);
		return clean(o.name, o.path);
	}
	if (e) {
		return cli_fail("cannot stop %s: %s%s", o.name, weft_err_text(e),
			e == WEFT_EPERM ? "; try as root" : "");
	}
	return CLI_OK;
}

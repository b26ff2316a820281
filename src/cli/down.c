/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/options.h"
#include "ctl/client.h"
#include "ctl/path.h"
#include "os/clock.h"

#define STOP_NS (10 * WEFT_NS_PER_S)

static const char help[] =
	"Usage: weft down FILE|NAME\n"
	"Takes down a device that `weft up` or `weft run` started, and everything that\n"
	"came with it: interface, addresses, routes, rules.\n";

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
		return cli_fail("%s is not running", o.name);
	}
	if (e) {
		return cli_fail("cannot stop %s: %s%s", o.name, weft_err_text(e),
			e == WEFT_EPERM ? "; try as root" : "");
	}
	return CLI_OK;
}

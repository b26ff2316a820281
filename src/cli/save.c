/* SPDX-License-Identifier: Apache-2.0 */
/* weft save: what a device runs with, into its file. */
#include "cli/cli.h"
#include "cli/device.h"
#include "cli/options.h"
#include "cli/reply.h"
#include "ctl/client.h"
#include "ctl/path.h"
#include "os/clock.h"

#define SAVE_NS (60 * WEFT_NS_PER_S)

static const char help[] =
	"Usage: weft save FILE|NAME\n"
	"Writes what a running device has got since its start (`wg set`, roaming) into its file:\n"
	"peers, their keys, AllowedIPs and endpoints, port and mark. Comments, order and names of\n"
	"hosts stay. A file that was changed since the start is left alone, and the result is\n"
	"written beside it as FILE.weft-save. With SaveConfig = true `weft down` does the same.\n";

int
save_main(int argc, char **argv)
{
	struct options o;
	bool is_done;
	char path[CTL_PATH_MAX];
	json_t *reply;
	int rc = options_parse(&o, "save", help, argc, argv, &is_done);
	if (is_done) {
		return rc;
	}
	if (!options_name_of(o.what, o.name)) {
		return cli_misuse("save", "%s gives no interface name", o.what);
	}
	enum weft_err e = ctl_path_make(CTL_CONTROL_DIR, o.name, path);
	e = e ? e : ctl_client_op(path, "save", mono_add_ns(os_clock_mono(), SAVE_NS), &reply);
	if (e) {
		return cli_device_fail(o.name, e);
	}
	const json_t *error = json_object_get(reply, "error");
	if (error) {
		rc = cli_fail("%s", reply_text(error, "text", "the device refused it"));
	}
	json_decref(reply);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/device.h"
#include "cli/options.h"
#include "cli/reply.h"
#include "ctl/client.h"
#include "ctl/path.h"
#include "os/clock.h"
#include "os/file.h"

/* Thousands of peers take a while, and nobody else waits for it. */
#define RELOAD_NS (120 * WEFT_NS_PER_S)

static const char help[] =
	"Usage: weft reload FILE|NAME\n"
	"Has a running device read its configuration again, and changes what is different: peers\n"
	"that stay keep their sessions, counters and endpoints, addresses that stay are not "
	"touched.\n"
	"A file with faults changes nothing. With a FILE (a path, or a name that ends in .conf) "
	"the\n"
	"device reads that one, now and later on. SIGHUP to the daemon does the same without "
	"FILE.\n"
	"Workers, Offload and Aead change with the next start only.\n";

static int
ask(const struct options *o)
{
	char path[CTL_PATH_MAX], file[OPTIONS_PATH_MAX];
	json_t *reply;
	json_t *request = json_pack("{s:s}", "op", "reload");
	enum weft_err e = request ? ctl_path_make(CTL_CONTROL_DIR, o->name, path) : WEFT_ENOMEM;
	if (!e && options_is_path(o->what)) {
		e = os_file_absolute(o->what, file, sizeof(file));
		if (!e && json_object_set_new(request, "file", json_string(file))) {
			e = WEFT_EINVAL; /* a path that is no UTF-8 */
		}
	}
	if (!e) {
		e = ctl_client_request(
			path, request, mono_add_ns(os_clock_mono(), RELOAD_NS), &reply);
	}
	json_decref(request);
	if (e) {
		return cli_device_fail(o->name, e);
	}
	int rc = CLI_OK;
	const json_t *error = json_object_get(reply, "error");
	if (error) {
		rc = cli_fail("%s", reply_text(error, "text", "the device refused it"));
	}
	json_decref(reply);
	return rc;
}

int
reload_main(int argc, char **argv)
{
	struct options o;
	bool is_done;
	int rc = options_parse(&o, "reload", help, argc, argv, &is_done);
	if (is_done) {
		return rc;
	}
	if (!options_name_of(o.what, o.name)) {
		return cli_misuse("reload", "%s gives no interface name", o.what);
	}
	return ask(&o);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/serve.h"

static const char help[] =
	"Usage: weft run [OPTIONS] NAME|FILE\n"
	"Runs a device. With a FILE (a path, or a name that ends in .conf) it is configured from\n"
	"it, as by `weft up`. With a NAME it starts without key and peers, and `wg setconf NAME`\n"
	"and `wg set NAME` fill it, as with other user-space implementations; then\n"
	"`ip address add ADDRESS dev NAME` and `ip link set NAME up`.\n\n"
	"  -f, --foreground  stay in the foreground and log to standard error\n"
	"  --aead BACKEND    auto (default), libcrypto or ipsec-mb\n"
	"  --workers N       auto (default), or 1 to 16 threads for packets\n"
	"  --log LEVEL       error, warn, info (default) or debug\n"
	"  --metrics [ADDRESS:]PORT\n"
	"                    serve metrics for Prometheus at http://ADDRESS:PORT/metrics\n"
	"                    (127.0.0.1)\n"
	"  --metrics-open    at an address that is not of loopback, too\n"
	"  --user NAME       become that user for the network (weft, else nobody); none: stay\n"
	"  --no-sandbox      keep all rights and system calls, in one process\n"
	"  --help            this text\n";

int
run_main(int argc, char **argv)
{
	struct options o;
	bool is_done;
	int rc = options_parse(&o, "run", help, argc, argv, &is_done);
	if (is_done) {
		return rc;
	}
	rc = options_load(&o, "run", false);
	if (rc == CLI_OK) {
		rc = serve(&o.serve);
	}
	options_fini(&o);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/serve.h"

static const char help[] =
	"Usage: weft up [OPTIONS] FILE|NAME\n"
	"Brings up a device from a configuration file in the format of wg-quick and leaves it\n"
	"running in the background. FILE has a '/' or ends in .conf; NAME is looked for as\n"
	"/etc/weft/NAME.conf, then /etc/wireguard/NAME.conf. The interface is called as the file,\n"
	"without its .conf.\n\n"
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
up_main(int argc, char **argv)
{
	struct options o;
	bool is_done;
	int rc = options_parse(&o, "up", help, argc, argv, &is_done);
	if (is_done) {
		return rc;
	}
	rc = options_load(&o, "up", true);
	if (rc == CLI_OK) {
		rc = serve(&o.serve);
	}
	options_fini(&o);
	return rc;
}

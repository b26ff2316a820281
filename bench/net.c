/* SPDX-License-Identifier: Apache-2.0 */
/* `weft bench net` is a Python program beside the tests' network labs; this finds it. */
#include "bench/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/file.h"
#include "weft_config.h"

/* Debian's, which has the modules that tools/deps installs, whatever else comes first in PATH. */
#define PYTHON "/usr/bin/python3"
#define SCRIPT "/bench/net/bench_net.py"
#define PATH_BYTES 4096

/* An installed weft has the program in ../libexec/weft, wherever it was installed to; then come
 * the folder that was configured, and for a build tree its source. NULL: nowhere. */
static const char *
find_script(const char *self, char path[PATH_BYTES])
{
	const char *slash = strrchr(self, '/');
	int n = snprintf(
		path, PATH_BYTES, "%.*s/../libexec/weft" SCRIPT, (int)(slash - self), self);
	if (n > 0 && n < PATH_BYTES && os_file_exists(path)) {
		return path;
	}
	if (os_file_exists(WEFT_LIBEXECDIR SCRIPT)) {
		return WEFT_LIBEXECDIR SCRIPT;
	}
	return os_file_exists(WEFT_SOURCE_DIR SCRIPT) ? WEFT_SOURCE_DIR SCRIPT : NULL;
}

int
net_exec(int argc, char **argv)
{
	char self[PATH_BYTES];
	char found[PATH_BYTES];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len < 0) {
		fprintf(stderr, "weft bench net: /proc/self/exe: %s\n", strerror(errno));
		return 1;
	}
	self[len] = 0;
	const char *script = find_script(self, found);
	if (!script) {
		fprintf(stderr, "weft bench net: neither " WEFT_LIBEXECDIR SCRIPT
				" nor " WEFT_SOURCE_DIR SCRIPT " is there\n");
		return 1;
	}
	char **args = calloc((size_t)argc + 3, sizeof(*args));
	char *path = strdup(script);
	if (!args || !path || setenv("WEFT_BINARY", self, 0) != 0) {
		fputs("weft bench net: out of memory\n", stderr);
		free(args);
		free(path);
		return 1;
	}
	args[0] = (char[]){PYTHON};
	args[1] = path;
	memcpy(args + 2, argv, (size_t)argc * sizeof(*args));
	execv(PYTHON, args);
	fprintf(stderr, "weft bench net: " PYTHON ": %s\n", strerror(errno));
	free(path);
	free(args);
	return 1;
}

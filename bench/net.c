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

int
net_exec(int argc, char **argv)
{
	/* An installed weft has the program beside it; a build tree, in its source. */
	const char *script = os_file_exists(WEFT_LIBEXECDIR SCRIPT) ? WEFT_LIBEXECDIR SCRIPT
								    : WEFT_SOURCE_DIR SCRIPT;
	char self[4096];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len < 0) {
		fprintf(stderr, "weft bench net: /proc/self/exe: %s\n", strerror(errno));
		return 1;
	}
	self[len] = 0;
	if (!os_file_exists(script)) {
		fprintf(stderr, "weft bench net: neither " WEFT_LIBEXECDIR SCRIPT
				" nor " WEFT_SOURCE_DIR SCRIPT " is there\n");
		return 1;
	}
	char **args = calloc((size_t)argc + 3, sizeof(*args));
	char *path = strdup(script);
	if (!args || !path || setenv("WEFT", self, 1) != 0) {
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

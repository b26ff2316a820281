/* SPDX-License-Identifier: Apache-2.0 */
/* `weft bench net`, `loss`, `dial` and `control` are Python programs beside the tests' network
 * labs; this finds them. */
#include "bench/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "os/file.h"
#include "weft_config.h"

/* Debian's, which has the modules that tools/deps installs, whatever else comes first in PATH. */
#define PYTHON "/usr/bin/python3"
#define PATH_BYTES 4096

static const char *const names[] = {"net", "loss", "dial", "control"};

bool
net_has(const char *name)
{
	for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
		if (strcmp(name, names[i]) == 0) {
			return true;
		}
	}
	return false;
}

/* An installed weft has the program in ../libexec/weft, wherever it was installed to; then come
 * the folder that was configured, and for a build tree its source. False: nowhere. */
static bool
find_script(const char *self, const char *name, char path[PATH_BYTES])
{
	char beside[PATH_BYTES];
	int n = snprintf(beside, sizeof(beside), "%.*s/../libexec/weft",
		(int)(strrchr(self, '/') - self), self);
	if (n < 0 || n >= PATH_BYTES) {
		return false;
	}
	const char *const folders[] = {beside, WEFT_LIBEXECDIR, WEFT_SOURCE_DIR};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(folders); i++) {
		n = snprintf(path, PATH_BYTES, "%s/bench/net/bench_%s.py", folders[i], name);
		if (n > 0 && n < PATH_BYTES && os_file_exists(path)) {
			return true;
		}
	}
	return false;
}

int
net_exec(const char *name, int argc, char **argv)
{
	char self[PATH_BYTES], script[PATH_BYTES];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len < 0) {
		fprintf(stderr, "weft bench %s: /proc/self/exe: %s\n", name, strerror(errno));
		return 1;
	}
	self[len] = 0;
	if (!find_script(self, name, script)) {
		fprintf(stderr,
			"weft bench %s: bench/net/bench_%s.py is neither in " WEFT_LIBEXECDIR
			" nor in " WEFT_SOURCE_DIR "\n",
			name, name);
		return 1;
	}
	char **args = calloc((size_t)argc + 3, sizeof(*args));
	if (!args || setenv("WEFT_BINARY", self, 0) != 0) {
		fprintf(stderr, "weft bench %s: out of memory\n", name);
		free(args);
		return 1;
	}
	args[0] = (char[]){PYTHON};
	args[1] = script;
	memcpy(args + 2, argv, (size_t)argc * sizeof(*args));
	execv(PYTHON, args);
	fprintf(stderr, "weft bench %s: " PYTHON ": %s\n", name, strerror(errno));
	free(args);
	return 1;
}

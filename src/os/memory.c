/* SPDX-License-Identifier: Apache-2.0 */
#include "os/memory.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>

struct region {
	uintptr_t from, to;
	bool is_file; /* maps a file and cannot be written to */
};

/* The first line of an entry: "from-to perms offset device inode path". */
static bool
parse_region(const char *line, struct region *out)
{
	uintptr_t from, to;
	char perms[5], path[2];
	int n = sscanf(
		line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %1s", &from, &to, perms, path);
	if (n < 3) {
		return false;
	}
	*out = (struct region){from, to, n == 4 && path[0] == '/' && perms[1] == '-'};
	return true;
}

void
os_memory_trim(void)
{
	malloc_trim(0);
	FILE *f = fopen("/proc/self/smaps", "re");
	if (!f) {
		return;
	}
	char line[512];
	struct region r = {0};
	while (fgets(line, sizeof(line), f)) {
		struct region next;
		unsigned long anonymous;
		if (parse_region(line, &next)) {
			r = next;
		} else if (r.is_file && sscanf(line, "Anonymous: %lu kB", &anonymous) == 1 &&
			   anonymous == 0) {
			/* A page with changes of our own (relocated data) would lose them; there is
			 * none here, and none can come to be in a region that cannot be written to.
			 */
			(void)madvise((void *)r.from, r.to - r.from, MADV_DONTNEED);
		}
	}
	fclose(f);
}

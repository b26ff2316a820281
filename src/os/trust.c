/* SPDX-License-Identifier: Apache-2.0 */
#include "os/trust.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
is_ours(const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == geteuid();
}

static bool
is_safe(const char *path, bool is_last)
{
	struct stat st;
	if (lstat(path, &st) || !is_ours(&st)) {
		return false;
	}
	if (S_ISLNK(st.st_mode)) {
		return true; /* its mode says nothing; where it leads is looked at apart */
	}
	bool is_open = (st.st_mode & (S_IWGRP | S_IWOTH)) != 0;
	if (is_last) {
		return S_ISREG(st.st_mode) && !is_open;
	}
	/* In a sticky folder nobody can move what is root's. */
	return S_ISDIR(st.st_mode) && (!is_open || (st.st_mode & S_ISVTX));
}

/* Every prefix of path. */
static bool
is_way_safe(const char *path, char *at, size_t cap)
{
	size_t len = strlen(path);
	for (size_t i = 0; i <= len; i++) {
		if (path[i] != '/' && path[i] != 0) {
			continue;
		}
		snprintf(at, cap, "%.*s", (int)(i ? i : 1), path);
		if (!is_safe(at, path[i] == 0)) {
			return false;
		}
	}
	return true;
}

bool
os_trust_path(const char *path, char *at, size_t cap)
{
	if (path[0] != '/' || strlen(path) >= cap) {
		snprintf(at, cap, "%s", path);
		return false;
	}
	if (!is_way_safe(path, at, cap)) {
		return false;
	}
	/* Where links lead. */
	char *real = realpath(path, NULL);
	bool is_safe_there = real && strlen(real) < cap && is_way_safe(real, at, cap);
	if (is_safe_there) {
		snprintf(at, cap, "%s", real);
	}
	free(real);
	return is_safe_there;
}

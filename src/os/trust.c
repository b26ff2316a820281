/* SPDX-License-Identifier: Apache-2.0 */
#include "os/trust.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as the kernel has it */

static bool
is_ours(const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == geteuid();
}

/* Its mode says nothing of a link; where it leads is looked at apart. */
static bool
is_safe(const struct stat *st, bool is_last)
{
	if (!is_ours(st) || S_ISLNK(st->st_mode)) {
		return is_ours(st);
	}
	bool is_open = (st->st_mode & (S_IWGRP | S_IWOTH)) != 0;
	if (is_last) {
		return S_ISREG(st->st_mode) && !is_open;
	}
	/* In a sticky folder nobody can move what is root's. */
	return S_ISDIR(st->st_mode) && (!is_open || (st->st_mode & S_ISVTX));
}

/* Looks at every prefix of path up to the first link; *link_len is its length, 0 where there is
 * none. False: at is not safe. */
static bool
is_way_safe(const char *path, size_t *link_len, char *at, size_t cap)
{
	size_t len = strlen(path);
	*link_len = 0;
	for (size_t i = 0; i <= len && *link_len == 0; i++) {
		struct stat st;
		if (path[i] != '/' && path[i] != 0) {
			continue;
		}
		snprintf(at, cap, "%.*s", (int)(i ? i : 1), path);
		if (lstat(at, &st) || !is_safe(&st, path[i] == 0)) {
			return false;
		}
		*link_len = S_ISLNK(st.st_mode) ? i : 0;
	}
	return true;
}

/* Puts where the link leads in its place. False: the path becomes too long. */
static bool
follow(char path[PATH_MAX], size_t link_len)
{
	char to[PATH_MAX], link[PATH_MAX], rest[PATH_MAX];
	snprintf(rest, sizeof(rest), "%s", path + link_len);
	snprintf(link, sizeof(link), "%.*s", (int)link_len, path);
	ssize_t n = readlink(link, to, sizeof(to) - 1);
	if (n < 0) {
		return false;
	}
	to[n] = 0;
	/* A relative one begins in the link's folder. */
	*(strrchr(link, '/') + 1) = 0;
	size_t need = (size_t)n + strlen(rest) + (to[0] == '/' ? 0 : strlen(link));
	if (need >= PATH_MAX) {
		return false;
	}
	path[0] = 0;
	strcat(path, to[0] == '/' ? "" : link);
	strcat(path, to);
	strcat(path, rest);
	return true;
}

bool
os_trust_path(const char *path, char *at, size_t cap)
{
	char now[PATH_MAX];
	size_t link_len;
	snprintf(at, cap, "%s", path);
	if (path[0] != '/' || strlen(path) >= cap || strlen(path) >= sizeof(now)) {
		return false;
	}
	strcpy(now, path);
	for (unsigned links = 0; is_way_safe(now, &link_len, at, cap); links++) {
		if (link_len == 0) {
			char *real = realpath(now, NULL);
			bool is_good = real && strlen(real) < cap;
			snprintf(at, cap, "%s", is_good ? real : now);
			free(real);
			return is_good;
		}
		if (links == LINKS_MAX || !follow(now, link_len)) {
			return false;
		}
	}
	return false;
}

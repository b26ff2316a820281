/* SPDX-License-Identifier: Apache-2.0 */
/* A file has lines of a number and a name; '#' begins a comment. The kernel's own three tables have
 * their names even where no file says so, as with `ip`. */
#include "node/table.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "os/file.h"

#define FILE_MAX (1u << 20)
#define PATH_BYTES 4096
#define SUFFIX ".conf"

/* "254 main # words". False: another line. */
static bool
is_line_of(const char *line, size_t len, const char *name, uint32_t *number)
{
	const char *blanks = " \t\r";
	char text[256];
	if (len >= sizeof(text)) {
		return false;
	}
	memcpy(text, line, len);
	text[len] = 0;
	const char *p = text + strspn(text, blanks);
	char *end;
	if (*p < '0' || *p > '9') {
		return false;
	}
	bool is_hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
	unsigned long long v = strtoull(p, &end, is_hex ? 16 : 10);
	if (end == p || v > UINT32_MAX || strspn(end, blanks) == 0) {
		return false;
	}
	p = end + strspn(end, blanks);
	size_t n = strcspn(p, " \t\r#");
	if (n == 0 || n != strlen(name) || strncmp(p, name, n) != 0) {
		return false;
	}
	*number = (uint32_t)v;
	return true;
}

static bool
find_in(const char *path, const char *name, uint32_t *number)
{
	char *text;
	size_t len;
	if (os_file_read(path, FILE_MAX, &text, &len)) {
		return false;
	}
	bool is_found = false;
	for (const char *p = text; *p && !is_found;) {
		size_t n = strcspn(p, "\n");
		is_found = is_line_of(p, n, name, number);
		p += n + (p[n] == '\n');
	}
	free(text);
	return is_found;
}

struct search {
	const char *folder, *name;
	char first[PATH_BYTES]; /* the file that holds it and sorts before the others */
	uint32_t number;
};

static void
look(void *ctx, const char *file)
{
	struct search *s = ctx;
	char path[PATH_BYTES];
	uint32_t number;
	size_t n = strlen(file), k = strlen(SUFFIX);
	if (file[0] == '.' || n <= k || strcmp(file + n - k, SUFFIX) != 0 ||
		(s->first[0] && strcmp(file, s->first) > 0)) {
		return;
	}
	snprintf(path, sizeof(path), "%s/%s", s->folder, file);
	if (find_in(path, s->name, &number)) {
		snprintf(s->first, sizeof(s->first), "%s", file);
		s->number = number;
	}
}

static bool
find_in_folder(const char *folder, const char *name, uint32_t *number)
{
	struct search s = {.folder = folder, .name = name};
	if (os_file_list(folder, look, &s) || !s.first[0]) {
		return false;
	}
	*number = s.number;
	return true;
}

enum weft_err
table_by_name(const char *root, const char *name, uint32_t *number)
{
	/* Since iproute2 6.7 the administrator's file is in the place of the distribution's. */
	static const char *const folders[] = {
		"/etc/iproute2", "/usr/share/iproute2", "/usr/lib/iproute2"};
	static const struct {
		const char *name;
		uint32_t number;
	} fixed[] = {{"default", 253}, {"main", 254}, {"local", 255}};
	char path[PATH_BYTES];
	bool is_found = false, has_file = false;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(folders) && !is_found && !has_file; i++) {
		snprintf(path, sizeof(path), "%s%s/rt_tables", root, folders[i]);
		has_file = os_file_exists(path);
		is_found = find_in(path, name, number);
	}
	for (size_t i = 0; i < WEFT_ARRAY_LEN(folders) && !is_found; i++) {
		snprintf(path, sizeof(path), "%s%s/rt_tables.d", root, folders[i]);
		is_found = find_in_folder(path, name, number);
	}
	for (size_t i = 0; i < WEFT_ARRAY_LEN(fixed) && !is_found; i++) {
		if (strcmp(name, fixed[i].name) == 0) {
			*number = fixed[i].number;
			is_found = true;
		}
	}
	return is_found ? WEFT_OK : WEFT_ENOENT;
}

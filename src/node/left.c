/* SPDX-License-Identifier: Apache-2.0 */
#include "node/left.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "os/file.h"
#include "os/netlink.h"

#define VALID_MARK "net/ipv4/conf/all/src_valid_mark"
#define SUFFIX ".left"
#define NOTE_MAX 256
#define PATH_BYTES 4096

struct note {
	uint32_t table;
	int valid_mark; /* as it was; -1: not touched */
};

static enum weft_err
read_note(const char *path, struct note *out)
{
	char *text;
	size_t len;
	enum weft_err e = os_file_read(path, NOTE_MAX, &text, &len);
	if (e) {
		return e;
	}
	*out = (struct note){.valid_mark = -1};
	if (sscanf(text, "table %" SCNu32 "\nsrc_valid_mark %d", &out->table, &out->valid_mark) <
		1) {
		e = WEFT_EPARSE; /* not by us */
	}
	free(text);
	return e;
}

static enum weft_err
write_note(const char *path, const struct note *n)
{
	char text[NOTE_MAX];
	int len = snprintf(text, sizeof(text), "table %" PRIu32 "\nsrc_valid_mark %d\n", n->table,
		n->valid_mark);
	return os_file_write_unsynced(path, text, (size_t)len, 0600);
}

/* Replies to marked packets come in unmarked: strict reverse path filters must look at the mark of
 * the connection. In a container /proc/sys is often read-only; what somebody has set already need
 * not be set. */
static void
set_valid_mark(const struct log *log)
{
	char now[8] = "";
	enum weft_err e = os_sysctl_read(VALID_MARK, now, sizeof(now));
	if (!e && now[0] == '1') {
		return;
	}
	e = os_sysctl_write(VALID_MARK, "1");
	if (e) {
		log_warn(log,
			"cannot set net.ipv4.conf.all.src_valid_mark (%s): where rp_filter is "
			"strict "
			"(1) the default route does not work. Is /proc/sys read-only, as in many "
			"containers? Then set it from outside: sysctl -w "
			"net.ipv4.conf.all.src_valid_mark=1 in this network namespace, or --sysctl "
			"net.ipv4.conf.all.src_valid_mark=1 for Docker and Podman",
			weft_err_text(e));
	}
}

enum weft_err
left_begin(const char *path, uint32_t table, bool has_v4, const struct log *log)
{
	struct note n;
	char was[8] = "";
	if (read_note(path, &n)) {
		n = (struct note){.valid_mark = -1};
	}
	n.table = table;
	if (has_v4 && n.valid_mark < 0 && os_sysctl_read(VALID_MARK, was, sizeof(was)) == WEFT_OK) {
		n.valid_mark = was[0] == '1';
	}
	enum weft_err e = write_note(path, &n);
	if (!e && has_v4) {
		set_valid_mark(log);
	}
	return e;
}

struct rules {
	uint32_t table; /* looked for */
	bool has_ours, has_other;
	uint32_t ours;      /* priority */
	uint32_t companion; /* the nearest before it; 0 = none */
};

static bool
is_of_default_route(const struct os_rule *r)
{
	return r->is_inverted && r->fwmark != 0 && r->fwmark == r->table;
}

static bool
note_rule(void *ctx, const struct os_rule *r)
{
	struct rules *f = ctx;
	if (is_of_default_route(r)) {
		if (r->table == f->table) {
			f->has_ours = true;
			f->ours = r->priority;
		} else {
			f->has_other = true;
		}
	}
	return true;
}

static bool
note_companion(void *ctx, const struct os_rule *r)
{
	struct rules *f = ctx;
	if (r->table == OS_ROUTE_TABLE_MAIN && r->has_suppress && r->suppress_prefixlen == 0 &&
		r->fwmark == 0 && r->priority < f->ours && r->priority > f->companion) {
		f->companion = r->priority;
	}
	return true;
}

struct heir {
	const char *path; /* of the note that is given up */
	int valid_mark;
	bool has_folder;
};

/* Another device that found the value that we had set will set back what we found. */
static void
pass_on(void *ctx, const char *name)
{
	struct heir *h = ctx;
	char path[PATH_BYTES];
	const char *slash = strrchr(h->path, '/');
	size_t n = strlen(name), k = strlen(SUFFIX);
	struct note other;
	if (!slash || n <= k || strcmp(name + n - k, SUFFIX) != 0 || strcmp(name, slash + 1) == 0) {
		return;
	}
	snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - h->path), h->path, name);
	if (read_note(path, &other) == WEFT_OK && other.valid_mark == 1) {
		other.valid_mark = h->valid_mark;
		enum weft_err e = write_note(path, &other);
		(void)e; /* the value then stays as it is */
	}
}

static void
set_back(const char *path, const struct note *n, struct os_netlink *nl)
{
	struct rules f = {.table = n->table};
	enum weft_err e = os_netlink_rules(nl, IP_FAMILY_V4, note_rule, &f);
	if (n->valid_mark != 0) {
		return; /* it was set, or was not touched */
	}
	if (!e && !f.has_other) {
		e = os_sysctl_write(VALID_MARK, "0");
		return;
	}
	char folder[PATH_BYTES];
	struct heir h = {.path = path, .valid_mark = n->valid_mark};
	const char *slash = strrchr(path, '/');
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1,
		slash ? path : ".");
	e = os_file_list(folder, pass_on, &h);
}

void
left_end(const char *path, struct os_netlink *nl, bool has_more, const struct log *log)
{
	struct note n;
	if (read_note(path, &n)) {
		return;
	}
	set_back(path, &n, nl);
	n = (struct note){.valid_mark = -1};
	if (has_more ? write_note(path, &n) : os_file_remove(path)) {
		log_warn(log, "cannot remove %s", path);
	}
}

/* A table with routes belongs to somebody who lives: ours went with the interface. */
static void
clean_rules(struct os_netlink *nl, uint32_t table, enum ip_family family)
{
	struct rules f = {.table = table};
	bool has_route = true;
	if (os_netlink_table_has_route(nl, family, table, false, &has_route) || has_route ||
		os_netlink_rules(nl, family, note_rule, &f) || !f.has_ours) {
		return;
	}
	struct os_rule ours = {.family = family,
		.fwmark = table,
		.is_inverted = true,
		.table = table,
		.priority = f.ours};
	struct os_rule companion = {
		.family = family, .table = OS_ROUTE_TABLE_MAIN, .has_suppress = true};
	enum weft_err e = os_netlink_rules(nl, family, note_companion, &f);
	companion.priority = f.companion;
	if (!e && f.companion) {
		e = os_netlink_rule_del(nl, &companion);
	}
	e = os_netlink_rule_del(nl, &ours);
	(void)e; /* what is not there any more is as good as removed */
}

void
left_clean(const char *path, bool has_more, const struct log *log)
{
	struct note n;
	struct os_netlink *nl;
	if (read_note(path, &n) || os_netlink_open(&nl)) {
		return;
	}
	if (n.table) {
		clean_rules(nl, n.table, IP_FAMILY_V4);
		clean_rules(nl, n.table, IP_FAMILY_V6);
	}
	left_end(path, nl, has_more, log);
	os_netlink_close(nl);
}

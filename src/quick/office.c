/* SPDX-License-Identifier: Apache-2.0 */
#include "quick/office.h"

#include <stdio.h>
#include <string.h>

#include "node/left.h"
#include "os/file.h"
#include "os/netlink.h"
#include "os/trust.h"
#include "quick/save.h"
#include "wire/conf.h"

#define SUFFIX ".conf"

void
office_init(struct office *o, const struct office_config *c)
{
	*o = (struct office){.config = *c, .around = {.lock_fd = -1}};
	snprintf(o->path, sizeof(o->path), "%s", c->path);
	o->sum = c->conf ? c->conf->text_sum : 0;
}

enum weft_err
office_begin(struct office *o, const struct quick_host *h, const struct conf *c)
{
	if (o->stage != OFFICE_STAGE_NEW) {
		return WEFT_EINVAL;
	}
	enum weft_err e = around_begin(&o->around, h, c);
	if (!e) {
		o->stage = OFFICE_STAGE_BEGUN;
	}
	return e;
}

enum weft_err
office_bring_up(struct office *o, const struct conf *c, uint32_t mark)
{
	if (o->stage != OFFICE_STAGE_BEGUN) {
		return WEFT_EINVAL;
	}
	o->stage = OFFICE_STAGE_UP;
	return around_bring_up(&o->around, c, mark);
}

/* Its name gives the device, as everywhere. */
static bool
is_named_so(const char *file, const char *name)
{
	const char *base = strrchr(file, '/');
	size_t n = strlen(name);
	base = base ? base + 1 : file;
	return strncmp(base, name, n) == 0 && (!base[n] || strcmp(base + n, SUFFIX) == 0);
}

/* at: the file that is meant, whatever path leads to later. */
static enum weft_err
check_file(const struct office *o, const char *file, char at[WIRE_STEWARD_PATH_MAX], char *why,
	size_t cap)
{
	if (strcmp(file, o->path) == 0) {
		snprintf(at, WIRE_STEWARD_PATH_MAX, "%s", file);
		return WEFT_OK; /* given at the start, or checked */
	}
	if (!is_named_so(file, o->config.name)) {
		snprintf(why, cap, "%s is not of this device: its file is called %s" SUFFIX, file,
			o->config.name);
		return WEFT_EPERM;
	}
	if (!os_trust_path(file, at, WIRE_STEWARD_PATH_MAX)) {
		snprintf(why, cap,
			"%s is not read: others than root may change %s (owner, or write "
			"permission of group or others)",
			file, at);
		return WEFT_EPERM;
	}
	return WEFT_OK;
}

enum weft_err
office_read(struct office *o, const char *file, bool is_guarded, struct conf **out, char **text,
	size_t *len, char *why, size_t cap)
{
	o->has_fresh = false;
	if (o->stage != OFFICE_STAGE_UP) {
		snprintf(why, cap, "%s is about to start or to end", o->config.name);
		return WEFT_EAGAIN;
	}
	if (!file && !o->path[0]) {
		snprintf(why, cap, "it was started without a file; give one");
		return WEFT_ENOENT;
	}
	if (file && strlen(file) >= sizeof(o->fresh_path)) {
		return WEFT_EMSGSIZE;
	}
	char at[WIRE_STEWARD_PATH_MAX];
	enum weft_err e = WEFT_OK;
	if (file && is_guarded) {
		e = check_file(o, file, at, why, cap);
		file = at;
	}
	e = e ? e : o->config.load(file ? file : o->path, out, text, len, why, cap);
	if (e) {
		return e;
	}
	snprintf(o->fresh_path, sizeof(o->fresh_path), "%s", file ? file : o->path);
	o->fresh_sum = (*out)->text_sum;
	o->has_fresh = true;
	return WEFT_OK;
}

enum weft_err
office_adopt(struct office *o, const struct conf *c, uint32_t mark)
{
	if (!o->has_fresh || o->stage != OFFICE_STAGE_UP) {
		return WEFT_EINVAL;
	}
	o->has_fresh = false;
	o->sum = o->fresh_sum;
	memcpy(o->path, o->fresh_path, sizeof(o->path));
	around_change(&o->around, c, mark);
	return WEFT_OK;
}

void
office_refuse(struct office *o)
{
	o->has_fresh = false;
}

enum weft_err
office_save(struct office *o, const struct conf_state *state, char *why, size_t cap)
{
	if (!o->path[0]) {
		snprintf(why, cap, "%s was started without a file", o->config.name);
		return WEFT_ENOENT;
	}
	if (o->stage < OFFICE_STAGE_UP || o->stage == OFFICE_STAGE_ENDED) {
		snprintf(why, cap, "%s is about to start or to end", o->config.name);
		return WEFT_EAGAIN;
	}
	return save_write(state, o->path, &o->sum, why, cap);
}

enum weft_err
office_left_begin(struct office *o, uint32_t table, bool has_v4)
{
	return o->around.lock_fd < 0
		       ? WEFT_EINVAL
		       : left_begin(o->around.left_path, table, has_v4, o->config.log);
}

void
office_left_end(struct office *o)
{
	struct os_netlink *nl;
	if (o->around.lock_fd >= 0 && os_netlink_open(&nl) == WEFT_OK) {
		left_end(o->around.left_path, nl, o->around.has_firewall, o->config.log);
		os_netlink_close(nl);
	}
}

void
office_pre_down(struct office *o, const struct conf *c)
{
	if (o->stage < OFFICE_STAGE_GOING) {
		o->stage = OFFICE_STAGE_GOING;
		around_pre_down(&o->around, c);
	}
}

static void
remove_socket(const struct office *o, unsigned sockets, unsigned which)
{
	if (o->around.lock_fd >= 0 && (sockets >> which & 1) && o->config.sockets[which]) {
		enum weft_err e = os_file_remove(o->config.sockets[which]);
		(void)e; /* somebody was faster */
	}
}

void
office_take_down(struct office *o, unsigned sockets)
{
	if (o->stage < OFFICE_STAGE_DOWN) {
		o->stage = OFFICE_STAGE_DOWN;
		around_take_down(&o->around);
		remove_socket(o, sockets, 0);
	}
}

void
office_end(struct office *o, const struct conf *c, unsigned sockets)
{
	if (o->stage < OFFICE_STAGE_ENDED) {
		if (o->stage < OFFICE_STAGE_DOWN) {
			remove_socket(o, sockets, 0); /* a start that failed */
		}
		o->stage = OFFICE_STAGE_ENDED;
		remove_socket(o, sockets, 1);
		around_end(&o->around, c);
	}
}

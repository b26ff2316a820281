/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/overlay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/process.h"
#include "os/udp.h"
#include "weft/dial.h"
#include "wire/conf.h"
#include "wire/conf_edit.h"

#define ROOT_STATE "/var/lib/weft"
#define DISCARD_PORT 9

static const char *const levels[] = {
	[WEFT_LOG_ERROR] = "error",
	[WEFT_LOG_WARN] = "warn",
	[WEFT_LOG_INFO] = "info",
	[WEFT_LOG_DEBUG] = "debug",
};

bool
overlay_level_parse(const char *text, enum weft_log_level *out)
{
	for (size_t i = 0; i < WEFT_ARRAY_LEN(levels); i++) {
		if (strcmp(text, levels[i]) == 0) {
			*out = (enum weft_log_level)i;
			return true;
		}
	}
	return false;
}

static void
say(void *ctx, enum weft_log_level level, const char *text)
{
	(void)ctx;
	fprintf(stderr, "weft: %s: %s\n", levels[level], text);
}

/* A failure of the library. */
static int
fail(const struct overlay *o, const struct weft_detail *why)
{
	if (why->line) {
		return cli_fail("%s:%u:%u: %s", o->path, why->line, why->column, why->text);
	}
	if (why->code == WEFT_EADDRINUSE) {
		return cli_fail(
			"%s: %s; if `weft up` runs this file, what runs beside it needs a file "
			"with a key of its own",
			o->path, why->text);
	}
	return cli_fail("%s: %s", o->path, why->text);
}

/* Peers refuse a handshake that is older than the last one, as after a clock that was set back, or
 * of two runs within the resolution of its time stamps. */
static void
find_state_dir(struct overlay *o)
{
	char name[OPTIONS_NAME_MAX];
	const char *home = getenv("HOME"), *state = getenv("XDG_STATE_HOME");
	int n = -1;
	if (!options_name_of(o->path, name)) {
		return;
	}
	if (os_process_is_root()) {
		n = snprintf(o->state_dir, sizeof(o->state_dir), ROOT_STATE "/%s", name);
	} else if (state && state[0] == '/') {
		n = snprintf(o->state_dir, sizeof(o->state_dir), "%s/weft/%s", state, name);
	} else if (home && home[0] == '/') {
		n = snprintf(
			o->state_dir, sizeof(o->state_dir), "%s/.local/state/weft/%s", home, name);
	}
	if (n < 0 || (size_t)n >= sizeof(o->state_dir) || os_file_mkdir(o->state_dir, 0700)) {
		o->state_dir[0] = 0;
	}
}

int
overlay_open(struct overlay *o, const char *what, enum weft_log_level level)
{
	struct weft_detail why = {.size = sizeof(why)};
	char *text;
	size_t len;
	*o = (struct overlay){0};
	int rc = options_find(what, o->path);
	if (!rc) {
		rc = options_read_text(o->path, &o->conf, &text, &len);
	}
	if (rc) {
		return rc;
	}
	find_state_dir(o);
	struct weft_config c = {.size = sizeof(c),
		.text = text,
		.text_len = len,
		.log = say,
		.log_level = level,
		.state_dir = o->state_dir[0] ? o->state_dir : NULL};
	enum weft_err e = weft_node_new(&c, &o->node, &why);
	conf_text_free(text, len);
	if (!e) {
		e = weft_node_start(o->node, &why);
	}
	if (e) {
		rc = fail(o, &why);
		overlay_close(o);
	}
	return rc;
}

int
overlay_reload(struct overlay *o)
{
	struct weft_detail why = {.size = sizeof(why)};
	struct conf *conf;
	char *text;
	size_t len;
	int rc = options_read_text(o->path, &conf, &text, &len);
	if (rc) {
		return rc;
	}
	struct weft_config c = {.size = sizeof(c), .text = text, .text_len = len};
	enum weft_err e = weft_node_reload(o->node, &c, &why);
	conf_text_free(text, len);
	if (e) {
		conf_free(conf);
		return fail(o, &why);
	}
	conf_free(o->conf);
	o->conf = conf;
	return CLI_OK;
}

void
overlay_close(struct overlay *o)
{
	weft_node_free(o->node);
	conf_free(o->conf);
	o->node = NULL;
	o->conf = NULL;
}

/* An empty datagram to the port for such, RFC 863; what comes of it is the handshake before it. */
static void
speak_to(struct overlay *o, const struct ip_prefix *p)
{
	struct endpoint at = {.addr = p->addr, .port = DISCARD_PORT};
	struct weft_dial_options options = {.size = sizeof(options), .flags = WEFT_NONBLOCK};
	struct msghdr empty = {0};
	char text[ENDPOINT_TEXT_MAX];
	int fd;
	size_t len = ip_family_len(at.addr.family);
	if (p->bits < 8 * len) {
		at.addr.b[len - 1] |= 1; /* the network's own address is nobody's */
	}
	if (weft_dial(o->node, "udp", endpoint_format(&at, text), &options, &fd, NULL) == WEFT_OK) {
		(void)os_udp_calls_real.sendmsg(NULL, fd, &empty, 0);
		os_fd_close(&fd);
	}
}

void
overlay_announce(struct overlay *o)
{
	for (size_t i = 0; i < o->conf->peers_n; i++) {
		const struct conf_peer *p = &o->conf->peers[i];
		if (p->endpoint.host && p->keepalive_s == 0 && p->allowed.n > 0) {
			speak_to(o, &p->allowed.v[0].prefix);
		}
	}
}

char *
overlay_names(const struct overlay *o, char *out, size_t cap)
{
	size_t len = 0;
	out[0] = 0;
	for (size_t i = 0; i < o->conf->peers_n && len + WEFT_NAME_LEN + 2 < cap; i++) {
		if (o->conf->peers[i].name) {
			len += (size_t)snprintf(out + len, cap - len, "%s%s", len ? ", " : "",
				o->conf->peers[i].name);
		}
	}
	return out;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/overlay.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "wire/conf.h"

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
	return cli_fail("%s: %s", o->path, why->text);
}

int
overlay_open(struct overlay *o, const char *what, enum weft_log_level level)
{
	struct weft_detail why = {.size = sizeof(why)};
	*o = (struct overlay){0};
	int rc = options_find(what, o->path);
	if (!rc) {
		rc = options_read(o->path, &o->conf);
	}
	if (rc) {
		return rc;
	}
	struct weft_config c = {.size = sizeof(c), .file = o->path, .log = say, .log_level = level};
	enum weft_err e = weft_node_new(&c, &o->node, &why);
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
	int rc = options_read(o->path, &conf);
	if (rc) {
		return rc;
	}
	struct weft_config c = {.size = sizeof(c), .file = o->path};
	if (weft_node_reload(o->node, &c, &why)) {
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

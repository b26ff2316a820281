/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/conffile.h"

#include <stdio.h>
#include <stdlib.h>

#include "os/file.h"
#include "wire/conf_edit.h"

enum weft_err
conffile_read_text(
	const char *path, struct conf **out, struct conf_report *report, char **text, size_t *len)
{
	*report = (struct conf_report){0};
	enum weft_err e = os_file_read(path, CONF_BYTES_MAX, text, len);
	if (e) {
		return e;
	}
	const struct conf_options options = {.is_lenient = false};
	e = conf_parse(*text, *len, &options, out, report);
	if (e) {
		conf_text_free(*text, *len);
	}
	return e;
}

static void
tell(const struct conf_report *r, const char *path, char *why, size_t cap)
{
	size_t at = 0;
	char line[CONF_NOTE_LINE_MAX];
	for (size_t i = 0; i < r->n && at < cap; i++) {
		if (r->notes[i].severity == CONF_SEVERITY_ERROR) {
			at += (size_t)snprintf(why + at, cap - at, "%s%s", at ? "\n" : "",
				conf_note_format(&r->notes[i], path, line, sizeof(line)));
		}
	}
}

enum weft_err
conffile_load_text(
	const char *path, struct conf **out, char **text, size_t *len, char *why, size_t cap)
{
	struct conf_report *report = calloc(1, sizeof(*report));
	if (!report) {
		snprintf(why, cap, "%s", weft_err_text(WEFT_ENOMEM));
		return WEFT_ENOMEM;
	}
	enum weft_err e = conffile_read_text(path, out, report, text, len);
	if (e && report->errors > 0) {
		tell(report, path, why, cap);
	} else if (e) {
		snprintf(why, cap, "cannot read %s: %s", path, weft_err_text(e));
	}
	free(report);
	return e;
}

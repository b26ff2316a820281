/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration file, from its path to a struct conf. */
#ifndef WEFT_CLI_CONFFILE_H
#define WEFT_CLI_CONFFILE_H

#include <stddef.h>

#include "base/err.h"
#include "wire/conf.h"

/* report tells what is wrong with the file's contents, and of success what is doubtful; it is empty
 * when the file could not be read. What was read is for conf_text_free(): some files can be read
 * once alone, a shell's <(... for one. */
WEFT_MUST_CHECK enum weft_err conffile_read_text(
	const char *path, struct conf **out, struct conf_report *report, char **text, size_t *len);
/* The same; why tells of failure as lines without the last newline, cut to cap bytes. */
WEFT_MUST_CHECK enum weft_err conffile_load_text(
	const char *path, struct conf **out, char **text, size_t *len, char *why, size_t cap);

#endif

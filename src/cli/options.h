/* SPDX-License-Identifier: Apache-2.0 */
/* What `weft up` and `weft run` have in common: their flags, and finding their file. */
#ifndef WEFT_CLI_OPTIONS_H
#define WEFT_CLI_OPTIONS_H

#include "cli/serve.h"

#define OPTIONS_PATH_MAX 4096
#define OPTIONS_NAME_MAX 16

struct options {
	struct serve_options serve; /* name and path point into this struct, conf is its own */
	char path[OPTIONS_PATH_MAX];
	char name[OPTIONS_NAME_MAX];
	const char *what; /* FILE or NAME as given */
	bool is_metrics_open;
};

/* Reads flags and the one argument. Returns CLI_OK, or a status to exit with; *is_done when
 * there is nothing more to do (--help). */
int options_parse(struct options *o, const char *command, const char *help, int argc, char **argv,
	bool *is_done);
/* Finds the file of `what` and reads it. Without is_needed a bare name is no file but the
 * interface's name, and conf stays NULL. Prints what is wrong. */
int options_load(struct options *o, const char *command, bool is_needed);
/* The file of FILE or NAME; false, and an empty path: there is none. */
bool options_look(const char *what, char path[OPTIONS_PATH_MAX]);
/* The same. Each prints what is wrong and returns an exit status. */
int options_find(const char *what, char path[OPTIONS_PATH_MAX]);
/* *out is freed by conf_free(); left alone on failure. */
int options_read(const char *path, struct conf **out);
/* The same with what was read, for conf_text_free(). */
int options_read_text(const char *path, struct conf **out, char **text, size_t *len);
void options_fini(struct options *o);
/* Is it a FILE: has it a '/', or does it end in .conf? */
bool options_is_path(const char *what);
/* "home" of "home", "home.conf", "/etc/wireguard/home.conf". False: no possible name. */
bool options_name_of(const char *what, char out[OPTIONS_NAME_MAX]);

#endif

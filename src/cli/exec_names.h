/* SPDX-License-Identifier: Apache-2.0 */
/* Name resolution of a program in the overlay: what its /etc/hosts, resolv.conf and nsswitch.conf
 * say. */
#ifndef WEFT_CLI_EXEC_NAMES_H
#define WEFT_CLI_EXEC_NAMES_H

#include "base/err.h"
#include "os/exec.h"

struct conf;
struct weft_node;

#define EXEC_NAMES_FILES 3

struct exec_names {
	struct os_exec_file files[EXEC_NAMES_FILES];
	size_t files_n;
	char *texts[EXEC_NAMES_FILES];
};

/* Each makes the text of a file, and its length, to be freed. was: what the machine's says. */
/* The peers' names before all others. */
WEFT_MUST_CHECK enum weft_err exec_names_hosts(
	struct weft_node *n, const char *was, char **out, size_t *len);
/* The servers and domains of DNS. */
WEFT_MUST_CHECK enum weft_err exec_names_resolv(const struct conf *c, char **out, size_t *len);
/* Names come from the two files above alone: a service of the machine (systemd-resolved, mDNS)
 * would be asked through a socket that leads out of the overlay. */
WEFT_MUST_CHECK enum weft_err exec_names_nsswitch(const char *was, char **out, size_t *len);

/* All that there are to be. */
WEFT_MUST_CHECK enum weft_err exec_names_make(
	struct weft_node *n, const struct conf *c, struct exec_names *out);
void exec_names_fini(struct exec_names *names);

#endif

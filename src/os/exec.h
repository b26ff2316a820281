/* SPDX-License-Identifier: Apache-2.0 */
/* A program in another network namespace, with some files of its own, as if it ran in place of us:
 * it has our user, environment, standard streams, terminal and process group. */
#ifndef WEFT_OS_EXEC_H
#define WEFT_OS_EXEC_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Stands over the file at path for the program and its children alone. */
struct os_exec_file {
	const char *path; /* must be there */
	const char *text;
	size_t len;
};

struct os_exec {
	int user_ns; /* as of os_netns_namespaces(): -1 = none */
	int net_ns;
	const char *const
		*programs; /* paths to try in this order, as execvp(3) does; ends in NULL */
	char *const *argv, *const *envp;
	const struct os_exec_file *files;
	size_t files_n;
	const char *const *folders; /* look empty to the program; those that are missing are none */
	size_t folders_n;
};

struct os_exec_fault {
	int errnum;
	const char *what;       /* "cannot enter the user namespace" */
	const char *path;       /* of the file or folder; NULL = none is meant */
	bool is_of_the_program; /* everything is ready, but it cannot be run */
};

/* What the program shall find as we found it. */
struct os_exec_signals {
	sigset_t mask;
	struct sigaction child;
};

/* From here on signals wait for os_exec_wait(). Before any thread is started. */
void os_exec_signals_hold(struct os_exec_signals *s);
/* One that asks us to end and came since; 0 = none. */
int os_exec_signals_end(void);

/* WEFT_OK: the program runs; *pid is for os_exec_wait(). WEFT_ENOMEM, or fault tells. */
WEFT_MUST_CHECK enum weft_err os_exec_start(const struct os_exec *x,
	const struct os_exec_signals *s, int *pid, struct os_exec_fault *fault);

/* Waits for the program's end. Signals that are sent to us go on to it, but those of the terminal,
 * which it has itself. We stop when it stops. Returns its exit status, or 128 and the signal that
 * ended it. */
int os_exec_wait(int pid);

#endif

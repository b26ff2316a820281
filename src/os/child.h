/* SPDX-License-Identifier: Apache-2.0 */
/* A program that works for us and is waited for on a loop. It starts as from a fresh shell: signals
 * at their defaults, no descriptor of ours beside the standard streams. */
#ifndef WEFT_OS_CHILD_H
#define WEFT_OS_CHILD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct os_child_config {
	const char *path;        /* of the program */
	const char *const *argv; /* ends in NULL */
	char *const *envp;       /* ends in NULL; NULL: ours */
	const char *input;       /* what it reads; NULL: nothing, or our input with is_attached */
	size_t input_len;
	bool is_attached; /* its output goes to our standard error, else to output_fd */
	bool is_bound;    /* it is killed when the calling thread ends, we were killed, say */
	bool is_alone;    /* in a process group of its own, so that its children end with it */
};

struct os_child {
	int pid;       /* 0: it has ended */
	int pid_fd;    /* readable when it has ended; -1: the kernel has no such thing */
	int output_fd; /* what it says; -1 with is_attached */
	bool is_alone;
};

/* WEFT_ENOENT and others: the program cannot be run. */
WEFT_MUST_CHECK enum weft_err os_child_start(const struct os_child_config *c, struct os_child *out);
/* WEFT_EAGAIN: it still runs. *status is its exit status, or 128 and the signal that ended it. */
WEFT_MUST_CHECK enum weft_err os_child_reap(struct os_child *c, int *status);
/* Ends it at once, if it runs, and frees what is left. */
void os_child_fini(struct os_child *c);

/* The environment of this process. */
char *const *os_child_environment(void);
const char *os_child_variable(const char *name);
/* Finds a program in PATH. False: there is none. */
bool os_child_find(const char *name, char *out, size_t cap);

#endif

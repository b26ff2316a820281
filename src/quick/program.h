/* SPDX-License-Identifier: Apache-2.0 */
/* A program run to its end while the device's loop turns. */
#ifndef WEFT_QUICK_PROGRAM_H
#define WEFT_QUICK_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct quick_host;

#define PROGRAM_ENDLESS 0 /* no limit on its time */

struct program {
	const char *path;
	const char *const *argv; /* ends in NULL */
	char *const *envp;       /* NULL: ours */
	const char *input;       /* NULL: none */
	bool is_bound;           /* killed with us: what it does must not come late */
	int64_t limit_ns;        /* PROGRAM_ENDLESS, or it is ended after that */
};

/* What it says goes to standard error or to the log. WEFT_OK: it has ended by itself with *status.
 * WEFT_ETIMEDOUT, WEFT_ECANCELED: it was ended by us. */
WEFT_MUST_CHECK enum weft_err program_run(
	const struct quick_host *h, const struct program *p, int *status);

#endif

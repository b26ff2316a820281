/* SPDX-License-Identifier: Apache-2.0 */
/* The network process of a device gives up what it need not have (docs/decisions/privileges.md). */
#ifndef WEFT_CLI_SANDBOX_H
#define WEFT_CLI_SANDBOX_H

#include <stdbool.h>

#include "base/err.h"
#include "base/log.h"
#include "ctl/control.h"

#define SANDBOX_LOW_PORTS 1024 /* below it CAP_NET_BIND_SERVICE is needed */

struct sandbox_config {
	struct node *node; /* its threads give it up, too */
	const struct log *log;
	const char *name;  /* of the interface */
	const char *user;  /* to become; NULL: weft, else nobody; "none": nobody else */
	bool has_low_port; /* and keeps the right to one */
};

/* Says in the log what failed. That the kernel knows no filters is no failure, and said. */
WEFT_MUST_CHECK enum weft_err sandbox_enter(
	const struct sandbox_config *c, struct ctl_sandbox *out);

#endif

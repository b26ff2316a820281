/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon: a node with its control sockets, from its start to its end. */
#ifndef WEFT_CLI_SERVE_H
#define WEFT_CLI_SERVE_H

#include <stdbool.h>

#include "base/addr.h"
#include "base/log.h"
#include "crypto/aead.h"
#include "wire/conf.h"

struct serve_options {
	const char *name;  /* of the interface */
	const char *path;  /* of the configuration file, for messages; NULL = none */
	struct conf *conf; /* NULL: start unconfigured; taken over */
	bool is_foreground;
	enum log_level log_level;
	unsigned workers; /* 0: as the file says, else auto */
	bool has_aead;    /* aead overrides the file */
	enum aead_backend aead;
	bool has_no_sandbox;
	const char *user;        /* to become; NULL: weft, else nobody */
	struct endpoint metrics; /* where they are served over HTTP; port 0: nowhere */
};

/* Returns the exit status, and has freed conf if it is NULL then. In the background the caller's
 * process returns as soon as the device is up (or has failed, with its reason printed). */
int serve(struct serve_options *o);

#endif

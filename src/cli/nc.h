/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `weft nc` share. */
#ifndef WEFT_CLI_NC_H
#define WEFT_CLI_NC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/mono.h"
#include "cli/overlay.h"
#include "os/stream.h"

#define NC_TARGET_MAX 320 /* "HOST:PORT", brackets and the final NUL included */

struct nc_options {
	const char *what; /* FILE or NAME */
	const char *host; /* NULL: all, with is_listening */
	const char *port;
	enum ip_family family; /* IP_FAMILY_NONE: either */
	bool is_listening, is_udp, is_probe, is_kept, is_deaf;
	unsigned verbosity;
	int64_t wait_ns; /* for a connection, and without traffic; 0: no limit */
};

struct nc {
	const struct nc_options *o;
	struct overlay overlay;
	struct os_stream_loan loans[2];
	int signals; /* -1: none yet */
};

/* "tcp", "udp6" and so on. */
const char *nc_network(const struct nc *n);
/* "[fd00::2]:80" of the options. */
char *nc_target(const struct nc *n, char out[NC_TARGET_MAX]);
/* When -w ends from now on. */
struct mono nc_deadline(const struct nc *n);
/* Waits for fd. WEFT_ECANCELED: a signal came; WEFT_ETIMEDOUT. */
WEFT_MUST_CHECK enum weft_err nc_wait(struct nc *n, int fd, bool is_write, struct mono deadline);
/* A socket that does not block, connected to the target; says what fails, but for a signal. */
WEFT_MUST_CHECK enum weft_err nc_dial(struct nc *n, int *fd);
/* With -v: "to ..., peer bee, key ..., from 192.0.2.1:51820". */
void nc_say_peer(const struct nc *n, const char *what, const struct sockaddr *at, socklen_t len);
/* With -v, where a socket listens. */
void nc_say_listening(const struct nc *n, int fd);

/* Each returns an exit status. */
int nc_tcp(struct nc *n);
int nc_udp(struct nc *n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Local stream sockets. Every descriptor is non-blocking and close-on-exec. */
#ifndef WEFT_OS_UNIXSOCK_H
#define WEFT_OS_UNIXSOCK_H

#include <stdint.h>

#include "base/err.h"
#include "base/mono.h"

struct os_peer_cred {
	int pid;
	uint32_t uid, gid;
};

/* A stale socket file is removed when nobody answers behind it; WEFT_EADDRINUSE when somebody
 * does. Nobody can connect before the mode is set. */
WEFT_MUST_CHECK enum weft_err os_unixsock_listen(const char *path, unsigned mode, int *fd);
/* WEFT_EAGAIN: nobody waits. WEFT_ENOMEM: no descriptor is left, and whoever waits goes on
 * waiting. */
WEFT_MUST_CHECK enum weft_err os_unixsock_accept(int listen_fd, int *fd);
/* A descriptor to give up in os_unixsock_refuse(). */
WEFT_MUST_CHECK enum weft_err os_unixsock_spare(int listen_fd, int *spare);
/* Ends the connection that waits longest, with the spare's place where no other is left. */
void os_unixsock_refuse(int listen_fd, int *spare);
/* WEFT_ENOENT: no such file or nobody behind it. */
WEFT_MUST_CHECK enum weft_err os_unixsock_connect(const char *path, struct mono deadline, int *fd);
WEFT_MUST_CHECK enum weft_err os_unixsock_cred(int fd, struct os_peer_cred *out);

#endif

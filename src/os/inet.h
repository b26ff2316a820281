/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on internet sockets that a program gets to keep. On failure *errnum is the errno. */
#ifndef WEFT_OS_INET_H
#define WEFT_OS_INET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/mono.h"

struct os_inet_name {
	struct sockaddr_storage at;
	socklen_t len;
};

void os_inet_name(
	const struct ip_addr *addr, uint16_t port, uint32_t scope_id, struct os_inet_name *out);
/* False: no internet address. An IPv4 address mapped into IPv6 comes out as IPv4. */
bool os_inet_read(const struct sockaddr *at, socklen_t len, struct ip_addr *addr, uint16_t *port);
/* The other end of a connected socket. */
WEFT_MUST_CHECK enum weft_err os_inet_peer(int fd, struct ip_addr *addr, uint16_t *port);
/* What it is bound to. */
WEFT_MUST_CHECK enum weft_err os_inet_local(int fd, struct ip_addr *addr, uint16_t *port);

#define OS_INET_REUSEADDR 1u
#define OS_INET_REUSEPORT 2u
#define OS_INET_V6ONLY 4u    /* else an IPv6 socket is made to take IPv4, too */
#define OS_INET_LATE_PORT 8u /* with port 0: chosen at connect(2), where more can share one */

/* Sets the options and binds. WEFT_EADDRINUSE; WEFT_EUNREACH: no address of this machine. */
WEFT_MUST_CHECK enum weft_err os_inet_bind(
	int fd, const struct os_inet_name *at, unsigned flags, int *errnum);
WEFT_MUST_CHECK enum weft_err os_inet_listen(int fd, int backlog, int *errnum);
/* fd does not block. WEFT_EAGAIN: under way, writable at its end. */
WEFT_MUST_CHECK enum weft_err os_inet_connect(int fd, const struct os_inet_name *to, int *errnum);
/* What became of it. WEFT_EREFUSED, WEFT_EUNREACH, WEFT_ETIMEDOUT, others. */
WEFT_MUST_CHECK enum weft_err os_inet_result(int fd, int *errnum);
/* WEFT_EAGAIN: nobody waits, and listen_fd does not block, or who waited has gone; WEFT_EINVAL: it
 * does not listen. */
WEFT_MUST_CHECK enum weft_err os_inet_accept(
	int listen_fd, bool is_nonblocking, int *fd, int *errnum);

WEFT_MUST_CHECK enum weft_err os_inet_set_blocking(int fd, bool is_blocking);
/* WEFT_EINVAL: no descriptor. */
WEFT_MUST_CHECK enum weft_err os_inet_is_blocking(int fd, bool *out);

/* Waits until fd is readable (writable), or one of the wakes is readable; fd goes before them.
 * *woken: which, wakes_n = fd. WEFT_ETIMEDOUT. At most OS_INET_WAKES_MAX; those of -1 are passed
 * over. */
#define OS_INET_WAKES_MAX 4
WEFT_MUST_CHECK enum weft_err os_inet_wait(int fd, bool is_write, const int *wakes, size_t wakes_n,
	struct mono deadline, size_t *woken);

/* A number, or a name of /etc/services. WEFT_ENOENT. */
WEFT_MUST_CHECK enum weft_err os_inet_service(const char *name, bool is_udp, uint16_t *port);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A private network namespace, held by a small process of ours, without root.
 *
 * With CAP_SYS_ADMIN and CAP_NET_ADMIN in effect it is a plain network namespace; else one inside
 * a new user namespace, in which the caller's user and group are mapped to themselves. Since the
 * caller owns that user namespace, TUNSETIFF, netlink requests and packet sockets work from the
 * caller's own threads on descriptors that were opened in there.
 *
 * The holder sends no SIGCHLD and is not seen by wait() without __WALL or __WCLONE. It ends with
 * os_netns_close(), with the process, or when it is killed; descriptors from it live on, and with
 * them the namespace. It is a fork: pages that the program had at os_netns_open() and writes later
 * are held twice.
 *
 * Any thread may call; requests wait for each other. A child by fork() must not. */
#ifndef WEFT_OS_NETNS_H
#define WEFT_OS_NETNS_H

#include <stddef.h>

#include "base/err.h"

struct os_netns;

/* Why a namespace cannot be made. */
struct os_netns_fault {
	int errnum;     /* of the system call that failed */
	char text[512]; /* the setting or profile that forbids it, and what to change */
};

/* The loopback interface is up in it, and nothing else is there. WEFT_EPERM: forbidden;
 * WEFT_ENOMEM: a limit is reached; WEFT_ENOTSUP: the kernel has none; others. On failure why is
 * filled. */
WEFT_MUST_CHECK enum weft_err os_netns_open(struct os_netns **out, struct os_netns_fault *why);
/* Requests of other threads must have ended. NULL is allowed. */
void os_netns_close(struct os_netns *n);

/* socket(2) in there: close-on-exec; type may have SOCK_NONBLOCK. n NULL: where the caller is.
 * WEFT_ECLOSED: the holder was killed; others are socket(2)'s. */
WEFT_MUST_CHECK enum weft_err os_netns_socket(
	struct os_netns *n, int family, int type, int protocol, int *fd);
/* "/dev/net/tun", opened in there for reading and writing without blocking. n NULL as above.
 * *errnum: of open(2), on failure. */
WEFT_MUST_CHECK enum weft_err os_netns_open_tun(struct os_netns *n, int *fd, int *errnum);
/* New close-on-exec descriptors for setns(2). *user is -1 where there is no user namespace. Work
 * without the holder too. */
WEFT_MUST_CHECK enum weft_err os_netns_namespaces(const struct os_netns *n, int *user, int *net);
/* The holder's process id. */
int os_netns_holder(const struct os_netns *n);

#endif

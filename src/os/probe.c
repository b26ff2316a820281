/* SPDX-License-Identifier: Apache-2.0 */
#include "os/probe.h"

/* errqueue.h has a struct timespec, and does not say whence. */
#include <time.h>

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "os/error.h"
#include "os/fd.h"
#include "os/inet.h"

/* The error at the head of the socket's queue; 0: none. It is there a moment before SO_ERROR. */
static int
take_queued(int fd)
{
	_Alignas(struct cmsghdr) char control[256];
	char data[64];
	struct iovec iov = {data, sizeof(data)};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	if (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
		return 0;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		bool is_v4 = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR;
		bool is_v6 = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR;
		struct sock_extended_err e;
		if ((is_v4 || is_v6) && c->cmsg_len >= CMSG_LEN(sizeof(e))) {
			memcpy(&e, CMSG_DATA(c), sizeof(e));
			return (int)e.ee_errno;
		}
	}
	return 0;
}

/* What stands against the socket, or comes to do so within wait_ms. */
static int
wait_for_error(int fd, int wait_ms)
{
	struct pollfd p = {.fd = fd};
	int errnum = 0;
	socklen_t len = sizeof(errnum);
	(void)poll(&p, 1, wait_ms); /* POLLERR is always waited for */
	int queued = take_queued(fd);
	if (queued || getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &len)) {
		return queued;
	}
	return errnum;
}

enum weft_err
os_probe_udp(const struct endpoint *to, uint32_t mark, int wait_ms, int *errnum)
{
	struct os_inet_name name;
	int family = to->addr.family == IP_FAMILY_V6 ? AF_INET6 : AF_INET;
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		return os_error(errno);
	}
	os_inet_name(&to->addr, to->port, to->scope_id, &name);
	if (mark) {
		(void)setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark));
	}
	/* A connected socket alone is told of errors, and only with this of those that may pass. */
	const int one = 1;
	if (family == AF_INET6) {
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &one, sizeof(one));
	} else {
		(void)setsockopt(fd, IPPROTO_IP, IP_RECVERR, &one, sizeof(one));
	}
	if (connect(fd, (struct sockaddr *)&name.at, name.len) ||
		send(fd, "", 1, MSG_NOSIGNAL) < 0) {
		*errnum = errno;
	} else {
		*errnum = wait_for_error(fd, wait_ms);
	}
	os_fd_close(&fd);
	return WEFT_OK;
}

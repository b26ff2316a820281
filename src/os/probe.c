/* SPDX-License-Identifier: Apache-2.0 */
#include "os/probe.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "os/error.h"
#include "os/fd.h"
#include "os/inet.h"

/* What stands against the socket, or comes to do so within wait_ms. */
static int
wait_for_error(int fd, int wait_ms)
{
	struct pollfd p = {.fd = fd};
	int errnum = 0;
	socklen_t len = sizeof(errnum);
	(void)poll(&p, 1, wait_ms); /* POLLERR is always waited for */
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &len) ? errno : errnum;
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
	/* A connected socket alone is told of errors. */
	if (connect(fd, (struct sockaddr *)&name.at, name.len) ||
		send(fd, "", 1, MSG_NOSIGNAL) < 0) {
		*errnum = errno;
	} else {
		*errnum = wait_for_error(fd, wait_ms);
	}
	os_fd_close(&fd);
	return WEFT_OK;
}

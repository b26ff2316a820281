/* SPDX-License-Identifier: Apache-2.0 */
#include "os/inet.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "os/clock.h"
#include "os/error.h"

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}; /* RFC 4291, section 2.5.5.2 */

void
os_inet_name(const struct ip_addr *addr, uint16_t port, uint32_t scope_id, struct os_inet_name *out)
{
	*out = (struct os_inet_name){0};
	if (addr->family == IP_FAMILY_V4) {
		struct sockaddr_in *in = (void *)&out->at;
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, addr->b, 4);
		out->len = sizeof(*in);
	} else {
		struct sockaddr_in6 *in = (void *)&out->at;
		in->sin6_family = AF_INET6;
		in->sin6_port = htons(port);
		in->sin6_scope_id = scope_id;
		memcpy(&in->sin6_addr, addr->b, 16);
		out->len = sizeof(*in);
	}
}

bool
os_inet_read(const struct sockaddr *at, socklen_t len, struct ip_addr *addr, uint16_t *port)
{
	struct ip_addr a = {0};
	/* Callers' addresses need not be aligned. */
	if (len >= sizeof(struct sockaddr_in) && at->sa_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, at, sizeof(in));
		a.family = IP_FAMILY_V4;
		memcpy(a.b, &in.sin_addr, 4);
		*port = ntohs(in.sin_port);
	} else if (len >= sizeof(struct sockaddr_in6) && at->sa_family == AF_INET6) {
		struct sockaddr_in6 in;
		memcpy(&in, at, sizeof(in));
		*port = ntohs(in.sin6_port);
		if (memcmp(&in.sin6_addr, mapped, sizeof(mapped)) == 0) {
			a.family = IP_FAMILY_V4;
			memcpy(a.b, (const uint8_t *)&in.sin6_addr + 12, 4);
		} else {
			a.family = IP_FAMILY_V6;
			memcpy(a.b, &in.sin6_addr, 16);
		}
	} else {
		return false;
	}
	*addr = a;
	return true;
}

enum weft_err
os_inet_peer(int fd, struct ip_addr *addr, uint16_t *port)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);
	if (getpeername(fd, (struct sockaddr *)&at, &len)) {
		return os_error(errno);
	}
	return os_inet_read((struct sockaddr *)&at, len, addr, port) ? WEFT_OK : WEFT_EINVAL;
}

enum weft_err
os_inet_local(int fd, struct ip_addr *addr, uint16_t *port)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);
	if (getsockname(fd, (struct sockaddr *)&at, &len)) {
		return os_error(errno);
	}
	return os_inet_read((struct sockaddr *)&at, len, addr, port) ? WEFT_OK : WEFT_EINVAL;
}

static enum weft_err
failed(int *errnum)
{
	*errnum = errno;
	/* The table is for datagrams of ours, where a refusal is a host that is away. */
	return errno == ECONNREFUSED ? WEFT_EREFUSED : os_error(errno);
}

static bool
set_option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

enum weft_err
os_inet_bind(int fd, const struct os_inet_name *at, unsigned flags, int *errnum)
{
	bool ok = true;
	if (flags & OS_INET_REUSEADDR) {
		ok = ok && set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	}
	if (flags & OS_INET_REUSEPORT) {
		ok = ok && set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	}
	if (flags & OS_INET_LATE_PORT) {
		ok = ok && set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	}
	if (at->at.ss_family == AF_INET6) {
		ok = ok && set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, (flags & OS_INET_V6ONLY) != 0);
	}
	if (!ok || bind(fd, (const struct sockaddr *)&at->at, at->len)) {
		return failed(errnum);
	}
	return WEFT_OK;
}

enum weft_err
os_inet_listen(int fd, int backlog, int *errnum)
{
	return listen(fd, backlog) ? failed(errnum) : WEFT_OK;
}

enum weft_err
os_inet_connect(int fd, const struct os_inet_name *to, int *errnum)
{
	if (connect(fd, (const struct sockaddr *)&to->at, to->len) == 0) {
		return WEFT_OK;
	}
	/* After EINTR the attempt goes on (POSIX, connect()). */
	return errno == EINPROGRESS || errno == EINTR ? WEFT_EAGAIN : failed(errnum);
}

enum weft_err
os_inet_result(int fd, int *errnum)
{
	int e = 0;
	socklen_t len = sizeof(e);
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) == 0) {
		errno = e;
	}
	return errno ? failed(errnum) : WEFT_OK;
}

enum weft_err
os_inet_accept(int listen_fd, bool is_nonblocking, int *fd, int *errnum)
{
	int flags = SOCK_CLOEXEC | (is_nonblocking ? SOCK_NONBLOCK : 0);
	int got;
	do {
		got = accept4(listen_fd, NULL, NULL, flags);
	} while (got < 0 && errno == EINTR);
	if (got < 0 && errno == ECONNABORTED) {
		return WEFT_EAGAIN; /* not tried again: that might block beyond the caller's
				       deadline */
	}
	if (got < 0) {
		return failed(errnum);
	}
	*fd = got;
	return WEFT_OK;
}

enum weft_err
os_inet_set_blocking(int fd, bool is_blocking)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0) {
		return os_error(errno);
	}
	flags = is_blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) ? os_error(errno) : WEFT_OK;
}

enum weft_err
os_inet_is_blocking(int fd, bool *out)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0) {
		return errno == EBADF ? WEFT_EINVAL : os_error(errno);
	}
	*out = !(flags & O_NONBLOCK);
	return WEFT_OK;
}

/* Like ppoll(2), through signals, and with a deadline. */
static int
wait_many(struct pollfd *p, nfds_t n, struct mono deadline)
{
	for (;;) {
		int64_t left_ns = mono_diff_ns(deadline, os_clock_mono());
		struct timespec ts = {0};
		if (left_ns > 0) {
			ts.tv_sec = (time_t)(left_ns / WEFT_NS_PER_S);
			ts.tv_nsec = (long)(left_ns % WEFT_NS_PER_S);
		}
		int got = ppoll(p, n, deadline.ns == MONO_NEVER.ns ? NULL : &ts, NULL);
		if (got >= 0 || errno != EINTR) {
			return got;
		}
	}
}

enum weft_err
os_inet_wait(int fd, bool is_write, const int *wakes, size_t wakes_n, struct mono deadline,
	size_t *woken)
{
	struct pollfd p[OS_INET_WAKES_MAX + 1] = {
		{.fd = fd, .events = is_write ? POLLOUT : POLLIN}};
	weft_assert(wakes_n <= OS_INET_WAKES_MAX);
	for (size_t i = 0; i < wakes_n; i++) {
		p[1 + i] = (struct pollfd){.fd = wakes[i], .events = POLLIN};
	}
	int got = wait_many(p, 1 + wakes_n, deadline);
	if (got < 0) {
		return os_error(errno);
	}
	if (got == 0) {
		return WEFT_ETIMEDOUT;
	}
	*woken = wakes_n;
	for (size_t i = 0; i < wakes_n && !p[0].revents; i++) {
		if (p[1 + i].revents) {
			*woken = i;
			break;
		}
	}
	return WEFT_OK;
}

enum weft_err
os_inet_service(const char *name, bool is_udp, uint16_t *port)
{
	uint32_t n = 0;
	size_t i = 0;
	for (; name[i] >= '0' && name[i] <= '9'; i++) {
		n = n > UINT16_MAX ? n : n * 10 + (uint32_t)(name[i] - '0');
	}
	if (i > 0 && name[i] == 0) {
		if (n > UINT16_MAX) {
			return WEFT_ENOENT;
		}
		*port = (uint16_t)n;
		return WEFT_OK;
	}
	struct servent entry, *found = NULL;
	char buf[1024];
	if (name[0] == 0 ||
		getservbyname_r(name, is_udp ? "udp" : "tcp", &entry, buf, sizeof(buf), &found) ||
		!found) {
		return WEFT_ENOENT;
	}
	*port = ntohs((uint16_t)found->s_port);
	return WEFT_OK;
}

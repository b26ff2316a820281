/* SPDX-License-Identifier: Apache-2.0 */
#include "os/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/error.h"
#include "os/fd.h"

enum os_stream_kind
os_stream_kind(int fd)
{
	struct stat st;
	if (fstat(fd, &st)) {
		return OS_STREAM_FILE;
	}
	return S_ISSOCK(st.st_mode)   ? OS_STREAM_SOCKET
	       : S_ISFIFO(st.st_mode) ? OS_STREAM_PIPE
	       : S_ISCHR(st.st_mode)  ? OS_STREAM_TERMINAL
				      : OS_STREAM_FILE;
}

static enum weft_err
result(ssize_t r, size_t *n, int *errnum)
{
	if (r < 0) {
		*errnum = errno;
		return os_error(errno);
	}
	*n = (size_t)r;
	return WEFT_OK;
}

enum weft_err
os_stream_read(int fd, void *buf, size_t cap, size_t *n, int *errnum)
{
	ssize_t r;
	do {
		r = read(fd, buf, cap);
	} while (r < 0 && errno == EINTR);
	return result(r, n, errnum);
}

enum weft_err
os_stream_write(int fd, const void *buf, size_t len, size_t *n, int *errnum)
{
	ssize_t r;
	do {
		r = write(fd, buf, len);
	} while (r < 0 && errno == EINTR);
	return result(r, n, errnum);
}

enum weft_err
os_stream_peek(int fd, void *buf, size_t cap, size_t *n, int *errnum)
{
	ssize_t r;
	do {
		r = recv(fd, buf, cap, MSG_PEEK | MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	return result(r, n, errnum);
}

enum weft_err
os_stream_splice(int from, int to, size_t len, size_t *n, int *errnum)
{
	ssize_t r;
	do {
		r = splice(from, NULL, to, NULL, len, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	} while (r < 0 && errno == EINTR);
	return result(r, n, errnum);
}

void
os_stream_finish(int fd)
{
	/* Fails when the connection is gone, which reading from it tells. */
	(void)shutdown(fd, SHUT_WR);
}

void
os_stream_reset(int *fd)
{
	struct linger at_once = {.l_onoff = 1, .l_linger = 0};
	if (*fd >= 0) {
		(void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	}
	os_fd_close(fd);
}

int
os_stream_take_error(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) ? 0 : error;
}

size_t
os_stream_unsent(int fd)
{
	int n = 0;
	return ioctl(fd, SIOCOUTQ, &n) || n < 0 ? 0 : (size_t)n;
}

void
os_stream_tune(int fd)
{
	int on = 1;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

enum weft_err
os_stream_pipe(size_t bytes, int fds[2], size_t *cap)
{
	int got[2];
	if (pipe2(got, O_CLOEXEC | O_NONBLOCK)) {
		return os_error(errno);
	}
	/* A user's pipes together have a limit; above it this fails, and they are small. */
	(void)fcntl(got[1], F_SETPIPE_SZ, (int)bytes);
	int size = fcntl(got[1], F_GETPIPE_SZ);
	*cap = size > 0 ? (size_t)size : 4096;
	fds[0] = got[0];
	fds[1] = got[1];
	return WEFT_OK;
}

/* A descriptor of its own for what fd is; false where the kernel or its owner does not allow. */
static bool
reopen(int fd, bool is_write)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int own = open(path, (is_write ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (own < 0) {
		return false;
	}
	bool is_done = dup3(own, fd, O_CLOEXEC) == fd;
	(void)close(own);
	return is_done;
}

enum weft_err
os_stream_borrow(int fd, bool is_write, struct os_stream_loan *loan)
{
	enum os_stream_kind kind = os_stream_kind(fd);
	*loan = (struct os_stream_loan){.fd = fd};
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0) {
		return os_error(errno);
	}
	if (kind == OS_STREAM_FILE || flags & O_NONBLOCK) {
		return WEFT_OK;
	}
	if ((kind == OS_STREAM_PIPE || kind == OS_STREAM_TERMINAL) && reopen(fd, is_write)) {
		return WEFT_OK;
	}
	if (fcntl(fd, F_SETFL, flags | O_NONBLOCK)) {
		return os_error(errno);
	}
	loan->has_changed = true;
	return WEFT_OK;
}

void
os_stream_return(const struct os_stream_loan *loan)
{
	int flags = loan->has_changed ? fcntl(loan->fd, F_GETFL) : -1;
	if (flags >= 0) {
		(void)fcntl(loan->fd, F_SETFL, flags & ~O_NONBLOCK);
	}
}

enum weft_err
os_stream_copy(int fd, int *out)
{
	int got = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (got < 0) {
		return os_error(errno);
	}
	*out = got;
	return WEFT_OK;
}

enum weft_err
os_stream_take(int fd, int *out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0) {
		return os_error(errno);
	}
	enum weft_err e = os_stream_copy(fd, out);
	if (!e && dup2(null, fd) < 0) {
		e = os_error(errno);
		os_fd_close(out);
	}
	os_fd_close(&null);
	return e;
}

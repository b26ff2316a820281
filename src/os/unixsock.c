/* SPDX-License-Identifier: Apache-2.0 */
#include "os/unixsock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/error.h"
#include "os/fd.h"

#define BACKLOG 64

static enum weft_err
address(const char *path, struct sockaddr_un *a)
{
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	int n = snprintf(a->sun_path, sizeof(a->sun_path), "%s", path);
	return n <= 0 || (size_t)n >= sizeof(a->sun_path) ? WEFT_EINVAL : WEFT_OK;
}

static enum weft_err
make_socket(int *fd)
{
	int f = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (f < 0) {
		return os_error(errno);
	}
	*fd = f;
	return WEFT_OK;
}

/* A socket file outlives a killed process; connecting tells whether anybody is behind it. Any
 * answer but ECONNREFUSED, a full backlog included, means that somebody is. */
static bool
is_stale(const struct sockaddr_un *a)
{
	struct stat st;
	if (lstat(a->sun_path, &st) || !S_ISSOCK(st.st_mode)) {
		return false;
	}
	int fd;
	if (make_socket(&fd)) {
		return false;
	}
	bool is_refused =
		connect(fd, (const struct sockaddr *)a, sizeof(*a)) < 0 && errno == ECONNREFUSED;
	os_fd_close(&fd);
	return is_refused;
}

static enum weft_err
bind_path(int fd, const struct sockaddr_un *a)
{
	if (bind(fd, (const struct sockaddr *)a, sizeof(*a))) {
		return os_error(errno);
	}
	return WEFT_OK;
}

enum weft_err
os_unixsock_listen(const char *path, unsigned mode, int *fd)
{
	struct sockaddr_un a;
	int f;
	enum weft_err err = address(path, &a);
	if (!err) {
		err = make_socket(&f);
	}
	if (err) {
		return err;
	}
	err = bind_path(f, &a);
	if (err == WEFT_EADDRINUSE && is_stale(&a)) {
		(void)unlink(path);
		err = bind_path(f, &a);
	}
	if (err) {
		goto undo_socket;
	}
	/* Before listen() every connect is refused, so nobody slips in under the umask's mode. */
	if (chmod(path, (mode_t)mode) || listen(f, BACKLOG)) {
		err = os_error(errno);
		goto undo_bind;
	}
	*fd = f;
	return WEFT_OK;
undo_bind:
	(void)unlink(path);
undo_socket:
	os_fd_close(&f);
	return err;
}

enum weft_err
os_unixsock_accept(int listen_fd, int *fd)
{
	int f;
	do {
		f = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	} while (f < 0 && (errno == EINTR || errno == ECONNABORTED));
	if (f < 0) {
		enum weft_err err = os_error(errno);
		/* The kernel takes a descriptor before it looks who waits. */
		if (err == WEFT_ENOMEM &&
			os_fd_wait(listen_fd, false, (struct mono){0}) == WEFT_ETIMEDOUT) {
			return WEFT_EAGAIN;
		}
		return err;
	}
	*fd = f;
	return WEFT_OK;
}

enum weft_err
os_unixsock_spare(int listen_fd, int *spare)
{
	*spare = fcntl(listen_fd, F_DUPFD_CLOEXEC, 0);
	return *spare < 0 ? os_error(errno) : WEFT_OK;
}

void
os_unixsock_refuse(int listen_fd, int *spare)
{
	int f;
	os_fd_close(spare);
	if (os_unixsock_accept(listen_fd, &f) == WEFT_OK) {
		os_fd_close(&f);
	}
	enum weft_err e = os_unixsock_spare(listen_fd, spare);
	(void)e; /* its place was free a moment ago; without it the next refusal tries again */
}

enum weft_err
os_unixsock_connect(const char *path, struct mono deadline, int *fd)
{
	struct sockaddr_un a;
	int f;
	enum weft_err err = address(path, &a);
	if (!err) {
		err = make_socket(&f);
	}
	if (err) {
		return err;
	}
	/* A full backlog gives EAGAIN at once and poll() knows nothing of it. */
	while (connect(f, (const struct sockaddr *)&a, sizeof(a))) {
		if (errno == EINTR) {
			continue;
		}
		if (errno != EAGAIN) {
			err = errno == ECONNREFUSED ? WEFT_ENOENT : os_error(errno);
			break;
		}
		if (!mono_is_before(os_clock_mono(), deadline)) {
			err = WEFT_ETIMEDOUT;
			break;
		}
		os_clock_sleep_ns(WEFT_NS_PER_MS);
	}
	if (err) {
		os_fd_close(&f);
		return err;
	}
	*fd = f;
	return WEFT_OK;
}

enum weft_err
os_unixsock_cred(int fd, struct os_peer_cred *out)
{
	struct ucred c;
	socklen_t len = sizeof(c);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &len)) {
		return os_error(errno);
	}
	*out = (struct os_peer_cred){.pid = c.pid, .uid = c.uid, .gid = c.gid};
	return WEFT_OK;
}

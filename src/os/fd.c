/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fd.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/error.h"

enum weft_err
os_fd_read(int fd, void *buf, size_t cap, size_t *n)
{
	ssize_t r;
	do {
		r = read(fd, buf, cap);
	} while (r < 0 && errno == EINTR);
	if (r < 0) {
		return os_error(errno);
	}
	if (r == 0) {
		return WEFT_ECLOSED;
	}
	*n = (size_t)r;
	return WEFT_OK;
}

enum weft_err
os_fd_write(int fd, const void *buf, size_t len, size_t *n)
{
	ssize_t r;
	do {
		r = write(fd, buf, len);
	} while (r < 0 && errno == EINTR);
	if (r < 0) {
		return os_error(errno);
	}
	*n = (size_t)r;
	return WEFT_OK;
}

enum weft_err
os_fd_write_all(int fd, const void *buf, size_t len, struct mono deadline)
{
	const uint8_t *p = buf;
	while (len > 0) {
		size_t n = 0;
		enum weft_err err = os_fd_write(fd, p, len, &n);
		if (err == WEFT_EAGAIN) {
			err = os_fd_wait(fd, true, deadline);
		}
		if (err) {
			return err;
		}
		p += n;
		len -= n;
	}
	return WEFT_OK;
}

enum weft_err
os_fd_wait(int fd, bool is_write, struct mono deadline)
{
	struct pollfd p = {.fd = fd, .events = is_write ? POLLOUT : POLLIN};
	for (;;) {
		int64_t left_ns = mono_diff_ns(deadline, os_clock_mono());
		struct timespec ts = {0};
		if (left_ns > 0) {
			ts.tv_sec = (time_t)(left_ns / WEFT_NS_PER_S);
			ts.tv_nsec = (long)(left_ns % WEFT_NS_PER_S);
		}
		int n = ppoll(&p, 1, deadline.ns == MONO_NEVER.ns ? NULL : &ts, NULL);
		if (n > 0) {
			return WEFT_OK;
		}
		if (n == 0) {
			return WEFT_ETIMEDOUT;
		}
		if (errno != EINTR) {
			return os_error(errno);
		}
	}
}

bool
os_fd_is_terminal(int fd)
{
	return isatty(fd) == 1;
}

bool
os_fd_is_world_accessible(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IRWXO) != 0;
}

void
os_fd_close(int *fd)
{
	if (*fd >= 0) {
		/* The descriptor is gone even after EINTR (Linux). */
		(void)close(*fd);
		*fd = -1;
	}
}

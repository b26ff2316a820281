/* SPDX-License-Identifier: Apache-2.0 */
#include "os/pair.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/error.h"
#include "os/fd.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

union control {
	struct cmsghdr head; /* its alignment */
	char room[CMSG_SPACE(sizeof(int))];
};

enum weft_err
os_pair_open(int fds[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) ? os_error(errno)
									  : WEFT_OK;
}

enum weft_err
os_pair_send(int fd, const void *data, size_t len, int passed)
{
	union control c = {.room = {0}};
	struct iovec iov = {.iov_base = (void *)data, .iov_len = len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	if (passed >= 0) {
		m.msg_control = c.room;
		m.msg_controllen = sizeof(c.room);
		c.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(&c.head), &passed, sizeof(int));
	}
	ssize_t n;
	do {
		n = sendmsg(fd, &m, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? os_error(errno) : WEFT_OK;
}

/* The alignment of the room for one lets a second in: then none is taken, and none stays open. */
static int
take_passed(struct msghdr *m)
{
	int fds[sizeof(union control) / sizeof(int)];
	struct cmsghdr *h = CMSG_FIRSTHDR(m);
	if (!h || h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS ||
		h->cmsg_len < CMSG_LEN(sizeof(int)) || h->cmsg_len > m->msg_controllen) {
		return -1;
	}
	size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(h), n * sizeof(int));
	if (n == 1 && !(m->msg_flags & MSG_CTRUNC)) {
		return fds[0];
	}
	for (size_t i = 0; i < n; i++) {
		os_fd_close(&fds[i]);
	}
	return -1;
}

enum weft_err
os_pair_receive(int fd, void *data, size_t cap, size_t *len, int *passed)
{
	union control c;
	struct iovec iov = {.iov_base = data, .iov_len = cap};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = c.room,
		.msg_controllen = sizeof(c.room)};
	ssize_t n;
	do {
		n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		return os_error(errno);
	}
	int with = take_passed(&m);
	if (n == 0 || (m.msg_flags & MSG_TRUNC)) {
		os_fd_close(&with);
		return n == 0 ? WEFT_ECLOSED : WEFT_EMSGSIZE;
	}
	*len = (size_t)n;
	*passed = with;
	return WEFT_OK;
}

enum weft_err
os_pair_file_make(const void *data, size_t len, int *fd)
{
	int f = memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (f < 0) {
		return os_error(errno);
	}
	enum weft_err e = os_fd_write_all(f, data, len, MONO_NEVER);
	if (!e && fcntl(f, F_ADD_SEALS, SEALS)) {
		e = os_error(errno);
	}
	if (e) {
		os_fd_close(&f);
		return e;
	}
	*fd = f;
	return WEFT_OK;
}

enum weft_err
os_pair_file_read(int fd, size_t max, char **out, size_t *len)
{
	/* Anything else might block, change under our eyes, or have no end. */
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		return WEFT_EINVAL;
	}
	if (st.st_size < 0 || (uint64_t)st.st_size > max) {
		return WEFT_EMSGSIZE;
	}
	size_t size = (size_t)st.st_size, used = 0;
	char *text = malloc(size + 1);
	if (!text) {
		return WEFT_ENOMEM;
	}
	while (used < size) {
		ssize_t n = pread(fd, text + used, size - used, (off_t)used);
		if (n == 0 || (n < 0 && errno != EINTR)) {
			explicit_bzero(text, used);
			free(text);
			return WEFT_EIO;
		}
		used += n > 0 ? (size_t)n : 0;
	}
	text[size] = 0;
	*out = text;
	*len = size;
	return WEFT_OK;
}

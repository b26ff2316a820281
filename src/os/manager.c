/* SPDX-License-Identifier: Apache-2.0 */
#include "os/manager.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "base/mono.h"
#include "os/error.h"
#include "os/fd.h"

enum weft_err
os_manager_open(const char *address, int *fd)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	size_t len = strlen(address);
	if ((address[0] != '/' && address[0] != '@') || len < 2 || len >= sizeof(at.sun_path)) {
		return WEFT_EINVAL;
	}
	memcpy(at.sun_path, address, len);
	if (address[0] == '@') {
		at.sun_path[0] = 0;
	}
	int f = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (f < 0) {
		return os_error(errno);
	}
	socklen_t at_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	if (connect(f, (const struct sockaddr *)&at, at_len)) {
		enum weft_err e = os_error(errno);
		os_fd_close(&f);
		return e;
	}
	*fd = f;
	return WEFT_OK;
}

enum weft_err
os_manager_tell(int fd, const char *text)
{
	return send(fd, text, strlen(text), MSG_NOSIGNAL) < 0 ? os_error(errno) : WEFT_OK;
}

enum weft_err
os_manager_tell_reloading(int fd)
{
	char text[64];
	struct timespec now; /* the manager compares with CLOCK_MONOTONIC, which stops in suspend */
	if (clock_gettime(CLOCK_MONOTONIC, &now)) {
		return os_error(errno);
	}
	int64_t us = now.tv_sec * (WEFT_NS_PER_S / WEFT_NS_PER_US) + now.tv_nsec / WEFT_NS_PER_US;
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRId64, us);
	return os_manager_tell(fd, text);
}

bool
os_manager_is_journal(int fd, const char *stream)
{
	struct stat st;
	uintmax_t device, inode;
	return sscanf(stream, "%ju:%ju", &device, &inode) == 2 && fstat(fd, &st) == 0 &&
	       st.st_dev == device && st.st_ino == inode;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes over a descriptor that does not block: pipes, unix sockets, files. */
#ifndef WEFT_OS_FD_H
#define WEFT_OS_FD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mono.h"

/* WEFT_EAGAIN: nothing now; WEFT_ECLOSED: end of file, or reset. *n >= 1 on success. */
WEFT_MUST_CHECK enum weft_err os_fd_read(int fd, void *buf, size_t cap, size_t *n);
/* May write less than len. WEFT_EAGAIN: full now; WEFT_ECLOSED: nobody reads. */
WEFT_MUST_CHECK enum weft_err os_fd_write(int fd, const void *buf, size_t len, size_t *n);
/* Writes all, waiting up to the deadline. */
WEFT_MUST_CHECK enum weft_err os_fd_write_all(
	int fd, const void *buf, size_t len, struct mono deadline);
/* Waits until readable (or writable). WEFT_ETIMEDOUT when the deadline passed. */
WEFT_MUST_CHECK enum weft_err os_fd_wait(int fd, bool is_write, struct mono deadline);
bool os_fd_is_terminal(int fd);
/* A regular file that others than its owner and group may read, write or run? */
bool os_fd_is_world_accessible(int fd);
/* Closes and sets -1; does nothing for -1. */
void os_fd_close(int *fd);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Two connected sockets that carry records, each with a descriptor beside it if need be; and files
 * in memory for what is too long for a record. */
#ifndef WEFT_OS_PAIR_H
#define WEFT_OS_PAIR_H

#include <stddef.h>

#include "base/err.h"

WEFT_MUST_CHECK enum weft_err os_pair_open(int fds[2]);
/* Waits for room. passed: -1 = none; it stays the caller's. len is not 0. WEFT_ECLOSED: the other
 * end is. */
WEFT_MUST_CHECK enum weft_err os_pair_send(int fd, const void *data, size_t len, int passed);
/* Does not wait: WEFT_EAGAIN, for os_fd_wait(). *passed: -1, or the caller's to close.
 * WEFT_EMSGSIZE: a record of more than cap bytes, which is thrown away. WEFT_ECLOSED: the other end
 * is closed, or has sent an empty one. */
WEFT_MUST_CHECK enum weft_err os_pair_receive(
	int fd, void *data, size_t cap, size_t *len, int *passed);

/* A file in memory that can be read and no more. */
WEFT_MUST_CHECK enum weft_err os_pair_file_make(const void *data, size_t len, int *fd);
/* All of such a file in new memory, with a NUL behind that *len does not count; the caller frees.
 * WEFT_EINVAL: another kind of descriptor. WEFT_EMSGSIZE: it is longer than max. */
WEFT_MUST_CHECK enum weft_err os_pair_file_read(int fd, size_t max, char **out, size_t *len);

#endif

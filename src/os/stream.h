/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of bytes that do not block: TCP, local sockets, pipes, terminals, files. What a copier
 * between two of them needs beside reading and writing (fd.h): half-close, reset, splice. */
#ifndef WEFT_OS_STREAM_H
#define WEFT_OS_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum os_stream_kind {
	OS_STREAM_SOCKET,
	OS_STREAM_PIPE,
	OS_STREAM_TERMINAL, /* and other character devices */
	OS_STREAM_FILE,     /* always ready; a loop does not take it */
};

enum os_stream_kind os_stream_kind(int fd);

/* *n = 0: the end of the stream. WEFT_EAGAIN: nothing now. On failure *errnum tells why. */
WEFT_MUST_CHECK enum weft_err os_stream_read(int fd, void *buf, size_t cap, size_t *n, int *errnum);
/* What the next read from a socket would give; it stays there. */
WEFT_MUST_CHECK enum weft_err os_stream_peek(int fd, void *buf, size_t cap, size_t *n, int *errnum);
/* May write less than len. WEFT_EAGAIN: full now. SIGPIPE must be ignored. */
WEFT_MUST_CHECK enum weft_err os_stream_write(
	int fd, const void *buf, size_t len, size_t *n, int *errnum);
/* Moves up to len bytes without copying them; one of both is a pipe. *n = 0: the end of the
 * stream. WEFT_EAGAIN: from is empty or to is full; WEFT_EINVAL: one of them cannot do it. */
WEFT_MUST_CHECK enum weft_err os_stream_splice(
	int from, int to, size_t len, size_t *n, int *errnum);

/* Nothing more will be written to this socket; reading goes on. */
void os_stream_finish(int fd);
/* Closes a socket such that the other end sees a reset, and sets -1. */
void os_stream_reset(int *fd);
/* Takes the error that waits at a socket; 0 = none. */
int os_stream_take_error(int fd);
/* Bytes written to a TCP socket that its other end has not acknowledged; 0 where unknown. */
size_t os_stream_unsent(int fd);
/* For a TCP connection: no waiting for more to send (TCP_NODELAY), and the end of a silent peer is
 * noticed (SO_KEEPALIVE with the system's times). */
void os_stream_tune(int fd);

/* A pipe that does not block, for up to bytes; it may get less. fds[0] is read. *cap: what fits. */
WEFT_MUST_CHECK enum weft_err os_stream_pipe(size_t bytes, int fds[2], size_t *cap);

/* How a standard stream was before os_stream_borrow(). */
struct os_stream_loan {
	int fd;
	bool has_changed; /* its O_NONBLOCK was set, for every process that shares it */
};
/* Makes fd, which other processes may share, not block. Pipes and terminals are opened anew for
 * us alone where that is allowed; else the flag is set, and os_stream_return() clears it. */
WEFT_MUST_CHECK enum weft_err os_stream_borrow(int fd, bool is_write, struct os_stream_loan *loan);
void os_stream_return(const struct os_stream_loan *loan);
/* Moves a standard stream to another, close-on-exec descriptor; /dev/null takes its place. */
WEFT_MUST_CHECK enum weft_err os_stream_take(int fd, int *out);
/* Another close-on-exec descriptor for the same. */
WEFT_MUST_CHECK enum weft_err os_stream_copy(int fd, int *out);

#endif

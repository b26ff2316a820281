/* SPDX-License-Identifier: Apache-2.0 */
/* UDP sockets, ready for batches: their options and their system calls. What is sent and
 * received through them is the business of src/link/udp.c. */
#ifndef WEFT_OS_UDP_H
#define WEFT_OS_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mono.h"

struct os_udp_config {
	uint16_t port;        /* 0: the kernel chooses, one number for both families */
	struct ip_addr local; /* bound to this address alone; IP_FAMILY_NONE: to all */
	uint32_t mark;        /* SO_MARK, set before anything can be sent */
	bool is_shared;       /* further sockets will be opened on this port (SO_REUSEPORT) */
	bool is_joining;      /* this is such a further one: port must be given */
	bool has_offload;     /* false: neither UDP_SEGMENT nor UDP_GRO */
	uint32_t rcv_bytes, snd_bytes; /* socket buffers; 0: OS_UDP_BUFFER_BYTES */
};

#define OS_UDP_BUFFER_BYTES (4u * 1024u * 1024u)

struct os_udp {
	int v4, v6;    /* -1: the machine has no such family */
	uint16_t port; /* as bound */
	bool has_gso;  /* UDP_SEGMENT is known to the kernel */
	bool has_gro;  /* UDP_GRO is on */
};

/* WEFT_EADDRINUSE, WEFT_EPERM (for a mark), WEFT_ENOTSUP without either family. A port is
 * taken for our own even when sockets are shared: another process of the same user cannot
 * slip in before us, and we do not slip in behind it. Warnings (buffers, missing family) and
 * failures go to log. */
WEFT_MUST_CHECK enum weft_err os_udp_open(
	const struct os_udp_config *c, const struct log *log, struct os_udp *out);
void os_udp_close(struct os_udp *u);
/* For a UDP socket that was made elsewhere, as far as the kernel goes along: addresses and ECN of
 * what is received, UDP_GRO, buffers of so many bytes. */
void os_udp_tune(int fd, bool is_v6, uint32_t bytes);
WEFT_MUST_CHECK enum weft_err os_udp_set_mark(const struct os_udp *u, uint32_t mark);
/* Datagrams that the kernel dropped at this socket since it was made; wraps at 2^32. */
WEFT_MUST_CHECK enum weft_err os_udp_dropped(int fd, uint32_t *out);

/* The system calls of the packet path, so that a test can stand between. */
struct os_udp_calls {
	ssize_t (*sendmsg)(void *ctx, int fd, const struct msghdr *m, int flags);
	int (*sendmmsg)(void *ctx, int fd, struct mmsghdr *m, unsigned n, int flags);
	int (*recvmmsg)(void *ctx, int fd, struct mmsghdr *m, unsigned n, int flags);
	/* Waits until fd takes more, at most so many milliseconds; true when it does. */
	bool (*wait_writable)(void *ctx, int fd, int ms);
	struct mono (*now)(void *ctx);
	void *ctx;
};
extern const struct os_udp_calls os_udp_calls_real;

#endif

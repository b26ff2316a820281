/* SPDX-License-Identifier: Apache-2.0 */
/* A TUN device: IP packets with a virtio_net_hdr before each, one descriptor a queue.
 *
 * The device lives as long as its descriptors. */
#ifndef WEFT_OS_TUN_H
#define WEFT_OS_TUN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/log.h"

#define OS_IFNAME_MAX 16 /* with the final NUL */
#define OS_TUN_QUEUES_MAX 64
#define OS_VNET_HDR_LEN 10 /* struct virtio_net_hdr without num_buffers */

enum os_tun_offload {
	OS_TUN_OFFLOAD_NONE, /* no virtio_net_hdr at all: plain packets */
	OS_TUN_OFFLOAD_CSUM, /* header, checksums left to us, no super-frames */
	OS_TUN_OFFLOAD_TSO,  /* TCP super-frames */
	OS_TUN_OFFLOAD_USO,  /* and UDP super-frames (Linux 6.2) */
};

struct os_tun {
	char name[OS_IFNAME_MAX]; /* as the kernel gave it */
	int fds[OS_TUN_QUEUES_MAX];
	unsigned queues;
	enum os_tun_offload offload; /* what is active */
};

/* name may hold one "%d" for a free number. wanted: the best level to try; a kernel that has
 * less gives less. WEFT_EPERM without CAP_NET_ADMIN, WEFT_ENOENT without /dev/net/tun,
 * WEFT_EADDRINUSE when an interface has the name, WEFT_EINVAL for a bad one. Failures are said
 * to log. */
WEFT_MUST_CHECK enum weft_err os_tun_open(struct os_tun *t, const char *name, unsigned queues,
	enum os_tun_offload wanted, const struct log *log);
/* The same in another namespace; ns NULL: in the caller's. With is_quiet failures that have
 * another way, a device that is absent or forbidden, are no errors to log. */
struct os_netns;
struct os_tun_config {
	struct os_netns *ns;
	const char *name;
	unsigned queues;
	enum os_tun_offload offload; /* wanted */
	bool is_quiet;
	const struct log *log;
};
WEFT_MUST_CHECK enum weft_err os_tun_open_in(struct os_tun *t, const struct os_tun_config *c);
void os_tun_close(struct os_tun *t);
/* Sets another level on an open device; not from or to OS_TUN_OFFLOAD_NONE. */
WEFT_MUST_CHECK enum weft_err os_tun_set_offload(struct os_tun *t, enum os_tun_offload level);

/* The system calls of a queue, so that a test can stand between. */
struct os_tun_calls {
	ssize_t (*readv)(void *ctx, int fd, const struct iovec *iov, int n);
	ssize_t (*writev)(void *ctx, int fd, const struct iovec *iov, int n);
	void *ctx;
};
extern const struct os_tun_calls os_tun_calls_real;

#endif

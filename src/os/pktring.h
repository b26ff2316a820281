/* SPDX-License-Identifier: Apache-2.0 */
/* A packet socket on one end of a veth pair, read by a ring in shared memory, with a
 * virtio_net_hdr beside each frame so that super-frames arrive and leave whole.
 *
 * The ring holds what fits the MTU, and needs no system call and no right to large socket buffers.
 * Super-frames wait in the socket's own queue; their places in the ring keep the order. */
#ifndef WEFT_OS_PKTRING_H
#define WEFT_OS_PKTRING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/log.h"

#define OS_PKTRING_VNET_LEN 10
#define OS_PKTRING_ETHER_LEN 14

struct os_netns;

struct os_pktring {
	int fd; /* readable when there is a frame */
	uint32_t ifindex;
	uint8_t *frames; /* the mapped ring */
	uint32_t frame_bytes, frames_n, at;
	_Atomic uint64_t cut; /* super-frames that found no room beside the ring */
};

struct os_pktring_config {
	struct os_netns *ns; /* NULL = the caller's */
	uint32_t ifindex;
	uint16_t mtu;
	unsigned sockets; /* that share the interface, each flow to one of them */
	uint16_t group;   /* the same number for all of them */
	const struct log *log;
};

/* Failures are said to log. */
WEFT_MUST_CHECK enum weft_err os_pktring_open(
	const struct os_pktring_config *c, struct os_pktring *out);
void os_pktring_close(struct os_pktring *r);
/* One frame: its header, Ethernet header and the rest, of which bytes are returned; -1 with
 * errno: EAGAIN: none there; EBADFD: the interface is gone. */
ssize_t os_pktring_read(struct os_pktring *r, uint8_t vnet[OS_PKTRING_VNET_LEN],
	uint8_t ether[OS_PKTRING_ETHER_LEN], uint8_t *buf, size_t cap);
/* iov: virtio_net_hdr, Ethernet header, the rest. -1 with errno: EAGAIN also after some
 * milliseconds' wait for room; EIO: down; EBADFD: gone; EINVAL: refused. */
ssize_t os_pktring_write(struct os_pktring *r, struct iovec *iov, size_t n);
/* Frames dropped since the last call because the ring was full. Any thread. */
uint64_t os_pktring_take_dropped(struct os_pktring *r);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of an existing interface by a packet socket, with a virtio_net_hdr before each, so
 * that super-frames arrive and leave whole.
 *
 * Frames that this machine sends through the interface are not seen. */
#ifndef WEFT_OS_PACKET_H
#define WEFT_OS_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mono.h"

#define OS_PACKET_VNET_LEN 10
#define OS_PACKET_BATCH 16

struct os_packet {
	int fd;
	uint32_t ifindex;
	uint32_t mtu;
	bool has_uso;     /* UDP super-frames can be sent (Linux 6.2) */
	bool is_down;     /* since the last frame; see os_packet_receive() */
	uint64_t dropped; /* by the kernel, before they were received; see os_packet_sync() */
	uint64_t refused; /* could not be received: no vnet header describes them */
	uint64_t rx_calls, tx_calls;
	struct mono last_arrival;
	struct packet_batch *batch;
};

struct os_packet_rx {
	const uint8_t *vnet; /* OS_PACKET_VNET_LEN bytes; offsets count from data */
	const uint8_t *data; /* Ethernet header, with the VLAN tag if there was one */
	uint32_t len;
	/* When the kernel had it, however late it is received here; never before that of the
	 * frame in front of it. */
	struct mono arrival;
};

/* One frame: iov[0] is its virtio_net_hdr. */
struct os_packet_tx {
	const struct iovec *iov;
	size_t iov_n;
	enum weft_err result; /* out */
};

/* WEFT_ENOENT: no such interface; WEFT_EPERM without CAP_NET_RAW; WEFT_ENOTSUP: not Ethernet.
 * The interface is made promiscuous for as long as the socket is open. Failures are said to
 * log, which is not kept. */
WEFT_MUST_CHECK enum weft_err os_packet_open(
	const char *name, const struct log *log, struct os_packet *out);
void os_packet_close(struct os_packet *p);

/* Receives up to OS_PACKET_BATCH frames into memory that stays valid until the next receive.
 * WEFT_EAGAIN: none there; WEFT_ECLOSED: the interface is gone.
 * The kernel tells of an interface that goes down, and not again when it is deleted then: while
 * is_down is set, only a further call finds that out. */
WEFT_MUST_CHECK enum weft_err os_packet_receive(
	struct os_packet *p, struct os_packet_rx rx[OS_PACKET_BATCH], size_t *n);
/* Sends all in order, and tells of each whether it went: WEFT_EAGAIN for a full queue. */
void os_packet_send(struct os_packet *p, struct os_packet_tx *tx, size_t n);
/* Brings p->dropped up to date. */
void os_packet_sync(struct os_packet *p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "os/pktring.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "os/error.h"
#include "os/fd.h"
#include "os/netns.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

/* All rings of an interface together: 2048 frames of 1200 bytes are 20 ms at 1 Gbit/s. */
#define RING_BYTES (4u << 20)
#define BLOCK_BYTES (64u << 10)
#define FRAME_BYTES_MIN 2048u
/* What the kernel puts before the Ethernet header (tpacket_rcv()), rounded up. */
#define FRAME_FRONT_BYTES 128u
#define SOCKET_BUFFER_BYTES (8 << 20) /* for super-frames, as far as it is allowed */
#define WRITE_WAIT_MS 5
#define WRITE_TRIES 4

static int
set(int fd, int option, int value)
{
	return setsockopt(fd, SOL_PACKET, option, &value, sizeof(value));
}

static void
set_buffer(int fd, int forced, int plain)
{
	int bytes = SOCKET_BUFFER_BYTES;
	if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof(bytes))) {
		(void)setsockopt(fd, SOL_SOCKET, plain, &bytes, sizeof(bytes));
	}
}

static enum weft_err
set_options(const struct os_pktring *r)
{
	/* Frames longer than a place of the ring are kept whole beside it. */
	if (set(r->fd, PACKET_VNET_HDR, 1) || set(r->fd, PACKET_IGNORE_OUTGOING, 1) ||
		set(r->fd, PACKET_VERSION, TPACKET_V2) || set(r->fd, PACKET_COPY_THRESH, 1)) {
		return os_error(errno);
	}
	set_buffer(r->fd, SO_RCVBUFFORCE, SO_RCVBUF);
	set_buffer(r->fd, SO_SNDBUFFORCE, SO_SNDBUF);
	return WEFT_OK;
}

static enum weft_err
map_ring(struct os_pktring *r, const struct os_pktring_config *c)
{
	r->frame_bytes = FRAME_BYTES_MIN;
	while (r->frame_bytes < c->mtu + FRAME_FRONT_BYTES && r->frame_bytes < BLOCK_BYTES) {
		r->frame_bytes *= 2;
	}
	uint32_t blocks = RING_BYTES / c->sockets / BLOCK_BYTES;
	struct tpacket_req q = {.tp_block_size = BLOCK_BYTES,
		.tp_block_nr = blocks ? blocks : 1,
		.tp_frame_size = r->frame_bytes};
	q.tp_frame_nr = BLOCK_BYTES / r->frame_bytes * q.tp_block_nr;
	if (setsockopt(r->fd, SOL_PACKET, PACKET_RX_RING, &q, sizeof(q))) {
		return os_error(errno);
	}
	size_t bytes = (size_t)q.tp_block_nr * BLOCK_BYTES;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (p == MAP_FAILED) {
		return os_error(errno);
	}
	/* In a fork, the holder of the next namespace's too, it would keep the socket alive, and
	 * with it all of this namespace. */
	(void)madvise(p, bytes, MADV_DONTFORK);
	r->frames = p;
	r->frames_n = q.tp_frame_nr;
	return WEFT_OK;
}

static enum weft_err
bind_to(const struct os_pktring *r, const struct os_pktring_config *c)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)c->ifindex};
	if (bind(r->fd, (struct sockaddr *)&at, sizeof(at))) {
		return os_error(errno);
	}
	if (c->sockets > 1 && set(r->fd, PACKET_FANOUT, c->group | PACKET_FANOUT_HASH << 16)) {
		return os_error(errno);
	}
	return WEFT_OK;
}

enum weft_err
os_pktring_open(const struct os_pktring_config *c, struct os_pktring *out)
{
	*out = (struct os_pktring){.fd = -1, .ifindex = c->ifindex};
	const char *what = "open a packet socket";
	/* Protocol 0: nothing arrives before the ring is there. */
	enum weft_err err =
		os_netns_socket(c->ns, AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0, &out->fd);
	if (!err) {
		what = "set up the packet socket";
		err = set_options(out);
	}
	if (!err) {
		what = "make the ring of the packet socket";
		err = map_ring(out, c);
	}
	if (!err) {
		what = "listen on the interface";
		err = bind_to(out, c);
	}
	if (err) {
		log_error(c->log, "cannot %s: %s", what, weft_err_text(err));
		os_pktring_close(out);
	}
	return err;
}

void
os_pktring_close(struct os_pktring *r)
{
	if (r->frames) {
		(void)munmap(r->frames, (size_t)r->frames_n * r->frame_bytes);
		r->frames = NULL;
	}
	os_fd_close(&r->fd);
}

/* Down may be up again later; gone is gone. */
static bool
is_there(const struct os_pktring *r)
{
	struct ifreq q = {.ifr_ifindex = (int)r->ifindex};
	return ioctl(r->fd, SIOCGIFNAME, &q) == 0;
}

/* The ring is empty: is it for ever? */
static ssize_t
read_nothing(const struct os_pktring *r)
{
	int errnum = 0;
	socklen_t len = sizeof(errnum);
	(void)getsockopt(r->fd, SOL_SOCKET, SO_ERROR, &errnum, &len);
	errno = errnum == 0 || is_there(r) ? EAGAIN : EBADFD;
	return -1;
}

/* The frame that waits beside the ring. */
static ssize_t
read_whole(const struct os_pktring *r, uint8_t *vnet, uint8_t *ether, uint8_t *buf, size_t cap)
{
	struct iovec iov[3] = {{.iov_base = vnet, .iov_len = OS_PKTRING_VNET_LEN},
		{.iov_base = ether, .iov_len = OS_PKTRING_ETHER_LEN},
		{.iov_base = buf, .iov_len = cap}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 3};
	ssize_t n;
	do {
		n = recvmsg(r->fd, &m, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	ssize_t front = OS_PKTRING_VNET_LEN + OS_PKTRING_ETHER_LEN;
	return n < front || (m.msg_flags & MSG_TRUNC) ? -1 : n - front;
}

static ssize_t
read_place(const struct tpacket2_hdr *h, uint8_t *vnet, uint8_t *ether, uint8_t *buf, size_t cap)
{
	const uint8_t *mac = (const uint8_t *)h + h->tp_mac;
	if (h->tp_snaplen < OS_PKTRING_ETHER_LEN || h->tp_len > h->tp_snaplen ||
		h->tp_snaplen - OS_PKTRING_ETHER_LEN > cap) {
		return -1;
	}
	memcpy(vnet, mac - OS_PKTRING_VNET_LEN, OS_PKTRING_VNET_LEN);
	memcpy(ether, mac, OS_PKTRING_ETHER_LEN);
	memcpy(buf, mac + OS_PKTRING_ETHER_LEN, h->tp_snaplen - OS_PKTRING_ETHER_LEN);
	return h->tp_snaplen - OS_PKTRING_ETHER_LEN;
}

ssize_t
os_pktring_read(struct os_pktring *r, uint8_t vnet[OS_PKTRING_VNET_LEN],
	uint8_t ether[OS_PKTRING_ETHER_LEN], uint8_t *buf, size_t cap)
{
	for (uint32_t i = 0; i < r->frames_n; i++) {
		struct tpacket2_hdr *h = (void *)(r->frames + (size_t)r->at * r->frame_bytes);
		_Atomic uint32_t *status = (void *)&h->tp_status;
		uint32_t s = atomic_load_explicit(status, memory_order_acquire);
		if (!(s & TP_STATUS_USER)) {
			break;
		}
		ssize_t n = s & TP_STATUS_COPY ? read_whole(r, vnet, ether, buf, cap)
					       : read_place(h, vnet, ether, buf, cap);
		atomic_store_explicit(status, TP_STATUS_KERNEL, memory_order_release);
		r->at = r->at + 1 == r->frames_n ? 0 : r->at + 1;
		if (n >= 0) {
			return n;
		}
		atomic_fetch_add_explicit(&r->cut, 1, memory_order_relaxed);
	}
	return read_nothing(r);
}

ssize_t
os_pktring_write(struct os_pktring *r, struct iovec *iov, size_t n)
{
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
	for (int i = 0;; i++) {
		ssize_t sent = sendmsg(r->fd, &m, MSG_DONTWAIT);
		if (sent >= 0) {
			return sent;
		}
		switch (errno) {
		case EINTR:
			continue;
		case ENETDOWN:
			errno = is_there(r) ? EIO : EBADFD;
			return -1;
		case ENXIO:
		case ENODEV:
			errno = EBADFD;
			return -1;
		case EAGAIN:
		case ENOBUFS:
			break;
		default:
			return -1;
		}
		if (i >= WRITE_TRIES) {
			errno = EAGAIN;
			return -1;
		}
		/* The receiving half of the kernel is behind; it catches up, or drops. */
		struct pollfd p = {.fd = r->fd, .events = POLLOUT};
		(void)poll(&p, 1, WRITE_WAIT_MS);
	}
}

uint64_t
os_pktring_take_dropped(struct os_pktring *r)
{
	struct tpacket_stats s = {0}; /* reading them sets them to zero */
	socklen_t len = sizeof(s);
	(void)getsockopt(r->fd, SOL_PACKET, PACKET_STATISTICS, &s, &len);
	return s.tp_drops + atomic_exchange_explicit(&r->cut, 0, memory_order_relaxed);
}

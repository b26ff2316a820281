/* SPDX-License-Identifier: Apache-2.0 */
#include "os/packet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/error.h"
#include "os/fd.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

/* A super-frame of 64 KiB counts for up to twice that in the socket's buffer. Half a second of
 * 1 Gbit/s, for when this process is kept from running. */
#define BUFFER_BYTES (64 << 20)

#define TAG_LEN 4u
#define MAC_LEN 12u
#define RX_FRONT 6u /* aligns the frame to 16, behind the 10 bytes of vnet header */
#define FRAME_BYTES_MAX (65535u + 22u)
#define CSUM_START_AT 6
#define HDR_LEN_AT 2
#define NEEDS_CSUM 1u

/* The frame begins behind the front, which has room for putting back a VLAN tag. */
struct rx_buffer {
	uint8_t vnet[OS_PACKET_VNET_LEN];
	uint8_t bytes[RX_FRONT + FRAME_BYTES_MAX];
};

union rx_control {
	char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata)) +
		   CMSG_SPACE(sizeof(struct timespec))];
	struct cmsghdr align;
};

struct packet_batch {
	struct mmsghdr msgs[OS_PACKET_BATCH];
	struct iovec iov[OS_PACKET_BATCH][2];
	union rx_control control[OS_PACKET_BATCH];
	struct rx_buffer buffers[OS_PACKET_BATCH];
};

static enum weft_err
say(const struct log *log, const char *name, const char *what, int errnum)
{
	char text[OS_ERROR_TEXT_MAX];
	log_error(log, "%s: %s: %s", name, what, os_error_text(errnum, text, sizeof(text)));
	return os_error(errnum);
}

/* UDP super-frames have a virtio_net_hdr type since Linux 6.2. */
static bool
kernel_has_uso(void)
{
	struct utsname u;
	unsigned major = 0, minor = 0;
	return uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 2));
}

static enum weft_err
look_up(struct os_packet *p, const char *name, const struct log *log)
{
	struct ifreq r = {0};
	if (strlen(name) >= sizeof(r.ifr_name)) {
		log_error(log, "%s: no interface has so long a name", name);
		return WEFT_ENOENT;
	}
	memcpy(r.ifr_name, name, strlen(name));
	if (ioctl(p->fd, SIOCGIFINDEX, &r)) {
		say(log, name, "cannot find the interface", errno);
		return WEFT_ENOENT;
	}
	p->ifindex = (uint32_t)r.ifr_ifindex;
	if (ioctl(p->fd, SIOCGIFHWADDR, &r)) {
		return say(log, name, "cannot ask for its type", errno);
	}
	if (r.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
		log_error(log, "%s: not an Ethernet interface", name);
		return WEFT_ENOTSUP;
	}
	if (ioctl(p->fd, SIOCGIFMTU, &r)) {
		return say(log, name, "cannot ask for its MTU", errno);
	}
	p->mtu = (uint32_t)r.ifr_mtu;
	return WEFT_OK;
}

static int
set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value));
}

static enum weft_err
set_options(const struct os_packet *p, const char *name, const struct log *log)
{
	struct packet_mreq promiscuous = {
		.mr_ifindex = (int)p->ifindex, .mr_type = PACKET_MR_PROMISC};
	if (set(p->fd, SOL_PACKET, PACKET_VNET_HDR, 1)) {
		return say(log, name, "no offload headers on packet sockets", errno);
	}
	if (set(p->fd, SOL_PACKET, PACKET_AUXDATA, 1) ||
		set(p->fd, SOL_SOCKET, SO_TIMESTAMPNS, 1) ||
		set(p->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1) ||
		setsockopt(p->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous,
			sizeof(promiscuous))) {
		return say(log, name, "cannot set up the packet socket", errno);
	}
	/* Past the limits for unprivileged processes where that is allowed. */
	if (set(p->fd, SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES) ||
		set(p->fd, SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES)) {
		(void)set(p->fd, SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES);
		(void)set(p->fd, SOL_SOCKET, SO_SNDBUF, BUFFER_BYTES);
		log_warn(log,
			"%s: small socket buffers: without CAP_NET_ADMIN net.core.rmem_max and "
			"wmem_max bound them",
			name);
	}
	return WEFT_OK;
}

static enum weft_err
bind_to(const struct os_packet *p, const char *name, const struct log *log)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)p->ifindex};
	if (bind(p->fd, (struct sockaddr *)&at, sizeof(at))) {
		return say(log, name, "cannot listen on the interface", errno);
	}
	return WEFT_OK;
}

static void
prepare_batch(struct packet_batch *b)
{
	for (size_t i = 0; i < OS_PACKET_BATCH; i++) {
		struct rx_buffer *r = &b->buffers[i];
		b->iov[i][0] = (struct iovec){.iov_base = r->vnet, .iov_len = sizeof(r->vnet)};
		b->iov[i][1] =
			(struct iovec){.iov_base = r->bytes + RX_FRONT, .iov_len = FRAME_BYTES_MAX};
		b->msgs[i].msg_hdr = (struct msghdr){.msg_iov = b->iov[i],
			.msg_iovlen = 2,
			.msg_control = &b->control[i],
			.msg_controllen = sizeof(b->control[i])};
	}
}

enum weft_err
os_packet_open(const char *name, const struct log *log, struct os_packet *out)
{
	struct os_packet p = {.has_uso = kernel_has_uso()};
	enum weft_err err;
	/* Protocol 0: nothing arrives before bind() names the interface. */
	p.fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p.fd < 0) {
		return say(log, name,
			errno == EPERM ? "cannot open a packet socket (this needs root, or "
					 "CAP_NET_RAW)"
				       : "cannot open a packet socket",
			errno);
	}
	p.batch = calloc(1, sizeof(*p.batch));
	if (!p.batch) {
		err = WEFT_ENOMEM;
		goto undo_socket;
	}
	prepare_batch(p.batch);
	err = look_up(&p, name, log);
	if (!err) {
		err = set_options(&p, name, log);
	}
	if (!err) {
		err = bind_to(&p, name, log);
	}
	if (err) {
		goto undo_batch;
	}
	*out = p;
	return WEFT_OK;

undo_batch:
	free(p.batch);
undo_socket:
	os_fd_close(&p.fd);
	return err;
}

void
os_packet_close(struct os_packet *p)
{
	free(p->batch);
	p->batch = NULL;
	os_fd_close(&p->fd);
}

/* What came beside a frame. */
struct rx_notes {
	const struct tpacket_auxdata *aux; /* NULL: none */
	int64_t wall_ns;                   /* 0: unknown */
};

static struct rx_notes
read_notes(struct msghdr *m)
{
	struct rx_notes notes = {0};
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA) {
			notes.aux = (const struct tpacket_auxdata *)(const void *)CMSG_DATA(c);
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
			struct timespec ts;
			memcpy(&ts, CMSG_DATA(c), sizeof(ts));
			notes.wall_ns = ts.tv_sec * WEFT_NS_PER_S + ts.tv_nsec;
		}
	}
	return notes;
}

/* The stamp is of a clock that can be set; one from before a step would lie far off, hence the
 * bounds. */
static struct mono
arrival_of(struct os_packet *p, int64_t wall_ns, struct mono now, int64_t now_wall_ns)
{
	struct mono at = wall_ns ? mono_add_ns(now, wall_ns - now_wall_ns) : now;
	at = mono_min(at, now);
	if (mono_is_before(at, p->last_arrival)) {
		at = p->last_arrival;
	}
	p->last_arrival = at;
	return at;
}

static void
shift_offset(uint8_t *field)
{
	uint16_t v;
	memcpy(&v, field, sizeof(v)); /* the legacy header is in the byte order of the host */
	v = (uint16_t)(v + TAG_LEN);
	memcpy(field, &v, sizeof(v));
}

/* The kernel takes a VLAN tag out of the frame and gives it aside: back to where it was. */
static void
restore_tag(struct rx_buffer *b, const struct tpacket_auxdata *aux, struct os_packet_rx *rx)
{
	uint8_t *data = b->bytes + RX_FRONT - TAG_LEN;
	uint16_t type =
		aux->tp_status & TP_STATUS_VLAN_TPID_VALID ? aux->tp_vlan_tpid : ETH_P_8021Q;
	uint16_t tag[2] = {htons(type), htons(aux->tp_vlan_tci)};
	memmove(data, data + TAG_LEN, MAC_LEN);
	memcpy(data + MAC_LEN, tag, TAG_LEN);
	shift_offset(b->vnet + HDR_LEN_AT);
	if (b->vnet[0] & NEEDS_CSUM) {
		shift_offset(b->vnet + CSUM_START_AT);
	}
	rx->data = data;
	rx->len += TAG_LEN;
}

/* Returns the wall clock's stamp. */
static int64_t
finish_rx(struct os_packet *p, size_t i, struct os_packet_rx *rx)
{
	struct rx_buffer *b = &p->batch->buffers[i];
	struct msghdr *m = &p->batch->msgs[i].msg_hdr;
	uint32_t len = p->batch->msgs[i].msg_len;
	*rx = (struct os_packet_rx){.vnet = b->vnet,
		.data = b->bytes + RX_FRONT,
		.len = len > OS_PACKET_VNET_LEN ? len - OS_PACKET_VNET_LEN : 0};
	struct rx_notes notes = read_notes(m);
	const struct tpacket_auxdata *aux = notes.aux;
	if (aux && (aux->tp_status & TP_STATUS_VLAN_VALID) && rx->len >= MAC_LEN) {
		restore_tag(b, aux, rx);
	}
	m->msg_controllen = sizeof(p->batch->control[i]);
	return notes.wall_ns;
}

/* Down may be up again later; gone is gone. */
static bool
is_there(const struct os_packet *p)
{
	struct ifreq r = {.ifr_ifindex = (int)p->ifindex};
	return ioctl(p->fd, SIOCGIFNAME, &r) == 0;
}

enum weft_err
os_packet_receive(struct os_packet *p, struct os_packet_rx rx[OS_PACKET_BATCH], size_t *n)
{
	for (;;) {
		int got = recvmmsg(p->fd, p->batch->msgs, OS_PACKET_BATCH, 0, NULL);
		if (got > 0) {
			struct mono now = os_clock_mono();
			int64_t now_wall_ns = os_clock_wall_ns();
			p->rx_calls++;
			p->is_down = false;
			for (size_t i = 0; i < (size_t)got; i++) {
				int64_t wall_ns = finish_rx(p, i, &rx[i]);
				rx[i].arrival = arrival_of(p, wall_ns, now, now_wall_ns);
			}
			*n = (size_t)got;
			return WEFT_OK;
		}
		if (errno == EINVAL) {
			/* The frame at the front has an offload that the header cannot say; the
			 * kernel has thrown it away. */
			p->refused++;
			continue;
		}
		p->is_down |= errno == ENETDOWN;
		if (p->is_down && !is_there(p)) {
			return WEFT_ECLOSED;
		}
		if (errno != EINTR) {
			return errno == ENETDOWN ? WEFT_EAGAIN : os_error(errno);
		}
	}
}

static enum weft_err
send_error(int errnum)
{
	return errnum == ENOBUFS ? WEFT_EAGAIN : os_error(errnum);
}

/* Returns how many of the first OS_PACKET_BATCH are done, at least 1. */
static size_t
send_batch(struct os_packet *p, struct os_packet_tx *tx, size_t n)
{
	struct mmsghdr msgs[OS_PACKET_BATCH];
	n = n < OS_PACKET_BATCH ? n : OS_PACKET_BATCH;
	for (size_t i = 0; i < n; i++) {
		/* sendmsg() does not write to the vector. */
		msgs[i].msg_hdr = (struct msghdr){
			.msg_iov = (struct iovec *)tx[i].iov, .msg_iovlen = tx[i].iov_n};
	}
	int sent;
	do {
		p->tx_calls++;
		sent = sendmmsg(p->fd, msgs, (unsigned)n, 0);
	} while (sent < 0 && errno == EINTR);
	if (sent < 0) {
		tx[0].result = send_error(errno);
		return 1;
	}
	for (int i = 0; i < sent; i++) {
		tx[i].result = WEFT_OK;
	}
	return (size_t)sent;
}

void
os_packet_send(struct os_packet *p, struct os_packet_tx *tx, size_t n)
{
	while (n > 0) {
		size_t done = send_batch(p, tx, n);
		tx += done;
		n -= done;
	}
}

void
os_packet_sync(struct os_packet *p)
{
	struct tpacket_stats s; /* reading them sets them to zero */
	socklen_t len = sizeof(s);
	if (getsockopt(p->fd, SOL_PACKET, PACKET_STATISTICS, &s, &len) == 0) {
		p->dropped += s.tp_drops;
	}
}

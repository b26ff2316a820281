/* SPDX-License-Identifier: Apache-2.0 */
/* The UDP link: receiving, and the life of the whole. Sending is udpsend.c.
 *
 * Receiving: a recvmmsg() fills a few buffers of RX_STRIDE bytes, each with one datagram or one
 * UDP_GRO run. Only what arrives is touched, so the stride costs address space alone. While runs
 * come, RX_FEW buffers keep the batch in the cache; while single datagrams come, the number
 * grows to RX_MANY to share the system call. */
#include "link/udp.h"

#include <errno.h>
#include <stdlib.h>

#include "link/udpmsg.h"
#include "link/udpsend.h"
#include "os/udp.h"

#define RX_FEW 4u
#define RX_MANY 16u
/* 64 datagrams of 1472 bytes are 94,208: as long as a GRO run over Ethernet can get. */
#define RX_STRIDE 98304u
#define RX_RUN_BYTES 4096u /* a message longer than this is a run worth a buffer */
#define RX_ROUNDS_ALONE 8u /* the idle family is looked at once so many rounds */
#define RX_ERRORS_MAX 4u   /* pending socket errors taken in one go */
#define RX_EMPTY_MAX 16u   /* calls that bring nothing but empty datagrams */
#define RX_TOUCH_BYTES 65536u

struct rx_socket {
	int fd;                /* -1: none */
	uint32_t dropped_seen; /* of the kernel's counter, however it was learnt */
	uint32_t dropped_told; /* by the last message: link_udp_sync() runs ahead of those */
	bool is_behind_drop;   /* of the next entry */
};

struct link_udp {
	struct link base;
	struct os_udp sockets;
	const struct os_udp_calls *calls;

	struct rx_socket rx[2];
	unsigned favourite; /* the family that had something last */
	unsigned tried;     /* bits: families found empty in this round */
	bool has_received;  /* in this round */
	unsigned rounds;    /* since the other family was looked at */
	unsigned rx_count;  /* buffers to offer, RX_FEW..RX_MANY */
	uint8_t *arena;     /* RX_MANY x RX_STRIDE */
	struct mmsghdr msgs[RX_MANY];
	struct iovec iov[RX_MANY];
	union link_udpmsg_name names[RX_MANY];
	WEFT_ALIGNED(8) uint8_t control[RX_MANY][LINK_UDPMSG_RX_CONTROL];

	struct link_udpsend send;
};

static struct link_udp *
self_of(struct link *l)
{
	return WEFT_CONTAINER_OF(l, struct link_udp, base);
}

static const struct link_udp *
const_self_of(const struct link *l)
{
	return WEFT_CONTAINER_OF(l, const struct link_udp, base);
}

static void
note_dropped(struct link_udp *l, struct rx_socket *s, uint32_t dropped)
{
	/* The kernel's counter wraps; the difference does not mind. A value older than the
	 * last, from a datagram queued before link_udp_sync() looked, is none. */
	int32_t more = (int32_t)(dropped - s->dropped_seen);
	if (more > 0) {
		l->base.stats.drops.n[DROP_LINK_RX_OVERFLOW] += (uint64_t)more;
		s->dropped_seen = dropped;
	}
}

/* Turns a received message into an entry; false when nothing of it is left. */
static bool
take_message(struct link_udp *l, struct rx_socket *s, unsigned i, struct link_rx *rx)
{
	struct link_stats *stats = &l->base.stats;
	struct link_udpmsg_info info;
	link_udpmsg_decode(&l->msgs[i].msg_hdr, &info);
	if (info.has_dropped) {
		note_dropped(l, s, info.dropped);
		s->is_behind_drop |= info.dropped != s->dropped_told;
		s->dropped_told = info.dropped;
	}
	uint32_t len = l->msgs[i].msg_len; /* MSG_TRUNC: the true length */
	if (len == 0) {
		stats->drops.n[DROP_RX_SHORT]++;
		return false;
	}
	uint32_t seg = info.seg && info.seg < len ? info.seg : len;
	if (len > RX_STRIDE) {
		/* Of a run that was cut, the whole datagrams are good. */
		uint32_t kept = RX_STRIDE / seg * seg;
		stats->drops.n[DROP_RX_TRUNCATED] += (len - kept + seg - 1) / seg;
		len = kept;
		if (len == 0) {
			return false;
		}
	}
	stats->rx_bytes += len;
	stats->rx_datagrams += (len + seg - 1) / seg;
	*rx = (struct link_rx){
		.data = l->arena + (size_t)i * RX_STRIDE,
		.len = len,
		.seg = (uint16_t)seg,
		.ecn = info.ecn,
		.is_behind_drop = s->is_behind_drop,
		.from = info.from,
	};
	s->is_behind_drop = false;
	return true;
}

static void
adapt_count(struct link_udp *l, unsigned got, uint32_t longest)
{
	if (longest > RX_RUN_BYTES) {
		l->rx_count = RX_FEW;
	} else if (got == l->rx_count && l->rx_count < RX_MANY) {
		l->rx_count *= 2;
	}
}

/* Number of messages received, 0 for none. */
static unsigned
receive_messages(struct link_udp *l, const struct rx_socket *s, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		l->msgs[i].msg_hdr = (struct msghdr){
			.msg_name = &l->names[i],
			.msg_namelen = sizeof(l->names[i]),
			.msg_iov = &l->iov[i],
			.msg_iovlen = 1,
			.msg_control = l->control[i],
			.msg_controllen = sizeof(l->control[i]),
		};
	}
	for (unsigned errors = 0; errors < RX_ERRORS_MAX;) {
		l->base.stats.rx_calls++;
		int r = l->calls->recvmmsg(
			l->calls->ctx, s->fd, l->msgs, count, MSG_DONTWAIT | MSG_TRUNC);
		if (r > 0) {
			return (unsigned)r;
		}
		if (r == 0 || errno == EAGAIN) {
			return 0;
		}
		if (errno == EINTR) {
			continue;
		}
		/* The news of an earlier send, taken here first. */
		l->base.stats.drops
			.n[errno == ECONNREFUSED ? DROP_LINK_REFUSED : DROP_LINK_ERROR]++;
		errors++;
	}
	return 0;
}

/* Receives from one family. */
static size_t
receive_from(struct link_udp *l, unsigned family, struct link_rx *rx, size_t cap)
{
	struct rx_socket *s = &l->rx[family];
	unsigned count = cap < l->rx_count ? (unsigned)cap : l->rx_count;
	unsigned got = receive_messages(l, s, count);
	uint32_t longest = 0;
	size_t n = 0;
	for (unsigned i = 0; i < got; i++) {
		longest = l->msgs[i].msg_len > longest ? l->msgs[i].msg_len : longest;
		n += take_message(l, s, i, &rx[n]);
	}
	if (got > 0) {
		l->favourite = family;
		l->has_received = true;
		adapt_count(l, got, longest);
	}
	if (got < count) {
		l->tried |= 1u << family; /* it was empty when the call ended */
	}
	return n;
}

/* A round ends when both families were found empty. The family that is not the favourite is
 * not asked in a round in which the favourite had something, but for every RX_ROUNDS_ALONE-th:
 * the caller waits for both descriptors, and comes back when it had something after all. */
static bool
is_round_over(struct link_udp *l, unsigned *next)
{
	unsigned other = l->favourite ^ 1u;
	bool has_other = l->rx[other].fd >= 0 && !(l->tried & (1u << other));
	if (has_other && l->rounds >= RX_ROUNDS_ALONE) {
		l->rounds = 0;
		*next = other;
		return false;
	}
	if (l->rx[l->favourite].fd >= 0 && !(l->tried & (1u << l->favourite))) {
		*next = l->favourite;
		return false;
	}
	if (has_other && !l->has_received) {
		*next = other;
		return false;
	}
	return true;
}

static enum weft_err
receive(struct link *base, struct link_rx *rx, size_t cap, size_t *n)
{
	struct link_udp *l = self_of(base);
	unsigned family;
	/* After too many empty ones the socket is still ready and the caller comes back, having
	 * seen to other things. */
	for (unsigned i = 0; i < RX_EMPTY_MAX && !is_round_over(l, &family); i++) {
		l->rounds++;
		size_t got = receive_from(l, family, rx, cap);
		if (got > 0) {
			*n = got;
			return WEFT_OK;
		}
	}
	l->tried = 0;
	l->has_received = false;
	return WEFT_EAGAIN;
}

static void
send_runs(struct link *base, struct link_run *runs, size_t n)
{
	link_udpsend_send(&self_of(base)->send, runs, n);
}

static void
close_link(struct link *base)
{
	struct link_udp *l = self_of(base);
	os_udp_close(&l->sockets);
	free(l->arena);
	free(l);
}

static const struct link_ops ops = {.receive = receive, .send = send_runs, .close = close_link};

/* Page faults cost 10 us each and belong to the start. */
static void
touch_arena(struct link_udp *l)
{
	for (unsigned i = 0; i < RX_MANY; i++) {
		size_t bytes = i < RX_FEW ? RX_TOUCH_BYTES : 1;
		for (size_t at = 0; at < bytes; at += 4096) {
			l->arena[(size_t)i * RX_STRIDE + at] = 0;
		}
	}
}

enum weft_err
link_udp_new(struct os_udp *u, const struct os_udp_calls *calls, const struct log *log,
	struct link **out)
{
	struct link_udp *l = calloc(1, sizeof(*l));
	if (!l) {
		return WEFT_ENOMEM;
	}
	l->arena = aligned_alloc(4096, (size_t)RX_MANY * RX_STRIDE);
	if (!l->arena) {
		free(l);
		return WEFT_ENOMEM;
	}
	l->base.ops = &ops;
	l->sockets = *u;
	l->calls = calls ? calls : &os_udp_calls_real;
	l->rx[0].fd = u->v4;
	l->rx[1].fd = u->v6;
	l->favourite = u->v4 >= 0 ? 0 : 1;
	l->rx_count = RX_FEW;
	for (unsigned i = 0; i < RX_MANY; i++) {
		l->iov[i] = (struct iovec){
			.iov_base = l->arena + (size_t)i * RX_STRIDE, .iov_len = RX_STRIDE};
	}
	touch_arena(l);
	link_udpsend_init(&l->send, u, l->calls, log, &l->base.stats);
	u->v4 = u->v6 = -1;
	*out = &l->base;
	return WEFT_OK;
}

size_t
link_udp_fds(const struct link *base, int fds[2])
{
	const struct link_udp *l = const_self_of(base);
	size_t n = 0;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(l->rx); i++) {
		if (l->rx[i].fd >= 0) {
			fds[n++] = l->rx[i].fd;
		}
	}
	return n;
}

uint16_t
link_udp_port(const struct link *base)
{
	return const_self_of(base)->sockets.port;
}

bool
link_udp_has_gso(const struct link *base)
{
	return const_self_of(base)->sockets.has_gso;
}

bool
link_udp_has_gro(const struct link *base)
{
	return const_self_of(base)->sockets.has_gro;
}

enum weft_err
link_udp_set_mark(struct link *base, uint32_t mark)
{
	return os_udp_set_mark(&self_of(base)->sockets, mark);
}

void
link_udp_sync(struct link *base)
{
	struct link_udp *l = self_of(base);
	for (size_t i = 0; i < WEFT_ARRAY_LEN(l->rx); i++) {
		uint32_t dropped;
		if (l->rx[i].fd >= 0 && os_udp_dropped(l->rx[i].fd, &dropped) == WEFT_OK) {
			note_dropped(l, &l->rx[i], dropped);
		}
	}
}

size_t
link_udp_gso_refused(const struct link *base)
{
	return link_udpsend_refused(&const_self_of(base)->send);
}

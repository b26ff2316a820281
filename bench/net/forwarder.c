/* SPDX-License-Identifier: Apache-2.0 */
/* What `weft bench dial` measures libweft by: a forwarder as a user would write it, on the public
 * API alone. forwarder FILE PORT HOST:PORT [SECONDS]
 *
 * Takes TCP connections and datagrams at 127.0.0.1:PORT and carries them to HOST:PORT in the
 * overlay of FILE. SECONDS: the deadline of each dial, read and write. A thread a direction, each
 * in blocking calls. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "weft/dial.h"
#include "weft/node.h"

#define STREAM_BYTES (256u << 10) /* of one read */
#define BATCH 64                  /* datagrams, or joined runs of them, a read */
#define DATAGRAM_BYTES 65536
#define SEGMENTS_MAX 64 /* of one send: what older kernels take */
/* Of one send. Longer ones than the interface takes (gso_max_size: weft sets 61000) would be cut by
 * the kernel, and then cost what single datagrams cost. */
#define RUN_BYTES 60000
#define SOCKET_BYTES (4 << 20)
/* A batch where so many messages came within a millisecond leaves the next time to gather: to be
 * woken for a datagram costs as much as to carry it. */
#define DENSE_MESSAGES 24
#define DENSE_NS 1000000
#define GATHER_NS 150000
#define FLOWS 32 /* sources of datagrams at a time; one more ends the oldest */

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

struct forwarder {
	struct weft_node *node;
	const char *target;
	unsigned seconds;
	int tcp, udp;
};

static int
fail(const char *what, const char *why)
{
	fprintf(stderr, "forwarder: %s: %s\n", what, why);
	return 1;
}

static int
overlay_dial(const struct forwarder *f, const char *network, int *fd)
{
	struct weft_detail why = {.size = sizeof(why)};
	struct weft_dial_options o = {.size = sizeof(o), .timeout_ms = f->seconds * INT64_C(1000)};
	if (weft_dial(f->node, network, f->target, &o, fd, &why)) {
		return fail(f->target, why.text);
	}
	return 0;
}

static void
set_deadline(const struct forwarder *f, int fd)
{
	struct timeval t = {.tv_sec = f->seconds};
	if (f->seconds) {
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
	}
}

static int
start_thread(void *(*run)(void *), void *arg)
{
	pthread_t t;
	int e = pthread_create(&t, NULL, run, arg);
	if (e) {
		return fail("thread", strerror(e));
	}
	pthread_detach(t);
	return 0;
}

/* One direction of a connection. */
struct stream {
	int from, to;
};

static void
stream_carry(struct stream s)
{
	char *buf = malloc(STREAM_BYTES);
	ssize_t n;
	while (buf && (n = recv(s.from, buf, STREAM_BYTES, 0)) > 0) {
		ssize_t sent = 0, k;
		while (sent < n &&
			(k = send(s.to, buf + sent, (size_t)(n - sent), MSG_NOSIGNAL)) > 0) {
			sent += k;
		}
		if (sent < n) {
			break;
		}
	}
	shutdown(s.to, SHUT_WR);
	shutdown(s.from, SHUT_RD);
	free(buf);
}

static void *
stream_back(void *arg)
{
	stream_carry(*(struct stream *)arg);
	return NULL;
}

struct connection {
	const struct forwarder *f;
	int fd;
};

static void *
connection_run(void *arg)
{
	struct connection c = *(struct connection *)arg;
	int far = -1;
	pthread_t back;
	free(arg);
	if (overlay_dial(c.f, "tcp", &far) == 0) {
		struct stream s = {.from = far, .to = c.fd};
		set_deadline(c.f, c.fd);
		set_deadline(c.f, far);
		if (pthread_create(&back, NULL, stream_back, &s) == 0) {
			stream_carry((struct stream){.from = c.fd, .to = far});
			pthread_join(back, NULL);
		}
		close(far);
	}
	close(c.fd);
	return NULL;
}

static void *
accept_all(void *arg)
{
	const struct forwarder *f = arg;
	for (;;) {
		struct connection *c = malloc(sizeof(*c));
		if (!c) {
			return NULL;
		}
		*c = (struct connection){.f = f, .fd = accept(f->tcp, NULL, NULL)};
		if (c->fd < 0 || start_thread(connection_run, c)) {
			close(c->fd);
			free(c);
		}
	}
}

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

/* Datagrams as they came in one call, in order. With UDP_GRO one may be a run of equal ones. */
struct batch {
	struct mmsghdr msgs[BATCH];
	struct iovec iov[BATCH];
	struct sockaddr_in from[BATCH];
	union control control[BATCH];
	unsigned segment[BATCH]; /* length of each of a run, the last maybe shorter */
	int n;
	int64_t since_ns; /* of a clock */
	int since_n;      /* messages since then */
	bool is_dense;
	char *room;
};

static struct batch *
batch_new(void)
{
	struct batch *b = calloc(1, sizeof(*b));
	if (b && !(b->room = malloc((size_t)BATCH * DATAGRAM_BYTES))) {
		free(b);
		b = NULL;
	}
	return b;
}

static void
batch_free(struct batch *b)
{
	if (b) {
		free(b->room);
	}
	free(b);
}

static unsigned
segment_of(struct msghdr *m, unsigned len)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		int v;
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
			memcpy(&v, CMSG_DATA(c), sizeof(v));
			return (unsigned)v;
		}
	}
	return len;
}

static void
note_density(struct batch *b)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	int64_t now_ns = t.tv_sec * INT64_C(1000000000) + t.tv_nsec, span_ns = now_ns - b->since_ns;
	b->since_n += b->n > 0 ? b->n : 0;
	if (span_ns >= DENSE_NS) {
		b->is_dense = b->since_n >= DENSE_MESSAGES && span_ns < 2 * DENSE_NS;
		b->since_n = 0;
		b->since_ns = now_ns;
	}
}

/* Waits for one, takes what else is there. */
static int
batch_receive(struct batch *b, int fd)
{
	if (b->is_dense && b->n < BATCH) {
		nanosleep(&(struct timespec){.tv_nsec = GATHER_NS}, NULL);
	}
	for (int i = 0; i < BATCH; i++) {
		b->iov[i] = (struct iovec){b->room + (size_t)i * DATAGRAM_BYTES, DATAGRAM_BYTES};
		b->msgs[i].msg_hdr = (struct msghdr){.msg_name = &b->from[i],
			.msg_namelen = sizeof(b->from[i]),
			.msg_iov = &b->iov[i],
			.msg_iovlen = 1,
			.msg_control = &b->control[i],
			.msg_controllen = sizeof(b->control[i])};
	}
	b->n = recvmmsg(fd, b->msgs, BATCH, MSG_WAITFORONE, NULL);
	note_density(b);
	for (int i = 0; i < b->n; i++) {
		b->iov[i].iov_len = b->msgs[i].msg_len;
		b->segment[i] = segment_of(&b->msgs[i].msg_hdr, b->msgs[i].msg_len);
	}
	return b->n;
}

/* How many from at on, at most to end, are equal datagrams that one send can carry. */
static int
batch_run(const struct batch *b, int at, int end)
{
	size_t len = b->iov[at].iov_len;
	int n = 1;
	if (b->segment[at] != len) {
		return 1; /* it is a run already */
	}
	while (at + n < end && n < SEGMENTS_MAX && b->iov[at + n - 1].iov_len == len &&
		b->iov[at + n].iov_len <= len && b->iov[at + n].iov_len > 0 &&
		b->segment[at + n] == b->iov[at + n].iov_len &&
		(size_t)(n + 1) * len <= RUN_BYTES) {
		n++;
	}
	return n;
}

/* Sends those from at to end on, as the datagrams that they were. to: NULL on a connected socket.
 */
static void
batch_send(struct batch *b, int at, int end, int fd, struct sockaddr_in *to)
{
	while (at < end) {
		union control control = {0};
		int n = batch_run(b, at, end);
		struct msghdr m = {.msg_name = to,
			.msg_namelen = to ? sizeof(*to) : 0,
			.msg_iov = &b->iov[at],
			.msg_iovlen = (size_t)n};
		if (n > 1 || b->segment[at] != b->iov[at].iov_len) {
			uint16_t segment = (uint16_t)b->segment[at];
			m.msg_control = &control;
			m.msg_controllen = CMSG_SPACE(sizeof(segment));
			control.head = (struct cmsghdr){.cmsg_level = SOL_UDP,
				.cmsg_type = UDP_SEGMENT,
				.cmsg_len = CMSG_LEN(sizeof(segment))};
			memcpy(CMSG_DATA(&control.head), &segment, sizeof(segment));
		}
		sendmsg(fd, &m, MSG_NOSIGNAL); /* datagrams may be lost */
		at += n;
	}
}

static int
udp_options(int fd)
{
	int room = SOCKET_BYTES, on = 1;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	return setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof(on));
}

/* The way back of the datagrams of one source. */
struct flow {
	const struct forwarder *f;
	struct sockaddr_in source;
	int fd; /* connected, in the overlay */
	atomic_bool is_over;
};

/* Owns the flow. A deadline that passes in silence is no end. */
static void *
flow_back(void *arg)
{
	struct flow *flow = arg;
	struct batch *b = batch_new();
	while (b && !flow->is_over) {
		int n = batch_receive(b, flow->fd);
		if (!flow->is_over) {
			batch_send(b, 0, n, flow->f->udp, &flow->source);
		}
	}
	batch_free(b);
	close(flow->fd);
	free(flow);
	return NULL;
}

/* NULL: none can be had. */
static struct flow *
flow_open(const struct forwarder *f, const struct sockaddr_in *source)
{
	struct flow *flow = calloc(1, sizeof(*flow));
	if (!flow) {
		return NULL;
	}
	flow->f = f;
	flow->source = *source;
	if (overlay_dial(f, "udp", &flow->fd)) {
		free(flow);
		return NULL;
	}
	udp_options(flow->fd);
	set_deadline(f, flow->fd);
	if (start_thread(flow_back, flow)) {
		close(flow->fd);
		free(flow);
		return NULL;
	}
	return flow;
}

static void
flow_end(struct flow *flow)
{
	flow->is_over = true;
	shutdown(flow->fd, SHUT_RDWR); /* wakes its thread, which frees it */
}

static int
is_same(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
	return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
}

static struct flow *
flow_of(const struct forwarder *f, struct flow **flows, unsigned *oldest,
	const struct sockaddr_in *source)
{
	for (int i = 0; i < FLOWS; i++) {
		if (flows[i] && is_same(&flows[i]->source, source)) {
			return flows[i];
		}
	}
	struct flow **at = &flows[(*oldest)++ % FLOWS];
	if (*at) {
		flow_end(*at);
	}
	*at = flow_open(f, source);
	return *at;
}

static int
carry_datagrams(const struct forwarder *f)
{
	struct flow *flows[FLOWS] = {0};
	unsigned oldest = 0;
	struct batch *b = batch_new();
	while (b) {
		int n = batch_receive(b, f->udp), end;
		if (n < 0 && errno != ECONNREFUSED && errno != EINTR) {
			return fail("recvmmsg", strerror(errno));
		}
		for (int at = 0; at < n; at = end) {
			end = at + 1;
			while (end < n && is_same(&b->from[end], &b->from[at])) {
				end++;
			}
			struct flow *flow = flow_of(f, flows, &oldest, &b->from[at]);
			if (flow) {
				batch_send(b, at, end, flow->fd, NULL);
			}
		}
	}
	return fail("memory", strerror(ENOMEM));
}

static int
open_front(struct forwarder *f, unsigned port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int on = 1;
	f->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	f->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	setsockopt(f->tcp, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	udp_options(f->udp);
	if (bind(f->udp, (struct sockaddr *)&at, sizeof(at)) ||
		bind(f->tcp, (struct sockaddr *)&at, sizeof(at)) || listen(f->tcp, 1024)) {
		return fail("127.0.0.1", strerror(errno));
	}
	return 0;
}

int
main(int argc, char **argv)
{
	struct weft_detail why = {.size = sizeof(why)};
	struct weft_config config = {.size = sizeof(config), .file = argc > 1 ? argv[1] : NULL};
	struct forwarder f = {0};
	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: forwarder FILE PORT HOST:PORT [SECONDS]\n");
		return 2;
	}
	f.target = argv[3];
	f.seconds = argc == 5 ? (unsigned)strtoul(argv[4], NULL, 10) : 0;
	if (weft_node_new(&config, &f.node, &why) || weft_node_start(f.node, &why)) {
		return fail(argv[1], why.text);
	}
	if (open_front(&f, (unsigned)strtoul(argv[2], NULL, 10)) || start_thread(accept_all, &f)) {
		return 1;
	}
	return carry_datagrams(&f);
}

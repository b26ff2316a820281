/* SPDX-License-Identifier: Apache-2.0 */
/* Two TUN devices in two namespaces, or two veth pairs in their place; the test carries frames
 * between them, and the kernel's own TCP and UDP tell whether they survive.
 *
 *   client - wtA [10.5.0.1, fd05::1]  <-- port, test, port -->  [10.5.0.2, fd05::2] wtB - server
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "../os/netns.h"
#include "../os/sockaddr.h"
#include "base/rng.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/netlink.h"
#include "os/pktring.h"
#include "os/tun.h"
#include "pkt/gso.h"
#include "port/packet.h"
#include "port/tun.h"

#define FRAME_CAP (65535 + 64)
#define ARENA_CAP (256 * 1024)
#define SEGS_CAP 1024
#define TCP_BYTES (8u << 20)
#define WAIT_NS (20 * WEFT_NS_PER_S)

enum carry {
	CARRY_WHOLE, /* frames as they come */
	CARRY_SPLIT, /* split as for a tunnel, and joined again */
};

static bool is_veth; /* of the group that runs now */

struct side {
	int ns;
	struct os_tun tun; /* or: */
	struct os_pktring ring;
	struct port_packet packet;
	struct port *port;
	struct os_tun_calls calls;
	const struct os_tun_calls *through; /* to the kernel */
	bool is_refusing;                   /* writev() of super-frames gives EINVAL */
	unsigned lines;
	struct log log;
	uint32_t frame_longest;
};

struct lab {
	int home;
	struct side s[2];
	enum carry carry;
	uint8_t *buf;
	uint8_t *arena;
	struct gso_seg *segs;
	struct gro_pkt *pkts;
	struct gro_out out;
};

static void
count_line(void *ctx, enum log_level level, const char *text)
{
	(void)text;
	((struct side *)ctx)->lines += level <= LOG_LEVEL_WARN;
}

static ssize_t
pass_readv(void *ctx, int fd, const struct iovec *iov, int n)
{
	const struct side *s = ctx;
	return s->through->readv(s->through->ctx, fd, iov, n);
}

static ssize_t
maybe_writev(void *ctx, int fd, const struct iovec *iov, int n)
{
	const struct side *s = ctx;
	const uint8_t *hdr = iov[0].iov_base;
	if (s->is_refusing && hdr[1] != 0) {
		errno = EINVAL;
		return -1;
	}
	return s->through->writev(s->through->ctx, fd, iov, n);
}

/* Returns the descriptor of the port. */
static int
open_tun(struct side *s, enum os_tun_offload offload)
{
	assert_int_equal(os_tun_open(&s->tun, "wt0", 1, offload, &s->log), WEFT_OK);
	s->through = &os_tun_calls_real;
	return s->tun.fds[0];
}

static int
open_veth(struct side *s, enum os_tun_offload offload)
{
	struct os_netlink *n;
	struct os_link_info i;
	static const struct os_veth_end near_end = {"wt0", {2, 1}, 1420},
					far_end = {"far", {2, 2}, 65535};
	assert_int_equal(os_netlink_open(&n), WEFT_OK);
	assert_int_equal(os_netlink_veth_add(n, &near_end, &far_end), WEFT_OK);
	assert_int_equal(os_netlink_link_by_name(n, "far", &i), WEFT_OK);
	assert_int_equal(os_netlink_link_set_up(n, i.index, true), WEFT_OK);
	os_netlink_close(n);
	struct os_pktring_config c = {
		.ifindex = i.index, .mtu = 1420, .sockets = 1, .log = &s->log};
	assert_int_equal(os_pktring_open(&c, &s->ring), WEFT_OK);
	port_packet_init(&s->packet, &s->ring, near_end.mac, far_end.mac);
	s->through = &s->packet.calls;
	s->tun.offload = offload;
	return s->ring.fd;
}

static void
open_side(struct side *s, int i, enum os_tun_offload offload)
{
	netns_fresh();
	*s = (struct side){.ns = netns_here()};
	s->log = (struct log){.sink = count_line, .ctx = s, .level = LOG_LEVEL_DEBUG};
	s->calls = (struct os_tun_calls){.readv = pass_readv, .writev = maybe_writev, .ctx = s};
	int fd = is_veth ? open_veth(s, offload) : open_tun(s, offload);
	/* No address of the kernel's own making: its reports would mix with what is counted. */
	netns_run("echo 1 > /proc/sys/net/ipv6/conf/wt0/addr_gen_mode");
	netns_run("ip addr add 10.5.0.%d/24 dev wt0 && ip addr add fd05::%d/64 dev wt0 nodad &&"
		  "ip link set wt0 mtu 1420 gso_max_size 61000 up",
		i + 1, i + 1);
	if (is_veth) {
		netns_wait("ip link show far | grep -q 'state UP'");
	}
	netns_wait("ip -6 route get fd05::%d | grep -q ^local", i + 1);
	struct port_tun_config c = {.fd = fd,
		.offload = s->tun.offload,
		.mtu = 1420,
		.calls = &s->calls,
		.log = &s->log};
	assert_int_equal(port_tun_new(&c, &s->port), WEFT_OK);
	assert_int_equal(port_tun_fd(s->port), fd);
}

static void
open_lab(struct lab *l, enum os_tun_offload offload, enum carry carry)
{
	*l = (struct lab){.carry = carry, .home = netns_here()};
	for (int i = 0; i < 2; i++) {
		open_side(&l->s[i], i, offload);
	}
	l->buf = malloc(FRAME_CAP);
	l->arena = malloc(ARENA_CAP);
	l->segs = calloc(SEGS_CAP, sizeof(*l->segs));
	l->pkts = calloc(SEGS_CAP, sizeof(*l->pkts));
	l->out.frames = calloc(SEGS_CAP, sizeof(*l->out.frames));
	l->out.frames_cap = SEGS_CAP;
	l->out.pieces = calloc(2 * SEGS_CAP, sizeof(*l->out.pieces));
	l->out.pieces_cap = 2 * SEGS_CAP;
}

static void
close_lab(struct lab *l)
{
	for (int i = 0; i < 2; i++) {
		l->s[i].port->ops->close(l->s[i].port);
		if (is_veth) {
			os_pktring_close(&l->s[i].ring);
		}
		os_tun_close(&l->s[i].tun);
		os_fd_close(&l->s[i].ns);
	}
	netns_enter(l->home);
	os_fd_close(&l->home);
	free(l->buf);
	free(l->arena);
	free(l->segs);
	free(l->pkts);
	free(l->out.frames);
	free(l->out.pieces);
}

static void
carry_whole(struct lab *l, struct port *to, const struct frame *f)
{
	l->out.pieces[0] = (struct gro_piece){.data = f->data, .len = f->len};
	l->out.frames[0] = (struct gro_frame){.gso = f->gso,
		.gso_size = f->gso_size,
		.hdr_len = f->hdr_len,
		.needs_csum = f->needs_csum,
		.csum_start = f->csum_start,
		.csum_offset = f->csum_offset,
		.len = f->len,
		.n = 1,
		.packets = f->gso_size ? f->len / f->gso_size + 1 : 1};
	l->out.frames_n = l->out.pieces_n = 1;
	to->ops->send(to, &l->out);
}

static void
carry_split(struct lab *l, struct port *to, const struct frame *f)
{
	struct gso_arena a = {
		.buf = l->arena, .cap = ARENA_CAP, .segs = l->segs, .segs_cap = SEGS_CAP};
	enum drop_reason why;
	size_t n = gso_split(f, 1420, &a, &why);
	if (n == 0) {
		fail_msg("frame of %u bytes: %s", f->len, drop_text(why));
	}
	for (size_t i = 0; i < n; i++) {
		l->pkts[i] = (struct gro_pkt){
			.data = a.buf + l->segs[i].off + GSO_HEADROOM, .len = l->segs[i].len};
	}
	l->out.frames_n = l->out.pieces_n = 0;
	gro_join(&to->caps, l->pkts, n, &l->out);
	to->ops->send(to, &l->out);
}

/* Carries what waits on either side; true when something was there. */
static bool
pump(struct lab *l)
{
	bool is_any = false;
	for (int i = 0; i < 2; i++) {
		struct port *from = l->s[i].port, *to = l->s[1 - i].port;
		struct frame f;
		while (from->ops->receive(from, l->buf, FRAME_CAP, &f) == WEFT_OK) {
			is_any = true;
			if (f.len > l->s[i].frame_longest) {
				l->s[i].frame_longest = f.len;
			}
			if (l->carry == CARRY_WHOLE) {
				carry_whole(l, to, &f);
			} else {
				carry_split(l, to, &f);
			}
		}
	}
	return is_any;
}

static int
socket_in(const struct side *s, int family, int type)
{
	netns_enter(s->ns);
	int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	return fd;
}

static socklen_t
address_of(int family, int i, uint16_t port, struct sockaddr_storage *out)
{
	char text[16];
	snprintf(text, sizeof(text), family == AF_INET ? "10.5.0.%d" : "fd05::%d", i + 1);
	return sockaddr_read(text, port, out);
}

/* A connected pair of TCP sockets: [0] the client at side 0, [1] the server at side 1. */
static void
connect_tcp(struct lab *l, int family, int fds[2])
{
	struct sockaddr_storage a;
	socklen_t len = address_of(family, 1, 5000, &a);
	int listener = socket_in(&l->s[1], family, SOCK_STREAM);
	assert_int_equal(bind(listener, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	fds[0] = socket_in(&l->s[0], family, SOCK_STREAM);
	assert_true(connect(fds[0], (struct sockaddr *)&a, len) == 0 || errno == EINPROGRESS);
	fds[1] = -1;
	struct mono deadline = mono_add_ns(os_clock_mono(), WAIT_NS);
	while (fds[1] < 0 && mono_is_before(os_clock_mono(), deadline)) {
		pump(l);
		fds[1] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	}
	assert_true(fds[1] >= 0);
	close(listener);
}

static void
transfer_tcp(struct lab *l, int family)
{
	int fds[2];
	uint8_t *data = malloc(TCP_BYTES), *back = malloc(TCP_BYTES);
	struct rng rng;
	rng_init(&rng, 5);
	rng_fill(&rng, data, TCP_BYTES);
	connect_tcp(l, family, fds);
	size_t sent = 0, got = 0;
	struct mono deadline = mono_add_ns(os_clock_mono(), WAIT_NS);
	while (got < TCP_BYTES && mono_is_before(os_clock_mono(), deadline)) {
		ssize_t n = sent < TCP_BYTES ? send(fds[0], data + sent, TCP_BYTES - sent, 0) : 0;
		sent += n > 0 ? (size_t)n : 0;
		bool is_any = pump(l);
		n = recv(fds[1], back + got, TCP_BYTES - got, 0);
		got += n > 0 ? (size_t)n : 0;
		if (!is_any && n <= 0) {
			struct pollfd p[2] = {{.fd = port_tun_fd(l->s[0].port), .events = POLLIN},
				{.fd = port_tun_fd(l->s[1].port), .events = POLLIN}};
			poll(p, 2, 10);
		}
	}
	assert_int_equal(got, TCP_BYTES);
	assert_memory_equal(data, back, TCP_BYTES);
	close(fds[0]);
	close(fds[1]);
	free(data);
	free(back);
}

/* One UDP_SEGMENT send of the client; every datagram must come out at the server as it was. */
static void
transfer_udp(struct lab *l, int family)
{
	enum { SEG = 1200, COUNT = 40 };
	struct sockaddr_storage a;
	socklen_t len = address_of(family, 1, 5001, &a);
	int seg = SEG;
	static uint8_t data[SEG * COUNT - 100], back[SEG + 1];
	struct rng rng;
	rng_init(&rng, 6);
	rng_fill(&rng, data, sizeof(data));
	int server = socket_in(&l->s[1], family, SOCK_DGRAM);
	int client = socket_in(&l->s[0], family, SOCK_DGRAM);
	assert_int_equal(bind(server, (struct sockaddr *)&a, len), 0);
	assert_int_equal(setsockopt(client, IPPROTO_UDP, UDP_SEGMENT, &seg, sizeof(seg)), 0);
	assert_int_equal(
		sendto(client, data, sizeof(data), 0, (struct sockaddr *)&a, len), sizeof(data));
	struct mono deadline = mono_add_ns(os_clock_mono(), WAIT_NS);
	unsigned got = 0;
	while (got < COUNT && mono_is_before(os_clock_mono(), deadline)) {
		pump(l);
		ssize_t n = recv(server, back, sizeof(back), 0);
		if (n < 0) {
			continue;
		}
		assert_int_equal(n, got < COUNT - 1 ? SEG : SEG - 100);
		assert_memory_equal(back, data + (size_t)got * SEG, (size_t)n);
		got++;
	}
	assert_int_equal(got, COUNT);
	close(server);
	close(client);
}

static uint64_t
drops_total(const struct lab *l)
{
	uint64_t n = 0;
	for (int i = 0; i < 2; i++) {
		for (size_t k = 0; k < DROP_COUNT; k++) {
			n += l->s[i].port->stats.drops.n[k];
		}
	}
	return n;
}

static void
check_transfers(enum os_tun_offload offload, enum carry carry)
{
	struct lab l;
	open_lab(&l, offload, carry);
	transfer_tcp(&l, AF_INET);
	transfer_tcp(&l, AF_INET6);
	transfer_udp(&l, AF_INET);
	transfer_udp(&l, AF_INET6);
	assert_int_equal(drops_total(&l), 0);
	assert_int_equal(l.s[0].lines + l.s[1].lines, 0);
	const struct port_stats *s = &l.s[0].port->stats;
	assert_true(s->rx_bytes > 2 * TCP_BYTES);
	if (offload >= OS_TUN_OFFLOAD_TSO) {
		/* Super-frames, and none longer than one UDP_SEGMENT send carries. */
		assert_true(l.s[0].frame_longest > 40000 && l.s[0].frame_longest <= 61000);
		assert_true(s->rx_bytes / s->rx_frames > 5000);
		assert_true(l.s[1].port->stats.tx_bytes / l.s[1].port->stats.tx_frames > 5000);
	} else {
		assert_int_equal(l.s[0].frame_longest, 1420);
	}
	close_lab(&l);
}

static void
super_frames_cross_whole(void **state)
{
	(void)state;
	check_transfers(OS_TUN_OFFLOAD_USO, CARRY_WHOLE);
}

static void
super_frames_cross_split_and_joined(void **state)
{
	(void)state;
	check_transfers(OS_TUN_OFFLOAD_USO, CARRY_SPLIT);
	check_transfers(OS_TUN_OFFLOAD_TSO, CARRY_SPLIT);
}

static void
packets_cross_without_offload(void **state)
{
	(void)state;
	check_transfers(OS_TUN_OFFLOAD_NONE, CARRY_WHOLE);
	check_transfers(OS_TUN_OFFLOAD_CSUM, CARRY_SPLIT);
}

static void
refused_joins_are_written_singly_and_then_not_made(void **state)
{
	(void)state;
	struct lab l;
	open_lab(&l, OS_TUN_OFFLOAD_USO, CARRY_SPLIT);
	l.s[1].is_refusing = true;
	transfer_tcp(&l, AF_INET);
	assert_false(l.s[1].port->caps.has_tcp4);
	assert_true(l.s[1].port->caps.has_tcp6);
	assert_int_equal(l.s[1].port->stats.join_off_count, 1);
	assert_int_equal(l.s[1].lines, 1);
	transfer_tcp(&l, AF_INET6);
	transfer_udp(&l, AF_INET);
	transfer_udp(&l, AF_INET6);
	assert_int_equal(l.s[1].lines, 4);
	assert_int_equal(l.s[1].port->stats.join_off_count, 4);
	assert_int_equal(drops_total(&l), 0);
	assert_true(l.s[0].port->caps.has_tcp4); /* the other device is not blamed */
	close_lab(&l);
}

/* Several joined frames in the batch in which the first is refused: none is lost. */
static void
rest_of_a_refused_batch_is_split_too(void **state)
{
	(void)state;
	struct lab l;
	open_lab(&l, OS_TUN_OFFLOAD_USO, CARRY_WHOLE);
	l.s[1].is_refusing = true;
	/* Whole frames stay joined, whatever the port says it can take. */
	transfer_tcp(&l, AF_INET);
	assert_true(l.s[1].port->stats.join_off_count > 50);
	assert_int_equal(l.s[1].lines, 1);
	assert_int_equal(drops_total(&l), 0);
	close_lab(&l);
}

static void
deliver_one(struct lab *l, int to)
{
	static uint8_t packet[28] = {0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17};
	struct gro_piece piece = {.data = packet, .len = sizeof(packet)};
	struct gro_frame f = {.len = sizeof(packet), .n = 1, .packets = 1};
	struct gro_out out = {.frames = &f,
		.frames_cap = 1,
		.frames_n = 1,
		.pieces = &piece,
		.pieces_cap = 1,
		.pieces_n = 1};
	l->s[to].port->ops->send(l->s[to].port, &out);
}

static void
interface_down_renamed_and_deleted_is_told_by_result(void **state)
{
	(void)state;
	struct lab l;
	struct frame f;
	open_lab(&l, OS_TUN_OFFLOAD_USO, CARRY_WHOLE);
	struct port *p = l.s[0].port;
	/* The far end of a veth pair is not told that the near one is down, and the kernel throws
	 * away what it sends; by then the engine has ended all sessions. */
	const uint64_t while_down = is_veth ? 0 : 2;
	transfer_udp(&l, AF_INET);
	netns_enter(l.s[0].ns);
	netns_run("ip link set wt0 down");
	assert_int_equal(p->ops->receive(p, l.buf, FRAME_CAP, &f), WEFT_EAGAIN);
	deliver_one(&l, 0);
	deliver_one(&l, 0);
	assert_int_equal(p->stats.drops.n[DROP_PORT_DOWN], while_down);
	netns_run("ip link set wt0 name other && ip link set other up &&"
		  "ip addr add fd05::1/64 dev other nodad");
	if (is_veth) {
		netns_wait("ip link show far | grep -q 'state UP'");
	}
	netns_wait("ip -6 route get fd05::1 | grep -q ^local");
	transfer_tcp(&l, AF_INET);
	transfer_tcp(&l, AF_INET6);
	assert_int_equal(p->stats.drops.n[DROP_PORT_DOWN], while_down);
	netns_enter(l.s[0].ns);
	netns_run("ip link del other");
	struct pollfd poll_fd = {.fd = port_tun_fd(p), .events = POLLIN};
	assert_int_equal(poll(&poll_fd, 1, 1000), 1);
	assert_true(poll_fd.revents & POLLERR);
	enum weft_err err;
	do {
		err = p->ops->receive(p, l.buf, FRAME_CAP, &f);
	} while (is_veth && err == WEFT_OK); /* what the ring had before */
	assert_int_equal(err, WEFT_ECLOSED);
	deliver_one(&l, 0);
	assert_int_equal(p->stats.drops.n[DROP_PORT_DOWN], while_down + 1);
	close_lab(&l);
}

/* --- headers that no kernel of ours sends --- */

static unsigned bad_left;

static ssize_t
bad_readv(void *ctx, int fd, const struct iovec *iov, int n)
{
	(void)ctx;
	(void)fd;
	(void)n;
	if (bad_left == 0) {
		errno = EAGAIN;
		return -1;
	}
	bad_left--;
	memset(iov[0].iov_base, 0, iov[0].iov_len);
	((uint8_t *)iov[0].iov_base)[1] = bad_left ? 77 : 0; /* no such GSO type */
	memset(iov[1].iov_base, 0x45, 20);
	return (ssize_t)iov[0].iov_len + 20;
}

static void
unknown_offload_headers_are_counted_and_skipped(void **state)
{
	(void)state;
	struct os_tun_calls calls = {.readv = bad_readv};
	struct log silent = {0};
	struct port_tun_config c = {
		.fd = -1, .offload = OS_TUN_OFFLOAD_TSO, .calls = &calls, .log = &silent};
	struct port *p;
	struct frame f;
	static uint8_t buf[FRAME_CAP];
	assert_int_equal(port_tun_new(&c, &p), WEFT_OK);
	bad_left = 4;
	assert_int_equal(p->ops->receive(p, buf, FRAME_CAP, &f), WEFT_OK);
	assert_int_equal(f.len, 20);
	assert_int_equal(p->stats.drops.n[DROP_TX_OFFLOAD], 3);
	assert_int_equal(p->ops->receive(p, buf, FRAME_CAP, &f), WEFT_EAGAIN);
	p->ops->close(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(super_frames_cross_whole),
		cmocka_unit_test(super_frames_cross_split_and_joined),
		cmocka_unit_test(packets_cross_without_offload),
		cmocka_unit_test(refused_joins_are_written_singly_and_then_not_made),
		cmocka_unit_test(rest_of_a_refused_batch_is_split_too),
		cmocka_unit_test(interface_down_renamed_and_deleted_is_told_by_result),
		cmocka_unit_test(unknown_offload_headers_are_counted_and_skipped),
	};
	const struct CMUnitTest veth_tests[] = {
		cmocka_unit_test(super_frames_cross_whole),
		cmocka_unit_test(super_frames_cross_split_and_joined),
		cmocka_unit_test(refused_joins_are_written_singly_and_then_not_made),
		cmocka_unit_test(rest_of_a_refused_batch_is_split_too),
		cmocka_unit_test(interface_down_renamed_and_deleted_is_told_by_result),
	};
	int failed = cmocka_run_group_tests_name("tun", tests, NULL, NULL);
	is_veth = true;
	return failed + cmocka_run_group_tests_name("veth", veth_tests, NULL, NULL);
}

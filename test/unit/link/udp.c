/* SPDX-License-Identifier: Apache-2.0 */
/* The UDP link between two sockets of one namespace. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "../os/netns.h"
#include "base/compiler.h"
#include "base/endian.h"
#include "base/rng.h"
#include "link/udp.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/udp.h"

#define RX_MAX 32
#define WAIT_NS (2 * WEFT_NS_PER_S)

static const struct log silent = {0};

static struct link *
open_link(bool has_offload, uint32_t rcv_bytes)
{
	struct os_udp_config c = {.has_offload = has_offload, .rcv_bytes = rcv_bytes};
	struct os_udp u;
	struct link *l;
	assert_int_equal(os_udp_open(&c, &silent, &u), WEFT_OK);
	assert_int_equal(link_udp_new(&u, NULL, &silent, &l), WEFT_OK);
	return l;
}

static struct endpoint
endpoint_at(const char *addr, uint16_t port)
{
	struct endpoint e = {.port = port};
	assert_int_equal(ip_addr_parse(addr, strlen(addr), &e.addr), WEFT_OK);
	return e;
}

/* Receives until so many datagrams are there; their bytes go behind each other into out. */
struct got {
	uint8_t *bytes;
	size_t cap;
	size_t len;
	size_t datagrams;
	size_t entries;
	size_t of_seg;      /* datagrams of the length of their entry's seg */
	size_t behind_drop; /* entries that the socket dropped some before */
	struct link_rx last;
};

static void
take_entry(struct got *g, const struct link_rx *rx)
{
	assert_true(rx->seg >= 1 && rx->len >= 1);
	assert_true(g->len + rx->len <= g->cap);
	memcpy(g->bytes + g->len, rx->data, rx->len);
	g->len += rx->len;
	g->datagrams += (rx->len + rx->seg - 1) / rx->seg;
	g->entries++;
	g->behind_drop += rx->is_behind_drop;
	g->last = *rx;
}

static void
receive_some(struct link *l, struct got *g, size_t datagrams)
{
	struct mono deadline = mono_add_ns(os_clock_mono(), WAIT_NS);
	while (g->datagrams < datagrams && mono_is_before(os_clock_mono(), deadline)) {
		struct link_rx rx[RX_MAX];
		size_t n;
		if (l->ops->receive(l, rx, RX_MAX, &n)) {
			os_clock_sleep_ns(WEFT_NS_PER_MS / 10);
			continue;
		}
		for (size_t i = 0; i < n; i++) {
			take_entry(g, &rx[i]);
		}
	}
	assert_int_equal(g->datagrams, datagrams);
}

static uint64_t
drops_total(const struct link *l)
{
	uint64_t n = 0;
	for (size_t i = 0; i < DROP_COUNT; i++) {
		n += l->stats.drops.n[i];
	}
	return n;
}

static void
check_run(struct link *a, struct link *b, const char *addr, uint16_t seg, size_t len, uint8_t ecn)
{
	static uint8_t data[256 * 1024], back[256 * 1024];
	struct rng rng;
	rng_init(&rng, seg + len);
	rng_fill(&rng, data, len);
	struct endpoint to = endpoint_at(addr, link_udp_port(b));
	struct link_run run = {
		.to = &to, .data = data, .len = (uint32_t)len, .seg = seg, .ecn = ecn};
	a->ops->send(a, &run, 1);
	struct got g = {.bytes = back, .cap = sizeof(back)};
	receive_some(b, &g, (len + seg - 1) / seg);
	if (g.len != len || memcmp(data, back, len) != 0) {
		fail_msg("run of %zu bytes in segments of %u came changed", len, seg);
	}
	assert_int_equal(g.last.ecn, ecn);
	assert_true(ip_addr_is_equal(&g.last.from.src, &to.addr));
	assert_int_equal(g.last.from.port, link_udp_port(a));
	assert_false(run.src_cleared);
}

static void
check_all_runs(const char *addr, bool has_offload)
{
	netns_fresh();
	struct link *a = open_link(has_offload, 0), *b = open_link(has_offload, 0);
	uint64_t datagrams = 0;
	for (uint16_t seg = 1; seg <= 1472; seg = (uint16_t)(seg < 8 ? seg + 1 : seg + 61)) {
		size_t lens[] = {1, seg, (size_t)seg * 2 - 1, (size_t)seg * 44 + 7,
			(size_t)seg * 64, (size_t)seg * 100 + 1};
		for (size_t i = 0; i < WEFT_ARRAY_LEN(lens); i++) {
			check_run(a, b, addr, seg, lens[i], (uint8_t)(i & 3));
			datagrams += (lens[i] + seg - 1) / seg;
		}
	}
	assert_int_equal(a->stats.tx_datagrams, datagrams);
	assert_int_equal(b->stats.rx_datagrams, datagrams);
	assert_int_equal(a->stats.tx_bytes, b->stats.rx_bytes);
	assert_int_equal(drops_total(a) + drops_total(b), 0);
	assert_int_equal(a->stats.gso_off_count, 0);
	if (has_offload) {
		/* Cut at 64 segments and 65,507 bytes, and nowhere else. */
		assert_true(a->stats.tx_calls * 20 < datagrams);
		assert_true(link_udp_has_gso(a) && link_udp_has_gro(b));
	}
	a->ops->close(a);
	b->ops->close(b);
}

static void
runs_of_all_sizes_arrive_over_ipv4(void **state)
{
	(void)state;
	check_all_runs("127.0.0.1", true);
}

static void
runs_of_all_sizes_arrive_over_ipv6(void **state)
{
	(void)state;
	check_all_runs("::1", true);
}

static void
runs_arrive_without_offload(void **state)
{
	(void)state;
	check_all_runs("127.0.0.1", false);
	check_all_runs("::1", false);
}

static void
run_stays_one_buffer_with_offload(void **state)
{
	(void)state;
	netns_fresh();
	static uint8_t data[1452 * 45], back[1452 * 45];
	struct link *a = open_link(true, 0), *b = open_link(true, 0);
	struct endpoint to = endpoint_at("127.0.0.1", link_udp_port(b));
	struct link_run run = {.to = &to, .data = data, .len = sizeof(data), .seg = 1452};
	a->ops->send(a, &run, 1);
	struct got g = {.bytes = back, .cap = sizeof(back)};
	receive_some(b, &g, 45);
	assert_int_equal(a->stats.tx_calls, 1);
	assert_int_equal(g.entries, 1);
	assert_int_equal(g.last.seg, 1452);
	a->ops->close(a);
	b->ops->close(b);
}

/* The kernel makes an IPv6 address reachable some time after it has taken it. */
static void
wait_for_local(const char *addr)
{
	netns_wait("ip -6 route show table local | grep -q '^local %s '", addr);
}

/* Several local addresses: an answer leaves from where the question came. */
static void
pinned_source_is_what_the_peer_sees(void **state)
{
	(void)state;
	netns_fresh();
	netns_run("ip addr add 10.9.0.1/24 dev lo && ip addr add 10.9.0.2/24 dev lo &&"
		  "ip addr add fd09::1/64 dev lo nodad && ip addr add fd09::2/64 dev lo nodad");
	wait_for_local("fd09::1");
	wait_for_local("fd09::2");
	static const char *const addrs[][2] = {
		{"10.9.0.1", "10.9.0.2"}, {"fd09::1", "fd09::2"}, {"127.0.0.1", "10.9.0.2"}};
	struct link *a = open_link(true, 0), *b = open_link(true, 0);
	uint8_t data[300] = {1}, back[300];
	for (size_t i = 0; i < WEFT_ARRAY_LEN(addrs); i++) {
		struct endpoint to = endpoint_at(addrs[i][0], link_udp_port(b));
		to.src = endpoint_at(addrs[i][1], 0).addr;
		struct link_run run = {.to = &to, .data = data, .len = sizeof(data), .seg = 100};
		a->ops->send(a, &run, 1);
		struct got g = {.bytes = back, .cap = sizeof(back)};
		receive_some(b, &g, 3);
		assert_true(ip_addr_is_equal(&g.last.from.addr, &to.src));
		assert_true(ip_addr_is_equal(&g.last.from.src, &to.addr));
		assert_false(run.src_cleared);
	}
	a->ops->close(a);
	b->ops->close(b);
}

static void
pinned_source_that_is_gone_is_left_out_in_the_same_call(void **state)
{
	(void)state;
	netns_fresh();
	struct link *a = open_link(true, 0), *b = open_link(true, 0);
	uint8_t data[64 * 200] = {1};
	static uint8_t back[64 * 200 + 10];
	static const char *const addrs[][2] = {{"127.0.0.1", "10.9.0.9"}, {"::1", "fd09::9"}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(addrs); i++) {
		struct endpoint to = endpoint_at(addrs[i][0], link_udp_port(b));
		to.src = endpoint_at(addrs[i][1], 0).addr;
		/* Two messages of one run, so the second was made before the first failed. */
		struct link_run runs[2] = {
			{.to = &to, .data = data, .len = sizeof(data), .seg = 100},
			{.to = &to, .data = data, .len = 10, .seg = 100}};
		a->ops->send(a, runs, 2);
		struct got g = {.bytes = back, .cap = sizeof(back)};
		receive_some(b, &g, 129);
		assert_true(runs[0].src_cleared && runs[1].src_cleared);
	}
	assert_int_equal(drops_total(a), 0);
	assert_int_equal(a->stats.gso_off_count, 0);
	a->ops->close(a);
	b->ops->close(b);
}

/* Each datagram of a batch keeps its own destination, source and ECN. */
static void
families_and_sources_do_not_mix_in_one_batch(void **state)
{
	(void)state;
	netns_fresh();
	netns_run("ip addr add 10.9.0.1/24 dev lo && ip addr add 10.9.0.2/24 dev lo &&"
		  "ip addr add fd09::1/64 dev lo nodad && ip addr add fd09::2/64 dev lo nodad");
	wait_for_local("fd09::1");
	wait_for_local("fd09::2");
	static const char *const addrs[] = {"10.9.0.1", "fd09::1", "10.9.0.2", "fd09::2"};
	enum { RUNS = 200 };
	struct link *a = open_link(true, 0), *b = open_link(true, 0);
	struct endpoint to[RUNS];
	struct link_run runs[RUNS];
	uint8_t data[RUNS][8];
	struct rng rng;
	rng_init(&rng, 21);
	for (size_t i = 0; i < RUNS; i++) {
		size_t k = rng_below(&rng, 4);
		to[i] = endpoint_at(addrs[k], link_udp_port(b));
		if (rng_is_hit(&rng, 0.7)) {
			to[i].src = endpoint_at(addrs[(k + 2) % 4], 0).addr;
		}
		memset(data[i], 0, sizeof(data[i]));
		store_le32(data[i], (uint32_t)i);
		runs[i] = (struct link_run){.to = &to[i],
			.data = data[i],
			.len = 8,
			.seg = 8,
			.ecn = (uint8_t)rng_below(&rng, 4)};
	}
	a->ops->send(a, runs, RUNS);
	bool seen[RUNS] = {false};
	size_t left = RUNS;
	struct mono deadline = mono_add_ns(os_clock_mono(), WAIT_NS);
	while (left > 0 && mono_is_before(os_clock_mono(), deadline)) {
		struct link_rx rx[RX_MAX];
		size_t n;
		if (b->ops->receive(b, rx, RX_MAX, &n)) {
			continue;
		}
		for (size_t k = 0; k < n; k++) {
			for (uint32_t at = 0; at < rx[k].len; at += 8) {
				uint32_t i = load_le32(rx[k].data + at);
				assert_true(i < RUNS && !seen[i]);
				seen[i] = true;
				left--;
				assert_int_equal(rx[k].ecn, runs[i].ecn);
				assert_true(ip_addr_is_equal(&rx[k].from.src, &to[i].addr));
				if (to[i].src.family) {
					assert_true(ip_addr_is_equal(&rx[k].from.addr, &to[i].src));
				}
			}
		}
	}
	assert_int_equal(left, 0);
	a->ops->close(a);
	b->ops->close(b);
}

#define EMPTY_CALLS_MAX 10000u

static int
recvmmsg_empty(void *ctx, int fd, struct mmsghdr *m, unsigned n, int flags)
{
	unsigned *calls = ctx;
	(void)fd;
	(void)flags;
	if (++*calls > EMPTY_CALLS_MAX) {
		errno = EAGAIN;
		return -1;
	}
	for (unsigned i = 0; i < n; i++) {
		((struct sockaddr *)m[i].msg_hdr.msg_name)->sa_family = AF_INET;
		m[i].msg_hdr.msg_controllen = 0;
		m[i].msg_len = 0;
	}
	return (int)n;
}

static void
flood_of_empty_datagrams_does_not_hold_the_caller(void **state)
{
	(void)state;
	netns_fresh();
	unsigned made = 0;
	struct os_udp_calls calls = os_udp_calls_real;
	calls.recvmmsg = recvmmsg_empty;
	calls.ctx = &made;
	struct os_udp_config c = {0};
	struct os_udp u;
	struct link *l;
	assert_int_equal(os_udp_open(&c, &silent, &u), WEFT_OK);
	assert_int_equal(link_udp_new(&u, &calls, &silent, &l), WEFT_OK);
	struct link_rx rx[RX_MAX];
	size_t n;
	assert_int_equal(l->ops->receive(l, rx, RX_MAX, &n), WEFT_EAGAIN);
	assert_in_range(made, 1, 100);
	l->ops->close(l);
}

static void
empty_datagrams_are_counted_and_do_not_stop_the_batch(void **state)
{
	(void)state;
	netns_fresh();
	struct link *a = open_link(true, 0), *b = open_link(true, 0);
	int fds[2];
	assert_int_equal(link_udp_fds(a, fds), 2);
	struct endpoint to = endpoint_at("127.0.0.1", link_udp_port(b));
	struct sockaddr_storage name;
	socklen_t name_len = sizeof(name);
	assert_int_equal(link_udp_fds(b, fds), 2);
	assert_int_equal(getsockname(fds[0], (struct sockaddr *)&name, &name_len), 0);
	uint8_t data[100] = {7}, back[1000];
	link_udp_fds(a, fds);
	for (int i = 0; i < 10; i++) {
		struct link_run run = {.to = &to, .data = data, .len = 100, .seg = 100};
		assert_int_equal(sendto(fds[0], data, 0, 0, (struct sockaddr *)&name, name_len), 0);
		a->ops->send(a, &run, 1);
		assert_int_equal(sendto(fds[0], data, 0, 0, (struct sockaddr *)&name, name_len), 0);
	}
	struct got g = {.bytes = back, .cap = sizeof(back)};
	receive_some(b, &g, 10);
	/* The last empty one may still be queued. */
	struct link_rx rx[RX_MAX];
	size_t n;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(b->ops->receive(b, rx, RX_MAX, &n), WEFT_EAGAIN);
	}
	assert_int_equal(b->stats.drops.n[DROP_RX_SHORT], 20);
	assert_int_equal(b->stats.rx_datagrams, 10);
	a->ops->close(a);
	b->ops->close(b);
}

static void
drops_at_a_full_socket_are_counted(void **state)
{
	(void)state;
	netns_fresh();
	struct link *a = open_link(false, 0), *b = open_link(false, 16384);
	struct endpoint to = endpoint_at("127.0.0.1", link_udp_port(b));
	static uint8_t data[1000 * 500], back[1000 * 1000];
	struct link_run run = {.to = &to, .data = data, .len = sizeof(data), .seg = 1000};
	a->ops->send(a, &run, 1);
	link_udp_sync(b);
	uint64_t dropped = b->stats.drops.n[DROP_LINK_RX_OVERFLOW];
	assert_true(dropped > 0 && dropped < 500);
	struct got g = {.bytes = back, .cap = sizeof(back)};
	receive_some(b, &g, 500 - dropped);
	assert_int_equal(g.behind_drop, 0);
	/* The same drops are told again by the control message of a later datagram, and it is the
	 * one behind the gap. */
	run.len = 1000;
	a->ops->send(a, &run, 1);
	receive_some(b, &g, 500 - dropped + 1);
	assert_int_equal(g.behind_drop, 1);
	assert_true(g.last.is_behind_drop);
	a->ops->send(a, &run, 1);
	receive_some(b, &g, 500 - dropped + 2);
	assert_int_equal(g.behind_drop, 1);
	link_udp_sync(b);
	assert_int_equal(b->stats.drops.n[DROP_LINK_RX_OVERFLOW], dropped);
	a->ops->close(a);
	b->ops->close(b);
}

/* Without link_udp_sync(): SO_RXQ_OVFL alone. */
static void
drops_are_told_by_the_next_datagram(void **state)
{
	(void)state;
	netns_fresh();
	struct link *a = open_link(false, 0), *b = open_link(false, 16384);
	struct endpoint to = endpoint_at("::1", link_udp_port(b));
	static uint8_t data[1000 * 500], back[1000 * 1000];
	struct link_run run = {.to = &to, .data = data, .len = sizeof(data), .seg = 1000};
	a->ops->send(a, &run, 1);
	struct link_rx rx[RX_MAX];
	size_t n;
	struct got g = {.bytes = back, .cap = sizeof(back)};
	while (b->ops->receive(b, rx, RX_MAX, &n) == WEFT_OK) {
		for (size_t i = 0; i < n; i++) {
			take_entry(&g, &rx[i]);
		}
	}
	run.len = 1000;
	a->ops->send(a, &run, 1);
	receive_some(b, &g, g.datagrams + 1);
	assert_int_equal(g.datagrams + b->stats.drops.n[DROP_LINK_RX_OVERFLOW], 501);
	a->ops->close(a);
	b->ops->close(b);
}

/* What the kernel tells with each message, one a call. */
struct told_message {
	uint32_t len, dropped; /* 0: says nothing of drops, as long as there were none */
	bool is_behind_drop;   /* so the entry is, if there is one */
};

struct told_calls {
	const struct told_message *next, *end;
	int fd; /* the first asked of; the other socket has nothing */
};

static int
recvmmsg_told(void *ctx, int fd, struct mmsghdr *m, unsigned n, int flags)
{
	struct told_calls *t = ctx;
	(void)flags;
	assert_true(n > 0);
	t->fd = t->fd < 0 ? fd : t->fd;
	if (fd != t->fd || t->next == t->end) {
		errno = EAGAIN;
		return -1;
	}
	struct msghdr *h = &m[0].msg_hdr;
	((struct sockaddr *)h->msg_name)->sa_family = AF_INET;
	m[0].msg_len = t->next->len;
	h->msg_controllen = t->next->dropped ? CMSG_SPACE(sizeof(uint32_t)) : 0;
	if (t->next->dropped) {
		struct cmsghdr *c = CMSG_FIRSTHDR(h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SO_RXQ_OVFL;
		c->cmsg_len = CMSG_LEN(sizeof(uint32_t));
		memcpy(CMSG_DATA(c), &t->next->dropped, sizeof(uint32_t));
	}
	t->next++;
	return 1;
}

static void
entry_behind_a_drop_is_the_first_that_is_handed_on(void **state)
{
	(void)state;
	netns_fresh();
	static const struct told_message told[] = {
		{10, 0, false},
		{10, 3, true},
		{10, 3, false},
		{0, 4, false}, /* empty: the next one is behind the gap */
		{10, 4, true},
		{200000, 5, false}, /* cut */
		{10, 5, true},
		{10, 5, false},
		{10, 0x7fffffff, true},
		{10, 0xfffffffe, true},
		{10, 1, true}, /* the counter has wrapped */
		{10, 1, false},
	};
	struct told_calls t = {told, told + WEFT_ARRAY_LEN(told), -1};
	struct os_udp_calls calls = os_udp_calls_real;
	calls.recvmmsg = recvmmsg_told;
	calls.ctx = &t;
	struct os_udp_config c = {0};
	struct os_udp u;
	struct link *l;
	assert_int_equal(os_udp_open(&c, &silent, &u), WEFT_OK);
	assert_int_equal(link_udp_new(&u, &calls, &silent, &l), WEFT_OK);
	struct link_rx rx[RX_MAX];
	size_t n;
	while (t.next < t.end) {
		if (l->ops->receive(l, rx, RX_MAX, &n)) {
			continue;
		}
		assert_int_equal(n, 1);
		assert_int_equal(rx[0].is_behind_drop, t.next[-1].is_behind_drop);
	}
	assert_int_equal(l->stats.rx_datagrams, WEFT_ARRAY_LEN(told) - 2);
	assert_int_equal(l->stats.drops.n[DROP_LINK_RX_OVERFLOW], UINT64_C(0x100000001));
	l->ops->close(l);
}

static void
local_firewall_is_counted_and_spares_the_rest(void **state)
{
	(void)state;
	netns_fresh();
	netns_run("ip addr add 10.9.0.1/24 dev lo && ip addr add 10.9.0.2/24 dev lo &&"
		  "nft 'add table ip t; add chain ip t o { type filter hook output priority 0; };"
		  "add rule ip t o ip daddr 10.9.0.1 drop'");
	struct link *a = open_link(true, 0), *b = open_link(true, 0);
	struct endpoint bad = endpoint_at("10.9.0.1", link_udp_port(b));
	struct endpoint nowhere = endpoint_at("203.0.113.1", link_udp_port(b));
	struct endpoint nowhere6 = endpoint_at("2001:db8::1", link_udp_port(b));
	struct endpoint good = endpoint_at("10.9.0.2", link_udp_port(b));
	uint8_t data[1000] = {0}, back[3000];
	struct link_run runs[] = {{.to = &good, .data = data, .len = 1000, .seg = 100},
		{.to = &bad, .data = data, .len = 1000, .seg = 100},
		{.to = &nowhere, .data = data, .len = 1000, .seg = 200},
		{.to = &nowhere6, .data = data, .len = 1000, .seg = 500},
		{.to = &good, .data = data, .len = 1000, .seg = 100}};
	a->ops->send(a, runs, WEFT_ARRAY_LEN(runs));
	struct got g = {.bytes = back, .cap = sizeof(back)};
	receive_some(b, &g, 20);
	assert_int_equal(a->stats.drops.n[DROP_LINK_PERM], 10);
	assert_int_equal(a->stats.drops.n[DROP_LINK_UNREACH], 7);
	assert_int_equal(drops_total(a), 17);
	assert_int_equal(a->stats.gso_off_count, 0);
	a->ops->close(a);
	b->ops->close(b);
}

/* A path narrower than the datagrams: they are cut into fragments, and GSO stays on. */
static void
datagrams_longer_than_the_path_are_fragmented(void **state)
{
	(void)state;
	netns_fresh();
	netns_run("ip link add va type veth peer name vb");
	int here = netns_here();
	struct link *b;
	netns_run("ip link set va mtu 1300 up && ip addr add 10.8.0.1/24 dev va &&"
		  "ip addr add fd08::1/64 dev va nodad");
	struct link *a = open_link(true, 0);
	/* The far end in a namespace of its own, so that nothing is delivered locally. */

	netns_fresh();
	int far = netns_here();
	b = open_link(true, 0);
	netns_enter(here);
	netns_run("ip link set vb netns /proc/%d/fd/%d", (int)getpid(), far);
	netns_enter(far);
	netns_run("ip link set vb mtu 1300 up && ip addr add 10.8.0.2/24 dev vb &&"
		  "ip addr add fd08::2/64 dev vb nodad");
	wait_for_local("fd08::2");
	static uint8_t back[1400 * 60];
	static const char *const addrs[] = {"10.8.0.2", "fd08::2"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(addrs); i++) {
		static uint8_t data[1400 * 20];
		struct endpoint to = endpoint_at(addrs[i], link_udp_port(b));
		struct link_run runs[] = {
			{.to = &to, .data = data, .len = sizeof(data), .seg = 1400},
			{.to = &to, .data = data, .len = sizeof(data), .seg = 1000}};
		a->ops->send(a, runs, WEFT_ARRAY_LEN(runs));
		struct got g = {.bytes = back, .cap = sizeof(back)};
		receive_some(b, &g, 20 + 28);
	}
	assert_int_equal(a->stats.gso_off_count, 0);
	uint64_t calls = a->stats.tx_calls;
	struct endpoint to = endpoint_at(addrs[0], link_udp_port(b));
	struct link_run run = {.to = &to, .data = back, .len = 20000, .seg = 1000};
	a->ops->send(a, &run, 1);
	assert_int_equal(a->stats.tx_calls, calls + 1);
	assert_int_equal(drops_total(a), 0);
	a->ops->close(a);
	b->ops->close(b);
	os_fd_close(&here);
	os_fd_close(&far);
}

/* Both families are asked in turn even when one never runs dry. */
static void
busy_family_does_not_starve_the_other(void **state)
{
	(void)state;
	netns_fresh();
	struct link *a = open_link(false, 0), *b = open_link(false, 0);
	static uint8_t data[100 * 1000];
	struct endpoint to4 = endpoint_at("127.0.0.1", link_udp_port(b));
	struct endpoint to6 = endpoint_at("::1", link_udp_port(b));
	struct link_run runs[] = {{.to = &to4, .data = data, .len = sizeof(data), .seg = 100},
		{.to = &to6, .data = data, .len = 100, .seg = 100}};
	a->ops->send(a, runs, 2);
	for (int calls = 0; calls < 12; calls++) {
		struct link_rx rx[RX_MAX];
		size_t n;
		assert_int_equal(b->ops->receive(b, rx, RX_MAX, &n), WEFT_OK);
		if (rx[0].from.addr.family == IP_FAMILY_V6) {
			a->ops->close(a);
			b->ops->close(b);
			return;
		}
	}
	fail_msg("12 batches of IPv4 while IPv6 waited");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_of_all_sizes_arrive_over_ipv4),
		cmocka_unit_test(runs_of_all_sizes_arrive_over_ipv6),
		cmocka_unit_test(runs_arrive_without_offload),
		cmocka_unit_test(run_stays_one_buffer_with_offload),
		cmocka_unit_test(pinned_source_is_what_the_peer_sees),
		cmocka_unit_test(pinned_source_that_is_gone_is_left_out_in_the_same_call),
		cmocka_unit_test(families_and_sources_do_not_mix_in_one_batch),
		cmocka_unit_test(flood_of_empty_datagrams_does_not_hold_the_caller),
		cmocka_unit_test(empty_datagrams_are_counted_and_do_not_stop_the_batch),
		cmocka_unit_test(drops_at_a_full_socket_are_counted),
		cmocka_unit_test(entry_behind_a_drop_is_the_first_that_is_handed_on),
		cmocka_unit_test(drops_are_told_by_the_next_datagram),
		cmocka_unit_test(local_firewall_is_counted_and_spares_the_rest),
		cmocka_unit_test(datagrams_longer_than_the_path_are_fragmented),
		cmocka_unit_test(busy_family_does_not_starve_the_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

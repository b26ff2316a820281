/* SPDX-License-Identifier: Apache-2.0 */
/* Faults between the UDP link and the kernel: a table of system calls that records what would
 * have been sent and refuses what the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <cmocka.h>

#include "base/endian.h"
#include "base/rng.h"
#include "link/udp.h"
#include "link/udpsend.h"
#include "os/udp.h"

#define FD_V4 1000
#define FD_V6 1001
#define SENT_MAX 4096

struct datagram {
	int fd;
	uint8_t bytes[16]; /* the first ones */
	uint32_t len;
	uint16_t port;
	int tos; /* -1: no control message */
	bool has_src;
	uint8_t src_last; /* last byte of the source address */
};

struct fault {
	int errnum;
	unsigned from, to; /* of the messages that match: [from, to) */
	bool only_gso, only_src, only_single;
	uint16_t port; /* 0: any destination */
	unsigned seen;
};

struct kernel {
	struct datagram sent[SENT_MAX];
	size_t sent_n;
	size_t calls;
	struct fault faults[8];
	size_t faults_n;
	unsigned segments_max; /* more give EINVAL */
	uint32_t payload_max;  /* more give EMSGSIZE */
	unsigned waits;
	struct mono now;
};

struct message {
	int fd;
	const uint8_t *data;
	uint32_t len;
	uint16_t seg; /* 0: no UDP_SEGMENT */
	uint16_t port;
	int tos;
	bool has_src;
	uint8_t src_last;
};

static struct message
parse(int fd, const struct msghdr *h)
{
	struct message m = {.fd = fd, .tos = -1};
	assert_int_equal(h->msg_iovlen, 1);
	m.data = h->msg_iov[0].iov_base;
	m.len = (uint32_t)h->msg_iov[0].iov_len;
	if (fd == FD_V4) {
		const struct sockaddr_in *a = h->msg_name;
		assert_int_equal(h->msg_namelen, sizeof(*a));
		assert_int_equal(a->sin_family, AF_INET);
		m.port = ntohs(a->sin_port);
	} else {
		const struct sockaddr_in6 *a = h->msg_name;
		assert_int_equal(fd, FD_V6);
		assert_int_equal(h->msg_namelen, sizeof(*a));
		assert_int_equal(a->sin6_family, AF_INET6);
		m.port = ntohs(a->sin6_port);
	}
	struct msghdr copy = *h;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&copy); c; c = CMSG_NXTHDR(&copy, c)) {
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT) {
			memcpy(&m.seg, CMSG_DATA(c), sizeof(m.seg));
		} else if (c->cmsg_type == IP_TOS || c->cmsg_type == IPV6_TCLASS) {
			assert_int_equal(c->cmsg_level, fd == FD_V4 ? IPPROTO_IP : IPPROTO_IPV6);
			memcpy(&m.tos, CMSG_DATA(c), sizeof(m.tos));
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo p;
			memcpy(&p, CMSG_DATA(c), sizeof(p));
			assert_int_equal(fd, FD_V4);
			m.has_src = true;
			m.src_last = (uint8_t)(ntohl(p.ipi_spec_dst.s_addr) & 255);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo p;
			memcpy(&p, CMSG_DATA(c), sizeof(p));
			assert_int_equal(fd, FD_V6);
			m.has_src = true;
			m.src_last = p.ipi6_addr.s6_addr[15];
		} else {
			fail_msg("unexpected control message %d/%d", c->cmsg_level, c->cmsg_type);
		}
	}
	return m;
}

static int
fault_of(struct kernel *k, const struct message *m)
{
	bool is_gso = m->seg && m->len > m->seg;
	if (is_gso && (m->len + m->seg - 1u) / m->seg > k->segments_max) {
		return EINVAL;
	}
	if (m->len > k->payload_max) {
		return EMSGSIZE;
	}
	for (size_t i = 0; i < k->faults_n; i++) {
		struct fault *f = &k->faults[i];
		if ((f->only_gso && !is_gso) || (f->only_single && is_gso) ||
			(f->only_src && !m->has_src) || (f->port && f->port != m->port)) {
			continue;
		}
		unsigned n = f->seen++;
		if (n >= f->from && n < f->to) {
			return f->errnum;
		}
	}
	return 0;
}

static int
deliver(struct kernel *k, int fd, const struct msghdr *h)
{
	struct message m = parse(fd, h);
	int e = fault_of(k, &m);
	if (e) {
		return e;
	}
	uint32_t seg = m.seg ? m.seg : m.len;
	for (uint32_t at = 0; at < m.len; at += seg) {
		assert_true(k->sent_n < SENT_MAX);
		struct datagram *d = &k->sent[k->sent_n++];
		*d = (struct datagram){.fd = fd,
			.len = m.len - at < seg ? m.len - at : seg,
			.port = m.port,
			.tos = m.tos,
			.has_src = m.has_src,
			.src_last = m.src_last};
		memcpy(d->bytes, m.data + at, d->len < 16 ? d->len : 16);
	}
	return 0;
}

static ssize_t
fake_sendmsg(void *ctx, int fd, const struct msghdr *h, int flags)
{
	struct kernel *k = ctx;
	(void)flags;
	k->calls++;
	int e = deliver(k, fd, h);
	if (e) {
		errno = e;
		return -1;
	}
	return (ssize_t)h->msg_iov[0].iov_len;
}

/* As the kernel's: an error after the first message is not told. */
static int
fake_sendmmsg(void *ctx, int fd, struct mmsghdr *m, unsigned n, int flags)
{
	struct kernel *k = ctx;
	(void)flags;
	k->calls++;
	for (unsigned i = 0; i < n; i++) {
		int e = deliver(k, fd, &m[i].msg_hdr);
		if (e && i == 0) {
			errno = e;
			return -1;
		}
		if (e) {
			return (int)i;
		}
	}
	return (int)n;
}

static bool
fake_wait(void *ctx, int fd, int ms)
{
	struct kernel *k = ctx;
	(void)fd;
	assert_true(ms <= 1);
	k->waits++;
	return true;
}

static struct mono
fake_now(void *ctx)
{
	return ((struct kernel *)ctx)->now;
}

struct bench {
	struct kernel kernel;
	struct os_udp_calls calls;
	struct link_stats stats;
	struct link_udpsend send;
	unsigned lines; /* logged */
	struct log log;
};

static void
count_line(void *ctx, enum log_level level, const char *text)
{
	(void)level;
	(void)text;
	((struct bench *)ctx)->lines++;
}

static struct bench *
bench_init(struct bench *b)
{
	memset(b, 0, sizeof(*b));
	b->kernel.segments_max = 64;
	b->kernel.payload_max = 65507;
	b->kernel.now.ns = WEFT_NS_PER_S;
	b->calls = (struct os_udp_calls){.sendmsg = fake_sendmsg,
		.sendmmsg = fake_sendmmsg,
		.wait_writable = fake_wait,
		.now = fake_now,
		.ctx = &b->kernel};
	b->log = (struct log){.sink = count_line, .ctx = b, .level = LOG_LEVEL_DEBUG};
	struct os_udp u = {.v4 = FD_V4, .v6 = FD_V6, .has_gso = true};
	link_udpsend_init(&b->send, &u, &b->calls, &b->log, &b->stats);
	return b;
}

static struct bench the_bench;

static struct endpoint
v4(uint16_t port)
{
	return (struct endpoint){
		.addr = {.family = IP_FAMILY_V4, .b = {192, 0, 2, (uint8_t)port}}, .port = port};
}

static struct endpoint
v6(uint16_t port)
{
	return (struct endpoint){
		.addr = {.family = IP_FAMILY_V6, .b = {0x20, 1, 0xd, 0xb8, [15] = (uint8_t)port}},
		.port = port};
}

static void
add_fault(struct bench *b, struct fault f)
{
	b->kernel.faults[b->kernel.faults_n++] = f;
}

/* A run whose datagrams carry their number, from first on. */
static uint8_t run_bytes[8][200000];

static struct link_run
numbered(unsigned buf, const struct endpoint *to, uint16_t seg, unsigned n, uint32_t first)
{
	assert_true((size_t)seg * n <= sizeof(run_bytes[0]) && seg >= 4);
	for (unsigned i = 0; i < n; i++) {
		store_le32(run_bytes[buf] + (size_t)i * seg, first + i);
	}
	return (struct link_run){
		.to = to, .data = run_bytes[buf], .len = (uint32_t)seg * n, .seg = seg};
}

/* Every number in [first, first + n) was sent once, in order, to port. */
static void
assert_sent_once(const struct bench *b, uint16_t port, uint32_t first, uint32_t n)
{
	uint32_t next = first;
	for (size_t i = 0; i < b->kernel.sent_n; i++) {
		uint32_t v = load_le32(b->kernel.sent[i].bytes);
		if (b->kernel.sent[i].port == port && v >= first && v - first < n) {
			assert_int_equal(v, next);
			next++;
		}
	}
	assert_int_equal(next, first + n);
}

static uint64_t
drops_total(const struct bench *b)
{
	uint64_t n = 0;
	for (size_t i = 0; i < DROP_COUNT; i++) {
		n += b->stats.drops.n[i];
	}
	return n;
}

/* --- GSO refused --- */

static void
refusal_by(int errnum, unsigned nth)
{
	struct bench *b = bench_init(&the_bench);
	add_fault(b,
		(struct fault){.errnum = errnum, .from = nth, .to = UINT32_MAX, .only_gso = true});
	struct endpoint to = v4(7);
	struct link_run runs[3] = {numbered(0, &to, 1000, 50, 0), numbered(1, &to, 1000, 130, 50),
		numbered(2, &to, 900, 3, 180)};
	link_udpsend_send(&b->send, runs, 3);
	assert_int_equal(b->kernel.sent_n, 183);
	assert_sent_once(b, 7, 0, 183);
	assert_int_equal(b->stats.tx_datagrams, 183);
	assert_int_equal(b->stats.tx_bytes, 180 * 1000 + 3 * 900);
	assert_int_equal(drops_total(b), 0);
}

static void
refused_segmentation_sends_the_same_datagrams_once(void **state)
{
	(void)state;
	static const int errnums[] = {EIO, EINVAL, EMSGSIZE, EOPNOTSUPP};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(errnums); i++) {
		for (unsigned nth = 0; nth < 6; nth++) {
			refusal_by(errnums[i], nth);
		}
	}
}

static void
refusal_holds_for_its_destination_alone_and_is_tried_again_later(void **state)
{
	(void)state;
	struct bench *b = bench_init(&the_bench);
	add_fault(b, (struct fault){.errnum = EIO, .to = UINT32_MAX, .only_gso = true, .port = 7});
	struct endpoint bad = v4(7), good = v4(8), bad6 = v6(9);
	struct link_run runs[3] = {numbered(0, &bad, 1000, 10, 0), numbered(1, &good, 1000, 10, 0),
		numbered(2, &bad6, 1000, 10, 0)};
	link_udpsend_send(&b->send, runs, 3);
	assert_int_equal(b->stats.gso_off_count, 1);
	assert_int_equal(link_udpsend_refused(&b->send), 1);
	assert_int_equal(b->lines, 1);

	/* Now one sendmmsg() of ten for the bad one, one message each for the others. */
	unsigned gso_tries = b->kernel.faults[0].seen;
	size_t calls = b->kernel.calls;
	link_udpsend_send(&b->send, runs, 1);
	assert_int_equal(b->kernel.faults[0].seen, gso_tries);
	assert_int_equal(b->kernel.calls, calls + 1);
	link_udpsend_send(&b->send, runs + 1, 1);
	link_udpsend_send(&b->send, runs + 2, 1);
	assert_int_equal(b->kernel.calls, calls + 3);
	assert_int_equal(b->kernel.sent_n, 60);

	/* One nanosecond before the time, and at it. */
	b->kernel.now.ns += LINK_UDP_GSO_RETRY_S * WEFT_NS_PER_S - 1;
	link_udpsend_send(&b->send, runs, 1);
	assert_int_equal(b->kernel.faults[0].seen, gso_tries);
	b->kernel.now.ns += 1;
	link_udpsend_send(&b->send, runs, 1);
	assert_int_equal(b->kernel.faults[0].seen, gso_tries + 1);
	assert_int_equal(b->stats.gso_off_count, 2);
	assert_int_equal(b->lines, 1); /* said once an hour */

	/* The device learned it meanwhile. */
	b->kernel.faults_n = 0;
	b->kernel.now.ns += LINK_UDP_GSO_RETRY_S * WEFT_NS_PER_S;
	calls = b->kernel.calls;
	link_udpsend_send(&b->send, runs, 1);
	assert_int_equal(b->kernel.calls, calls + 1);
	assert_int_equal(link_udpsend_refused(&b->send), 0);
	assert_int_equal(b->kernel.sent_n, 90);
	assert_int_equal(drops_total(b), 0);
}

static void
too_long_for_the_path_leaves_gso_on_for_shorter_segments(void **state)
{
	(void)state;
	struct bench *b = bench_init(&the_bench);
	add_fault(b, (struct fault){.errnum = EMSGSIZE, .to = 1, .only_gso = true});
	struct endpoint to = v4(7);
	struct link_run runs[2] = {numbered(0, &to, 1400, 10, 0), numbered(1, &to, 1300, 10, 10)};
	link_udpsend_send(&b->send, runs, 1);
	assert_int_equal(b->stats.gso_off_count, 0);
	assert_int_equal(link_udpsend_refused(&b->send), 0);
	size_t calls = b->kernel.calls;
	link_udpsend_send(&b->send, runs + 1, 1);
	assert_int_equal(b->kernel.calls, calls + 1);
	assert_int_equal(b->kernel.sent[19].len, 1300);
	assert_sent_once(b, 7, 0, 20);
}

static void
datagrams_too_long_even_singly_are_counted(void **state)
{
	(void)state;
	struct bench *b = bench_init(&the_bench);
	add_fault(b, (struct fault){.errnum = EMSGSIZE, .to = UINT32_MAX});
	struct endpoint to = v6(7);
	struct link_run run = numbered(0, &to, 1400, 10, 0);
	link_udpsend_send(&b->send, &run, 1);
	assert_int_equal(b->stats.drops.n[DROP_LINK_MSGSIZE], 10);
	assert_int_equal(drops_total(b), 10);
	assert_int_equal(b->stats.tx_datagrams, 0);
	/* Nothing worked, so nothing is known of segmentation. */
	assert_false(b->send.refusals_n > 0);
}

static void
many_refusing_destinations_turn_the_family_off(void **state)
{
	(void)state;
	struct bench *b = bench_init(&the_bench);
	add_fault(b, (struct fault){.errnum = EIO, .to = UINT32_MAX, .only_gso = true});
	for (uint16_t port = 1; port <= LINK_UDPSEND_REFUSALS + 1; port++) {
		struct endpoint to = v4(port);
		struct link_run run = numbered(0, &to, 500, 4, 0);
		link_udpsend_send(&b->send, &run, 1);
		assert_sent_once(b, port, 0, 4);
	}
	unsigned tries = b->kernel.faults[0].seen;
	struct endpoint other4 = v4(99), other6 = v6(99);
	struct link_run run4 = numbered(0, &other4, 500, 4, 0);
	struct link_run run6 = numbered(1, &other6, 500, 4, 0);
	link_udpsend_send(&b->send, &run4, 1);
	assert_int_equal(b->kernel.faults[0].seen, tries);
	link_udpsend_send(&b->send, &run6, 1);
	assert_int_equal(b->kernel.faults[0].seen, tries + 1);
}

/* --- limits --- */

static void
runs_are_cut_at_64_segments_and_at_65507_bytes(void **state)
{
	(void)state;
	struct bench *b = bench_init(&the_bench);
	struct endpoint to = v4(7);
	struct link_run runs[3] = {numbered(0, &to, 4, 64 * 3 + 1, 0),
		numbered(1, &to, 1452, 100, 1000), numbered(2, &to, 65507, 2, 2000)};
	link_udpsend_send(&b->send, runs, 3);
	/* 64 + 64 + 64 + 1; 45 + 45 + 10; 1 + 1: one sendmmsg(). */
	assert_int_equal(b->kernel.calls, 1);
	assert_int_equal(b->kernel.sent_n, 193 + 100 + 2);
	assert_int_equal(drops_total(b), 0);
	assert_sent_once(b, 7, 0, 193);
	assert_sent_once(b, 7, 1000, 100);
}

static void
batches_longer_than_one_call_keep_order(void **state)
{
	(void)state;
	struct bench *b = bench_init(&the_bench);
	b->send.has_gso = false;
	struct endpoint to = v4(7);
	struct link_run run = numbered(0, &to, 20, 1000, 0);
	link_udpsend_send(&b->send, &run, 1);
	assert_int_equal(b->kernel.calls, (1000 + LINK_UDPSEND_BATCH - 1) / LINK_UDPSEND_BATCH);
	assert_sent_once(b, 7, 0, 1000);
}

/* --- other errors --- */

static void
each_error_has_its_counter_and_spares_the_rest(void **state)
{
	(void)state;
	static const struct {
		int errnum;
		enum drop_reason reason;
	} cases[] = {{EPERM, DROP_LINK_PERM}, {EACCES, DROP_LINK_PERM},
		{ENETUNREACH, DROP_LINK_UNREACH}, {EHOSTUNREACH, DROP_LINK_UNREACH},
		{ENETDOWN, DROP_LINK_UNREACH}, {ENOBUFS, DROP_LINK_NOBUFS},
		{ENOMEM, DROP_LINK_NOBUFS}, {EAGAIN, DROP_LINK_NOBUFS}, {EBADF, DROP_LINK_ERROR},
		{EAFNOSUPPORT, DROP_LINK_FAMILY}};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		struct bench *b = bench_init(&the_bench);
		add_fault(
			b, (struct fault){.errnum = cases[i].errnum, .to = UINT32_MAX, .port = 7});
		struct endpoint bad = v4(7), good = v4(8);
		struct link_run runs[3] = {numbered(0, &good, 100, 10, 0),
			numbered(1, &bad, 100, 10, 0), numbered(2, &good, 100, 10, 10)};
		link_udpsend_send(&b->send, runs, 3);
		assert_int_equal(b->stats.drops.n[cases[i].reason], 10);
		assert_int_equal(drops_total(b), 10);
		assert_int_equal(b->stats.tx_datagrams, 20);
		assert_sent_once(b, 8, 0, 20);
		assert_int_equal(b->stats.gso_off_count, 0);
	}
}

static void
news_of_a_closed_port_costs_no_datagram(void **state)
{
	(void)state;
	struct bench *b = bench_init(&the_bench);
	add_fault(b, (struct fault){.errnum = ECONNREFUSED, .from = 1, .to = 2});
	struct endpoint to = v4(7);
	struct link_run runs[3] = {numbered(0, &to, 100, 10, 0), numbered(1, &to, 100, 10, 10),
		numbered(2, &to, 100, 10, 20)};
	link_udpsend_send(&b->send, runs, 3);
	/* After a failure within sendmmsg() the message is asked for again: that took the
	 * news, and the counter tells only what was lost of ours, nothing. */
	assert_int_equal(b->kernel.sent_n, 30);
	assert_sent_once(b, 7, 0, 30);
	assert_int_equal(b->stats.tx_datagrams, 30);

	/* The same at the head of a call, where it is seen. */
	add_fault(b, (struct fault){.errnum = ECONNREFUSED, .to = 1});
	link_udpsend_send(&b->send, runs, 1);
	assert_int_equal(b->stats.drops.n[DROP_LINK_REFUSED], 1);
	assert_int_equal(b->kernel.sent_n, 40);
}

static void
full_socket_is_waited_for_once_a_call(void **state)
{
	(void)state;
	struct bench *b = bench_init(&the_bench);
	struct endpoint to = v4(7);
	struct link_run runs[3] = {numbered(0, &to, 100, 10, 0), numbered(1, &to, 100, 10, 10),
		numbered(2, &to, 100, 10, 20)};
	add_fault(b, (struct fault){.errnum = EAGAIN, .from = 0, .to = 1});
	link_udpsend_send(&b->send, runs, 3);
	assert_int_equal(b->kernel.waits, 1);
	assert_int_equal(drops_total(b), 0);
	assert_sent_once(b, 7, 0, 30);

	b = bench_init(&the_bench);
	add_fault(b, (struct fault){.errnum = EAGAIN, .from = 0, .to = UINT32_MAX});
	link_udpsend_send(&b->send, runs, 3);
	assert_int_equal(b->kernel.waits, 1);
	assert_int_equal(b->stats.drops.n[DROP_LINK_NOBUFS], 30);
}

static void
pinned_source_that_is_gone_is_left_out(void **state)
{
	(void)state;
	static const int errnums[] = {EINVAL, ENETUNREACH, EADDRNOTAVAIL};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(errnums); i++) {
		for (int is_v6 = 0; is_v6 < 2; is_v6++) {
			struct bench *b = bench_init(&the_bench);
			add_fault(b,
				(struct fault){
					.errnum = errnums[i], .to = UINT32_MAX, .only_src = true});
			struct endpoint to = is_v6 ? v6(7) : v4(7);
			to.src = is_v6 ? v6(55).addr : v4(55).addr;
			struct link_run run = numbered(0, &to, 1000, 130, 0);
			link_udpsend_send(&b->send, &run, 1);
			assert_true(run.src_cleared);
			assert_int_equal(b->stats.gso_off_count, 0);
			assert_int_equal(drops_total(b), 0);
			assert_sent_once(b, 7, 0, 130);
			assert_false(b->kernel.sent[0].has_src);
		}
	}
}

/* Source gone and GSO refused at once. */
static void
both_faults_at_once_lose_nothing(void **state)
{
	(void)state;
	struct bench *b = bench_init(&the_bench);
	add_fault(b, (struct fault){.errnum = EINVAL, .to = UINT32_MAX, .only_src = true});
	add_fault(b, (struct fault){.errnum = EIO, .to = UINT32_MAX, .only_gso = true});
	struct endpoint to = v4(7);
	to.src = v4(55).addr;
	struct link_run run = numbered(0, &to, 1000, 130, 0);
	link_udpsend_send(&b->send, &run, 1);
	assert_true(run.src_cleared);
	assert_int_equal(b->stats.gso_off_count, 1); /* for 64 + 64 + 2 datagrams */
	assert_int_equal(drops_total(b), 0);
	assert_sent_once(b, 7, 0, 130);
}

static void
good_source_survives_when_gso_alone_is_refused(void **state)
{
	(void)state;
	struct bench *b = bench_init(&the_bench);
	add_fault(b, (struct fault){.errnum = EINVAL, .to = UINT32_MAX, .only_gso = true});
	struct endpoint to = v4(7);
	to.src = v4(55).addr;
	struct link_run run = numbered(0, &to, 1000, 20, 0);
	link_udpsend_send(&b->send, &run, 1);
	assert_false(run.src_cleared);
	for (size_t i = 0; i < b->kernel.sent_n; i++) {
		assert_true(b->kernel.sent[i].has_src);
		assert_int_equal(b->kernel.sent[i].src_last, 55);
	}
	assert_sent_once(b, 7, 0, 20);
}

static void
missing_family_is_counted(void **state)
{
	(void)state;
	struct bench *b = bench_init(&the_bench);
	b->send.v6 = -1;
	struct endpoint to4 = v4(7), to6 = v6(8), none = {0};
	struct link_run runs[3] = {numbered(0, &to6, 100, 10, 0), numbered(1, &to4, 100, 10, 0),
		numbered(2, &none, 100, 3, 0)};
	link_udpsend_send(&b->send, runs, 3);
	assert_int_equal(b->stats.drops.n[DROP_LINK_FAMILY], 13);
	assert_sent_once(b, 7, 0, 10);
}

/* Random runs against random faults: each datagram is sent once or counted once. */
static void
random_faults_neither_lose_nor_double(void **state)
{
	(void)state;
	static const int errnums[] = {
		EIO, EINVAL, EMSGSIZE, EPERM, ENETUNREACH, ECONNREFUSED, ENOBUFS, EAGAIN, EINTR};
	for (uint64_t seed = 1; seed <= 2000; seed++) {
		struct bench *b = bench_init(&the_bench);
		struct rng rng;
		rng_init(&rng, seed);
		size_t faults = 1 + rng_below(&rng, 4);
		for (size_t i = 0; i < faults; i++) {
			unsigned from = (unsigned)rng_below(&rng, 20);
			int e = errnums[rng_below(&rng, WEFT_ARRAY_LEN(errnums))];
			add_fault(b, (struct fault){.errnum = e,
					     .from = from,
					     .to = from + 1 + (unsigned)rng_below(&rng, 10),
					     .only_gso = rng_is_hit(&rng, 0.4),
					     .only_src = rng_is_hit(&rng, 0.3),
					     .only_single = rng_is_hit(&rng, 0.2),
					     .port = rng_is_hit(&rng, 0.5)
							     ? (uint16_t)(1 + rng_below(&rng, 4))
							     : 0});
		}
		struct endpoint to[8];
		struct link_run runs[8];
		uint32_t first = 0;
		size_t n = 1 + rng_below(&rng, 8);
		for (size_t i = 0; i < n; i++) {
			uint16_t port = (uint16_t)(1 + rng_below(&rng, 4));
			to[i] = rng_is_hit(&rng, 0.5) ? v4(port) : v6(port);
			if (rng_is_hit(&rng, 0.5)) {
				to[i].src = to[i].addr.family == IP_FAMILY_V4 ? v4(77).addr
									      : v6(77).addr;
			}
			unsigned count = 1 + (unsigned)rng_below(&rng, 100);
			runs[i] = numbered((unsigned)i, &to[i],
				(uint16_t)(4 + rng_below(&rng, 1500)), count, first);
			first += count;
		}
		link_udpsend_send(&b->send, runs, n);

		static uint8_t times[1000];
		memset(times, 0, sizeof(times));
		for (size_t i = 0; i < b->kernel.sent_n; i++) {
			times[load_le32(b->kernel.sent[i].bytes)]++;
		}
		uint32_t missing = 0;
		for (uint32_t i = 0; i < first; i++) {
			missing += times[i] == 0;
			if (times[i] > 1) {
				fail_msg("seed %llu: datagram %u was sent %u times",
					(unsigned long long)seed, i, times[i]);
			}
		}
		/* News of a closed port is counted without a loss, so the sum may be more. */
		uint64_t counted = drops_total(b);
		uint64_t news = b->stats.drops.n[DROP_LINK_REFUSED];
		if (b->stats.tx_datagrams != b->kernel.sent_n || counted < missing ||
			counted - news > missing) {
			fail_msg("seed %llu: %u missing, %llu counted, %llu of them refused",
				(unsigned long long)seed, missing, (unsigned long long)counted,
				(unsigned long long)news);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_segmentation_sends_the_same_datagrams_once),
		cmocka_unit_test(refusal_holds_for_its_destination_alone_and_is_tried_again_later),
		cmocka_unit_test(too_long_for_the_path_leaves_gso_on_for_shorter_segments),
		cmocka_unit_test(datagrams_too_long_even_singly_are_counted),
		cmocka_unit_test(many_refusing_destinations_turn_the_family_off),
		cmocka_unit_test(runs_are_cut_at_64_segments_and_at_65507_bytes),
		cmocka_unit_test(batches_longer_than_one_call_keep_order),
		cmocka_unit_test(each_error_has_its_counter_and_spares_the_rest),
		cmocka_unit_test(news_of_a_closed_port_costs_no_datagram),
		cmocka_unit_test(full_socket_is_waited_for_once_a_call),
		cmocka_unit_test(pinned_source_that_is_gone_is_left_out),
		cmocka_unit_test(both_faults_at_once_lose_nothing),
		cmocka_unit_test(good_source_survives_when_gso_alone_is_refused),
		cmocka_unit_test(missing_family_is_counted),
		cmocka_unit_test(random_faults_neither_lose_nor_double),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

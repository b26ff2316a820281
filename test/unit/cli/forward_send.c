/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <errno.h>
#include <netinet/udp.h>
#include <cmocka.h>

#include "base/rng.h"
#include "cli/forward_send.h"
#include "os/udp.h"

#define WIRE_MAX 4096

/* A kernel that keeps the length and first byte of every datagram that it is given. */
struct kernel {
	uint32_t len[WIRE_MAX];
	uint8_t first[WIRE_MAX];
	size_t n;
	unsigned calls;
	int fail_gso; /* errno for UDP_SEGMENT; 0 = taken */
	int fail;     /* errno for everything, so many times */
	unsigned fail_n;
	uint32_t len_max; /* EMSGSIZE above it; 0 = none */
	bool can_drain;
	unsigned waits;
};

static uint16_t
segment_of(const struct msghdr *m)
{
	uint16_t seg = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR((struct msghdr *)m, c)) {
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT) {
			memcpy(&seg, CMSG_DATA(c), sizeof(seg));
		}
	}
	return seg;
}

static int
take(struct kernel *k, const struct msghdr *m)
{
	uint16_t seg = segment_of(m);
	uint8_t bytes[70000];
	size_t len = 0;
	if (k->fail && k->fail_n > 0) {
		k->fail_n--;
		return k->fail;
	}
	if (seg && k->fail_gso) {
		return k->fail_gso;
	}
	for (size_t i = 0; i < m->msg_iovlen; i++) {
		memcpy(bytes + len, m->msg_iov[i].iov_base, m->msg_iov[i].iov_len);
		len += m->msg_iov[i].iov_len;
	}
	if (k->len_max && (seg ? seg : len) > k->len_max) {
		return EMSGSIZE;
	}
	for (size_t at = 0; at < len || at == 0; at += seg ? seg : len ? len : 1) {
		assert_true(k->n < WIRE_MAX);
		k->len[k->n] = (uint32_t)(seg && len - at > seg ? seg : len - at);
		k->first[k->n++] = len ? bytes[at] : 0;
	}
	return 0;
}

static ssize_t
fake_sendmsg(void *ctx, int fd, const struct msghdr *m, int flags)
{
	struct kernel *k = ctx;
	(void)fd;
	(void)flags;
	k->calls++;
	errno = take(k, m);
	return errno ? -1 : 0;
}

static int
fake_sendmmsg(void *ctx, int fd, struct mmsghdr *m, unsigned n, int flags)
{
	struct kernel *k = ctx;
	(void)fd;
	(void)flags;
	k->calls++;
	for (unsigned i = 0; i < n; i++) {
		int error = take(k, &m[i].msg_hdr);
		if (error) {
			errno = error;
			return i > 0 ? (int)i : -1;
		}
	}
	return (int)n;
}

static bool
fake_wait(void *ctx, int fd, int ms)
{
	struct kernel *k = ctx;
	(void)fd;
	assert_true(ms <= 10);
	k->waits++;
	return k->can_drain;
}

struct bench {
	struct kernel kernel;
	struct os_udp_calls calls;
	struct forward_send send;
	struct forward_sent sent;
	uint8_t data[WIRE_MAX * 32];
	size_t used;
};

static struct bench *
begin(void)
{
	static struct bench b;
	b = (struct bench){.calls = {.sendmsg = fake_sendmsg,
				   .sendmmsg = fake_sendmmsg,
				   .wait_writable = fake_wait,
				   .ctx = &b.kernel}};
	b.send.calls = &b.calls;
	return &b;
}

/* first: of each of its datagrams, counted up. */
static bool
add(struct bench *b, uint32_t len, uint32_t seg, uint8_t first, uint8_t ecn)
{
	uint8_t *data = b->data + b->used;
	assert_true(b->used + len <= sizeof(b->data));
	memset(data, 0, len);
	for (uint32_t at = 0; at < len; at += seg ? seg : len) {
		data[at] = first++;
	}
	b->used += len;
	struct forward_message m = {.data = data, .len = len, .seg = seg, .ecn = ecn};
	return forward_send_add(&b->send, &m);
}

static void
flush(struct bench *b, bool can_wait)
{
	struct endpoint to = {.addr = {.family = IP_FAMILY_V4, .b = {10, 0, 0, 1}}, .port = 7};
	forward_send_run(&b->send, 3, &to, false, can_wait, &b->sent);
	b->used = 0;
}

static void
neighbours_of_one_length_leave_together(void **state)
{
	(void)state;
	struct bench *b = begin();
	for (uint8_t i = 0; i < 5; i++) {
		assert_true(add(b, 1200, 0, i, 0));
	}
	assert_true(add(b, 100, 0, 5, 0)); /* a shorter one ends the run */
	assert_true(add(b, 100, 0, 6, 0));
	assert_int_equal(b->send.runs_n, 2);
	assert_true(add(b, 100, 0, 7, 1)); /* other ECN bits */
	assert_true(add(b, 0, 0, 0, 1));
	assert_true(add(b, 100, 0, 9, 1));
	assert_int_equal(b->send.runs_n, 5);
	flush(b, true);
	assert_int_equal(b->kernel.calls, 1);
	assert_int_equal(b->kernel.n, 10);
	assert_int_equal(b->sent.packets, 10);
	assert_int_equal(b->sent.bytes, 6400);
	assert_int_equal(b->kernel.len[5], 100);
	assert_int_equal(b->kernel.len[8], 0);
}

static void
refused_segmentation_goes_singly(void **state)
{
	(void)state;
	static const int errors[] = {EIO, EINVAL, EMSGSIZE, EOPNOTSUPP};
	for (size_t i = 0; i < 4; i++) {
		struct bench *b = begin();
		b->kernel.fail_gso = errors[i];
		assert_true(add(b, 2500, 1000, 0, 2));
		assert_true(add(b, 10, 0, 3, 2));
		flush(b, true);
		assert_int_equal(b->kernel.n, 4);
		assert_int_equal(b->sent.packets, 4);
		assert_int_equal(b->sent.dropped, 0);
		assert_int_equal(b->kernel.len[2], 500);
	}
}

static void
full_socket_is_waited_for_and_then_given_up(void **state)
{
	(void)state;
	struct bench *b = begin();
	b->kernel.fail = EAGAIN;
	b->kernel.fail_n = 1;
	b->kernel.can_drain = true;
	assert_true(add(b, 3000, 1000, 0, 0));
	flush(b, true);
	assert_int_equal(b->sent.packets, 3);
	assert_false(b->sent.is_stuck);
	b = begin();
	b->kernel.fail = EAGAIN;
	b->kernel.fail_n = 1000;
	assert_true(add(b, 3000, 1000, 0, 0));
	assert_true(add(b, 3, 0, 0, 0));
	flush(b, true);
	assert_int_equal(b->kernel.waits, 1);
	assert_int_equal(b->sent.packets, 0);
	assert_int_equal(b->sent.dropped, 4);
	assert_true(b->sent.is_stuck);
	assert_true(add(b, 3000, 1000, 0, 0));
	flush(b, false);
	assert_int_equal(b->kernel.waits, 1);
	assert_int_equal(b->sent.dropped, 3);
}

static void
refusal_of_the_target_costs_no_datagram(void **state)
{
	(void)state;
	struct bench *b = begin();
	b->kernel.fail = ECONNREFUSED;
	b->kernel.fail_n = 1;
	assert_true(add(b, 10, 0, 0, 0));
	flush(b, true);
	assert_int_equal(b->sent.refused, 1);
	assert_int_equal(b->sent.packets, 1);
	assert_int_equal(b->sent.dropped, 0);
}

static void
datagram_that_is_too_long_does_not_stop_the_rest(void **state)
{
	(void)state;
	struct bench *b = begin();
	b->kernel.len_max = 1000;
	assert_true(add(b, 10, 0, 0, 0));
	assert_true(add(b, 2000, 0, 1, 0));
	assert_true(add(b, 10, 0, 2, 0));
	flush(b, true);
	assert_int_equal(b->sent.packets, 2);
	assert_int_equal(b->sent.dropped, 1);
	assert_int_equal(b->kernel.n, 2);
}

/* Whatever is gathered, and whatever the kernel refuses: every datagram is on the wire as it was,
 * in order, or counted as dropped. */
static void
random_batch_is_sent_datagram_by_datagram(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3000; seed++) {
		struct rng rng;
		struct bench *b = begin();
		uint32_t len[WIRE_MAX];
		uint8_t first[WIRE_MAX], next = 1;
		size_t n = 0;
		rng_init(&rng, seed);
		b->kernel.fail_gso = rng_below(&rng, 2) ? 0 : EIO;
		size_t messages = 1 + (size_t)rng_below(&rng, FORWARD_SEND_MESSAGES);
		for (size_t i = 0; i < messages; i++) {
			uint32_t seg = (uint32_t)rng_below(&rng, 3) * 40;
			uint32_t count = seg ? 1 + (uint32_t)rng_below(&rng, 30) : 1;
			uint32_t last = seg ? 1 + (uint32_t)rng_below(&rng, seg)
					    : (uint32_t)rng_below(&rng, 90);
			uint32_t total = seg * (count - 1) + last;
			for (uint32_t k = 0; k < count; k++) {
				len[n] = k + 1 < count ? seg : last;
				first[n] = len[n] ? (uint8_t)(next + k) : 0;
				n++;
			}
			assert_true(add(b, total, seg, next, (uint8_t)rng_below(&rng, 2)));
			next = (uint8_t)(next + count);
		}
		flush(b, true);
		if (b->kernel.n != n || memcmp(b->kernel.len, len, n * sizeof(len[0])) != 0 ||
			memcmp(b->kernel.first, first, n) != 0 || b->sent.packets != n ||
			b->sent.dropped) {
			fail_msg("seed %d: %zu of %zu", (int)seed, b->kernel.n, n);
		}
	}
}

static void
there_is_room_for_so_many_messages(void **state)
{
	(void)state;
	struct bench *b = begin();
	for (unsigned i = 0; i < FORWARD_SEND_MESSAGES; i++) {
		assert_true(add(b, i + 1, 0, 0, 0));
	}
	assert_false(add(b, 1, 0, 0, 0));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_of_one_length_leave_together),
		cmocka_unit_test(refused_segmentation_goes_singly),
		cmocka_unit_test(full_socket_is_waited_for_and_then_given_up),
		cmocka_unit_test(refusal_of_the_target_costs_no_datagram),
		cmocka_unit_test(datagram_that_is_too_long_does_not_stop_the_rest),
		cmocka_unit_test(random_batch_is_sent_datagram_by_datagram),
		cmocka_unit_test(there_is_room_for_so_many_messages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

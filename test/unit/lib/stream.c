/* SPDX-License-Identifier: Apache-2.0 */
/* TCP between two nodes behaves as TCP. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "world.h"

#define MIB ((size_t)1 << 20)

static void
for_both_families(void (*test)(struct world *w))
{
	static const int families[] = {4, 6};
	for (int i = 0; i < 2; i++) {
		struct world w = {.family = families[i]};
		world_open(&w);
		test(&w);
		world_close(&w);
	}
}

static void
half_close(struct world *w)
{
	for (int first = 0; first < 2; first++) {
		int fd[2];
		world_connect(w, fd);
		world_write(fd[first], 3000, 0);
		assert_int_equal(shutdown(fd[first], SHUT_WR), 0);
		world_read(fd[!first], 3000, 0);
		world_expect_end(fd[!first]);
		/* The other way is open as before, for more than buffers hold. */
		world_write(fd[!first], 100000, 3000);
		assert_int_equal(shutdown(fd[!first], SHUT_WR), 0);
		world_read(fd[first], 100000, 3000);
		world_expect_end(fd[first]);
		close(fd[0]);
		close(fd[1]);
	}
}

static void
half_close_leaves_the_other_way_open(void **state)
{
	(void)state;
	for_both_families(half_close);
}

static void
reset(struct world *w)
{
	for (int first = 0; first < 2; first++) {
		struct linger hard = {.l_onoff = 1};
		char c;
		int fd[2];
		world_connect(w, fd);
		assert_int_equal(
			setsockopt(fd[first], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
		close(fd[first]);
		assert_int_equal(recv(fd[!first], &c, 1, 0), -1);
		assert_int_equal(errno, ECONNRESET);
		close(fd[!first]);
	}
}

static void
reset_is_seen_as_econnreset(void **state)
{
	(void)state;
	for_both_families(reset);
}

struct stream {
	int fd;
	size_t n;
	atomic_bool is_done;
	atomic_uint timeouts;
	bool is_wrong;
};

/* Goes on after each timeout from where the byte count stands. */
static void *
send_all(void *arg)
{
	struct stream *s = arg;
	uint8_t *buf = malloc(65536);
	for (size_t at = 0; at < s->n;) {
		size_t part = s->n - at < 65536 ? s->n - at : 65536;
		world_fill(buf, part, at);
		ssize_t got = send(s->fd, buf, part, MSG_NOSIGNAL);
		if (got > 0) {
			at += (size_t)got;
		} else if (errno == EAGAIN) {
			s->timeouts++;
		} else {
			s->is_wrong = true;
			break;
		}
	}
	free(buf);
	s->is_done = true;
	return NULL;
}

static void *
recv_all(void *arg)
{
	struct stream *s = arg;
	uint8_t *buf = malloc(65536), *expected = malloc(65536);
	for (size_t at = 0; at < s->n;) {
		ssize_t got = recv(s->fd, buf, 65536, 0);
		if (got > 0) {
			world_fill(expected, (size_t)got, at);
			s->is_wrong |= memcmp(buf, expected, (size_t)got) != 0;
			at += (size_t)got;
		} else if (got < 0 && errno == EAGAIN) {
			s->timeouts++;
		} else {
			s->is_wrong = true;
			break;
		}
	}
	free(buf);
	free(expected);
	s->is_done = true;
	return NULL;
}

/* Deadlines of both directions come and go while bytes are in flight. */
static void
timeouts(struct world *w)
{
	static const struct timeval ways[] = {
		{.tv_usec = 1000}, {.tv_sec = 3600}, {0}, {.tv_usec = 3000}};
	int fd[2];
	pthread_t threads[2];
	world_connect(w, fd);
	struct stream out = {.fd = fd[0], .n = 24 * MIB}, in = {.fd = fd[1], .n = 24 * MIB};
	assert_int_equal(pthread_create(&threads[0], NULL, send_all, &out), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, recv_all, &in), 0);
	for (unsigned i = 0; !in.is_done && i < 20000; i++) {
		const struct timeval *t = &ways[i % 4];
		setsockopt(fd[0], SOL_SOCKET, SO_SNDTIMEO, t, sizeof(*t));
		setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, t, sizeof(*t));
		usleep(1000);
	}
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	assert_false(out.is_wrong);
	assert_false(in.is_wrong);
	close(fd[0]);
	close(fd[1]);
}

static void
changing_timeouts_loses_nothing_in_flight(void **state)
{
	(void)state;
	for_both_families(timeouts);
}

static void
timeout(struct world *w)
{
	struct timeval short_time = {.tv_usec = 50000}, none = {0};
	int fd[2];
	char c;
	world_connect(w, fd);
	setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &short_time, sizeof(short_time));
	int64_t t0 = world_ms();
	assert_int_equal(recv(fd[1], &c, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
	assert_true(world_ms() - t0 >= 45);
	/* What came after the timeout is all there. */
	world_write(fd[0], 70000, 0);
	setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
	world_read(fd[1], 70000, 0);
	close(fd[0]);
	close(fd[1]);
}

static void
a_read_that_timed_out_can_be_repeated(void **state)
{
	(void)state;
	for_both_families(timeout);
}

/* A writer that does not wait, against a reader that does nothing: it is stopped after what the
 * two socket buffers hold. */
static void
back_pressure(struct world *w)
{
	static uint8_t buf[65536];
	int fd[2];
	size_t sent = 0;
	unsigned idle = 0;
	world_connect(w, fd);
	while (idle < 20) {
		world_fill(buf, sizeof(buf), sent);
		ssize_t got = send(fd[0], buf, sizeof(buf), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (got > 0) {
			sent += (size_t)got;
			idle = 0;
			assert_true(sent < 64 * MIB);
		} else {
			assert_int_equal(errno, EAGAIN);
			idle++;
			usleep(10000);
		}
	}
	assert_true(sent > 65536);
	world_read(fd[1], sent, 0);
	close(fd[0]);
	close(fd[1]);
}

static void
a_slow_reader_stops_the_writer_and_loses_nothing(void **state)
{
	(void)state;
	for_both_families(back_pressure);
}

/* Both dial each other at once, before either has spoken. */
static void
two_nodes_of_a_process_dial_each_other(void **state)
{
	(void)state;
	struct world w = {.family = 4};
	world_open(&w);
	uint16_t ports[2];
	int listeners[2] = {world_listen(&w, 0, &ports[0]), world_listen(&w, 1, &ports[1])};
	struct weft_dial_options o = {.size = sizeof(o), .flags = WEFT_NONBLOCK};
	struct weft_detail why = DETAIL();
	int out[2], in[2];
	for (int i = 0; i < 2; i++) {
		OK(weft_dial(w.n[i], "tcp", world_at(&w, !i, ports[!i]), &o, &out[i], &why), &why);
	}
	o.flags = 0;
	o.timeout_ms = 20000;
	for (int i = 0; i < 2; i++) {
		OK(weft_accept(w.n[i], listeners[i], &o, &in[i], NULL), NULL);
	}
	for (int i = 0; i < 2; i++) {
		struct pollfd p = {.fd = out[i], .events = POLLOUT};
		int e = -1;
		socklen_t len = sizeof(e);
		assert_int_equal(poll(&p, 1, 20000), 1);
		assert_int_equal(getsockopt(out[i], SOL_SOCKET, SO_ERROR, &e, &len), 0);
		assert_int_equal(e, 0);
		assert_true(fcntl(out[i], F_GETFL) & O_NONBLOCK);
		assert_false(fcntl(in[i], F_GETFL) & O_NONBLOCK);
		world_write(out[i], 1000, 0);
		world_read(in[!i], 1000, 0);
	}
	for (int i = 0; i < 2; i++) {
		close(out[i]);
		close(in[i]);
		close(listeners[i]);
	}
	world_close(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_close_leaves_the_other_way_open),
		cmocka_unit_test(reset_is_seen_as_econnreset),
		cmocka_unit_test(changing_timeouts_loses_nothing_in_flight),
		cmocka_unit_test(a_read_that_timed_out_can_be_repeated),
		cmocka_unit_test(a_slow_reader_stops_the_writer_and_loses_nothing),
		cmocka_unit_test(two_nodes_of_a_process_dial_each_other),
	};
	return world_main("stream", tests, WEFT_ARRAY_LEN(tests));
}

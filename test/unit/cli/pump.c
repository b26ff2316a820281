/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/rng.h"
#include "cli/pump.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/loop.h"
#include "os/stream.h"

#define PATIENCE_NS (20 * WEFT_NS_PER_S)

/* Two programs with a pump between: what is written to peer[0] comes out at peer[1]. */
struct bench {
	struct os_loop *loop;
	struct pumps *all;
	struct pump *pump;
	int peer[PUMP_ENDS]; /* the programs' sockets */
	int mine[PUMP_ENDS]; /* the pump's */
	bool is_done;
	struct pump_result result;
};

static void
on_done(void *ctx, const struct pump_result *r)
{
	struct bench *b = ctx;
	assert_false(b->is_done);
	b->is_done = true;
	b->result = *r;
}

static void
set_nonblocking(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
}

static void
tcp_pair(int fds[2])
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(l >= 0);
	assert_int_equal(bind(l, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&at, &len), 0);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fds[0], (struct sockaddr *)&at, len), 0);
	fds[1] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fds[1] >= 0);
	close(l);
}

static void
unix_pair(int fds[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
}

static void
bench_open(struct bench *b, void (*make_pair)(int fds[2]))
{
	*b = (struct bench){0};
	assert_int_equal(os_loop_new(PUMP_WATCHES, &b->loop), WEFT_OK);
	assert_int_equal(pumps_new(b->loop, &b->all), WEFT_OK);
	for (int i = 0; i < PUMP_ENDS; i++) {
		int fds[2];
		make_pair(fds);
		set_nonblocking(fds[0]);
		set_nonblocking(fds[1]);
		b->peer[i] = fds[0];
		b->mine[i] = fds[1];
	}
	struct pump_config c = {.done = on_done, .ctx = b};
	for (int i = 0; i < PUMP_ENDS; i++) {
		c.end[i].in = c.end[i].out = b->mine[i];
	}
	assert_int_equal(pump_new(b->all, &c, &b->pump), WEFT_OK);
}

static void
bench_close(struct bench *b)
{
	pumps_free(b->all);
	os_loop_free(b->loop);
	os_fd_close(&b->peer[0]);
	os_fd_close(&b->peer[1]);
}

/* One turn of the owner's loop; waits at most so long. */
static void
turn(struct bench *b, int64_t ms)
{
	struct mono now = os_clock_mono();
	struct mono at = mono_min(pumps_run(b->all, now), mono_add_ns(now, ms * WEFT_NS_PER_MS));
	os_loop_wait(b->loop, at);
	(void)pumps_run(b->all, os_clock_mono());
}

static void
turns_until_done(struct bench *b)
{
	struct mono end = mono_add_ns(os_clock_mono(), PATIENCE_NS);
	while (!b->is_done) {
		assert_true(mono_is_before(os_clock_mono(), end));
		turn(b, 10);
	}
}

static void
put(struct bench *b, int end, const char *text)
{
	assert_int_equal(write(b->peer[end], text, strlen(text)), strlen(text));
}

/* Reads exactly that text. */
static void
expect(struct bench *b, int end, const char *text)
{
	char got[64];
	size_t len = strlen(text), n = 0;
	struct mono until = mono_add_ns(os_clock_mono(), PATIENCE_NS);
	while (n < len) {
		ssize_t r = read(b->peer[end], got + n, len - n);
		assert_true(r > 0 || (r < 0 && errno == EAGAIN));
		n += r > 0 ? (size_t)r : 0;
		assert_true(mono_is_before(os_clock_mono(), until));
		turn(b, 1);
	}
	assert_memory_equal(got, text, len);
}

/* Reads until the end or a failure; returns 0 or errno. *n: the bytes before. */
static int
read_rest(struct bench *b, int end, size_t *n)
{
	static char got[1 << 16];
	struct mono until = mono_add_ns(os_clock_mono(), PATIENCE_NS);
	*n = 0;
	for (;;) {
		ssize_t r = read(b->peer[end], got, sizeof(got));
		if (r == 0) {
			return 0;
		}
		if (r < 0 && errno != EAGAIN) {
			return errno;
		}
		*n += r > 0 ? (size_t)r : 0;
		assert_true(mono_is_before(os_clock_mono(), until));
		if (!b->is_done) {
			turn(b, 1);
		} else if (r < 0) {
			struct pollfd p = {.fd = b->peer[end], .events = POLLIN};
			assert_true(poll(&p, 1, 10000) == 1);
		}
	}
}

/* Writes until nothing is taken any more; returns how much. */
static size_t
fill(struct bench *b, int end)
{
	static const char zeros[1 << 16];
	size_t n = 0;
	for (int idle = 0; idle < 20;) {
		ssize_t r = write(b->peer[end], zeros, sizeof(zeros));
		assert_true(r > 0 || (r < 0 && errno == EAGAIN));
		n += r > 0 ? (size_t)r : 0;
		idle = r > 0 ? 0 : idle + 1;
		turn(b, 2);
	}
	return n;
}

static void
pump_hands_on_half_close_and_goes_on_the_other_way(void **state)
{
	(void)state;
	struct bench b;
	bench_open(&b, tcp_pair);
	put(&b, 0, "question");
	assert_int_equal(shutdown(b.peer[0], SHUT_WR), 0);
	expect(&b, 1, "question");
	size_t n;
	assert_int_equal(read_rest(&b, 1, &n), 0);
	assert_int_equal(n, 0);
	assert_false(b.is_done);
	put(&b, 1, "answer");
	expect(&b, 0, "answer");
	assert_int_equal(pump_bytes(b.pump, PUMP_B), 6);
	assert_int_equal(shutdown(b.peer[1], SHUT_WR), 0);
	turns_until_done(&b);
	assert_int_equal(b.result.err, WEFT_OK);
	assert_int_equal(b.result.bytes[PUMP_A], 8);
	assert_int_equal(b.result.bytes[PUMP_B], 6);
	assert_int_equal(read_rest(&b, 0, &n), 0);
	bench_close(&b);
}

static void
reset(struct bench *b, int end)
{
	os_stream_reset(&b->peer[end]);
}

static void
pump_hands_on_reset_both_ways(void **state)
{
	(void)state;
	for (int end = 0; end < PUMP_ENDS; end++) {
		struct bench b;
		size_t n;
		bench_open(&b, tcp_pair);
		put(&b, end, "x");
		expect(&b, 1 - end, "x");
		reset(&b, end);
		turns_until_done(&b);
		assert_int_equal(b.result.err, WEFT_ECLOSED);
		assert_int_equal(b.result.os_errno, ECONNRESET);
		assert_int_equal(b.result.end, end);
		assert_int_equal(read_rest(&b, 1 - end, &n), ECONNRESET);
		bench_close(&b);
	}
}

static void
pump_delivers_what_came_before_a_reset(void **state)
{
	(void)state;
	struct bench b;
	size_t n;
	bench_open(&b, tcp_pair);
	/* A reader that is slow: the pump holds some, the kernel more. */
	size_t written = fill(&b, 0);
	assert_true(written > PUMP_HELD_MAX);
	/* The kernel throws away what the writer itself has not sent; so nothing is left there. */
	size_t got = 0;
	static char buf[1 << 16];
	struct mono until = mono_add_ns(os_clock_mono(), PATIENCE_NS);
	while (os_stream_unsent(b.peer[0]) > 0) {
		ssize_t r = read(b.peer[1], buf, sizeof(buf));
		assert_true(r > 0 || (r < 0 && errno == EAGAIN));
		got += r > 0 ? (size_t)r : 0;
		assert_true(mono_is_before(os_clock_mono(), until));
		turn(&b, 1);
	}
	reset(&b, 0);
	turn(&b, 1);
	assert_int_equal(read_rest(&b, 1, &n), ECONNRESET);
	assert_int_equal(got + n, written);
	turns_until_done(&b);
	assert_int_equal(b.result.err, WEFT_ECLOSED);
	bench_close(&b);
}

static void
pump_resets_an_end_that_takes_nothing_after_a_while(void **state)
{
	(void)state;
	struct bench b;
	bench_open(&b, tcp_pair);
	(void)fill(&b, 0);
	struct mono begin = os_clock_mono();
	reset(&b, 0);
	turns_until_done(&b);
	int64_t took_ns = mono_diff_ns(os_clock_mono(), begin);
	assert_true(took_ns >= WEFT_NS_PER_S);
	bench_close(&b);
}

static void
pump_reads_no_more_than_it_may_hold_for_a_slow_reader(void **state)
{
	(void)state;
	struct bench b;
	bench_open(&b, unix_pair);
	size_t written = fill(&b, 0);
	/* Both socket pairs hold a buffer's worth; the rest would be ours. */
	int buffer = 0;
	socklen_t len = sizeof(buffer);
	assert_int_equal(getsockopt(b.peer[0], SOL_SOCKET, SO_SNDBUF, &buffer, &len), 0);
	assert_true(written <= 2 * (size_t)buffer + PUMP_HELD_MAX);
	/* The other way is not held up. */
	put(&b, 1, "meanwhile");
	expect(&b, 0, "meanwhile");
	assert_int_equal(shutdown(b.peer[0], SHUT_WR), 0);
	assert_int_equal(shutdown(b.peer[1], SHUT_WR), 0);
	size_t n;
	assert_int_equal(read_rest(&b, 1, &n), 0);
	assert_int_equal(n, written);
	turns_until_done(&b);
	assert_int_equal(b.result.err, WEFT_OK);
	bench_close(&b);
}

/* Standard streams: two pipes, or a file. */
static void
pump_copies_between_pipes_and_a_socket(void **state)
{
	(void)state;
	struct bench b = {0};
	int in[2], out[2], net[2];
	size_t n;
	assert_int_equal(os_loop_new(PUMP_WATCHES, &b.loop), WEFT_OK);
	assert_int_equal(pumps_new(b.loop, &b.all), WEFT_OK);
	assert_int_equal(pipe2(in, O_NONBLOCK | O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_NONBLOCK | O_CLOEXEC), 0);
	tcp_pair(net);
	set_nonblocking(net[0]);
	set_nonblocking(net[1]);
	struct pump_config c = {
		.end = {{in[0], out[1]}, {net[1], net[1]}}, .done = on_done, .ctx = &b};
	assert_int_equal(pump_new(b.all, &c, &b.pump), WEFT_OK);
	b.peer[0] = out[0];
	b.peer[1] = net[0];
	assert_int_equal(write(in[1], "hello", 5), 5);
	os_fd_close(&in[1]);
	expect(&b, 1, "hello");
	assert_int_equal(read_rest(&b, 1, &n), 0);
	put(&b, 1, "world");
	expect(&b, 0, "world");
	os_fd_close(&b.peer[1]);
	turns_until_done(&b);
	assert_int_equal(b.result.err, WEFT_OK);
	/* The last writer of the pipe is gone. */
	assert_int_equal(read_rest(&b, 0, &n), 0);
	bench_close(&b);
}

static void
pump_reads_a_file_and_fails_when_nobody_reads_its_output(void **state)
{
	(void)state;
	struct bench b = {0};
	int out[2], net[2];
	char path[] = "/tmp/weft-pump-XXXXXX";
	int file = mkstemp(path);
	assert_true(file >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(ftruncate(file, 3 << 20), 0);
	assert_int_equal(os_loop_new(PUMP_WATCHES, &b.loop), WEFT_OK);
	assert_int_equal(pumps_new(b.loop, &b.all), WEFT_OK);
	assert_int_equal(pipe2(out, O_NONBLOCK | O_CLOEXEC), 0);
	tcp_pair(net);
	set_nonblocking(net[0]);
	set_nonblocking(net[1]);
	struct pump_config c = {
		.end = {{file, out[1]}, {net[1], net[1]}}, .done = on_done, .ctx = &b};
	assert_int_equal(pump_new(b.all, &c, &b.pump), WEFT_OK);
	b.peer[0] = -1;
	b.peer[1] = net[0];
	size_t n;
	assert_int_equal(read_rest(&b, 1, &n), 0);
	assert_int_equal(n, 3 << 20);
	os_fd_close(&out[0]);
	put(&b, 1, "x");
	turns_until_done(&b);
	assert_int_equal(b.result.os_errno, EPIPE);
	assert_int_equal(b.result.end, PUMP_A);
	bench_close(&b);
}

static void
pump_free_resets_both_ends(void **state)
{
	(void)state;
	struct bench b;
	size_t n;
	bench_open(&b, tcp_pair);
	pump_free(b.pump);
	b.is_done = true;
	assert_int_equal(read_rest(&b, 0, &n), ECONNRESET);
	assert_int_equal(read_rest(&b, 1, &n), ECONNRESET);
	bench_close(&b);
}

/* Bytes that each end has still to write, and a check of what arrives: byte k of a stream is
 * stream_byte(k). */
struct flow {
	size_t total, written, got;
	bool is_shut, has_ended;
};

static uint8_t
stream_byte(size_t k, int from)
{
	return (uint8_t)((k * 2654435761u) >> 13 ^ (k >> 7) ^ (from ? 0x5a : 0));
}

static void
random_step(struct bench *b, struct flow f[PUMP_ENDS], struct rng *rng)
{
	static uint8_t buf[1 << 18];
	int from = (int)rng_below(rng, 2);
	struct flow *w = &f[from];
	size_t len = 1 + (size_t)rng_below(rng, rng_below(rng, 4) ? 3000 : sizeof(buf));
	if (rng_below(rng, 2)) {
		len = len < w->total - w->written ? len : w->total - w->written;
		for (size_t i = 0; i < len; i++) {
			buf[i] = stream_byte(w->written + i, from);
		}
		ssize_t r = len ? write(b->peer[from], buf, len) : 0;
		assert_true(r >= 0 || errno == EAGAIN);
		w->written += r > 0 ? (size_t)r : 0;
		if (w->written == w->total && !w->is_shut) {
			assert_int_equal(shutdown(b->peer[from], SHUT_WR), 0);
			w->is_shut = true;
		}
	} else if (!w->has_ended) {
		ssize_t r = read(b->peer[1 - from], buf, len);
		assert_true(r >= 0 || errno == EAGAIN);
		for (ssize_t i = 0; i < r; i++) {
			assert_int_equal(buf[i], stream_byte(w->got + (size_t)i, from));
		}
		w->got += r > 0 ? (size_t)r : 0;
		if (r == 0) {
			w->has_ended = true;
			assert_true(w->is_shut);
			assert_int_equal(w->got, w->total);
		}
	}
}

static void
run_seed(uint64_t seed, void (*make_pair)(int fds[2]), bool is_copying)
{
	struct bench b;
	struct rng rng;
	struct flow f[PUMP_ENDS] = {0};
	rng_init(&rng, seed);
	bench_open(&b, make_pair);
	if (is_copying) {
		pumps_set_copying(b.all);
	}
	for (int i = 0; i < PUMP_ENDS; i++) {
		f[i].total = (size_t)rng_below(&rng, rng_below(&rng, 2) ? 5000 : 12 << 20);
	}
	struct mono until = mono_add_ns(os_clock_mono(), PATIENCE_NS);
	while (!(b.is_done && f[0].has_ended && f[1].has_ended)) {
		random_step(&b, f, &rng);
		if (!b.is_done && rng_below(&rng, 3) == 0) {
			turn(&b, 0);
		}
		assert_true(mono_is_before(os_clock_mono(), until));
	}
	assert_int_equal(b.result.err, WEFT_OK);
	assert_int_equal(b.result.bytes[0], f[0].total);
	assert_int_equal(b.result.bytes[1], f[1].total);
	bench_close(&b);
}

static void
pump_carries_random_streams_unchanged(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 24; seed++) {
		print_message("# seed %d\n", (int)seed);
		run_seed(seed, seed % 2 ? tcp_pair : unix_pair, seed % 8 > 5);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pump_hands_on_half_close_and_goes_on_the_other_way),
		cmocka_unit_test(pump_hands_on_reset_both_ways),
		cmocka_unit_test(pump_delivers_what_came_before_a_reset),
		cmocka_unit_test(pump_resets_an_end_that_takes_nothing_after_a_while),
		cmocka_unit_test(pump_reads_no_more_than_it_may_hold_for_a_slow_reader),
		cmocka_unit_test(pump_copies_between_pipes_and_a_socket),
		cmocka_unit_test(pump_reads_a_file_and_fails_when_nobody_reads_its_output),
		cmocka_unit_test(pump_free_resets_both_ends),
		cmocka_unit_test(pump_carries_random_streams_unchanged),
	};
	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

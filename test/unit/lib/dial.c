/* SPDX-License-Identifier: Apache-2.0 */
/* Dialing, listening, accepting: results, deadlines, cancelling, identities, names. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "world.h"

static struct world world; /* fresh for each test */

static int
setup(void **state)
{
	(void)state;
	world = (struct world){.family = 4};
	world_open(&world);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	world_close(&world);
	return 0;
}

static enum weft_err
dial(const char *network, const char *address, const struct weft_dial_options *o)
{
	struct weft_detail why = DETAIL();
	int fd = -7;
	enum weft_err e = weft_dial(world.n[0], network, address, o, &fd, &why);
	if (e) {
		assert_int_equal(fd, -7);
		assert_int_equal(why.code, e);
		assert_true(strlen(why.text) > 10);
	} else {
		close(fd);
	}
	return e;
}

static void
dial_tells_apart_what_can_go_wrong(void **state)
{
	(void)state;
	struct weft_dial_options o = {.size = sizeof(o), .timeout_ms = 10000}, odd = o;
	const struct {
		const char *network, *address;
		enum weft_err e;
	} cases[] = {
		{"tcp", WORLD_B4 ":1", WEFT_EREFUSED},
		{"tcp6", "[" WORLD_B6 "]:1", WEFT_EREFUSED},
		{"tcp", "[::ffff:" WORLD_B4 "]:1", WEFT_EREFUSED},
		{"tcp6", "[::ffff:" WORLD_B4 "]:1", WEFT_ENOENT},
		{"tcp", "10.99.0.1:80", WEFT_EUNREACH},
		{"tcp", "10.77.0.77:80", WEFT_EUNREACH},
		{"udp", "10.99.0.1:80", WEFT_EUNREACH},
		{"tcp", "[fd99::1]:80", WEFT_EUNREACH},
		{"tcp", "nobody.example:80", WEFT_ENOENT},
		{"tcp", "b:no-such-service", WEFT_ENOENT},
		{"tcp", "b:65536", WEFT_ENOENT},
		{"tcp6", WORLD_B4 ":80", WEFT_ENOENT},
		{"tcp6", "nowhere:80", WEFT_ENOENT},
		{"tcp", WORLD_B4, WEFT_EPARSE},
		{"tcp", WORLD_B6 ":80", WEFT_EPARSE},
		{"tcp", "[" WORLD_B6 ":80", WEFT_EPARSE},
		{"tcp", ":80", WEFT_ENOENT},
		{"tcp", "", WEFT_EPARSE},
		{"sctp", "b:80", WEFT_EINVAL},
		{"tcp46", "b:80", WEFT_EINVAL},
		{"tcp5", "b:80", WEFT_EINVAL},
	};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		enum weft_err e = dial(cases[i].network, cases[i].address, &o);
		if (e != cases[i].e) {
			fail_msg("%s %s: %s, not %s", cases[i].network, cases[i].address,
				weft_err_text(e), weft_err_text(cases[i].e));
		}
	}
	odd.size = 8;
	assert_int_equal(dial("tcp", "b:80", &odd), WEFT_EINVAL);
	odd = o;
	odd.flags = 0x80;
	assert_int_equal(dial("tcp", "b:80", &odd), WEFT_EINVAL);
	odd = o;
	odd.timeout_ms = -1;
	assert_int_equal(dial("tcp", "b:80", &odd), WEFT_EINVAL);
	odd = o;
	odd.local = "10.1.1.1:0";
	assert_int_equal(dial("tcp", WORLD_B4 ":80", &odd), WEFT_EUNREACH);
	odd.local = "x:0";
	assert_int_equal(dial("tcp", WORLD_B4 ":80", &odd), WEFT_EPARSE);
	odd.local = "[" WORLD_A6 "]:0";
	assert_int_equal(dial("tcp4", WORLD_B4 ":80", &odd), WEFT_EINVAL);
	assert_int_equal(dial(NULL, "b:80", NULL), WEFT_EINVAL);
	assert_int_equal(dial("tcp", NULL, NULL), WEFT_EINVAL);
	int fd;
	assert_int_equal(weft_dial(NULL, "tcp", "b:80", NULL, &fd, NULL), WEFT_EINVAL);
	assert_int_equal(weft_dial(world.n[0], "tcp", "b:80", NULL, NULL, NULL), WEFT_EINVAL);
}

static void
dial_ends_at_its_deadline(void **state)
{
	(void)state;
	struct weft_dial_options o = {.size = sizeof(o), .timeout_ms = 200};
	int64_t t0 = world_ms();
	assert_int_equal(dial("tcp", "nowhere:80", &o), WEFT_ETIMEDOUT);
	assert_true(world_ms() - t0 >= 195);
}

static void
dial_without_waiting_reports_by_pollout_and_so_error(void **state)
{
	(void)state;
	struct weft_dial_options o = {.size = sizeof(o), .flags = WEFT_NONBLOCK};
	struct weft_detail why = DETAIL();
	uint16_t port;
	int listener = world_listen(&world, 1, &port);
	const struct {
		uint16_t port;
		int e;
	} cases[] = {{port, 0}, {1, ECONNREFUSED}};
	for (size_t i = 0; i < 2; i++) {
		int fd, e = -1;
		socklen_t len = sizeof(e);
		OK(weft_dial(world.n[0], "tcp", world_at(&world, 1, cases[i].port), &o, &fd, &why),
			&why);
		assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		struct pollfd p = {.fd = fd, .events = POLLOUT};
		assert_int_equal(poll(&p, 1, 20000), 1);
		assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len), 0);
		assert_int_equal(e, cases[i].e);
		close(fd);
	}
	/* Where nobody answers it is under way. */
	int fd;
	OK(weft_dial(world.n[0], "tcp", "nowhere:80", &o, &fd, &why), &why);
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	assert_int_equal(poll(&p, 1, 50), 0);
	close(fd);
	close(listener);
}

static void
dial_leaves_from_where_it_is_told(void **state)
{
	(void)state;
	struct weft_dial_options o = {.size = sizeof(o), .timeout_ms = 20000};
	struct weft_detail why = DETAIL();
	static const char *const locals[] = {WORLD_A4 ":0", ":5000", "[" WORLD_A6 "]:5001"};
	static const char *const expected[] = {WORLD_A4, WORLD_A4, WORLD_A6};
	uint16_t port;
	int listener = world_listen(&world, 1, &port);
	for (size_t i = 0; i < 3; i++) {
		struct weft_identity who = {.size = sizeof(who)};
		char to[32];
		int fd, got;
		o.local = locals[i];
		snprintf(to, sizeof(to), "b:%u", port);
		OK(weft_dial(world.n[0], i == 1 ? "tcp4" : "tcp", to, &o, &fd, &why), &why);
		OK(weft_accept(world.n[1], listener, NULL, &got, &who), NULL);
		assert_non_null(strstr(who.overlay, expected[i]));
		if (i > 0) {
			assert_int_equal(world_bound_port(fd), 4999 + i);
		}
		close(fd);
		close(got);
	}
	close(listener);
}

static void
dial_tries_the_next_address_of_a_name(void **state)
{
	(void)state;
	struct weft_dial_options o = {.size = sizeof(o), .timeout_ms = 20000};
	struct weft_detail why = DETAIL();
	char at[32];
	int listener;
	/* IPv4 is asked first, and refuses. */
	OK(weft_listen(world.n[1], "tcp6", ":0", NULL, &listener, &why), &why);
	snprintf(at, sizeof(at), "b:%u", world_bound_port(listener));
	assert_int_equal(dial("tcp", at, &o), WEFT_OK);
	assert_int_equal(dial("tcp4", at, &o), WEFT_EREFUSED);
	close(listener);
}

static void
accept_tells_who_it_is(void **state)
{
	(void)state;
	uint16_t port;
	int listener = world_listen(&world, 1, &port);
	for (int family = 4; family <= 6; family += 2) {
		struct weft_identity who = {.size = sizeof(who)};
		struct weft_detail why = DETAIL();
		char overlay[80], endpoint[32];
		int fd, got;
		world.family = family;
		OK(weft_dial(world.n[0], "tcp", world_at(&world, 1, port), NULL, &fd, &why), &why);
		OK(weft_accept(world.n[1], listener, NULL, &got, &who), NULL);
		assert_memory_equal(who.public_key, world.public_key[0], WEFT_KEY_LEN);
		assert_string_equal(who.name, "a");
		snprintf(overlay, sizeof(overlay), "%s", world_at(&world, 0, world_bound_port(fd)));
		assert_string_equal(who.overlay, overlay);
		snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%u", world.port[0]);
		assert_string_equal(who.endpoint, endpoint);
		close(fd);
		close(got);
	}
	world.family = 4;
	/* From the node itself there is no peer to name. */
	struct weft_identity who = {.size = sizeof(who)};
	struct weft_detail why = DETAIL();
	static const uint8_t none[WEFT_KEY_LEN];
	int fd, got;
	OK(weft_dial(world.n[1], "tcp", world_at(&world, 1, port), NULL, &fd, &why), &why);
	OK(weft_accept(world.n[1], listener, NULL, &got, &who), NULL);
	assert_memory_equal(who.public_key, none, WEFT_KEY_LEN);
	assert_non_null(strstr(who.overlay, WORLD_B4));
	close(fd);
	close(got);
	close(listener);
}

static void
accept_that_does_not_wait_says_again(void **state)
{
	(void)state;
	struct weft_dial_options o = {.size = sizeof(o), .flags = WEFT_NONBLOCK};
	struct weft_detail why = DETAIL();
	int listener, fd = -7, got;
	OK(weft_listen(world.n[1], "tcp4", WORLD_B4 ":0", &o, &listener, &why), &why);
	assert_int_equal(weft_accept(world.n[1], listener, NULL, &got, NULL), WEFT_EAGAIN);
	OK(weft_dial(world.n[0], "tcp", world_at(&world, 1, world_bound_port(listener)), NULL, &fd,
		   &why),
		&why);
	struct pollfd p = {.fd = listener, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 20000), 1);
	OK(weft_accept(world.n[1], listener, &o, &got, NULL), NULL);
	assert_true(fcntl(got, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(got, F_GETFD) & FD_CLOEXEC);
	close(got);
	close(fd);
	close(listener);
}

static void
accept_of_what_cannot_be_accepted_fails(void **state)
{
	(void)state;
	struct weft_detail why = DETAIL();
	struct weft_identity odd = {.size = 1};
	struct weft_dial_options o = {.size = sizeof(o), .timeout_ms = 100};
	uint16_t port;
	int fd, got, listener = world_listen(&world, 1, &port);
	assert_int_equal(weft_accept(world.n[1], listener, &o, &got, NULL), WEFT_ETIMEDOUT);
	assert_int_equal(weft_accept(world.n[1], listener, &o, &got, &odd), WEFT_EINVAL);
	assert_int_equal(weft_accept(NULL, listener, &o, &got, NULL), WEFT_EINVAL);
	assert_int_equal(weft_accept(world.n[1], listener, &o, NULL, NULL), WEFT_EINVAL);
	assert_int_equal(weft_accept(world.n[1], -1, &o, &got, NULL), WEFT_EINVAL);
	OK(weft_packet(world.n[1], "udp", ":0", NULL, &fd, &why), &why);
	assert_int_not_equal(weft_accept(world.n[1], fd, &o, &got, NULL), WEFT_OK);
	close(fd);
	close(listener);
}

static void
listen_refuses_what_it_cannot_have(void **state)
{
	(void)state;
	struct weft_detail why = DETAIL();
	uint16_t port;
	int fd = -7, listener = world_listen(&world, 1, &port);
	EXPECT(weft_listen(world.n[1], "tcp", world_at(&world, 1, port), NULL, &fd, &why),
		WEFT_EADDRINUSE, &why);
	EXPECT(weft_listen(world.n[1], "tcp", "10.1.2.3:0", NULL, &fd, &why), WEFT_EUNREACH, &why);
	EXPECT(weft_listen(world.n[1], "tcp", WORLD_A4 ":0", NULL, &fd, &why), WEFT_EUNREACH, &why);
	EXPECT(weft_listen(world.n[1], "udp", ":0", NULL, &fd, &why), WEFT_EINVAL, &why);
	EXPECT(weft_packet(world.n[1], "tcp", ":0", NULL, &fd, &why), WEFT_EINVAL, &why);
	EXPECT(weft_listen(world.n[1], "tcp", "nobody.example:0", NULL, &fd, &why), WEFT_ENOENT,
		&why);
	EXPECT(weft_listen(world.n[1], "tcp", "0", NULL, &fd, &why), WEFT_EPARSE, &why);
	EXPECT(weft_listen(world.n[1], NULL, ":0", NULL, &fd, &why), WEFT_EINVAL, &why);
	assert_int_equal(fd, -7);
	/* A port below 1024 needs no privilege in a namespace of one's own. */
	OK(weft_listen(world.n[1], "tcp", ":80", NULL, &fd, &why), &why);
	close(fd);
	close(listener);
}

static void
listen_takes_the_families_it_is_told(void **state)
{
	(void)state;
	struct weft_dial_options shared = {.size = sizeof(shared), .flags = WEFT_REUSEPORT},
				 v6only = {.size = sizeof(v6only), .flags = WEFT_V6ONLY};
	struct weft_detail why = DETAIL();
	char at[32];
	int fd, again;
	OK(weft_listen(world.n[1], "tcp6", ":0", NULL, &fd, &why), &why);
	snprintf(at, sizeof(at), WORLD_B4 ":%u", world_bound_port(fd));
	assert_int_equal(dial("tcp", at, NULL), WEFT_EREFUSED);
	snprintf(at, sizeof(at), "[" WORLD_B6 "]:%u", world_bound_port(fd));
	assert_int_equal(dial("tcp", at, NULL), WEFT_OK);
	close(fd);
	OK(weft_listen(world.n[1], "tcp", "[::]:0", &v6only, &fd, &why), &why);
	snprintf(at, sizeof(at), WORLD_B4 ":%u", world_bound_port(fd));
	assert_int_equal(dial("tcp", at, NULL), WEFT_EREFUSED);
	close(fd);
	OK(weft_listen(world.n[1], "tcp4", ":0", &shared, &fd, &why), &why);
	snprintf(at, sizeof(at), ":%u", world_bound_port(fd));
	OK(weft_listen(world.n[1], "tcp4", at, &shared, &again, &why), &why);
	snprintf(at, sizeof(at), WORLD_B4 ":%u", world_bound_port(fd));
	assert_int_equal(dial("tcp", at, NULL), WEFT_OK);
	close(fd);
	close(again);
}

struct blocked {
	int way; /* 0: weft_accept(), 1: weft_dial() */
	int listener;
	struct weft_cancel *cancel;
	_Atomic pid_t thread; /* 0 = does not run yet */
	enum weft_err e;
};

static void *
block(void *arg)
{
	struct blocked *b = arg;
	b->thread = (pid_t)syscall(SYS_gettid);
	struct weft_dial_options o = {.size = sizeof(o), .cancel = b->cancel, .timeout_ms = 20000};
	int fd;
	b->e = b->way == 0 ? weft_accept(world.n[1], b->listener, &o, &fd, NULL)
			   : weft_dial(world.n[1], "tcp", "nowhere:80", &o, &fd, NULL);
	return NULL;
}

#define BLOCKED 4

/* Does it sleep in ppoll()? The kernel tells the call of a thread that does not run. */
static bool
has_blocked(struct blocked *b)
{
	char path[64];
	long call = -1;
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)b->thread);
	FILE *f = b->thread ? fopen(path, "re") : NULL;
	if (f) {
		call = fscanf(f, "%ld", &call) == 1 ? call : -1;
		fclose(f);
	}
	return call == SYS_ppoll;
}

/* Starts them and waits until all block. */
static void
block_start(struct blocked *b, pthread_t *threads, int listener, struct weft_cancel *c)
{
	for (int i = 0; i < BLOCKED; i++) {
		b[i] = (struct blocked){.way = i % 2, .listener = listener, .cancel = c};
		assert_int_equal(pthread_create(&threads[i], NULL, block, &b[i]), 0);
	}
	int64_t deadline = world_ms() + 10000;
	for (int i = 0; i < BLOCKED; i++) {
		while (!has_blocked(&b[i])) {
			assert_true(world_ms() < deadline);
			usleep(500);
		}
	}
}

static void
block_expect(struct blocked *b, pthread_t *threads, enum weft_err e)
{
	for (int i = 0; i < BLOCKED; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(b[i].e, e);
	}
}

static void
cancel_ends_every_call_that_blocks(void **state)
{
	(void)state;
	struct blocked b[BLOCKED];
	pthread_t threads[BLOCKED];
	struct weft_cancel *c;
	uint16_t port;
	int fd, listener = world_listen(&world, 1, &port);
	OK(weft_cancel_new(&c), NULL);
	block_start(b, threads, listener, c);
	weft_cancel_fire(c);
	block_expect(b, threads, WEFT_ECANCELED);
	/* And later ones, until it is cleared. */
	struct weft_dial_options o = {.size = sizeof(o), .cancel = c, .timeout_ms = 100};
	assert_int_equal(weft_accept(world.n[1], listener, &o, &fd, NULL), WEFT_ECANCELED);
	assert_int_equal(dial("tcp", "nowhere:80", &o), WEFT_ECANCELED);
	weft_cancel_clear(c);
	assert_int_equal(weft_accept(world.n[1], listener, &o, &fd, NULL), WEFT_ETIMEDOUT);
	weft_cancel_fire(c);
	weft_cancel_free(c);
	weft_cancel_free(NULL);
	close(listener);
}

static void
stop_ends_every_call_that_blocks(void **state)
{
	(void)state;
	struct blocked b[BLOCKED];
	pthread_t threads[BLOCKED];
	struct weft_detail why = DETAIL();
	uint16_t port;
	int fd, listener = world_listen(&world, 1, &port);
	block_start(b, threads, listener, NULL);
	weft_node_stop(world.n[1]);
	block_expect(b, threads, WEFT_ECLOSED);
	/* What needs a started node says so. */
	EXPECT(weft_dial(world.n[1], "tcp", "a:80", NULL, &fd, &why), WEFT_ECLOSED, &why);
	EXPECT(weft_listen(world.n[1], "tcp", ":0", NULL, &fd, &why), WEFT_ECLOSED, &why);
	EXPECT(weft_packet(world.n[1], "udp", ":0", NULL, &fd, &why), WEFT_ECLOSED, &why);
	assert_int_equal(weft_accept(world.n[1], listener, NULL, &fd, NULL), WEFT_ECLOSED);
	close(listener);
	OK(weft_node_start(world.n[1], &why), &why);
}

static void
whois_knows_peers_by_their_addresses(void **state)
{
	(void)state;
	struct weft_identity who = {.size = sizeof(who)};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(7)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(8)};
	const struct sockaddr *at = (struct sockaddr *)&in, *at6 = (struct sockaddr *)&in6;
	inet_pton(AF_INET, WORLD_B4, &in.sin_addr);
	OK(weft_whois(world.n[0], at, sizeof(in), &who), NULL);
	assert_string_equal(who.name, "b");
	assert_string_equal(who.overlay, WORLD_B4 ":7");
	assert_memory_equal(who.public_key, world.public_key[1], WEFT_KEY_LEN);
	inet_pton(AF_INET6, "::ffff:" WORLD_NOWHERE4, &in6.sin6_addr);
	OK(weft_whois(world.n[0], at6, sizeof(in6), &who), NULL);
	assert_string_equal(who.name, "nowhere");
	assert_memory_equal(who.public_key, world.nowhere_key, WEFT_KEY_LEN);
	inet_pton(AF_INET6, WORLD_B6, &in6.sin6_addr);
	OK(weft_whois(world.n[0], at6, sizeof(in6), &who), NULL);
	assert_string_equal(who.name, "b");
	inet_pton(AF_INET, "10.99.0.1", &in.sin_addr);
	assert_int_equal(weft_whois(world.n[0], at, sizeof(in), &who), WEFT_ENOENT);
	inet_pton(AF_INET, WORLD_A4, &in.sin_addr);
	assert_int_equal(weft_whois(world.n[0], at, sizeof(in), &who), WEFT_ENOENT);
	assert_int_equal(weft_whois(world.n[0], at, 3, &who), WEFT_EINVAL);
	in.sin_family = AF_UNIX;
	assert_int_equal(weft_whois(world.n[0], at, sizeof(in), &who), WEFT_EINVAL);
	who.size = 4;
	assert_int_equal(weft_whois(world.n[0], at6, sizeof(in6), &who), WEFT_EINVAL);
	assert_int_equal(weft_whois(world.n[0], NULL, 0, &who), WEFT_EINVAL);
}

/* "10.0.0.1:80 [::1]:80" */
static const char *
list_text(const struct addrinfo *list)
{
	static char text[256];
	text[0] = 0;
	for (; list; list = list->ai_next) {
		char host[64], port[16], one[96];
		assert_int_equal(getnameinfo(list->ai_addr, list->ai_addrlen, host, sizeof(host),
					 port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV),
			0);
		snprintf(one, sizeof(one), "%s%s/%s", text[0] ? " " : "", host, port);
		strncat(text, one, sizeof(text) - strlen(text) - 1);
	}
	return text;
}

static void
getaddrinfo_knows_the_names_of_the_configuration(void **state)
{
	(void)state;
	const struct {
		const char *host, *service;
		int family, flags;
		const char *expected; /* NULL: WEFT_ENOENT */
	} cases[] = {
		{"b", "80", AF_UNSPEC, 0, WORLD_B4 "/80 " WORLD_B6 "/80"},
		{"B", "http", AF_INET, 0, WORLD_B4 "/80"},
		{"b", NULL, AF_INET6, 0, WORLD_B6 "/0"},
		{"nowhere", "1", AF_UNSPEC, 0, WORLD_NOWHERE4 "/1"},
		{"nowhere", "1", AF_INET6, 0, NULL},
		{"b", "1", AF_UNSPEC, AI_NUMERICHOST, NULL},
		{"localhost", "1", AF_UNSPEC, 0, NULL},
		{"192.0.2.1", "1", AF_UNSPEC, AI_NUMERICHOST, "192.0.2.1/1"},
		{"2001:db8::1", "1", AF_UNSPEC, 0, "2001:db8::1/1"},
		{NULL, "1", AF_UNSPEC, AI_PASSIVE, "::/1 0.0.0.0/1"},
		{NULL, "1", AF_INET, 0, "127.0.0.1/1"},
		{"b", "no-such-service", AF_UNSPEC, 0, NULL},
	};
	struct addrinfo *list;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
		struct addrinfo hints = {.ai_family = cases[i].family,
			.ai_socktype = SOCK_STREAM,
			.ai_flags = cases[i].flags};
		enum weft_err e = weft_getaddrinfo(
			world.n[0], cases[i].host, cases[i].service, &hints, &list);
		EXPECT(e, cases[i].expected ? WEFT_OK : WEFT_ENOENT, NULL);
		if (!e) {
			assert_string_equal(list_text(list), cases[i].expected);
			assert_int_equal(list->ai_socktype, SOCK_STREAM);
			weft_freeaddrinfo(list);
		}
	}
	struct addrinfo odd = {.ai_family = AF_UNIX};
	assert_int_equal(weft_getaddrinfo(world.n[0], "b", NULL, &odd, &list), WEFT_EINVAL);
	assert_int_equal(weft_getaddrinfo(world.n[0], NULL, NULL, NULL, &list), WEFT_EINVAL);
	OK(weft_getaddrinfo(world.n[0], "b", NULL, NULL, &list), NULL);
	weft_freeaddrinfo(list);
	weft_freeaddrinfo(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define ALONE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
		ALONE(dial_tells_apart_what_can_go_wrong),
		ALONE(dial_ends_at_its_deadline),
		ALONE(dial_without_waiting_reports_by_pollout_and_so_error),
		ALONE(dial_leaves_from_where_it_is_told),
		ALONE(dial_tries_the_next_address_of_a_name),
		ALONE(accept_tells_who_it_is),
		ALONE(accept_that_does_not_wait_says_again),
		ALONE(accept_of_what_cannot_be_accepted_fails),
		ALONE(listen_refuses_what_it_cannot_have),
		ALONE(listen_takes_the_families_it_is_told),
		ALONE(cancel_ends_every_call_that_blocks),
		ALONE(stop_ends_every_call_that_blocks),
		ALONE(whois_knows_peers_by_their_addresses),
		ALONE(getaddrinfo_knows_the_names_of_the_configuration),
	};
	return world_main("dial", tests, WEFT_ARRAY_LEN(tests));
}

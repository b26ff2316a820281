/* SPDX-License-Identifier: Apache-2.0 */
/* UDP between two nodes behaves as UDP, and more reliably at its beginning. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "world.h"

/* An unconnected socket of a node; reads wait 20 s at most. */
static int
open_packet(struct world *w, int i, const char *network, const char *address)
{
	struct weft_detail why = DETAIL();
	struct timeval patience = {.tv_sec = 20};
	int fd = -1, big = 4 << 20;
	OK(weft_packet(w->n[i], network, address, NULL, &fd, &why), &why);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &big, sizeof(big));
	return fd;
}

static void
send_to(int fd, const char *host, uint16_t port, const void *data, size_t len)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int domain = 0;
	socklen_t domain_len = sizeof(domain);
	char mapped[64];
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len), 0);
	bool is_v4 = inet_pton(AF_INET, host, &in.sin_addr) == 1;
	if (is_v4 && domain == AF_INET6) {
		snprintf(mapped, sizeof(mapped), "::ffff:%s", host);
		host = mapped;
	}
	ssize_t n;
	if (is_v4 && domain == AF_INET) {
		n = sendto(fd, data, len, 0, (struct sockaddr *)&in, sizeof(in));
	} else {
		assert_int_equal(inet_pton(AF_INET6, host, &in6.sin6_addr), 1);
		n = sendto(fd, data, len, 0, (struct sockaddr *)&in6, sizeof(in6));
	}
	if (n != (ssize_t)len) {
		fail_msg("sendto %s: %s", host, strerror(errno));
	}
}

/* Says what the nodes know, when nothing came. */
static void
expect_datagram(struct world *w, int fd, const char *text, const char *from)
{
	char buf[64];
	ssize_t n = recv(fd, buf, sizeof(buf), 0);
	if (n == (ssize_t)strlen(text) && memcmp(buf, text, (size_t)n) == 0) {
		return;
	}
	for (int i = 0; i < 2; i++) {
		struct weft_stats s = {.size = sizeof(s)};
		struct weft_peer v[2] = {{.size = sizeof(v[0])}};
		size_t count;
		(void)weft_node_stats(w->n[i], &s);
		(void)weft_node_peers(w->n[i], v, 2, &count);
		print_error(
			"node %d: frames %ju in, %ju out; datagrams %ju in, %ju out; %ju drops; "
			"peer up %d, session %jd ms, endpoint %s\n",
			i, (uintmax_t)s.rx_frames, (uintmax_t)s.tx_frames,
			(uintmax_t)s.rx_datagrams, (uintmax_t)s.tx_datagrams, (uintmax_t)s.drops,
			v[0].is_up, (intmax_t)v[0].handshake_age_ms, v[0].endpoint);
	}
	fail_msg("\"%s\" to %s did not come: %zd, %s", text, from, n, strerror(errno));
}

static void
first_datagram_to_an_unseen_peer_arrives(void **state)
{
	(void)state;
	static const char *const hosts[] = {WORLD_B4, WORLD_B6};
	for (int i = 0; i < 2; i++) {
		struct world w = {.family = 4};
		world_open(&w);
		int out = open_packet(&w, 0, "udp", ":0"), in = open_packet(&w, 1, "udp", ":0");
		/* Three, before any handshake: all of them come, in order. */
		send_to(out, hosts[i], world_bound_port(in), "one", 3);
		send_to(out, hosts[i], world_bound_port(in), "two", 3);
		send_to(out, hosts[i], world_bound_port(in), "three", 5);
		expect_datagram(&w, in, "one", hosts[i]);
		expect_datagram(&w, in, "two", hosts[i]);
		expect_datagram(&w, in, "three", hosts[i]);
		close(out);
		close(in);
		world_close(&w);
	}
}

static void
boundaries_of_datagrams_are_kept(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 1200, 1372, 1392, 1393, 4000, 9000, 65507};
	static uint8_t out[65536], in[65536];
	static const char *const hosts[] = {WORLD_B4, WORLD_B6};
	struct world w = {.family = 4};
	world_open(&w);
	for (int i = 0; i < 2; i++) {
		int from = open_packet(&w, 0, "udp", ":0"), to = open_packet(&w, 1, "udp", ":0");
		for (size_t k = 0; k < WEFT_ARRAY_LEN(sizes); k++) {
			world_fill(out, sizes[k], k * 1000);
			send_to(from, hosts[i], world_bound_port(to), out, sizes[k]);
			assert_int_equal(recv(to, in, sizeof(in), 0), sizes[k]);
			assert_memory_equal(in, out, sizes[k]);
		}
		/* Two in the queue stay two. */
		send_to(from, hosts[i], world_bound_port(to), "ab", 2);
		send_to(from, hosts[i], world_bound_port(to), "c", 1);
		assert_int_equal(recv(to, in, sizeof(in), 0), 2);
		assert_int_equal(recv(to, in, sizeof(in), 0), 1);
		close(from);
		close(to);
	}
	world_close(&w);
}

static void
unspecified_address_and_port_0_take_what_comes(void **state)
{
	(void)state;
	static const char *const networks[] = {"udp", "udp4", "udp6"};
	static const char *const hosts[] = {WORLD_B4, WORLD_B6};
	struct world w = {.family = 4};
	char buf[8];
	world_open(&w);
	int from = open_packet(&w, 0, "udp", ":0");
	for (size_t i = 0; i < 3; i++) {
		int to = open_packet(&w, 1, networks[i],
			i == 0   ? ":0"
			: i == 1 ? "0.0.0.0:0"
				 : "[::]:0");
		assert_int_not_equal(world_bound_port(to), 0);
		for (int k = 0; k < 2; k++) {
			if (i == 0 || (i == 1 && k == 0) || (i == 2 && k == 1)) {
				struct sockaddr_storage at;
				socklen_t len = sizeof(at);
				struct weft_identity who = {.size = sizeof(who)};
				send_to(from, hosts[k], world_bound_port(to), "x", 1);
				ssize_t n = recvfrom(
					to, buf, sizeof(buf), 0, (struct sockaddr *)&at, &len);
				if (n != 1) {
					fail_msg("%s to %s: %zd, %s", networks[i], hosts[k], n,
						strerror(errno));
				}
				OK(weft_whois(w.n[1], (struct sockaddr *)&at, len, &who), NULL);
				assert_string_equal(who.name, "a");
				/* The answer finds its way to where the question came from. */
				assert_int_equal(
					sendto(to, "yy", 2, 0, (struct sockaddr *)&at, len), 2);
				assert_int_equal(recv(from, buf, sizeof(buf), 0), 2);
			}
		}
		close(to);
	}
	close(from);
	world_close(&w);
}

static void
connected_udp_speaks_with_one_peer(void **state)
{
	(void)state;
	struct world w = {.family = 6};
	struct weft_detail why = DETAIL();
	char at[32], buf[8];
	int fd;
	world_open(&w);
	int to = open_packet(&w, 1, "udp", ":0");
	snprintf(at, sizeof(at), "b:%u", world_bound_port(to));
	OK(weft_dial(w.n[0], "udp6", at, NULL, &fd, &why), &why);
	assert_int_equal(send(fd, "abc", 3, 0), 3);
	assert_int_equal(recv(to, buf, sizeof(buf), 0), 3);
	/* Nobody is behind a port: the peer's answer to that comes back as an error. */
	close(to);
	struct timeval patience = {.tv_sec = 20};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	assert_int_equal(send(fd, "abc", 3, 0), 3);
	assert_int_equal(recv(fd, buf, sizeof(buf), 0), -1);
	assert_int_equal(errno, ECONNREFUSED);
	close(fd);
	world_close(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_datagram_to_an_unseen_peer_arrives),
		cmocka_unit_test(boundaries_of_datagrams_are_kept),
		cmocka_unit_test(unspecified_address_and_port_0_take_what_comes),
		cmocka_unit_test(connected_udp_speaks_with_one_peer),
	};
	return world_main("packet", tests, WEFT_ARRAY_LEN(tests));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Two nodes in one process, each with a private namespace of its own, that speak with each other
 * over the loopback interface outside. The kernel's own sockets in there tell what gets through.
 *
 *   sockets - [10.8.0.1, fd08::1] node 0 == 127.0.0.1 == node 1 [10.8.0.2, fd08::2] - sockets
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
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../os/nobody.h"
#include "../os/sockaddr.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "crypto/crypto.h"
#include "crypto/dh.h"
#include "node/apply.h"
#include "node/device.h"
#include "node/node.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/netlink.h"
#include "os/netns.h"
#include "os/thread.h"
#include "wire/conf.h"
#include "wire/key.h"

#define TCP_BYTES (16u << 20)
#define WAIT_MS 5000

struct side {
	struct os_netns *ns;
	struct node *node;
	struct conf *conf;
	struct apply_traces traces;
	uint8_t private_key[KEY_LEN], public_key[KEY_LEN];
	unsigned errors;
	struct log log;
};

struct lab {
	struct side s[2];
};

struct kind {
	bool no_tun;
	bool has_offload;
	unsigned workers;
};

static const struct kind kinds[] = {
	{.has_offload = true, .workers = 1},
	{.has_offload = true, .workers = 2},
	{.no_tun = true, .has_offload = true, .workers = 1},
	{.no_tun = true, .has_offload = false, .workers = 1},
	{.no_tun = true, .has_offload = true, .workers = 3},
};

static void
show_problem(void *ctx, enum log_level level, const char *text)
{
	struct side *s = ctx;
	s->errors += level <= LOG_LEVEL_WARN;
	if (level <= LOG_LEVEL_WARN) {
		fprintf(stderr, "%s\n", text);
	}
}

static void
make_keys(struct lab *l)
{
	struct crypto *c;
	struct rng r;
	rng_init(&r, 8);
	assert_int_equal(crypto_new(&c), WEFT_OK);
	for (int i = 0; i < 2; i++) {
		struct side *s = &l->s[i];
		rng_fill(&r, s->private_key, KEY_LEN);
		dh_clamp(s->private_key);
		assert_int_equal(dh_public(c, s->public_key, s->private_key), WEFT_OK);
	}
	crypto_free(c);
}

static void
open_node(struct side *s, const struct kind *k)
{
	struct os_netns_fault why;
	s->log = (struct log){.sink = show_problem, .ctx = s, .level = LOG_LEVEL_INFO};
	if (os_netns_open(&s->ns, &why)) {
		fail_msg("%s", why.text);
	}
	struct node_config c = {.name = "weft0",
		.log = &s->log,
		.workers = k->workers,
		.has_offload = k->has_offload,
		.netns = s->ns,
		.no_tun = k->no_tun};
	assert_int_equal(node_new(&c, &s->node), WEFT_OK);
}

/* Table and FwMark are of a file that was made for a machine of its own. */
static void
configure(struct lab *l, int i)
{
	struct side *s = &l->s[i], *other = &l->s[1 - i];
	char own[KEY_BASE64_LEN + 1], peer[KEY_BASE64_LEN + 1], text[600];
	struct node_facts facts;
	struct conf_report report;
	node_facts(other->node, &facts);
	(void)key_encode_base64(s->private_key, own);
	(void)key_encode_base64(other->public_key, peer);
	snprintf(text, sizeof(text),
		"[Interface]\nPrivateKey = %s\nAddress = 10.8.0.%d/32, fd08::%d/128\nTable = 77\n"
		"[Peer]\nPublicKey = %s\nAllowedIPs = 0.0.0.0/0, ::/0, 10.8.0.%d/32\n"
		"Endpoint = 127.0.0.1:%u\n",
		own, i + 1, i + 1, peer, 2 - i, facts.listen_port);
	assert_int_equal(
		conf_parse(text, strlen(text), &(struct conf_options){0}, &s->conf, &report),
		WEFT_OK);
	apply_init(&s->traces, s->node);
	assert_int_equal(apply_conf(s->node, NULL, s->conf, &s->log, &s->traces), WEFT_OK);
}

static void
open_lab(struct lab *l, const struct kind *k)
{
	*l = (struct lab){0};
	make_keys(l);
	for (int i = 0; i < 2; i++) {
		open_node(&l->s[i], k);
	}
	for (int i = 0; i < 2; i++) {
		configure(l, i);
	}
}

static void
close_lab(struct lab *l)
{
	for (int i = 0; i < 2; i++) {
		apply_undo(&l->s[i].traces, &l->s[i].log);
		node_free(l->s[i].node);
		conf_free(l->s[i].conf);
		os_netns_close(l->s[i].ns);
		assert_int_equal(l->s[i].errors, 0);
	}
}

static socklen_t
address_of(int family, int i, uint16_t port, struct sockaddr_storage *out)
{
	char text[16];
	snprintf(text, sizeof(text), family == AF_INET ? "10.8.0.%d" : "fd08::%d", i + 1);
	return sockaddr_read(text, port, out);
}

static int
socket_at(struct lab *l, int i, int family, int type, uint16_t port)
{
	struct sockaddr_storage a;
	socklen_t len = address_of(family, i, port, &a);
	int fd;
	assert_int_equal(os_netns_socket(l->s[i].ns, family, type, 0, &fd), WEFT_OK);
	struct timeval timeout = {.tv_sec = WAIT_MS / 1000};
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	return fd;
}

struct sender {
	int fd;
	const uint8_t *data;
	struct os_thread thread;
};

static void
send_all(void *arg)
{
	struct sender *s = arg;
	size_t sent = 0;
	while (sent < TCP_BYTES) {
		ssize_t n = send(s->fd, s->data + sent, TCP_BYTES - sent, MSG_NOSIGNAL);
		if (n <= 0) {
			return;
		}
		sent += (size_t)n;
	}
	shutdown(s->fd, SHUT_WR);
}

/* Everything, byte for byte, and then the end of it. */
static double
transfer_tcp(struct lab *l, int family, int from)
{
	struct sockaddr_storage a;
	socklen_t len = address_of(family, 1 - from, 5000, &a);
	uint8_t *data = malloc(TCP_BYTES), *back = malloc(TCP_BYTES + 1);
	struct rng rng;
	rng_init(&rng, 5);
	rng_fill(&rng, data, TCP_BYTES);
	int listener = socket_at(l, 1 - from, family, SOCK_STREAM, 5000);
	assert_int_equal(listen(listener, 1), 0);
	struct sender s = {.data = data, .fd = socket_at(l, from, family, SOCK_STREAM, 0)};
	assert_int_equal(connect(s.fd, (struct sockaddr *)&a, len), 0);
	int fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	struct mono before = os_clock_mono();
	assert_int_equal(os_thread_start(&s.thread, "sender", 0, send_all, &s), WEFT_OK);
	size_t got = 0;
	ssize_t n;
	while ((n = recv(fd, back + got, TCP_BYTES + 1 - got, 0)) > 0) {
		got += (size_t)n;
	}
	double seconds = (double)mono_diff_ns(os_clock_mono(), before) / 1e9;
	os_thread_join(&s.thread);
	assert_int_equal(n, 0);
	assert_int_equal(got, TCP_BYTES);
	assert_memory_equal(data, back, TCP_BYTES);
	os_fd_close(&fd);
	os_fd_close(&listener);
	os_fd_close(&s.fd);
	free(data);
	free(back);
	return TCP_BYTES * 8 / seconds / 1e9;
}

/* All but what the outer sockets lost: TCP fills whatever there is. */
static uint64_t
drops_of(struct side *s)
{
	struct node_stats stats;
	uint64_t n = 0;
	node_stats(s->node, &stats);
	stats.drops.n[DROP_LINK_RX_OVERFLOW] = 0;
	for (int i = 0; i < DROP_COUNT; i++) {
		if (stats.drops.n[i]) {
			fprintf(stderr, "%s: %llu\n", drop_name((enum drop_reason)i),
				(unsigned long long)stats.drops.n[i]);
		}
		n += stats.drops.n[i];
	}
	return n;
}

/* Datagrams one by one and as one send of many, each way; the very first one of an unseen peer
 * among them. */
static void
transfer_udp(struct lab *l, int family, int from)
{
	enum { SEG = 1200, COUNT = 40 };
	static uint8_t data[SEG * COUNT], back[SEG + 1];
	struct sockaddr_storage a;
	socklen_t len = address_of(family, 1 - from, 5001, &a);
	struct rng rng;
	rng_init(&rng, 6);
	rng_fill(&rng, data, sizeof(data));
	int server = socket_at(l, 1 - from, family, SOCK_DGRAM, 5001);
	int client = socket_at(l, from, family, SOCK_DGRAM, 0);
	for (int is_joined = 0; is_joined < 2; is_joined++) {
		int seg = SEG;
		if (is_joined) {
			assert_int_equal(
				setsockopt(client, IPPROTO_UDP, UDP_SEGMENT, &seg, sizeof(seg)), 0);
		}
		size_t each = is_joined ? sizeof(data) : SEG;
		for (size_t at = 0; at < sizeof(data); at += each) {
			assert_int_equal(
				sendto(client, data + at, each, 0, (struct sockaddr *)&a, len),
				each);
		}
		for (int i = 0; i < COUNT; i++) {
			ssize_t n = recv(server, back, sizeof(back), 0);
			if (n != SEG) {
				fail_msg("family %d from %d, joined %d: %d of %d came, dropped "
					 "%llu and %llu",
					family, from, is_joined, i, COUNT,
					(unsigned long long)drops_of(&l->s[0]),
					(unsigned long long)drops_of(&l->s[1]));
			}
			if (memcmp(back, data + (size_t)i * SEG, SEG) != 0) {
				fail_msg("family %d from %d, joined %d: datagram %d is another",
					family, from, is_joined, i);
			}
		}
	}
	os_fd_close(&server);
	os_fd_close(&client);
}

static void
check_kind(const struct kind *k)
{
	struct lab l;
	open_lab(&l, k);
	transfer_udp(&l, AF_INET, 0);
	transfer_udp(&l, AF_INET6, 1);
	transfer_udp(&l, AF_INET6, 0);
	double v4 = transfer_tcp(&l, AF_INET, 0), v6 = transfer_tcp(&l, AF_INET6, 1);
	printf("# %s, offload %d, %u workers: TCP %.2f Gbit/s IPv4, %.2f IPv6\n",
		k->no_tun ? "veth" : "TUN", k->has_offload, k->workers, v4, v6);
	fflush(stdout);
	assert_int_equal(drops_of(&l.s[0]) + drops_of(&l.s[1]), 0);
	struct node_facts f;
	node_facts(l.s[0].node, &f);
	assert_int_equal(f.has_tso, k->has_offload);
	assert_int_equal(node_device_of(l.s[0].node)->veth != NULL, k->no_tun);
	close_lab(&l);
}

static void
tcp_and_udp_cross_between_private_nodes(void **state)
{
	(void)state;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(kinds); i++) {
		check_kind(&kinds[i]);
	}
}

/* --- nothing outside is touched --- */

struct count {
	unsigned n;
};

static bool
count_route(void *ctx, const struct os_route *r)
{
	(void)r;
	((struct count *)ctx)->n++;
	return true;
}

static bool
count_rule(void *ctx, const struct os_rule *r)
{
	(void)r;
	((struct count *)ctx)->n++;
	return true;
}

static unsigned
count_outside(void)
{
	struct os_netlink *nl;
	struct os_link_info info;
	struct count c = {0};
	assert_int_equal(os_netlink_open(&nl), WEFT_OK);
	static const enum ip_family families[] = {IP_FAMILY_V4, IP_FAMILY_V6};
	for (int i = 0; i < 2; i++) {
		assert_int_equal(os_netlink_routes(nl, families[i], count_route, &c), WEFT_OK);
		assert_int_equal(os_netlink_rules(nl, families[i], count_rule, &c), WEFT_OK);
	}
	assert_int_equal(os_netlink_link_by_name(nl, "weft0", &info), WEFT_ENOENT);
	os_netlink_close(nl);
	return c.n;
}

static void
default_route_in_a_private_namespace_touches_nothing_outside(void **state)
{
	(void)state;
	unsigned before = count_outside();
	struct lab l;
	open_lab(&l, &kinds[0]);
	assert_int_equal(count_outside(), before);
	const struct node_device *dev = node_device_of(l.s[0].node);
	struct ip_addr far4 = {.family = IP_FAMILY_V4, .b = {192, 0, 2, 9}};
	struct ip_addr far6 = {.family = IP_FAMILY_V6, .b = {0x20, 1, 0xd, 0xb8, [15] = 9}};
	struct os_route r;
	assert_int_equal(os_netlink_route_get(dev->netlink, &far4, 0, &r), WEFT_OK);
	assert_int_equal(r.ifindex, dev->ifindex);
	assert_int_equal(os_netlink_route_get(dev->netlink, &far6, 0, &r), WEFT_OK);
	assert_int_equal(r.ifindex, dev->ifindex);
	struct node_facts f;
	node_facts(l.s[0].node, &f);
	assert_int_equal(f.fwmark, 0);
	struct os_link_info info;
	assert_int_equal(os_netlink_link_by_index(dev->netlink, dev->ifindex, &info), WEFT_OK);
	assert_int_equal(info.txqueuelen, 8192);
	close_lab(&l);
}

/* --- the queue of the interface --- */

static void
overflow_of_the_interface_is_counted_exactly(const struct kind *k)
{
	enum { SENT = 40000 };
	struct lab l;
	uint8_t data[1200] = {0};
	struct sockaddr_storage a;
	open_lab(&l, k);
	transfer_udp(&l, AF_INET, 0);
	struct node_stats before, after;
	node_stats(l.s[0].node, &before);
	int fd = socket_at(&l, 0, AF_INET, SOCK_DGRAM, 0);
	socklen_t len = address_of(AF_INET, 1, 9999, &a);
	struct wg_out *out;
	(void)node_lock(l.s[0].node, &out);
	unsigned sent = 0;
	for (int i = 0; i < SENT; i++) {
		sent += sendto(fd, data, sizeof(data), 0, (struct sockaddr *)&a, len) ==
			sizeof(data);
	}
	node_unlock(l.s[0].node);
	struct mono deadline = mono_add_ns(os_clock_mono(), 5 * WEFT_NS_PER_S);
	uint64_t seen;
	do {
		node_stats(l.s[0].node, &after);
		seen = after.port.rx_frames - before.port.rx_frames + after.drops.n[DROP_TX_QUEUE] -
		       before.drops.n[DROP_TX_QUEUE];
		usleep(1000);
	} while (seen < sent && mono_is_before(os_clock_mono(), deadline));
	assert_true(after.drops.n[DROP_TX_QUEUE] > 0);
	/* ICMP of the closed port may come on top. */
	assert_int_equal(seen, sent);
	os_fd_close(&fd);
	close_lab(&l);
}

static void
packets_that_found_the_queue_full_are_counted(void **state)
{
	(void)state;
	overflow_of_the_interface_is_counted_exactly(&kinds[0]);
	overflow_of_the_interface_is_counted_exactly(&kinds[2]);
}

/* --- without root --- */

static void
nobodys_node_finds_its_way_by_itself(void **state)
{
	(void)state;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (nobody_become()) {
			_exit(1);
		}
		struct lab l;
		open_lab(&l, &kinds[0]);
		transfer_udp(&l, AF_INET, 0);
		transfer_tcp(&l, AF_INET6, 1);
		transfer_tcp(&l, AF_INET, 0);
		bool is_dropping = drops_of(&l.s[0]) + drops_of(&l.s[1]) > 0;
		close_lab(&l);
		_exit(is_dropping);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* As containers hide a device: in its place is one that can be opened and is no TUN. */
static void
device_that_is_no_tun_is_done_without(void **state)
{
	(void)state;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
			mount("/dev/null", "/dev/net/tun", NULL, MS_BIND, NULL)) {
			_exit(2);
		}
		struct lab l;
		open_lab(&l, &kinds[0]);
		bool has_veth = node_device_of(l.s[0].node)->veth != NULL;
		transfer_udp(&l, AF_INET, 0);
		close_lab(&l);
		_exit(!has_veth);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tcp_and_udp_cross_between_private_nodes),
		cmocka_unit_test(default_route_in_a_private_namespace_touches_nothing_outside),
		cmocka_unit_test(packets_that_found_the_queue_full_are_counted),
		cmocka_unit_test(nobodys_node_finds_its_way_by_itself),
		cmocka_unit_test(device_that_is_no_tun_is_done_without),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

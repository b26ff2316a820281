/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "netns.h"
#include "os/fd.h"
#include "os/udp.h"

struct lines {
	char text[2000];
};

static void
keep_line(void *ctx, enum log_level level, const char *text)
{
	struct lines *l = ctx;
	(void)level;
	strncat(l->text, text, sizeof(l->text) - strlen(l->text) - 2);
	strcat(l->text, "\n");
}

static int
int_option(int fd, int level, int option)
{
	int v = -1;
	socklen_t len = sizeof(v);
	assert_int_equal(getsockopt(fd, level, option, &v, &len), 0);
	return v;
}

static uint16_t
port_of(int fd)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
					     : ((struct sockaddr_in *)&a)->sin_port);
}

static void
both_families_share_one_port(void **state)
{
	(void)state;
	netns_fresh();
	struct lines lines = {""};
	struct log log = {.sink = keep_line, .ctx = &lines, .level = LOG_LEVEL_DEBUG};
	struct os_udp_config c = {.mark = 51820, .has_offload = true};
	struct os_udp u, v;
	assert_int_equal(os_udp_open(&c, &log, &u), WEFT_OK);
	assert_true(u.port != 0 && u.v4 >= 0 && u.v6 >= 0);
	assert_int_equal(port_of(u.v4), u.port);
	assert_int_equal(port_of(u.v6), u.port);
	assert_true(u.has_gso && u.has_gro);
	int fds[2] = {u.v4, u.v6};
	for (int i = 0; i < 2; i++) {
		assert_int_equal(int_option(fds[i], SOL_SOCKET, SO_MARK), 51820);
		assert_true(int_option(fds[i], SOL_SOCKET, SO_RCVBUF) >= (int)OS_UDP_BUFFER_BYTES);
		assert_true(int_option(fds[i], SOL_SOCKET, SO_SNDBUF) >= (int)OS_UDP_BUFFER_BYTES);
		assert_int_equal(fcntl(fds[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	}
	assert_int_equal(int_option(u.v6, IPPROTO_IPV6, IPV6_V6ONLY), 1);
	assert_int_equal(os_udp_set_mark(&u, 7), WEFT_OK);
	assert_int_equal(int_option(u.v4, SOL_SOCKET, SO_MARK), 7);
	assert_int_equal(int_option(u.v6, SOL_SOCKET, SO_MARK), 7);
	assert_string_equal(lines.text, "");

	c.port = u.port;
	assert_int_equal(os_udp_open(&c, &log, &v), WEFT_EADDRINUSE);
	assert_non_null(strstr(lines.text, "cannot open UDP port"));
	os_udp_close(&u);
	assert_int_equal(u.v4, -1);
	assert_int_equal(os_udp_open(&c, &log, &v), WEFT_OK);
	assert_int_equal(v.port, c.port);
	os_udp_close(&v);
}

/* A port that is taken in one family alone is not half used. */
static void
port_taken_in_one_family_is_taken(void **state)
{
	(void)state;
	netns_fresh();
	struct log silent = {0};
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(4000)};
	int one = 1, fd = socket(AF_INET6, SOCK_DGRAM, 0);
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	struct os_udp_config c = {.port = 4000};
	struct os_udp u;
	assert_int_equal(os_udp_open(&c, &silent, &u), WEFT_EADDRINUSE);
	/* Of the ephemeral ports one IPv6 is taken: another is found. */
	netns_run("echo '4000 4003' > /proc/sys/net/ipv4/ip_local_port_range");
	c.port = 0;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(os_udp_open(&c, &silent, &u), WEFT_OK);
		assert_int_not_equal(u.port, 4000);
		/* kept open: the next finds another one */
	}
	assert_int_equal(os_udp_open(&c, &silent, &u), WEFT_EADDRINUSE);
	close(fd);
}

static unsigned
drain(int fd)
{
	char b[16];
	unsigned n = 0;
	while (recv(fd, b, sizeof(b), MSG_DONTWAIT) > 0) {
		n++;
	}
	return n;
}

static void
shared_port_spreads_flows_and_lets_no_stranger_in(void **state)
{
	(void)state;
	netns_fresh();
	struct log silent = {0};
	struct os_udp_config c = {.port = 4000, .is_shared = true};
	struct os_udp u[3], other;
	assert_int_equal(os_udp_open(&c, &silent, &u[0]), WEFT_OK);
	assert_int_equal(os_udp_open(&c, &silent, &other), WEFT_EADDRINUSE);
	c.is_joining = true;
	assert_int_equal(os_udp_open(&c, &silent, &u[1]), WEFT_OK);
	assert_int_equal(os_udp_open(&c, &silent, &u[2]), WEFT_OK);
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons(4000),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	for (int i = 0; i < 100; i++) {
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		assert_int_equal(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), 1);
		close(fd);
	}
	unsigned total = 0;
	for (int i = 0; i < 3; i++) {
		unsigned n = drain(u[i].v4);
		assert_true(n > 5);
		total += n;
		os_udp_close(&u[i]);
	}
	assert_int_equal(total, 100);
	c = (struct os_udp_config){.is_joining = true};
	assert_int_equal(os_udp_open(&c, &silent, &other), WEFT_EINVAL);
}

/* Without CAP_NET_ADMIN, in a child: what a plain user gets. */
static int
as_plain_user(void)
{
	struct lines lines = {""};
	struct log log = {.sink = keep_line, .ctx = &lines, .level = LOG_LEVEL_DEBUG};
	struct os_udp_config c = {.rcv_bytes = 64u << 20};
	struct os_udp u;
	if (setuid(65534) || os_udp_open(&c, &log, &u)) {
		return 1;
	}
	if (!strstr(lines.text, "net.core.rmem_max")) {
		return 2;
	}
	os_udp_close(&u);
	c.mark = 1;
	return os_udp_open(&c, &log, &u) != WEFT_EPERM || !strstr(lines.text, "fwmark") ? 3 : 0;
}

static void
plain_user_gets_smaller_buffers_a_warning_and_no_mark(void **state)
{
	(void)state;
	netns_fresh();
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		_exit(as_plain_user());
	}
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_families_share_one_port),
		cmocka_unit_test(port_taken_in_one_family_is_taken),
		cmocka_unit_test(shared_port_spreads_flows_and_lets_no_stranger_in),
		cmocka_unit_test(plain_user_gets_smaller_buffers_a_warning_and_no_mark),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

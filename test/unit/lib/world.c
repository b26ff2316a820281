/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "../os/nobody.h"
#include "base/compiler.h"

#define PATIENCE_S 20

static bool is_without_tun; /* of the group that runs now */

bool
world_is_without_tun(void)
{
	return is_without_tun;
}

int64_t
world_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int
world_count_descriptors(void)
{
	int n = 0;
	for (int i = 0; i < 1024; i++) {
		n += fcntl(i, F_GETFD) >= 0;
	}
	return n;
}

void
world_expect(enum weft_err e, enum weft_err expected, const struct weft_detail *why,
	const char *file, int line)
{
	if (e != expected) {
		const struct weft_detail *d = why;
		print_error("%s:%d: %s, not %s: %s (errno %d, %u:%u)\n", file, line,
			weft_err_text(e), weft_err_text(expected), d ? d->text : "",
			d ? d->os_errno : 0, d ? d->line : 0, d ? d->column : 0);
		_assert_int_equal(
			(LargestIntegralType)e, (LargestIntegralType)expected, file, line);
	}
}

/* A UDP port of both families that is free now, and not among those that the kernel gives to
 * programs beside this one. */
static uint16_t
free_port(void)
{
	for (;;) {
		uint16_t port;
		assert_int_equal(getrandom(&port, sizeof(port), 0), sizeof(port));
		port = (uint16_t)(10000 + port % 20000);
		struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
		int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		assert_true(fd >= 0);
		int e = bind(fd, (struct sockaddr *)&at, sizeof(at));
		assert_true(e == 0 || errno == EADDRINUSE);
		close(fd);
		if (e == 0) {
			return port;
		}
	}
}

char *
world_text(const struct world *w, int i)
{
	char own[WEFT_KEY_TEXT_LEN], peer[WEFT_KEY_TEXT_LEN], nowhere[WEFT_KEY_TEXT_LEN], *text;
	static const char *const names[] = {"a", "b"};
	int j = 1 - i;
	weft_key_format(w->private_key[i], own);
	weft_key_format(w->public_key[j], peer);
	weft_key_format(w->nowhere_key, nowhere);
	int n = asprintf(&text,
		"[Interface]\nPrivateKey = %s\nListenPort = %u\nAddress = 10.77.0.%d/24, "
		"fd77::%d/64\n"
		"MTU = 1420\n[Peer]\nPublicKey = %s\nName = %s\nAllowedIPs = 10.77.0.%d/32, "
		"fd77::%d/128\n"
		"Endpoint = 127.0.0.1:%u\n[Peer]\nPublicKey = %s\nName = nowhere\n"
		"AllowedIPs = " WORLD_NOWHERE4 "/32\nEndpoint = 127.0.0.1:9\n",
		own, w->port[i], i + 1, i + 1, peer, names[j], j + 1, j + 1, w->port[j], nowhere);
	assert_true(n > 0);
	return text;
}

char *
world_replace(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	char *out;
	assert_non_null(at);
	assert_true(asprintf(&out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
	return out;
}

struct weft_node *
world_node(struct world *w, int i)
{
	struct weft_detail why = DETAIL();
	char *text = world_text(w, i);
	struct weft_config c = {.size = sizeof(c),
		.text = text,
		.workers = 2,
		.flags = is_without_tun ? WEFT_NODE_NO_TUN : 0};
	struct weft_node *n = NULL;
	OK(weft_node_new(&c, &n, &why), &why);
	free(text);
	return n;
}

static void
make_keys(struct world *w)
{
	uint8_t other[WEFT_KEY_LEN];
	for (int i = 0; i < 2; i++) {
		OK(weft_key_generate(w->private_key[i]), NULL);
		OK(weft_key_public(w->private_key[i], w->public_key[i]), NULL);
		w->port[i] = free_port();
	}
	OK(weft_key_generate(other), NULL);
	OK(weft_key_public(other, w->nowhere_key), NULL);
}

void
world_open(struct world *w)
{
	struct weft_detail why = DETAIL();
	int family = w->family ? w->family : 4;
	*w = (struct world){.family = family};
	make_keys(w);
	for (int i = 0; i < 2; i++) {
		w->n[i] = world_node(w, i);
		OK(weft_node_start(w->n[i], &why), &why);
	}
}

void
world_close(struct world *w)
{
	weft_node_free(w->n[0]);
	weft_node_free(w->n[1]);
	*w = (struct world){0};
}

const char *
world_at(const struct world *w, int i, uint16_t port)
{
	static char text[64];
	if (w->family == 4) {
		snprintf(text, sizeof(text), "%s:%u", i ? WORLD_B4 : WORLD_A4, port);
	} else {
		snprintf(text, sizeof(text), "[%s]:%u", i ? WORLD_B6 : WORLD_A6, port);
	}
	return text;
}

uint16_t
world_bound_port(int fd)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	return ntohs(at.ss_family == AF_INET ? ((struct sockaddr_in *)&at)->sin_port
					     : ((struct sockaddr_in6 *)&at)->sin6_port);
}

int
world_listen(struct world *w, int i, uint16_t *port)
{
	struct weft_detail why = DETAIL();
	int fd = -1;
	OK(weft_listen(w->n[i], "tcp", ":0", NULL, &fd, &why), &why);
	*port = world_bound_port(fd);
	return fd;
}

static void
set_patience(int fd)
{
	struct timeval t = {.tv_sec = PATIENCE_S};
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)), 0);
}

void
world_connect(struct world *w, int fd[2])
{
	struct weft_detail why = DETAIL();
	struct weft_dial_options o = {.size = sizeof(o), .timeout_ms = PATIENCE_S * 1000};
	uint16_t port;
	int listener = world_listen(w, 1, &port);
	OK(weft_dial(w->n[0], "tcp", world_at(w, 1, port), &o, &fd[0], &why), &why);
	OK(weft_accept(w->n[1], listener, &o, &fd[1], NULL), NULL);
	close(listener);
	set_patience(fd[0]);
	set_patience(fd[1]);
}

void
world_meet(struct world *w)
{
	int fd[2];
	world_connect(w, fd);
	close(fd[0]);
	close(fd[1]);
}

void
world_fill(uint8_t *out, size_t n, uint64_t offset)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t at = offset + i;
		out[i] = (uint8_t)(at * 7 + (at >> 8) * 13 + (at >> 16) * 31);
	}
}

void
world_write(int fd, size_t n, uint64_t offset)
{
	static uint8_t buf[1 << 16];
	while (n > 0) {
		size_t part = n < sizeof(buf) ? n : sizeof(buf);
		world_fill(buf, part, offset);
		ssize_t got = send(fd, buf, part, MSG_NOSIGNAL);
		assert_true(got > 0);
		n -= (size_t)got;
		offset += (size_t)got;
	}
}

void
world_read(int fd, size_t n, uint64_t offset)
{
	static uint8_t buf[1 << 16], expected[1 << 16];
	while (n > 0) {
		ssize_t got = recv(fd, buf, n < sizeof(buf) ? n : sizeof(buf), 0);
		if (got <= 0) {
			fail_msg("recv: %zd, %s, with %zu bytes to come", got, strerror(errno), n);
		}
		world_fill(expected, (size_t)got, offset);
		assert_memory_equal(buf, expected, (size_t)got);
		n -= (size_t)got;
		offset += (size_t)got;
	}
}

void
world_expect_end(int fd)
{
	char c;
	assert_int_equal(recv(fd, &c, 1, 0), 0);
}

static int
run_modes(const char *group, const char *who, const struct CMUnitTest *tests, size_t n)
{
	static const char *const ways[] = {"default", "no_tun"};
	int failed = 0;
	/* Who may not open the TUN device gets the veth pair by default: once is enough. */
	int ways_n = access("/dev/net/tun", R_OK | W_OK) ? 1 : 2;
	for (int i = 0; i < ways_n; i++) {
		char name[96];
		is_without_tun = i == 1;
		snprintf(name, sizeof(name), "%s_%s_%s", group, who, ways[i]);
		failed += _cmocka_run_group_tests(name, tests, n, NULL, NULL);
	}
	return failed;
}

/* The program once more, as nobody: a new image, since what changed its user may not write its
 * own /proc files. */
static int
run_as_nobody(void)
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		char *argv[] = {(char *)"nobody", NULL};
		if (nobody_become() || execv("/proc/self/exe", argv)) {
			_exit(126);
		}
	}
	int status = 0;
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		return 1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int
world_main(const char *group, const struct CMUnitTest *tests, size_t n)
{
	bool is_root = geteuid() == 0;
	cmocka_set_test_filter(getenv("WEFT_TEST_ONLY")); /* a pattern; NULL = all */
	int failed = run_modes(group, is_root ? "root" : "nobody", tests, n);
	if (is_root) {
		int status = run_as_nobody();
		if (status) {
			fprintf(stderr, "as nobody: exit %d\n", status);
		}
		failed += status != 0;
	}
	return failed;
}

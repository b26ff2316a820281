/* SPDX-License-Identifier: Apache-2.0 */
/* What `weft bench dial` measures of many connections, on libweft's public API alone:
 * dialer FILE|- HOST:PORT SECONDS ECHOES IDLE
 *
 * Dials an echo server again and again for SECONDS, has ECHOES bytes echoed one after the other,
 * opens IDLE connections. FILE: by a node in this program; -: by plain sockets, HOST an IPv4
 * address. Prints one JSON object, then holds the connections until a signal. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "weft/dial.h"
#include "weft/node.h"

struct dialer {
	struct weft_node *node; /* NULL: plain sockets */
	const char *target;
	struct sockaddr_in plain;
};

static int
fail(const char *what, const char *why)
{
	fprintf(stderr, "dialer: %s: %s\n", what, why);
	return 1;
}

static double
now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Bytes of this process in memory; 0: not known. */
static long
resident(void)
{
	long all, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (f) {
		if (fscanf(f, "%ld %ld", &all, &pages) != 2) {
			pages = 0;
		}
		fclose(f);
	}
	return pages * sysconf(_SC_PAGESIZE);
}

static int
dial(const struct dialer *d, int *fd)
{
	struct weft_detail why = {.size = sizeof(why)};
	struct weft_dial_options o = {.size = sizeof(o), .timeout_ms = 20000};
	if (d->node) {
		return weft_dial(d->node, "tcp", d->target, &o, fd, &why)
			       ? fail(d->target, why.text)
			       : 0;
	}
	*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0 || connect(*fd, (const struct sockaddr *)&d->plain, sizeof(d->plain))) {
		return fail(d->target, strerror(errno));
	}
	return 0;
}

/* A reset: what waits for its end would use up the ports. */
static void
hang_up(int fd)
{
	struct linger l = {.l_onoff = 1};
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	close(fd);
}

static int
connects(const struct dialer *d, double seconds)
{
	double t0 = now_s(), took;
	unsigned long n = 0;
	do {
		int fd;
		if (dial(d, &fd)) {
			return 1;
		}
		hang_up(fd);
		n++;
		took = now_s() - t0;
	} while (took < seconds);
	printf("\"connects_s\": %.1f, ", (double)n / took);
	return 0;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static int
echoes(const struct dialer *d, size_t n)
{
	double *us = calloc(n, sizeof(*us));
	int fd, on = 1;
	char c = 'x';
	if (!us || dial(d, &fd)) {
		free(us);
		return 1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	for (size_t i = 0; i < n; i++) {
		double t0 = now_s();
		if (send(fd, &c, 1, MSG_NOSIGNAL) != 1 || recv(fd, &c, 1, 0) != 1) {
			free(us);
			return fail("echo", strerror(errno));
		}
		us[i] = (now_s() - t0) * 1e6;
	}
	hang_up(fd);
	qsort(us, n, sizeof(*us), compare);
	printf("\"echo_p50_us\": %.1f, \"echo_p99_us\": %.1f, ", us[(n - 1) / 2],
		us[(n - 1) * 99 / 100]);
	free(us);
	return 0;
}

/* Each has carried a byte: one that a forwarder took is at its end, too. */
static int
idle(const struct dialer *d, size_t n)
{
	int *fds = calloc(n + 1, sizeof(*fds));
	char c = 'x';
	long before = resident();
	for (size_t i = 0; fds && i < n; i++) {
		if (dial(d, &fds[i])) {
			return 1;
		}
		if (send(fds[i], &c, 1, MSG_NOSIGNAL) != 1) {
			return fail("idle", strerror(errno));
		}
	}
	for (size_t i = 0; fds && i < n; i++) {
		if (recv(fds[i], &c, 1, 0) != 1) {
			return fail("idle", strerror(errno));
		}
	}
	printf("\"idle_before_bytes\": %ld, \"idle_after_bytes\": %ld}\n", before, resident());
	fflush(stdout);
	free(fds);
	return 0;
}

static int
first_echo(const struct dialer *d)
{
	int fd;
	char c = 'x';
	if (dial(d, &fd)) {
		return 1;
	}
	if (send(fd, &c, 1, MSG_NOSIGNAL) != 1 || recv(fd, &c, 1, 0) != 1) {
		return fail("first echo", strerror(errno));
	}
	hang_up(fd);
	return 0;
}

static int
start(struct dialer *d, const char *file)
{
	struct weft_detail why = {.size = sizeof(why)};
	struct weft_config c = {.size = sizeof(c), .file = file};
	if (weft_node_new(&c, &d->node, &why) || weft_node_start(d->node, &why)) {
		return fail(file, why.text);
	}
	return 0;
}

static int
parse_plain(struct dialer *d)
{
	char host[64] = "";
	const char *colon = strrchr(d->target, ':');
	if (colon && (size_t)(colon - d->target) < sizeof(host)) {
		memcpy(host, d->target, (size_t)(colon - d->target));
		d->plain.sin_family = AF_INET;
		d->plain.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	}
	return inet_pton(AF_INET, host, &d->plain.sin_addr) == 1 ? 0
								 : fail(d->target, "no address");
}

int
main(int argc, char **argv)
{
	struct dialer d = {.target = argc > 2 ? argv[2] : NULL};
	struct rlimit files;
	if (argc != 6) {
		fprintf(stderr, "usage: dialer FILE|- HOST:PORT SECONDS ECHOES IDLE\n");
		return 2;
	}
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	printf("{\"main_bytes\": %ld, ", resident());
	if (strcmp(argv[1], "-") != 0 ? start(&d, argv[1]) : parse_plain(&d)) {
		return 1;
	}
	if (first_echo(&d)) {
		return 1;
	}
	printf("\"echoed_bytes\": %ld, ", resident());
	if (connects(&d, strtod(argv[3], NULL)) || echoes(&d, strtoul(argv[4], NULL, 10)) ||
		idle(&d, strtoul(argv[5], NULL, 10))) {
		return 1;
	}
	pause();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The far end of dialer: echoes what comes on any number of TCP connections. echoer PORT */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 256

static int
fail(const char *what)
{
	fprintf(stderr, "echoer: %s: %s\n", what, strerror(errno));
	return 1;
}

static void
accept_all(int epoll, int listener)
{
	int fd, on = 1;
	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
	}
}

static void
echo(int fd)
{
	char buf[4096];
	ssize_t n = recv(fd, buf, sizeof(buf), 0);
	if (n > 0) {
		n = send(fd, buf, (size_t)n, MSG_NOSIGNAL) == n ? n : -1;
	} else if (n < 0 && errno == EAGAIN) {
		return;
	}
	if (n <= 0) {
		close(fd);
	}
}

int
main(int argc, char **argv)
{
	struct epoll_event ready[EVENTS];
	struct rlimit files;
	int on = 1;
	if (argc != 2) {
		fprintf(stderr, "usage: echoer PORT\n");
		return 2;
	}
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10))};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e = {.events = EPOLLIN, .data.fd = listener};
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 4096) ||
		epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &e)) {
		return fail("listen");
	}
	for (;;) {
		int n = epoll_wait(epoll, ready, EVENTS, -1);
		if (n < 0 && errno != EINTR) {
			return fail("epoll_wait");
		}
		for (int i = 0; i < n; i++) {
			if (ready[i].data.fd == listener) {
				accept_all(epoll, listener);
			} else {
				echo(ready[i].data.fd);
			}
		}
	}
}

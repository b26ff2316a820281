/* SPDX-License-Identifier: Apache-2.0 */
/* The holder of a private namespace: the child's side of os/netns.h.
 *
 * It begins as a copy of one thread of a program that may have many, so locks of the C library
 * and of sanitizers may be held by threads that are not there. Therefore everything goes through
 * syscall(), which takes no lock and which sanitizers do not wrap. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/netns_msg.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define KERNEL_SIGSET_BYTES 8
#define FDS_WITHOUT_CLOSE_RANGE 65536

static WEFT_NORETURN void
leave(void)
{
	for (;;) {
		syscall(SYS_exit_group, 0);
	}
}

static void
close_span(unsigned first, unsigned last)
{
	if (first > last || syscall(SYS_close_range, first, last, 0) == 0) {
		return;
	}
	/* Linux before 5.9. */
	for (unsigned fd = first; fd <= last && fd < FDS_WITHOUT_CLOSE_RANGE; fd++) {
		syscall(SYS_close, fd);
	}
}

/* Whatever the program has open must end when the program closes it. */
static void
close_others(int a, int b)
{
	unsigned low = (unsigned)(a < b ? a : b), high = (unsigned)(a < b ? b : a);
	if (b < 0) {
		low = high = (unsigned)a;
	}
	if (low > 0) {
		close_span(0, low - 1);
	}
	if (low + 1 < high) {
		close_span(low + 1, high - 1);
	}
	close_span(high + 1, ~0u);
}

/* fd: beside it; -1: none. */
static void
answer(int socket, struct os_netns_answer a, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = &a, .iov_len = sizeof(a)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	if (fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	if (syscall(SYS_sendmsg, socket, &m, MSG_NOSIGNAL) < 0) {
		leave(); /* nobody is there, or nobody ever understands us again */
	}
}

static int
write_whole(const char *path, const char *text, size_t len)
{
	long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 && errno == EACCES) {
		/* The program cannot be traced, so these files are root's. What we are a copy of
		 * can be traced for the time of these few calls. */
		syscall(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
		fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
	}
	if (fd < 0) {
		return errno;
	}
	int errnum = syscall(SYS_write, fd, text, len) == (long)len ? 0 : errno;
	syscall(SYS_close, fd);
	return errnum;
}

static size_t
length(const char *s)
{
	size_t n = 0;
	while (s[n]) {
		n++;
	}
	return n;
}

static int
write_maps(const struct os_netns_start *s)
{
	/* A group can be mapped without privileges only by who cannot leave groups. The file is
	 * missing before Linux 3.19, which has no such rule. */
	int errnum = write_whole("/proc/self/setgroups", "deny", 4);
	if (errnum && errnum != ENOENT) {
		return errnum;
	}
	errnum = write_whole("/proc/self/uid_map", s->uid_map, length(s->uid_map));
	return errnum ? errnum : write_whole("/proc/self/gid_map", s->gid_map, length(s->gid_map));
}

static int
set_loopback_up(void)
{
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING};
	long fd = syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		return errno;
	}
	int errnum = syscall(SYS_ioctl, fd, SIOCSIFFLAGS, &r) ? errno : 0;
	syscall(SYS_close, fd);
	return errnum;
}

static void
serve(int socket)
{
	struct os_netns_request r = {0};
	struct iovec iov = {.iov_base = &r, .iov_len = sizeof(r)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	if (syscall(SYS_recvmsg, socket, &m, 0) != (long)sizeof(r)) {
		leave();
	}
	long fd;
	if (r.op == OS_NETNS_OP_SOCKET) {
		fd = syscall(SYS_socket, r.family, r.type | SOCK_CLOEXEC, r.protocol);
	} else {
		fd = syscall(SYS_openat, AT_FDCWD, "/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	}
	struct os_netns_answer a = {.number = r.number, .errnum = fd < 0 ? errno : 0};
	answer(socket, a, (int)fd);
	if (fd >= 0) {
		syscall(SYS_close, fd);
	}
}

void
os_netns_hold(const struct os_netns_start *s)
{
	/* From now on only SIGKILL ends us from outside: a Ctrl-C is the program's to handle. */
	uint64_t all = UINT64_MAX;
	syscall(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, NULL, KERNEL_SIGSET_BYTES);
	close_others(s->socket, s->parent_fd);
	syscall(SYS_prctl, PR_SET_NAME, "weft-netns", 0, 0, 0);
	struct os_netns_answer a = {.stage = OS_NETNS_STAGE_MAP};
	if (s->has_user) {
		a.errnum = write_maps(s);
	}
	/* What is left of the program's memory may have secrets. */
	os_netns_give_back(s);
	syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (!a.errnum) {
		a.stage = OS_NETNS_STAGE_LOOPBACK;
		a.errnum = set_loopback_up();
	}
	syscall(SYS_chdir, "/"); /* keep no folder of the program's busy */
	answer(s->socket, a, -1);
	for (;;) {
		struct pollfd p[2] = {{.fd = s->socket, .events = POLLIN},
			{.fd = s->parent_fd, .events = POLLIN}};
		long n = syscall(SYS_ppoll, p, 2, NULL, NULL, KERNEL_SIGSET_BYTES);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		/* A request that came before the end is nobody's any more: the end goes first. */
		if (n < 0 || p[1].revents) {
			leave();
		}
		serve(s->socket);
	}
}

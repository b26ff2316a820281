/* SPDX-License-Identifier: Apache-2.0 */
#include "os/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/error.h"
#include "os/fd.h"
#include "os/netns_msg.h"
#include "os/thread.h"

#ifndef SIOCGSKNS
#define SIOCGSKNS 0x894C
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* An answer takes some microseconds; a holder that was stopped gives none. */
#define ANSWER_TIMEOUT_S 10

struct os_netns {
	struct os_mutex mutex; /* guards socket and number */
	int socket;
	uint32_t number; /* of the last request */
	pid_t holder;
	int user_fd, net_fd; /* namespaces; user_fd -1: none */
};

static bool
has_capabilities(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3] = {0};
	uint32_t wanted = 1u << CAP_SYS_ADMIN | 1u << CAP_NET_ADMIN;
	return syscall(SYS_capget, &h, d) == 0 && (d[0].effective & wanted) == wanted;
}

/* A fork that nobody hears of: no SIGCHLD, and none of what fork() runs in the child. */
static pid_t
clone_silently(unsigned long flags)
{
#if defined(__s390x__)
	return (pid_t)syscall(SYS_clone, NULL, flags, NULL, NULL, NULL);
#else
	return (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
#endif
}

static void
reap(pid_t pid)
{
	pid_t r;
	do {
		r = waitpid(pid, NULL, __WALL | WNOHANG);
	} while (r < 0 && errno == EINTR);
	if (r == 0) {
		/* Still ours, so its number is nobody else's. */
		(void)kill(pid, SIGKILL);
		while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR) {
		}
	}
}

/* Returns the holder, or -1 with errno. */
static pid_t
start_holder(struct os_netns_start *s)
{
	/* No handler of the program's may run in the holder. */
	sigset_t all, before;
	sigfillset(&all);
	int e = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (e) {
		errno = e;
		return -1;
	}
	pid_t pid = clone_silently(CLONE_NEWNET | (s->has_user ? (unsigned long)CLONE_NEWUSER : 0));
	if (pid == 0) {
		os_netns_hold(s);
	}
	e = errno;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = e;
	return pid;
}

/* Waits for the answer with that number. *fd: -1 when none came with it. */
static enum weft_err
take_answer(struct os_netns *n, uint32_t number, struct os_netns_answer *a, int *fd)
{
	for (;;) {
		union {
			char bytes[CMSG_SPACE(sizeof(int))];
			struct cmsghdr align;
		} control;
		struct iovec iov = {.iov_base = a, .iov_len = sizeof(*a)};
		struct msghdr m = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control)};
		ssize_t len = recvmsg(n->socket, &m, MSG_CMSG_CLOEXEC);
		if (len < 0 && errno == EINTR) {
			continue;
		}
		if (len < 0) {
			return errno == EAGAIN ? WEFT_ETIMEDOUT : os_error(errno);
		}
		if (len != (ssize_t)sizeof(*a)) {
			return WEFT_ECLOSED;
		}
		*fd = -1;
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			memcpy(fd, CMSG_DATA(c), sizeof(*fd));
		}
		if (a->number == number) {
			/* Our own table of descriptors may have been full. */
			return m.msg_flags & MSG_CTRUNC ? WEFT_ENOMEM : WEFT_OK;
		}
		os_fd_close(fd); /* of a request that was given up */
	}
}

/* *errnum: what the holder's system call said; 0 when it came to none. */
static enum weft_err
ask(struct os_netns *n, struct os_netns_request r, int *fd, int *errnum)
{
	struct os_netns_answer a;
	int got = -1;
	*errnum = 0;
	os_mutex_lock(&n->mutex);
	r.number = ++n->number;
	ssize_t sent;
	do {
		sent = send(n->socket, &r, sizeof(r), MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	enum weft_err err = sent < 0 ? os_error(errno) : take_answer(n, r.number, &a, &got);
	os_mutex_unlock(&n->mutex);
	if (err) {
		return err;
	}
	if (a.errnum) {
		*errnum = a.errnum;
		return os_error(a.errnum);
	}
	if (got < 0) {
		return WEFT_ENOMEM;
	}
	*fd = got;
	return WEFT_OK;
}

enum weft_err
os_netns_socket(struct os_netns *n, int family, int type, int protocol, int *fd)
{
	int errnum;
	if (n) {
		return ask(n,
			(struct os_netns_request){.op = OS_NETNS_OP_SOCKET,
				.family = family,
				.type = type,
				.protocol = protocol},
			fd, &errnum);
	}
	int got = socket(family, type | SOCK_CLOEXEC, protocol);
	if (got < 0) {
		return os_error(errno);
	}
	*fd = got;
	return WEFT_OK;
}

enum weft_err
os_netns_open_tun(struct os_netns *n, int *fd, int *errnum)
{
	if (n) {
		return ask(n, (struct os_netns_request){.op = OS_NETNS_OP_TUN}, fd, errnum);
	}
	int got = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (got < 0) {
		*errnum = errno;
		return os_error(*errnum);
	}
	*fd = got;
	return WEFT_OK;
}

/* The namespaces by a socket that lies in them: this needs no /proc. */
static enum weft_err
find_namespaces(struct os_netns *n, bool has_user)
{
	int fd;
	enum weft_err err = os_netns_socket(n, AF_UNIX, SOCK_DGRAM, 0, &fd);
	if (err) {
		return err;
	}
	n->net_fd = ioctl(fd, SIOCGSKNS);
	if (n->net_fd >= 0 && has_user) {
		n->user_fd = ioctl(n->net_fd, NS_GET_USERNS);
	}
	if (n->net_fd < 0 || (has_user && n->user_fd < 0)) {
		err = os_error(errno);
	}
	os_fd_close(&fd);
	return err;
}

static enum weft_err
explain(enum os_netns_stage stage, int errnum, struct os_netns_fault *why)
{
	struct os_netns_facts facts;
	os_netns_facts_read(&facts);
	if (stage == OS_NETNS_STAGE_CLONE_USER) {
		/* Which of the two it was. */
		pid_t pid = clone_silently(CLONE_NEWUSER);
		if (pid == 0) {
			syscall(SYS_exit_group, 0);
		}
		facts.can_user_alone = pid > 0;
		if (pid > 0) {
			reap(pid);
		}
	}
	return os_netns_explain(&facts, stage, errnum, why);
}

/* The start's result. */
static enum weft_err
await_start(struct os_netns *n, struct os_netns_fault *why)
{
	struct os_netns_answer a;
	int fd = -1;
	enum weft_err err = take_answer(n, 0, &a, &fd);
	os_fd_close(&fd);
	if (err) {
		*why = (struct os_netns_fault){0};
		snprintf(why->text, sizeof(why->text),
			"the process that is to hold the network namespace %s",
			err == WEFT_ETIMEDOUT ? "gives no answer" : "was killed while it started");
		return err;
	}
	if (a.errnum) {
		return explain((enum os_netns_stage)a.stage, a.errnum, why);
	}
	return WEFT_OK;
}

static enum weft_err
clone_holder(struct os_netns *n, struct os_netns_start *s, struct os_netns_fault *why)
{
	bool is_privileged = has_capabilities();
	n->holder = -1;
	if (is_privileged) {
		s->has_user = false;
		n->holder = start_holder(s);
	}
	int errnum = errno;
	/* A filter may forbid the one and allow the other. */
	if (n->holder < 0) {
		s->has_user = true;
		snprintf(s->uid_map, sizeof(s->uid_map), "%u %u 1", geteuid(), geteuid());
		snprintf(s->gid_map, sizeof(s->gid_map), "%u %u 1", getegid(), getegid());
		n->holder = start_holder(s);
		errnum = n->holder < 0 && !is_privileged ? errno : errnum;
	}
	if (n->holder < 0) {
		return explain(is_privileged ? OS_NETNS_STAGE_CLONE_NET : OS_NETNS_STAGE_CLONE_USER,
			errnum, why);
	}
	return WEFT_OK;
}

static enum weft_err
start(struct os_netns *n, struct os_netns_fault *why)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		return os_error(errno);
	}
	n->socket = ends[0];
	struct timeval timeout = {.tv_sec = ANSWER_TIMEOUT_S};
	(void)setsockopt(n->socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	/* The signal of PR_SET_PDEATHSIG would come at the end of the thread that we are. Before
	 * Linux 5.3 the end of the socket must do, which a forked child of ours delays. */
	struct os_netns_start s = {.socket = ends[1],
		.parent_fd = (int)syscall(SYS_pidfd_open, getpid(), 0),
		.thread = os_thread_self()};
	enum weft_err err = clone_holder(n, &s, why);
	os_fd_close(&ends[1]);
	os_fd_close(&s.parent_fd);
	if (!err) {
		err = await_start(n, why);
	}
	return err ? err : find_namespaces(n, s.has_user);
}

enum weft_err
os_netns_open(struct os_netns **out, struct os_netns_fault *why)
{
	*why = (struct os_netns_fault){0};
	struct os_netns *n = calloc(1, sizeof(*n));
	if (!n) {
		snprintf(why->text, sizeof(why->text), "%s", weft_err_text(WEFT_ENOMEM));
		return WEFT_ENOMEM;
	}
	*n = (struct os_netns){.socket = -1, .holder = -1, .user_fd = -1, .net_fd = -1};
	os_mutex_init(&n->mutex);
	enum weft_err err = start(n, why);
	if (err) {
		if (!why->text[0]) {
			snprintf(why->text, sizeof(why->text),
				"cannot make a private network namespace: %s", weft_err_text(err));
		}
		os_netns_close(n);
		return err;
	}
	*out = n;
	return WEFT_OK;
}

void
os_netns_close(struct os_netns *n)
{
	if (!n) {
		return;
	}
	if (n->socket >= 0) {
		/* A forked child may have the socket, too, and a program that has dropped its
		 * privileges may not kill the holder: it ends by itself. */
		(void)shutdown(n->socket, SHUT_RDWR);
	}
	os_fd_close(&n->socket);
	if (n->holder > 0) {
		reap(n->holder);
	}
	os_fd_close(&n->user_fd);
	os_fd_close(&n->net_fd);
	os_mutex_fini(&n->mutex);
	free(n);
}

enum weft_err
os_netns_namespaces(const struct os_netns *n, int *user, int *net)
{
	int user_fd = -1, net_fd = fcntl(n->net_fd, F_DUPFD_CLOEXEC, 0);
	if (net_fd < 0) {
		return os_error(errno);
	}
	if (n->user_fd >= 0) {
		user_fd = fcntl(n->user_fd, F_DUPFD_CLOEXEC, 0);
		if (user_fd < 0) {
			enum weft_err err = os_error(errno);
			os_fd_close(&net_fd);
			return err;
		}
	}
	*user = user_fd;
	*net = net_fd;
	return WEFT_OK;
}

int
os_netns_holder(const struct os_netns *n)
{
	return n->holder;
}

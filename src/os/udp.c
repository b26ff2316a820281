/* SPDX-License-Identifier: Apache-2.0 */
#include "os/udp.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>

#include "os/clock.h"
#include "os/error.h"
#include "os/fd.h"

/* How often a port that is free in one family and taken in the other is given back when any
 * port will do. */
#define PORT_TRIES 32

static ssize_t
real_sendmsg(void *ctx, int fd, const struct msghdr *m, int flags)
{
	(void)ctx;
	return sendmsg(fd, m, flags);
}

static int
real_sendmmsg(void *ctx, int fd, struct mmsghdr *m, unsigned n, int flags)
{
	(void)ctx;
	return sendmmsg(fd, m, n, flags);
}

static int
real_recvmmsg(void *ctx, int fd, struct mmsghdr *m, unsigned n, int flags)
{
	(void)ctx;
	return recvmmsg(fd, m, n, flags, NULL);
}

static bool
real_wait_writable(void *ctx, int fd, int ms)
{
	(void)ctx;
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	return poll(&p, 1, ms) > 0;
}

static struct mono
real_now(void *ctx)
{
	(void)ctx;
	return os_clock_mono();
}

const struct os_udp_calls os_udp_calls_real = {
	.sendmsg = real_sendmsg,
	.sendmmsg = real_sendmmsg,
	.recvmmsg = real_recvmmsg,
	.wait_writable = real_wait_writable,
	.now = real_now,
};

static int
set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value));
}

/* FORCE goes past the sysctl and needs CAP_NET_ADMIN. The kernel doubles what it is given. */
static void
set_buffer(int fd, int force, int plain, uint32_t bytes, const struct log *log)
{
	if (set_int(fd, SOL_SOCKET, force, (int)bytes) == 0) {
		return;
	}
	int got = 0;
	socklen_t len = sizeof(got);
	(void)set_int(fd, SOL_SOCKET, plain, (int)bytes);
	(void)getsockopt(fd, SOL_SOCKET, plain, &got, &len);
	if ((uint32_t)got / 2 < bytes) {
		bool is_rcv = plain == SO_RCVBUF;
		log_warn(log,
			"UDP %s buffer is %d bytes instead of %u: raise the sysctl net.core.%s",
			is_rcv ? "receive" : "send", got / 2, bytes,
			is_rcv ? "rmem_max" : "wmem_max");
	}
}

/* What makes a socket useless when it fails. */
static enum weft_err
set_needed(int fd, bool is_v6)
{
	if (is_v6) {
		if (set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) ||
			set_int(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) ||
			set_int(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1)) {
			return os_error(errno);
		}
		return WEFT_OK;
	}
	if (set_int(fd, IPPROTO_IP, IP_PKTINFO, 1) || set_int(fd, IPPROTO_IP, IP_RECVTOS, 1)) {
		return os_error(errno);
	}
	return WEFT_OK;
}

static enum weft_err
set_options(int fd, bool is_v6, const struct os_udp_config *c, const struct log *log)
{
	char text[OS_ERROR_TEXT_MAX];
	if (c->mark && set_int(fd, SOL_SOCKET, SO_MARK, (int)c->mark)) {
		int e = errno;
		log_error(log, "cannot set fwmark 0x%x: %s", c->mark,
			os_error_text(e, text, sizeof(text)));
		return os_error(e);
	}
	enum weft_err err = set_needed(fd, is_v6);
	if (err) {
		log_error(log, "UDP socket options refused: %s", weft_err_text(err));
		return err;
	}
	/* As the kernel's own WireGuard: no DF on outer packets, and longer ones than the path
	 * takes are cut into fragments, here or on the way. */
	if (is_v6) {
		(void)set_int(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT);
	} else {
		(void)set_int(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT);
	}
	(void)set_int(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	uint32_t rcv = c->rcv_bytes ? c->rcv_bytes : OS_UDP_BUFFER_BYTES;
	uint32_t snd = c->snd_bytes ? c->snd_bytes : OS_UDP_BUFFER_BYTES;
	set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, rcv, log);
	set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, snd, log);
	return WEFT_OK;
}

static int
bind_port(int fd, bool is_v6, const struct ip_addr *local, uint16_t port)
{
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 a6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_ANY_INIT};
	if (local->family == IP_FAMILY_V4) {
		memcpy(&a4.sin_addr, local->b, 4);
	} else if (local->family == IP_FAMILY_V6) {
		memcpy(&a6.sin6_addr, local->b, 16);
	}
	return is_v6 ? bind(fd, (const struct sockaddr *)&a6, sizeof(a6))
		     : bind(fd, (const struct sockaddr *)&a4, sizeof(a4));
}

static enum weft_err
bound_port(int fd, uint16_t *out)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	if (getsockname(fd, (struct sockaddr *)&a, &len)) {
		return os_error(errno);
	}
	*out = ntohs(a.ss_family == AF_INET6
			     ? ((const struct sockaddr_in6 *)(const void *)&a)->sin6_port
			     : ((const struct sockaddr_in *)(const void *)&a)->sin_port);
	return WEFT_OK;
}

/* WEFT_ENOTSUP: no such family here, or not that of the address to bind to. */
static enum weft_err
open_socket(
	bool is_v6, uint16_t port, const struct os_udp_config *c, const struct log *log, int *out)
{
	if (c->local.family != IP_FAMILY_NONE && (c->local.family == IP_FAMILY_V6) != is_v6) {
		return WEFT_ENOTSUP;
	}
	int fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		return os_error(errno);
	}
	enum weft_err err = set_options(fd, is_v6, c, log);
	if (err) {
		goto undo_socket;
	}
	/* The first socket of a shared port binds while it is still exclusive, so that it fails
	 * on a port that is taken; only then may others join it. */
	bool is_shared = c->is_shared || c->is_joining;
	if ((c->is_joining && set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1)) ||
		bind_port(fd, is_v6, &c->local, port) ||
		(is_shared && !c->is_joining && set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1))) {
		err = os_error(errno);
		goto undo_socket;
	}
	*out = fd;
	return WEFT_OK;
undo_socket:
	os_fd_close(&fd);
	return err;
}

/* Opens what the machine has of both families on one port. */
static enum weft_err
open_both(uint16_t port, const struct os_udp_config *c, const struct log *log, struct os_udp *u)
{
	*u = (struct os_udp){.v4 = -1, .v6 = -1};
	enum weft_err err = open_socket(false, port, c, log, &u->v4);
	if (!err) {
		err = bound_port(u->v4, &u->port);
	}
	if (err && err != WEFT_ENOTSUP) {
		goto undo;
	}
	err = open_socket(true, u->v4 >= 0 ? u->port : port, c, log, &u->v6);
	if (err == WEFT_ENOTSUP && u->v4 >= 0) {
		return WEFT_OK;
	}
	if (!err) {
		err = bound_port(u->v6, &u->port);
	}
	if (!err) {
		return WEFT_OK;
	}
undo:
	os_udp_close(u);
	return err;
}

/* Probes and switches the offloads of both sockets. A kernel that knows UDP_SEGMENT may still
 * refuse it for a device; that is found when sending. */
static void
set_offload(struct os_udp *u)
{
	int fds[2] = {u->v4, u->v6};
	u->has_gso = u->has_gro = true;
	for (size_t i = 0; i < WEFT_ARRAY_LEN(fds); i++) {
		int size = 0;
		socklen_t len = sizeof(size);
		if (fds[i] < 0) {
			continue;
		}
		if (getsockopt(fds[i], IPPROTO_UDP, UDP_SEGMENT, &size, &len)) {
			u->has_gso = false;
		}
		if (set_int(fds[i], IPPROTO_UDP, UDP_GRO, 1)) {
			u->has_gro = false;
		}
	}
}

enum weft_err
os_udp_open(const struct os_udp_config *c, const struct log *log, struct os_udp *out)
{
	if (c->is_joining && c->port == 0) {
		return WEFT_EINVAL;
	}
	struct os_udp u;
	enum weft_err err = WEFT_EADDRINUSE;
	for (int i = 0; i < (c->port ? 1 : PORT_TRIES) && err == WEFT_EADDRINUSE; i++) {
		err = open_both(c->port, c, log, &u);
	}
	if (err) {
		log_error(log, "cannot open UDP port %u: %s", c->port, weft_err_text(err));
		return err;
	}
	if (!c->is_joining && c->local.family == IP_FAMILY_NONE && (u.v4 < 0 || u.v6 < 0)) {
		log_info(log, "this machine has no IPv%c: peers are reached by IPv%c alone",
			u.v4 < 0 ? '4' : '6', u.v4 < 0 ? '6' : '4');
	}
	if (c->has_offload) {
		set_offload(&u);
	}
	*out = u;
	return WEFT_OK;
}

void
os_udp_close(struct os_udp *u)
{
	os_fd_close(&u->v4);
	os_fd_close(&u->v6);
}

void
os_udp_tune(int fd, bool is_v6, uint32_t bytes)
{
	(void)set_int(
		fd, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP, is_v6 ? IPV6_RECVPKTINFO : IP_PKTINFO, 1);
	(void)set_int(
		fd, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP, is_v6 ? IPV6_RECVTCLASS : IP_RECVTOS, 1);
	(void)set_int(fd, IPPROTO_UDP, UDP_GRO, 1);
	if (set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, (int)bytes)) {
		(void)set_int(fd, SOL_SOCKET, SO_RCVBUF, (int)bytes);
	}
	if (set_int(fd, SOL_SOCKET, SO_SNDBUFFORCE, (int)bytes)) {
		(void)set_int(fd, SOL_SOCKET, SO_SNDBUF, (int)bytes);
	}
}

enum weft_err
os_udp_set_mark(const struct os_udp *u, uint32_t mark)
{
	if ((u->v4 >= 0 && set_int(u->v4, SOL_SOCKET, SO_MARK, (int)mark)) ||
		(u->v6 >= 0 && set_int(u->v6, SOL_SOCKET, SO_MARK, (int)mark))) {
		return os_error(errno);
	}
	return WEFT_OK;
}

enum weft_err
os_udp_dropped(int fd, uint32_t *out)
{
	uint32_t info[SK_MEMINFO_VARS] = {0};
	socklen_t len = sizeof(info);
	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len)) {
		return os_error(errno);
	}
	*out = info[SK_MEMINFO_DROPS];
	return WEFT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets bound to addresses of the node: TCP that listens, UDP without a peer. */
#include <string.h>
#include <sys/socket.h>

#include "lib/detail.h"
#include "lib/dial.h"
#include "lib/node.h"
#include "os/fd.h"
#include "os/inet.h"

#define BACKLOG_DEFAULT 4096

struct binding {
	struct weft_node *n;
	struct network net;
	struct weft_dial_options o;
	struct target at;
	const char *address; /* as the program wrote it */
	struct weft_detail *why;
};

/* An empty host is all addresses: IPv6 that takes IPv4, too, unless one family was asked for. */
static enum weft_err
choose_addr(const struct binding *b, struct ip_addr *out)
{
	struct ip_addr addrs[TARGET_ADDRS_MAX];
	size_t n;
	if (b->at.host[0] == 0) {
		*out = target_any(b->net.family == IP_FAMILY_NONE ? IP_FAMILY_V6 : b->net.family);
		return WEFT_OK;
	}
	enum weft_err e = target_resolve(b->n, b->at.host, b->net.family, addrs, &n);
	if (e) {
		return detail_set(b->why, e, 0,
			"\"%.100s\": no IP address of that family; give one of this node's, or "
			"nothing for all",
			b->at.host);
	}
	*out = addrs[0];
	return WEFT_OK;
}

static enum weft_err
prepare(const struct binding *b, const struct ip_addr *at, int fd)
{
	struct os_inet_name name;
	int errnum = 0;
	bool is_any = b->at.host[0] == 0 && b->net.family == IP_FAMILY_NONE;
	unsigned flags = b->net.is_udp ? 0 : OS_INET_REUSEADDR;
	flags |= b->o.flags & WEFT_REUSEPORT ? OS_INET_REUSEPORT : 0;
	/* "[::]:80" on "tcp" takes both families as an empty host does; on "tcp6" it does not. */
	bool has_both = is_any || b->net.family == IP_FAMILY_NONE;
	flags |= !has_both || b->o.flags & WEFT_V6ONLY ? OS_INET_V6ONLY : 0;
	os_inet_name(at, b->at.port, lib_node_zone(b->n, at), &name);
	enum weft_err e = dial_bind(fd, &name, flags, b->address, b->why);
	if (!e && !b->net.is_udp) {
		e = os_inet_listen(fd, b->o.backlog ? b->o.backlog : BACKLOG_DEFAULT, &errnum);
		if (e) {
			detail_set(b->why, e, errnum, "%.100s: %s", b->address, weft_err_text(e));
		}
	}
	if (!e && !(b->o.flags & WEFT_NONBLOCK)) {
		e = os_inet_set_blocking(fd, true);
	}
	return e;
}

static enum weft_err
bind_started(const struct binding *b, int *fd)
{
	struct ip_addr at;
	int got;
	enum weft_err e = choose_addr(b, &at);
	if (!e) {
		e = dial_socket(b->n, &b->net, at.family, &got, b->why);
		/* A kernel without IPv6 has IPv4 alone to give. */
		if (e == WEFT_ENOTSUP && b->at.host[0] == 0 && b->net.family == IP_FAMILY_NONE) {
			at = target_any(IP_FAMILY_V4);
			e = dial_socket(b->n, &b->net, at.family, &got, b->why);
		}
	}
	if (e) {
		return e;
	}
	e = prepare(b, &at, got);
	if (e) {
		os_fd_close(&got);
		return e;
	}
	*fd = got;
	return WEFT_OK;
}

static enum weft_err
bind_socket(struct binding *b, const char *kind, const char *network,
	const struct weft_dial_options *o, int *fd)
{
	if (!b->n || !network || !b->address || !fd) {
		return detail_set(b->why, WEFT_EINVAL, 0, "an argument is NULL");
	}
	enum weft_err e = dial_options(o, &b->o, b->why);
	if (!e) {
		e = target_network(network, kind, &b->net, b->why);
	}
	if (!e) {
		e = target_parse(b->address, b->net.is_udp, &b->at, b->why);
	}
	if (e) {
		return e;
	}
	if (lib_node_enter(b->n)) {
		return detail_set(b->why, WEFT_ECLOSED, 0, "the node is not started");
	}
	e = bind_started(b, fd);
	lib_node_leave(b->n);
	return e;
}

enum weft_err
weft_listen(struct weft_node *n, const char *network, const char *address,
	const struct weft_dial_options *o, int *fd, struct weft_detail *why)
{
	struct binding b = {.n = n, .address = address, .why = why};
	return bind_socket(&b, "tcp", network, o, fd);
}

enum weft_err
weft_packet(struct weft_node *n, const char *network, const char *address,
	const struct weft_dial_options *o, int *fd, struct weft_detail *why)
{
	struct binding b = {.n = n, .address = address, .why = why};
	return bind_socket(&b, "udp", network, o, fd);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/dial.h"

#include <string.h>
#include <sys/socket.h>

#include "lib/cancel.h"
#include "lib/detail.h"
#include "lib/node.h"
#include "node/node.h"
#include "os/clock.h"
#include "os/error.h"
#include "os/fd.h"
#include "os/inet.h"
#include "os/netns.h"

enum weft_err
dial_options(
	const struct weft_dial_options *o, struct weft_dial_options *out, struct weft_detail *why)
{
	*out = (struct weft_dial_options){.size = sizeof(*out)};
	if (o && !record_take(out, sizeof(*out), o, sizeof(*out))) {
		return detail_set(why, WEFT_EINVAL, 0,
			"size of the options: must be sizeof(struct weft_dial_options)");
	}
	if (out->timeout_ms < 0 || out->backlog < 0 ||
		out->flags & ~(WEFT_NONBLOCK | WEFT_REUSEPORT | WEFT_V6ONLY)) {
		return detail_set(why, WEFT_EINVAL, 0,
			"options: timeout_ms and backlog must not be negative, nor unknown bits of "
			"flags be set");
	}
	return WEFT_OK;
}

enum weft_err
dial_socket(struct weft_node *n, const struct network *net, enum ip_family family, int *fd,
	struct weft_detail *why)
{
	int type = net->is_udp ? SOCK_DGRAM : SOCK_STREAM;
	enum weft_err e = os_netns_socket(n->netns, family == IP_FAMILY_V4 ? AF_INET : AF_INET6,
		type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd);
	if (e == WEFT_ENOMEM) {
		return detail_set(why, e, 0,
			"no socket: memory or descriptors are used up; ulimit -n raises their "
			"number");
	}
	if (e == WEFT_ECLOSED) {
		return detail_set(why, e, 0,
			"no socket: the process that holds the namespace was ended; stop and start "
			"the "
			"node");
	}
	return e ? detail_set(why, e, 0, "no socket: %s", weft_err_text(e)) : WEFT_OK;
}

/* The text for a call of the kernel that failed. */
static enum weft_err
fail(struct weft_detail *why, enum weft_err e, int errnum, const char *what, const char *address)
{
	char text[OS_ERROR_TEXT_MAX];
	return detail_set(why, e, errnum, "%s %.100s: %s", what, address,
		errnum ? os_error_text(errnum, text, sizeof(text)) : weft_err_text(e));
}

enum weft_err
dial_bind(int fd, const struct os_inet_name *at, unsigned flags, const char *address,
	struct weft_detail *why)
{
	int errnum = 0;
	enum weft_err e = os_inet_bind(fd, at, flags, &errnum);
	if (e == WEFT_EUNREACH) {
		return detail_set(why, e, errnum,
			"%.100s: no address of this node; its own are those of Address", address);
	}
	return e ? fail(why, e, errnum, "cannot take", address) : WEFT_OK;
}

/* A dial under way. */
struct dialing {
	struct weft_node *n;
	struct network net;
	const char *address; /* as the program wrote it */
	struct target to, local;
	struct ip_addr local_addr;
	struct weft_dial_options o;
	struct mono deadline;
	struct weft_detail *why;
};

static bool
can_reach(struct weft_node *n, const struct ip_addr *to)
{
	const struct wg_device *d = node_lock_shared(n->inner);
	bool has_peer = wg_device_route(d, to) != NULL;
	node_unlock_shared(n->inner);
	return has_peer || lib_node_is_own(n, to);
}

/* Waits for the end of a connect, to one of left addresses. */
static enum weft_err
finish(struct dialing *d, int fd, size_t left)
{
	struct wait w = {.n = d->n, .cancel = d->o.cancel, .deadline = d->deadline};
	int errnum = 0;
	if (d->deadline.ns != MONO_NEVER.ns) {
		/* The others must have a chance. */
		struct mono now = os_clock_mono();
		w.deadline = mono_add_ns(now, mono_diff_ns(d->deadline, now) / (int64_t)left);
	}
	enum weft_err e = wait_for(&w, fd, true);
	if (e == WEFT_ETIMEDOUT) {
		return detail_set(d->why, e, 0,
			"%.100s: no answer in time; weft_node_peers() tells whether the peer is up",
			d->address);
	}
	if (e) {
		return detail_set(d->why, e, 0, "%.100s: %s", d->address,
			e == WEFT_ECANCELED ? "cancelled" : "the node was stopped");
	}
	e = os_inet_result(fd, &errnum);
	return e ? fail(d->why, e, errnum, "cannot connect to", d->address) : WEFT_OK;
}

static enum weft_err
connect_one(struct dialing *d, const struct ip_addr *to, size_t left, int fd)
{
	struct os_inet_name name;
	int errnum = 0;
	enum weft_err e = WEFT_OK;
	bool is_waiting = !(d->o.flags & WEFT_NONBLOCK);
	if (d->o.local || d->o.flags & WEFT_REUSEPORT) {
		struct ip_addr from = d->local_addr.family == IP_FAMILY_NONE
					      ? target_any(to->family)
					      : d->local_addr;
		unsigned flags = d->o.flags & WEFT_REUSEPORT ? OS_INET_REUSEPORT : 0;
		flags |= !d->net.is_udp && d->local.port == 0 ? OS_INET_LATE_PORT : 0;
		flags |= OS_INET_V6ONLY;
		os_inet_name(&from, d->local.port, lib_node_zone(d->n, &from), &name);
		e = dial_bind(fd, &name, flags, d->o.local ? d->o.local : "", d->why);
	}
	if (e) {
		return e;
	}
	os_inet_name(to, d->to.port, lib_node_zone(d->n, to), &name);
	e = os_inet_connect(fd, &name, &errnum);
	if (e == WEFT_EAGAIN) {
		e = is_waiting ? finish(d, fd, left) : WEFT_OK;
	} else if (e) {
		fail(d->why, e, errnum, "cannot connect to", d->address);
	}
	if (!e && is_waiting) {
		e = os_inet_set_blocking(fd, true);
	}
	return e;
}

static enum weft_err
dial_one(struct dialing *d, const struct ip_addr *to, size_t left, int *fd)
{
	char text[IP_ADDR_TEXT_MAX];
	int got;
	if (!can_reach(d->n, to)) {
		return detail_set(d->why, WEFT_EUNREACH, 0,
			"%s is in no peer's AllowedIPs, nor an address of this node",
			ip_addr_format(to, text));
	}
	enum weft_err e = dial_socket(d->n, &d->net, to->family, &got, d->why);
	if (e) {
		return e;
	}
	e = connect_one(d, to, left, got);
	if (e) {
		os_fd_close(&got);
		return e;
	}
	*fd = got;
	return WEFT_OK;
}

/* Is there any sense in another address? */
static bool
is_of_address(enum weft_err e)
{
	return e == WEFT_EUNREACH || e == WEFT_EREFUSED || e == WEFT_ETIMEDOUT ||
	       e == WEFT_ECLOSED || e == WEFT_EPERM;
}

static enum weft_err
dial_all(struct dialing *d, int *fd)
{
	struct ip_addr addrs[TARGET_ADDRS_MAX];
	size_t n;
	enum ip_family family =
		d->local_addr.family != IP_FAMILY_NONE ? d->local_addr.family : d->net.family;
	enum weft_err e = target_resolve(d->n, d->to.host, family, addrs, &n);
	if (e) {
		return detail_set(d->why, e, 0,
			"\"%.100s\": no IP address and no peer's Name%s; names are those of the "
			"configuration",
			d->to.host,
			family == IP_FAMILY_NONE ? "" : " with an address of that family");
	}
	for (size_t i = 0; i < n; i++) {
		e = dial_one(d, &addrs[i], n - i, fd);
		if (!e || !is_of_address(e)) {
			break;
		}
	}
	return e;
}

static enum weft_err
read_local(struct dialing *d)
{
	if (!d->o.local) {
		return WEFT_OK;
	}
	enum weft_err e = target_parse(d->o.local, d->net.is_udp, &d->local, d->why);
	if (e || d->local.host[0] == 0) {
		return e;
	}
	e = ip_addr_parse(d->local.host, strlen(d->local.host), &d->local_addr);
	if (e || (d->net.family != IP_FAMILY_NONE && d->local_addr.family != d->net.family)) {
		return detail_set(d->why, e ? WEFT_EPARSE : WEFT_EINVAL, 0,
			"local \"%.100s\": must be an IP address of the network's family and a "
			"port",
			d->o.local);
	}
	return WEFT_OK;
}

enum weft_err
weft_dial(struct weft_node *n, const char *network, const char *address,
	const struct weft_dial_options *o, int *fd, struct weft_detail *why)
{
	if (!n || !network || !address || !fd) {
		return detail_set(why, WEFT_EINVAL, 0, "an argument is NULL");
	}
	struct dialing d = {.n = n, .address = address, .why = why};
	enum weft_err e = dial_options(o, &d.o, why);
	if (!e) {
		e = target_network(network, NULL, &d.net, why);
	}
	if (!e) {
		e = target_parse(address, d.net.is_udp, &d.to, why);
	}
	if (!e) {
		e = read_local(&d);
	}
	if (e) {
		return e;
	}
	d.deadline = wait_deadline(d.o.timeout_ms);
	if (lib_node_enter(n)) {
		return detail_set(why, WEFT_ECLOSED, 0, "the node is not started");
	}
	e = dial_all(&d, fd);
	lib_node_leave(n);
	return e;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets of a rule: those that listen, and those to its target. A rule of -L listens on this
 * machine and connects in the overlay, one of -R the other way round. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/forward.h"
#include "os/error.h"
#include "os/fd.h"
#include "os/inet.h"
#include "os/netns.h"
#include "weft/dial.h"

#define BACKLOG 4096
#define ADDRESS_MAX (FORWARD_HOST_MAX + 16)

static const char *
address_text(const struct ip_addr *a, uint16_t port, char out[ENDPOINT_TEXT_MAX])
{
	struct endpoint e = {.addr = *a, .port = port};
	return endpoint_format(&e, out);
}

/* On this machine. *errnum tells why on failure. */
static enum weft_err
bind_here(const struct ip_addr *a, uint16_t port, bool is_udp, int *fd, int *errnum)
{
	struct os_inet_name name;
	int got;
	enum weft_err e = os_netns_socket(NULL, a->family == IP_FAMILY_V4 ? AF_INET : AF_INET6,
		(is_udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, &got);
	if (e) {
		return e;
	}
	os_inet_name(a, port, 0, &name);
	e = os_inet_bind(got, &name, OS_INET_V6ONLY | (is_udp ? 0 : OS_INET_REUSEADDR), errnum);
	if (!e && !is_udp) {
		e = os_inet_listen(got, BACKLOG, errnum);
	}
	if (e) {
		os_fd_close(&got);
		return e;
	}
	*fd = got;
	return WEFT_OK;
}

static enum weft_err
bind_overlay(const struct forward_route *r, const struct ip_addr *a, uint16_t port, int *fd,
	struct weft_detail *why)
{
	char text[ENDPOINT_TEXT_MAX];
	struct weft_dial_options o = {.size = sizeof(o), .flags = WEFT_NONBLOCK | WEFT_V6ONLY};
	struct weft_node *n = r->f->overlay.node;
	bool is_v4 = a->family == IP_FAMILY_V4;
	address_text(a, port, text);
	return r->rule.is_udp ? weft_packet(n, is_v4 ? "udp4" : "udp6", text, &o, fd, why)
			      : weft_listen(n, is_v4 ? "tcp4" : "tcp6", text, &o, fd, why);
}

/* What BIND stands for: one address, or both families of all or of loopback. */
static size_t
addresses_of(const struct forward_rule *rule, struct ip_addr out[FORWARD_FRONTS_MAX])
{
	memset(out, 0, FORWARD_FRONTS_MAX * sizeof(*out));
	if (rule->bind[0] && !ip_addr_parse(rule->bind, strlen(rule->bind), &out[0])) {
		return 1;
	}
	bool is_loopback = rule->bind[0] || (rule->side == FORWARD_LOCAL && !rule->has_bind);
	out[0].family = IP_FAMILY_V4;
	out[1].family = IP_FAMILY_V6;
	if (is_loopback) {
		memcpy(out[0].b, (const uint8_t[]){127, 0, 0, 1}, 4);
		out[1].b[15] = 1;
	}
	return 2;
}

static bool
say_bind_failure(const struct forward_route *r, const struct ip_addr *a, enum weft_err e,
	const struct weft_detail *why)
{
	char text[ENDPOINT_TEXT_MAX], reason[OS_ERROR_TEXT_MAX];
	address_text(a, r->rule.port, text);
	const char *hint = e == WEFT_EADDRINUSE ? "; another program listens there"
			   : e == WEFT_EPERM && r->rule.port < 1024
				   ? "; ports below 1024 need root here, others do not"
				   : "";
	if (why->text[0]) {
		cli_fail("forward: %s: %s", r->name, why->text);
	} else {
		cli_fail("forward: %s: cannot listen on %s: %s%s", r->name, text,
			why->os_errno ? os_error_text(why->os_errno, reason, sizeof(reason))
				      : weft_err_text(e),
			hint);
	}
	return false;
}

bool
forward_front_open(struct forward_route *r)
{
	struct ip_addr addrs[FORWARD_FRONTS_MAX];
	size_t n = addresses_of(&r->rule, addrs), opened = 0;
	uint16_t port = r->rule.port;
	for (size_t i = 0; i < n; i++) {
		struct weft_detail why = {.size = sizeof(why)};
		struct forward_front *front = &r->front[opened];
		enum weft_err e = r->rule.side == FORWARD_LOCAL
					  ? bind_here(&addrs[i], port, r->rule.is_udp, &front->fd,
						    &why.os_errno)
					  : bind_overlay(r, &addrs[i], port, &front->fd, &why);
		/* Of both families one may be missing. */
		bool is_missing = n > 1 && (e == WEFT_EUNREACH || e == WEFT_ENOTSUP);
		if (e && !is_missing) {
			return say_bind_failure(r, &addrs[i], e, &why);
		}
		if (!e) {
			struct ip_addr bound;
			if (os_inet_local(front->fd, &bound, &port)) {
				return say_bind_failure(r, &addrs[i], WEFT_EIO, &why);
			}
			front->at = (struct endpoint){.addr = addrs[i], .port = port};
			opened++;
		}
	}
	return opened > 0 || say_bind_failure(r, &addrs[0], WEFT_EUNREACH,
				     &(struct weft_detail){.size = sizeof(struct weft_detail)});
}

void
forward_front_close(struct forward_route *r)
{
	for (size_t i = 0; i < FORWARD_FRONTS_MAX; i++) {
		os_fd_close(&r->front[i].fd);
	}
}

static enum weft_err
dial_here(const struct forward_route *r, const struct ip_addr *to, int *fd, int *errnum)
{
	struct os_inet_name name;
	int got;
	enum weft_err e = os_netns_socket(NULL, to->family == IP_FAMILY_V4 ? AF_INET : AF_INET6,
		(r->rule.is_udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		&got);
	if (e) {
		return e;
	}
	os_inet_name(to, r->rule.to_port, 0, &name);
	e = os_inet_connect(got, &name, errnum);
	if (e && e != WEFT_EAGAIN) {
		os_fd_close(&got);
		return e;
	}
	*fd = got;
	return WEFT_OK;
}

enum weft_err
forward_dial(
	const struct forward_route *r, const struct ip_addr *to, int *fd, char *why, size_t cap)
{
	char text[ENDPOINT_TEXT_MAX];
	if (r->rule.side == FORWARD_REMOTE) {
		int errnum = 0;
		enum weft_err e = dial_here(r, to, fd, &errnum);
		if (e && errnum) {
			os_error_text(errnum, why, cap);
		} else if (e) {
			snprintf(why, cap, "%s", weft_err_text(e));
		}
		return e;
	}
	struct weft_detail detail = {.size = sizeof(detail)};
	struct weft_dial_options o = {.size = sizeof(o), .flags = WEFT_NONBLOCK};
	enum weft_err e = weft_dial(r->f->overlay.node, r->rule.is_udp ? "udp" : "tcp",
		address_text(to, r->rule.to_port, text), &o, fd, &detail);
	if (e) {
		snprintf(why, cap, "%s", detail.text[0] ? detail.text : weft_err_text(e));
	}
	return e;
}

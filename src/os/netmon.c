/* SPDX-License-Identifier: Apache-2.0 */
#include "os/netmon.h"

#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "os/error.h"
#include "os/netlink_msg.h"

#define NEWS_BYTES 16384

struct os_netmon {
	struct mnl_socket *socket;
	const struct nlmsghdr *at; /* next message in buf */
	int left;                  /* bytes from at on */
	WEFT_ALIGNED(8) uint8_t buf[NEWS_BYTES];
};

enum weft_err
os_netmon_open(struct os_netmon **out)
{
	return os_netmon_open_in(NULL, out);
}

enum weft_err
os_netmon_open_in(struct os_netns *ns, struct os_netmon **out)
{
	struct os_netmon *m = calloc(1, sizeof(*m));
	if (!m) {
		return WEFT_ENOMEM;
	}
	enum weft_err err = os_netlink_socket(ns, SOCK_NONBLOCK, &m->socket);
	if (err) {
		free(m);
		return err;
	}
	unsigned groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
			  RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
	if (mnl_socket_bind(m->socket, groups, MNL_SOCKET_AUTOPID)) {
		err = os_error(errno);
		os_netmon_close(m);
		return err;
	}
	*out = m;
	return WEFT_OK;
}

void
os_netmon_close(struct os_netmon *m)
{
	if (m) {
		mnl_socket_close(m->socket);
		free(m);
	}
}

int
os_netmon_fd(const struct os_netmon *m)
{
	return mnl_socket_get_fd(m->socket);
}

static int
addr_attr(const struct nlattr *a, void *data)
{
	struct os_netmon_event *e = data;
	uint8_t af = e->addr.addr.family == IP_FAMILY_V6 ? AF_INET6 : AF_INET;
	uint16_t type = mnl_attr_get_type(a);
	/* On a point-to-point interface IFA_ADDRESS is the other end's; IFA_LOCAL comes after
	 * it and wins. */
	if (type == IFA_LOCAL || type == IFA_ADDRESS) {
		struct ip_addr addr = os_netlink_addr(a, af);
		if (addr.family != IP_FAMILY_NONE) {
			e->addr.addr = addr;
		}
	}
	return MNL_CB_OK;
}

/* False for news that nobody here wants. */
static bool
decode(const struct nlmsghdr *m, struct os_netmon_event *out)
{
	*out = (struct os_netmon_event){0};
	switch (m->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK: {
		const struct ifinfomsg *i = mnl_nlmsg_get_payload(m);
		if (i->ifi_family != AF_UNSPEC) {
			return false; /* a bridge tells of its ports: RTM_DELLINK is no end there */
		}
		struct os_link_info info;
		os_netlink_decode_link(m, &info);
		out->kind = m->nlmsg_type == RTM_NEWLINK ? OS_NETMON_LINK : OS_NETMON_LINK_DEL;
		out->index = info.index;
		out->is_up = info.is_up;
		out->mtu = info.mtu;
		snprintf(out->name, sizeof(out->name), "%s", info.name);
		return true;
	}
	case RTM_NEWADDR:
	case RTM_DELADDR: {
		const struct ifaddrmsg *a = mnl_nlmsg_get_payload(m);
		out->kind = m->nlmsg_type == RTM_NEWADDR ? OS_NETMON_ADDR : OS_NETMON_ADDR_DEL;
		out->index = a->ifa_index;
		out->addr.addr.family = a->ifa_family == AF_INET6 ? IP_FAMILY_V6 : IP_FAMILY_V4;
		out->addr.bits = a->ifa_prefixlen;
		(void)mnl_attr_parse(m, sizeof(*a), addr_attr, out);
		return true;
	}
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		out->kind = OS_NETMON_ROUTE;
		return true;
	default:
		return false;
	}
}

enum weft_err
os_netmon_next(struct os_netmon *m, struct os_netmon_event *out)
{
	for (;;) {
		while (m->at && mnl_nlmsg_ok(m->at, m->left)) {
			const struct nlmsghdr *at = m->at;
			m->at = mnl_nlmsg_next(at, &m->left);
			if (decode(at, out)) {
				return WEFT_OK;
			}
		}
		m->at = NULL;
		ssize_t len = mnl_socket_recvfrom(m->socket, m->buf, sizeof(m->buf));
		if (len < 0 && errno == EINTR) {
			continue;
		}
		if (len < 0 && (errno == ENOBUFS || errno == ENOSPC)) {
			*out = (struct os_netmon_event){.kind = OS_NETMON_LOST};
			return WEFT_OK;
		}
		if (len < 0) {
			return os_error(errno);
		}
		m->at = (const struct nlmsghdr *)(const void *)m->buf;
		m->left = (int)len;
	}
}

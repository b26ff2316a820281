/* SPDX-License-Identifier: Apache-2.0 */
#include "os/netlink.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>
#include <linux/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "os/error.h"
#include "os/fd.h"
#include "os/netlink_msg.h"
#include "os/netns.h"

/* Linux 6.3; older headers lack them. */
#define LINK_ATTR_GSO_IPV4_MAX_SIZE 63
#define LINK_ATTR_GRO_IPV4_MAX_SIZE 64

#define REQUEST_BYTES 1024
#define ANSWER_BYTES 32768 /* as much as the kernel puts into one part of a dump */
#define ANSWER_TIMEOUT_S 10

struct os_netlink {
	struct mnl_socket *socket;
	uint32_t seq;
	char error[160];
	WEFT_ALIGNED(8) uint8_t request[REQUEST_BYTES];
	WEFT_ALIGNED(8) uint8_t answer[ANSWER_BYTES];
};

enum weft_err
os_netlink_socket(struct os_netns *ns, int flags, struct mnl_socket **out)
{
	int fd;
	enum weft_err err = os_netns_socket(
		ns, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags, NETLINK_ROUTE, &fd);
	if (err) {
		return err;
	}
	struct mnl_socket *s = mnl_socket_fdopen(fd);
	if (!s) {
		err = os_error(errno);
		os_fd_close(&fd);
		return err;
	}
	*out = s;
	return WEFT_OK;
}

enum weft_err
os_netlink_open(struct os_netlink **out)
{
	return os_netlink_open_in(NULL, out);
}

enum weft_err
os_netlink_open_in(struct os_netns *ns, struct os_netlink **out)
{
	struct os_netlink *n = calloc(1, sizeof(*n));
	if (!n) {
		return WEFT_ENOMEM;
	}
	enum weft_err err = os_netlink_socket(ns, 0, &n->socket);
	if (err) {
		free(n);
		return err;
	}
	struct timeval timeout = {.tv_sec = ANSWER_TIMEOUT_S};
	int one = 1;
	if (mnl_socket_bind(n->socket, 0, MNL_SOCKET_AUTOPID) ||
		setsockopt(mnl_socket_get_fd(n->socket), SOL_SOCKET, SO_RCVTIMEO, &timeout,
			sizeof(timeout))) {
		err = os_error(errno);
		os_netlink_close(n);
		return err;
	}
	/* Sentences instead of numbers where the kernel has them; without it errno must do. */
	(void)mnl_socket_setsockopt(n->socket, NETLINK_EXT_ACK, &one, sizeof(one));
	*out = n;
	return WEFT_OK;
}

void
os_netlink_close(struct os_netlink *n)
{
	if (n) {
		mnl_socket_close(n->socket);
		free(n);
	}
}

const char *
os_netlink_error_text(const struct os_netlink *n)
{
	return n->error;
}

enum weft_err
os_netlink_fail(struct os_netlink *n, int errnum)
{
	os_error_text(errnum, n->error, sizeof(n->error));
	return os_error(errnum);
}

static int
find_message(const struct nlattr *a, void *data)
{
	const char **text = data;
	if (mnl_attr_get_type(a) == NLMSGERR_ATTR_MSG &&
		mnl_attr_validate(a, MNL_TYPE_NUL_STRING) >= 0) {
		*text = mnl_attr_get_str(a);
	}
	return MNL_CB_OK;
}

/* The end of an answer: success, or an errno and maybe the kernel's sentence behind the copy of
 * our request. */
static enum weft_err
end_of_answer(struct os_netlink *n, const struct nlmsghdr *m)
{
	if (mnl_nlmsg_get_payload_len(m) < sizeof(struct nlmsgerr)) {
		return os_netlink_fail(n, EBADMSG);
	}
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(m);
	if (e->error == 0) {
		return WEFT_OK;
	}
	enum weft_err err = os_netlink_fail(n, -e->error);
	const char *text = NULL;
	if (m->nlmsg_flags & NLM_F_ACK_TLVS) {
		size_t skip = sizeof(*e);
		if (!(m->nlmsg_flags & NLM_F_CAPPED)) {
			skip += e->msg.nlmsg_len - sizeof(e->msg);
		}
		(void)mnl_attr_parse(m, (unsigned)skip, find_message, &text);
	}
	if (text) {
		snprintf(n->error, sizeof(n->error), "%s", text);
	}
	return err;
}

/* Handles one datagram of the answer; true when the answer is over. */
static bool
take_part(struct os_netlink *n, size_t len, os_netlink_on_message *each, void *ctx,
	enum weft_err *err)
{
	const struct nlmsghdr *m = (const struct nlmsghdr *)(const void *)n->answer;
	int left = (int)len;
	for (; mnl_nlmsg_ok(m, left); m = mnl_nlmsg_next(m, &left)) {
		if (m->nlmsg_seq != n->seq) {
			continue; /* of an earlier request that timed out */
		}
		if (m->nlmsg_type == NLMSG_ERROR) {
			*err = end_of_answer(n, m);
			return true;
		}
		if (m->nlmsg_type == NLMSG_DONE) {
			*err = WEFT_OK;
			return true;
		}
		if (m->nlmsg_type >= NLMSG_MIN_TYPE && each) {
			each(ctx, m);
		}
	}
	return false;
}

enum weft_err
os_netlink_talk(struct os_netlink *n, struct nlmsghdr *m, os_netlink_on_message *each, void *ctx)
{
	n->error[0] = 0;
	m->nlmsg_seq = ++n->seq;
	/* The bits of a dump mean other things to requests that make something. */
	bool is_dump = (m->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
	m->nlmsg_flags |= NLM_F_REQUEST | (is_dump ? 0 : NLM_F_ACK);
	if (mnl_socket_sendto(n->socket, m, m->nlmsg_len) < 0) {
		return os_netlink_fail(n, errno);
	}
	for (;;) {
		ssize_t len = mnl_socket_recvfrom(n->socket, n->answer, sizeof(n->answer));
		if (len < 0 && errno == EINTR) {
			continue;
		}
		if (len < 0) {
			return os_netlink_fail(n, errno == EAGAIN ? ETIMEDOUT : errno);
		}
		enum weft_err err;
		if (take_part(n, (size_t)len, each, ctx, &err)) {
			return err;
		}
	}
}

struct nlmsghdr *
os_netlink_begin(struct os_netlink *n, uint16_t type, uint16_t flags, size_t bytes, void *fixed)
{
	memset(n->request, 0, sizeof(n->request));
	struct nlmsghdr *m = mnl_nlmsg_put_header(n->request);
	m->nlmsg_type = type;
	m->nlmsg_flags = flags;
	*(void **)fixed = mnl_nlmsg_put_extra_header(m, bytes);
	return m;
}

uint8_t
os_netlink_af(enum ip_family family)
{
	return family == IP_FAMILY_V6 ? AF_INET6 : AF_INET;
}

void
os_netlink_put_addr(struct nlmsghdr *m, uint16_t type, const struct ip_addr *a)
{
	mnl_attr_put(m, type, ip_family_len(a->family), a->b);
}

uint32_t
os_netlink_u32(const struct nlattr *a)
{
	return mnl_attr_validate(a, MNL_TYPE_U32) < 0 ? 0 : mnl_attr_get_u32(a);
}

struct ip_addr
os_netlink_addr(const struct nlattr *a, uint8_t af)
{
	struct ip_addr r = {.family = af == AF_INET6 ? IP_FAMILY_V6 : IP_FAMILY_V4};
	if (mnl_attr_get_payload_len(a) != ip_family_len(r.family)) {
		return (struct ip_addr){0};
	}
	memcpy(r.b, mnl_attr_get_payload(a), ip_family_len(r.family));
	return r;
}

/* --- links --- */

static int
link_kind_attr(const struct nlattr *a, void *data)
{
	struct os_link_info *i = data;
	if (mnl_attr_get_type(a) == IFLA_INFO_KIND &&
		mnl_attr_validate(a, MNL_TYPE_NUL_STRING) >= 0) {
		snprintf(i->kind, sizeof(i->kind), "%s", mnl_attr_get_str(a));
	}
	return MNL_CB_OK;
}

static int
link_attr(const struct nlattr *a, void *data)
{
	struct os_link_info *i = data;
	switch (mnl_attr_get_type(a)) {
	case IFLA_IFNAME:
		if (mnl_attr_validate(a, MNL_TYPE_NUL_STRING) >= 0) {
			snprintf(i->name, sizeof(i->name), "%s", mnl_attr_get_str(a));
		}
		break;
	case IFLA_MTU:
		i->mtu = os_netlink_u32(a);
		break;
	case IFLA_TXQLEN:
		i->txqueuelen = os_netlink_u32(a);
		break;
	case IFLA_GSO_MAX_SIZE:
		i->gso_max_size = os_netlink_u32(a);
		break;
	case IFLA_GSO_MAX_SEGS:
		i->gso_max_segs = os_netlink_u32(a);
		break;
	case IFLA_GRO_MAX_SIZE:
		i->gro_max_size = os_netlink_u32(a);
		break;
	case LINK_ATTR_GSO_IPV4_MAX_SIZE:
		i->gso_ipv4_max_size = os_netlink_u32(a);
		break;
	case LINK_ATTR_GRO_IPV4_MAX_SIZE:
		i->gro_ipv4_max_size = os_netlink_u32(a);
		break;
	case IFLA_OPERSTATE:
		if (mnl_attr_validate(a, MNL_TYPE_U8) >= 0) {
			i->is_running = mnl_attr_get_u8(a) == IF_OPER_UP;
		}
		break;
	case IFLA_STATS64: {
		struct rtnl_link_stats64 stats; /* kernels append fields */
		size_t len = mnl_attr_get_payload_len(a);
		memset(&stats, 0, sizeof(stats));
		memcpy(&stats, mnl_attr_get_payload(a), len < sizeof(stats) ? len : sizeof(stats));
		i->tx_dropped = stats.tx_dropped;
		break;
	}
	case IFLA_LINKINFO:
		(void)mnl_attr_parse_nested(a, link_kind_attr, i);
		break;
	default:
		break;
	}
	return MNL_CB_OK;
}

void
os_netlink_decode_link(const struct nlmsghdr *m, struct os_link_info *out)
{
	const struct ifinfomsg *i = mnl_nlmsg_get_payload(m);
	*out = (struct os_link_info){
		.index = (uint32_t)i->ifi_index, .is_up = (i->ifi_flags & IFF_UP) != 0};
	(void)mnl_attr_parse(m, sizeof(*i), link_attr, out);
}

struct link_answer {
	struct os_link_info info;
	bool is_there;
};

static void
on_link(void *ctx, const struct nlmsghdr *m)
{
	struct link_answer *a = ctx;
	if (m->nlmsg_type == RTM_NEWLINK) {
		os_netlink_decode_link(m, &a->info);
		a->is_there = true;
	}
}

static enum weft_err
get_link(struct os_netlink *n, const char *name, uint32_t index, struct os_link_info *out)
{
	struct ifinfomsg *i;
	struct nlmsghdr *m = os_netlink_begin(n, RTM_GETLINK, 0, sizeof(*i), &i);
	i->ifi_index = (int)index;
	if (name) {
		if (strlen(name) >= IFNAMSIZ) {
			return os_netlink_fail(n, ENODEV);
		}
		mnl_attr_put_strz(m, IFLA_IFNAME, name);
	}
	struct link_answer a = {0};
	enum weft_err err = os_netlink_talk(n, m, on_link, &a);
	if (err) {
		return err;
	}
	if (!a.is_there) {
		return os_netlink_fail(n, ENODEV);
	}
	*out = a.info;
	return WEFT_OK;
}

enum weft_err
os_netlink_link_by_name(struct os_netlink *n, const char *name, struct os_link_info *out)
{
	return get_link(n, name, 0, out);
}

enum weft_err
os_netlink_link_by_index(struct os_netlink *n, uint32_t index, struct os_link_info *out)
{
	return get_link(n, NULL, index, out);
}

enum weft_err
os_netlink_link_change(struct os_netlink *n, uint32_t index, const struct os_link_change *c)
{
	struct ifinfomsg *i;
	struct nlmsghdr *m = os_netlink_begin(n, RTM_NEWLINK, 0, sizeof(*i), &i);
	i->ifi_index = (int)index;
	const struct {
		uint16_t type;
		uint32_t value;
	} values[] = {{IFLA_MTU, c->mtu}, {IFLA_TXQLEN, c->txqueuelen},
		{IFLA_GSO_MAX_SIZE, c->gso_max_size}, {IFLA_GSO_MAX_SEGS, c->gso_max_segs},
		{IFLA_GRO_MAX_SIZE, c->gro_max_size}};
	for (size_t k = 0; k < WEFT_ARRAY_LEN(values); k++) {
		if (values[k].value) {
			mnl_attr_put_u32(m, values[k].type, values[k].value);
		}
	}
	return os_netlink_talk(n, m, NULL, NULL);
}

enum weft_err
os_netlink_link_promote_secondaries(struct os_netlink *n, uint32_t index)
{
	struct ifinfomsg *i;
	struct nlmsghdr *m = os_netlink_begin(n, RTM_NEWLINK, 0, sizeof(*i), &i);
	i->ifi_index = (int)index;
	struct nlattr *spec = mnl_attr_nest_start(m, IFLA_AF_SPEC);
	struct nlattr *v4 = mnl_attr_nest_start(m, AF_INET);
	struct nlattr *values = mnl_attr_nest_start(m, IFLA_INET_CONF);
	mnl_attr_put_u32(m, IPV4_DEVCONF_PROMOTE_SECONDARIES, 1);
	mnl_attr_nest_end(m, values);
	mnl_attr_nest_end(m, v4);
	mnl_attr_nest_end(m, spec);
	return os_netlink_talk(n, m, NULL, NULL);
}

enum weft_err
os_netlink_link_set_up(struct os_netlink *n, uint32_t index, bool is_up)
{
	struct ifinfomsg *i;
	struct nlmsghdr *m = os_netlink_begin(n, RTM_NEWLINK, 0, sizeof(*i), &i);
	i->ifi_index = (int)index;
	i->ifi_change = IFF_UP;
	i->ifi_flags = is_up ? IFF_UP : 0;
	return os_netlink_talk(n, m, NULL, NULL);
}

enum weft_err
os_netlink_link_delete(struct os_netlink *n, uint32_t index)
{
	struct ifinfomsg *i;
	struct nlmsghdr *m = os_netlink_begin(n, RTM_DELLINK, 0, sizeof(*i), &i);
	i->ifi_index = (int)index;
	return os_netlink_talk(n, m, NULL, NULL);
}

/* --- addresses --- */

static enum weft_err
change_addr(struct os_netlink *n, uint16_t type, uint16_t flags, uint32_t index,
	const struct ip_prefix *p)
{
	struct ifaddrmsg *a;
	struct nlmsghdr *m = os_netlink_begin(n, type, flags, sizeof(*a), &a);
	a->ifa_family = os_netlink_af(p->addr.family);
	a->ifa_prefixlen = p->bits;
	a->ifa_index = index;
	if (p->addr.family == IP_FAMILY_V6 && type == RTM_NEWADDR) {
		a->ifa_flags = IFA_F_NODAD;
	}
	os_netlink_put_addr(m, IFA_LOCAL, &p->addr);
	os_netlink_put_addr(m, IFA_ADDRESS, &p->addr);
	return os_netlink_talk(n, m, NULL, NULL);
}

enum weft_err
os_netlink_addr_add(struct os_netlink *n, uint32_t index, const struct ip_prefix *p)
{
	return change_addr(n, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, index, p);
}

enum weft_err
os_netlink_addr_del(struct os_netlink *n, uint32_t index, const struct ip_prefix *p)
{
	enum weft_err err = change_addr(n, RTM_DELADDR, 0, index, p);
	/* EADDRNOTAVAIL: the device has no such address. */
	return err == WEFT_EUNREACH ? WEFT_ENOENT : err;
}

struct addr_walk {
	uint32_t index;
	bool (*each)(void *ctx, const struct ip_prefix *p);
	void *ctx;
	bool is_over; /* the rest of the dump is read, but not shown */
};

struct addr_answer {
	uint8_t af;
	struct ip_addr local, address;
};

static int
addr_attr(const struct nlattr *a, void *data)
{
	struct addr_answer *x = data;
	if (mnl_attr_get_type(a) == IFA_LOCAL) {
		x->local = os_netlink_addr(a, x->af);
	} else if (mnl_attr_get_type(a) == IFA_ADDRESS) {
		x->address = os_netlink_addr(a, x->af);
	}
	return MNL_CB_OK;
}

static void
on_dumped_addr(void *ctx, const struct nlmsghdr *m)
{
	struct addr_walk *w = ctx;
	const struct ifaddrmsg *i = mnl_nlmsg_get_payload(m);
	if (w->is_over || m->nlmsg_type != RTM_NEWADDR || i->ifa_index != w->index) {
		return;
	}
	struct addr_answer x = {.af = i->ifa_family};
	(void)mnl_attr_parse(m, sizeof(*i), addr_attr, &x);
	/* On a link between two ends IFA_ADDRESS is the other one. */
	const struct ip_prefix p = {
		x.local.family != IP_FAMILY_NONE ? x.local : x.address, i->ifa_prefixlen};
	if (p.addr.family != IP_FAMILY_NONE) {
		w->is_over = !w->each(w->ctx, &p);
	}
}

enum weft_err
os_netlink_addrs(struct os_netlink *n, uint32_t index,
	bool (*each)(void *ctx, const struct ip_prefix *p), void *ctx)
{
	struct ifaddrmsg *i;
	struct nlmsghdr *m = os_netlink_begin(n, RTM_GETADDR, NLM_F_DUMP, sizeof(*i), &i);
	struct addr_walk w = {.index = index, .each = each, .ctx = ctx};
	return os_netlink_talk(n, m, on_dumped_addr, &w);
}

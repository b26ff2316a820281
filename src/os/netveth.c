/* SPDX-License-Identifier: Apache-2.0 */
/* veth pairs, and interfaces that do not speak by themselves, of os/netlink.h. */
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>

#include "os/netlink.h"
#include "os/netlink_msg.h"

static void
put_end(struct nlmsghdr *m, const struct os_veth_end *e)
{
	mnl_attr_put_strz(m, IFLA_IFNAME, e->name);
	mnl_attr_put(m, IFLA_ADDRESS, sizeof(e->mac), e->mac);
	mnl_attr_put_u32(m, IFLA_MTU, e->mtu);
}

static void
put_silence(struct nlmsghdr *m)
{
	struct nlattr *spec = mnl_attr_nest_start(m, IFLA_AF_SPEC);
	struct nlattr *v6 = mnl_attr_nest_start(m, AF_INET6);
	mnl_attr_put_u8(m, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
	mnl_attr_nest_end(m, v6);
	mnl_attr_nest_end(m, spec);
}

static enum weft_err
set_noarp(struct os_netlink *n, const char *name)
{
	struct os_link_info info;
	enum weft_err err = os_netlink_link_by_name(n, name, &info);
	if (err) {
		return err;
	}
	struct ifinfomsg *i;
	struct nlmsghdr *m = os_netlink_begin(n, RTM_NEWLINK, 0, sizeof(*i), &i);
	i->ifi_index = (int)info.index;
	i->ifi_change = IFF_NOARP;
	i->ifi_flags = IFF_NOARP;
	err = os_netlink_talk(n, m, NULL, NULL);
	return err ? err : os_netlink_link_set_silent(n, info.index);
}

enum weft_err
os_netlink_veth_add(struct os_netlink *n, const struct os_veth_end *a, const struct os_veth_end *b)
{
	struct ifinfomsg *i;
	struct nlmsghdr *m =
		os_netlink_begin(n, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(*i), &i);
	put_end(m, a);
	struct nlattr *info = mnl_attr_nest_start(m, IFLA_LINKINFO);
	mnl_attr_put_strz(m, IFLA_INFO_KIND, "veth");
	struct nlattr *data = mnl_attr_nest_start(m, IFLA_INFO_DATA);
	struct nlattr *peer = mnl_attr_nest_start(m, VETH_INFO_PEER);
	/* The attribute begins with an ifinfomsg of zeros: the request was zeroed. */
	m->nlmsg_len += MNL_ALIGN(sizeof(struct ifinfomsg));
	put_end(m, b);
	mnl_attr_nest_end(m, peer);
	mnl_attr_nest_end(m, data);
	mnl_attr_nest_end(m, info);
	enum weft_err err = os_netlink_talk(n, m, NULL, NULL);
	if (!err) {
		err = set_noarp(n, a->name);
	}
	return err ? err : set_noarp(n, b->name);
}

enum weft_err
os_netlink_link_set_silent(struct os_netlink *n, uint32_t index)
{
	struct ifinfomsg *i;
	struct nlmsghdr *m = os_netlink_begin(n, RTM_NEWLINK, 0, sizeof(*i), &i);
	i->ifi_index = (int)index;
	put_silence(m);
	return os_netlink_talk(n, m, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* News of interfaces and addresses, as the kernel tells them. */
#ifndef WEFT_OS_NETMON_H
#define WEFT_OS_NETMON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "os/netlink.h"

enum os_netmon_kind {
	OS_NETMON_LINK,     /* new or changed: name, is_up and mtu are as they are now */
	OS_NETMON_LINK_DEL, /* gone from this namespace */
	OS_NETMON_ADDR,
	OS_NETMON_ADDR_DEL,
	OS_NETMON_ROUTE, /* some route came or went; no particulars */
	OS_NETMON_LOST,  /* the kernel had more news than room: look anew */
};

struct os_netmon_event {
	enum os_netmon_kind kind;
	uint32_t index;
	char name[OS_NETLINK_NAME_MAX]; /* of a link */
	bool is_up;                     /* of a link */
	uint32_t mtu;                   /* of a link */
	struct ip_prefix addr;          /* of an address */
};

struct os_netmon;
struct os_netns;

WEFT_MUST_CHECK enum weft_err os_netmon_open(struct os_netmon **out);
/* The same for another namespace; ns NULL: the caller's. */
WEFT_MUST_CHECK enum weft_err os_netmon_open_in(struct os_netns *ns, struct os_netmon **out);
void os_netmon_close(struct os_netmon *m);
int os_netmon_fd(const struct os_netmon *m);
/* WEFT_EAGAIN: no more news. */
WEFT_MUST_CHECK enum weft_err os_netmon_next(struct os_netmon *m, struct os_netmon_event *out);

#endif

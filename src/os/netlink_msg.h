/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the netlink family share: requests, their answers, and decoding. */
#ifndef WEFT_OS_NETLINK_MSG_H
#define WEFT_OS_NETLINK_MSG_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"

struct nlattr;
struct mnl_socket;
struct nlmsghdr;
struct os_link_info;
struct os_netlink;
struct os_netns;

/* Called with each message of an answer that is no acknowledgement. */
typedef void os_netlink_on_message(void *ctx, const struct nlmsghdr *m);

/* flags: SOCK_NONBLOCK. Not bound. */
WEFT_MUST_CHECK enum weft_err os_netlink_socket(
	struct os_netns *ns, int flags, struct mnl_socket **out);
/* Starts the handle's one request: its fixed part of so many bytes is zeroed and given back in
 * *fixed, a pointer to a pointer. */
struct nlmsghdr *os_netlink_begin(
	struct os_netlink *n, uint16_t type, uint16_t flags, size_t bytes, void *fixed);
/* Sends it and waits for the whole answer. */
WEFT_MUST_CHECK enum weft_err os_netlink_talk(
	struct os_netlink *n, struct nlmsghdr *m, os_netlink_on_message *each, void *ctx);
/* Keeps the text of errnum as the handle's last error, and maps it. */
enum weft_err os_netlink_fail(struct os_netlink *n, int errnum);

uint8_t os_netlink_af(enum ip_family family);
void os_netlink_put_addr(struct nlmsghdr *m, uint16_t type, const struct ip_addr *a);
/* 0 for an attribute of another length. */
uint32_t os_netlink_u32(const struct nlattr *a);
/* An address attribute of that family; IP_FAMILY_NONE for another length. */
struct ip_addr os_netlink_addr(const struct nlattr *a, uint8_t af);
/* m: RTM_NEWLINK or RTM_DELLINK. */
void os_netlink_decode_link(const struct nlmsghdr *m, struct os_link_info *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers received datagrams of one flow and sends them on in few calls, each still a datagram of
 * its own. */
#ifndef WEFT_CLI_FORWARD_SEND_H
#define WEFT_CLI_FORWARD_SEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "link/udpmsg.h"

struct os_udp_calls;

#define FORWARD_SEND_MESSAGES 32u /* that are gathered at most */

/* A datagram, or a run of equal ones back to back, the last maybe shorter. */
struct forward_message {
	uint8_t *data;
	uint32_t len; /* may be 0 */
	uint32_t seg; /* 0: one datagram */
	uint8_t ecn;
};

/* Messages that leave together. */
struct forward_run {
	size_t iov_at, iov_n;
	uint32_t len, datagrams;
	uint32_t seg; /* the length of all but the last */
	uint8_t ecn;
	bool is_closed; /* the last is shorter: nothing may follow it */
};

struct forward_send {
	const struct os_udp_calls *calls; /* NULL: the real ones */
	struct iovec iov[FORWARD_SEND_MESSAGES];
	struct forward_run runs[FORWARD_SEND_MESSAGES];
	size_t iov_n, runs_n;
	struct mmsghdr msgs[FORWARD_SEND_MESSAGES];
	struct link_udpmsg_head heads[FORWARD_SEND_MESSAGES];
	bool has_no_gso; /* the kernel refused it: datagrams go singly */
};

struct forward_sent {
	uint64_t bytes, packets;
	uint64_t dropped;
	unsigned refused; /* errors of earlier datagrams that came up: nobody listens there */
	bool is_stuck;    /* the socket took nothing for a while */
};

/* Datagrams of a message. */
uint32_t forward_message_count(uint32_t len, uint32_t seg);
/* False: there are FORWARD_SEND_MESSAGES already. data stays the caller's and in place. */
bool forward_send_add(struct forward_send *s, const struct forward_message *m);
/* Sends all and forgets them. To a connected socket to has the family alone; else to->src is sent
 * from, when it is known. Waits some milliseconds for a full socket if can_wait. */
void forward_send_run(struct forward_send *s, int fd, const struct endpoint *to, bool is_connected,
	bool can_wait, struct forward_sent *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The sending half of link/udp.h: runs become as few system calls as the kernel allows, and
 * what the kernel refuses is tried in the next best way, in the same call.
 *
 * Invariant: each datagram of a run is handed to the kernel successfully once, or counted in
 * one drop reason once. */
#ifndef WEFT_LINK_UDPSEND_H
#define WEFT_LINK_UDPSEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/log.h"
#include "base/mono.h"
#include "link/link.h"
#include "link/udpmsg.h"
#include "os/udp.h"

#define LINK_UDPSEND_BATCH 64    /* messages a system call */
#define LINK_UDPSEND_REFUSALS 16 /* destinations remembered; more turn a family off */

/* UDP_SEGMENT does not work to this destination for segments of more than seg_max bytes. */
struct link_udpsend_refusal {
	struct ip_addr to;
	uint16_t seg_max; /* 0: for none at all */
	struct mono until;
};

/* One message: a whole run, a part of it, or one datagram of it. */
struct link_udpsend_chunk {
	struct link_run *run;
	uint8_t *data;
	uint32_t len; /* more than run->seg: several datagrams, needs UDP_SEGMENT */
	const struct link_udpmsg_head *head;
	bool has_src; /* the head pins the run's source address */
};

struct link_udpsend {
	const struct os_udp_calls *calls;
	struct link_stats *stats;
	const struct log *log;
	int v4, v6; /* -1: none */
	bool has_gso;

	struct link_udpsend_refusal refusals[LINK_UDPSEND_REFUSALS];
	size_t refusals_n;
	struct mono family_off_until[2]; /* IPv4, IPv6; 0: on */
	struct log_limit log_limit;

	/* of the current call */
	bool may_wait;   /* a full socket is waited for once a call */
	struct mono now; /* valid while anything is refused */

	/* the batch under way: all to one socket */
	int fd;
	size_t n;
	size_t heads_n;
	struct link_udpsend_chunk chunks[LINK_UDPSEND_BATCH];
	struct mmsghdr msgs[LINK_UDPSEND_BATCH];
	struct iovec iov[LINK_UDPSEND_BATCH];
	struct link_udpmsg_head heads[LINK_UDPSEND_BATCH];
};

void link_udpsend_init(struct link_udpsend *s, const struct os_udp *u,
	const struct os_udp_calls *calls, const struct log *log, struct link_stats *stats);
void link_udpsend_send(struct link_udpsend *s, struct link_run *runs, size_t n);
/* Destinations that get no UDP_SEGMENT at all now. */
size_t link_udpsend_refused(const struct link_udpsend *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* struct link over UDP sockets of both families, with UDP_SEGMENT and UDP_GRO. */
#ifndef WEFT_LINK_UDP_H
#define WEFT_LINK_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "link/link.h"

struct os_udp;
struct os_udp_calls;

/* How long datagrams to a destination go singly after the kernel has refused UDP_SEGMENT. */
#define LINK_UDP_GSO_RETRY_S 60

/* Takes the sockets over (u is then empty) on success. calls: NULL for the real ones; else it
 * must outlive the link. log must outlive the link. */
WEFT_MUST_CHECK enum weft_err link_udp_new(struct os_udp *u, const struct os_udp_calls *calls,
	const struct log *log, struct link **out);
/* Descriptors to wait on; returns how many (1 or 2). */
size_t link_udp_fds(const struct link *l, int fds[2]);
uint16_t link_udp_port(const struct link *l);
/* What the kernel can do and was asked for. */
bool link_udp_has_gso(const struct link *l);
bool link_udp_has_gro(const struct link *l);
WEFT_MUST_CHECK enum weft_err link_udp_set_mark(struct link *l, uint32_t mark);
/* Counts what the kernel has dropped up to now in DROP_LINK_RX_OVERFLOW, also when no datagram
 * came since. For the owner, before it shows statistics. */
void link_udp_sync(struct link *l);
/* Destinations to which GSO is off at present, for status. */
size_t link_udp_gso_refused(const struct link *l);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Single datagrams over an unconnected UDP socket that does not block. */
#ifndef WEFT_OS_DGRAM_H
#define WEFT_OS_DGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"

#define OS_DGRAM_MAX 65535 /* bytes */

/* A datagram longer than cap is cut. An IPv4 address mapped into IPv6 comes out as IPv4.
 * WEFT_EAGAIN: none waits; others: of what was sent before, an ICMP message; go on. */
WEFT_MUST_CHECK enum weft_err os_dgram_receive(
	int fd, void *buf, size_t cap, size_t *n, struct ip_addr *from, uint16_t *port);
WEFT_MUST_CHECK enum weft_err os_dgram_send(
	int fd, const void *data, size_t len, const struct ip_addr *to, uint16_t port);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Does anybody refuse datagrams to a place? One is sent from a socket of its own, and the errors
 * that come back for it are waited for. */
#ifndef WEFT_OS_PROBE_H
#define WEFT_OS_PROBE_H

#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"

/* One datagram of one zero byte. *errnum: ECONNREFUSED (a closed port, or a firewall that says so),
 * EHOSTUNREACH, EACCES and what else came within wait_ms; 0: nothing came. mark: as of the
 * sockets of a device; it needs CAP_NET_ADMIN, and is done without otherwise. */
WEFT_MUST_CHECK enum weft_err os_probe_udp(
	const struct endpoint *to, uint32_t mark, int wait_ms, int *errnum);

#endif

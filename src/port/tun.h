/* SPDX-License-Identifier: Apache-2.0 */
/* struct port over one queue of a TUN device. */
#ifndef WEFT_PORT_TUN_H
#define WEFT_PORT_TUN_H

#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "os/tun.h"
#include "port/port.h"

struct port_tun_config {
	int fd; /* a queue of struct os_tun, which keeps it: closing the port leaves it open */
	enum os_tun_offload offload;
	uint16_t mtu;
	const struct os_tun_calls *calls; /* NULL: the real ones; must outlive the port */
	const struct log *log;            /* must outlive the port */
};

WEFT_MUST_CHECK enum weft_err port_tun_new(const struct port_tun_config *c, struct port **out);
int port_tun_fd(const struct port *p);

#endif

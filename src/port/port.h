/* SPDX-License-Identifier: Apache-2.0 */
/* A way for plaintext to enter and leave: a TUN queue, or memory.
 *
 * Owned by one worker. */
#ifndef WEFT_PORT_PORT_H
#define WEFT_PORT_PORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "pkt/drop.h"
#include "pkt/frame.h"
#include "pkt/gro.h"

struct port_stats {
	uint64_t rx_bytes, rx_frames; /* read from the port, on their way to a peer */
	uint64_t tx_bytes, tx_frames; /* written to the port */
	uint64_t join_off_count;      /* joins refused by the kernel and written singly */
	struct drop_counts drops;
};

struct port;

struct port_ops {
	/* Reads one frame into buf (cap >= 65,535 + 64). WEFT_EAGAIN: none there;
	 * WEFT_ECLOSED: the interface is gone. f->data lies in buf. */
	enum weft_err (*receive)(struct port *p, uint8_t *buf, size_t cap, struct frame *f);
	/* Writes frames in order; failures are counted. */
	void (*send)(struct port *p, const struct gro_out *out);
	void (*close)(struct port *p);
};

struct port {
	const struct port_ops *ops;
	struct gro_caps caps;
	uint16_t mtu;
	struct port_stats stats;
};

#endif

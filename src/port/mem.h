/* SPDX-License-Identifier: Apache-2.0 */
/* struct port in memory: an owner injects frames and takes what was delivered, for the
 * simulator and `weft bench tx`. The owner may be another thread. */
#ifndef WEFT_PORT_MEM_H
#define WEFT_PORT_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "pkt/frame.h"
#include "port/port.h"

/* One delivered frame, joined or not. */
struct port_mem_frame {
	uint8_t *data; /* valid until the next take */
	uint32_t len;
	enum frame_gso gso;
	uint16_t gso_size;
	bool needs_csum;
	bool csum_valid;
	uint16_t csum_start;
	uint16_t csum_offset;
	uint32_t packets;
};

/* bytes: room a direction; what is delivered into a full one counts as DROP_PORT_FULL. */
WEFT_MUST_CHECK enum weft_err port_mem_new(
	size_t bytes, uint16_t mtu, const struct gro_caps *caps, struct port **out);
/* Copies the frame in; false when there is no room. */
bool port_mem_inject(struct port *p, const struct frame *f);
/* False: nothing was delivered. */
bool port_mem_take(struct port *p, struct port_mem_frame *out);
int port_mem_fd(const struct port *p);       /* the node's side: readable after an inject */
int port_mem_outer_fd(const struct port *p); /* the owner's side: readable after a delivery */
/* Neither side ever sleeps: both descriptors stay quiet. Before anything is injected. */
void port_mem_set_polled(struct port *p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Ethernet frames between an interface and a channel.
 *
 * On the way in a super-frame is split, so that each packet which would stand on the wire has a
 * fate of its own. On the way out what is due at once and fits together is joined again: that
 * saves most of the cost and changes nothing that an end could see. Frames that are no IP pass
 * as they are. */
#ifndef WEFT_EMU_ETHER_H
#define WEFT_EMU_ETHER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mono.h"
#include "pkt/gro.h"
#include "pkt/gso.h"

struct emu_channel;
struct emu_histogram;

/* Packets that leave in one go. */
#define EMU_ETHER_BATCH 128u
/* Pieces of a batch: those of gro, and for each frame its offload and Ethernet headers. */
#define EMU_ETHER_PIECES (4u * EMU_ETHER_BATCH)
#define EMU_ETHER_VNET_LEN 10u
/* MAC addresses, two VLAN tags, type. */
#define EMU_ETHER_HEADER_MAX 22u

struct emu_ether_header {
	uint8_t b[EMU_ETHER_HEADER_MAX];
	uint8_t len;
};

/* A frame on its way out: offload header, Ethernet header, and the rest in pieces. */
struct emu_ether_frame {
	const struct gro_piece *pieces;
	uint32_t pieces_n;
	uint32_t len;     /* without the offload header */
	uint32_t packets; /* that it stands for */
};

/* Scratch of one direction; about 450 KiB. */
struct emu_ether;

WEFT_MUST_CHECK enum weft_err emu_ether_new(const struct gro_caps *caps, struct emu_ether **out);
void emu_ether_free(struct emu_ether *e);

/* Puts a frame with its struct virtio_net_hdr (offsets from the Ethernet header) into the
 * channel, packet by packet. WEFT_EPARSE: it cannot be split, and nothing was put in. */
WEFT_MUST_CHECK enum weft_err emu_ether_push(struct emu_ether *e, struct emu_channel *c,
	struct mono now, const uint8_t vnet[EMU_ETHER_VNET_LEN], const uint8_t *data, uint32_t len);

/* Takes up to EMU_ETHER_BATCH due packets as frames, and notes how late each is. *frames is
 * valid until the next call for e and the next push into c. Returns their number; 0 when no
 * packet is due. */
size_t emu_ether_pop(struct emu_ether *e, struct emu_channel *c, struct mono now,
	struct emu_histogram *lateness, const struct emu_ether_frame **frames);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting: one frame becomes finished IP packets, written straight into the sealing arena.
 *
 * Each packet lies at  slot + GSO_HEADROOM  (room for the WireGuard header), is padded with
 * zeros to a multiple of 16 (never past the MTU, WireGuard paper 5.4.6) and followed by 16
 * bytes for the tag, so that sealed datagrams stand back to back and a run of equal size is
 * one UDP_SEGMENT send. Checksums are complete; copy and sum are one pass. */
#ifndef WEFT_PKT_GSO_H
#define WEFT_PKT_GSO_H

#include <stddef.h>
#include <stdint.h>

#include "pkt/drop.h"
#include "pkt/frame.h"

#define GSO_HEADROOM 16
#define GSO_TAILROOM 16

/* One IP packet in the arena. */
struct gso_seg {
	uint32_t off;        /* of the datagram in the arena; the IP packet is at off + 16 */
	uint16_t len;        /* of the IP packet */
	uint16_t padded_len; /* with zeros behind it; datagram length = 16 + padded_len + 16 */
};

struct gso_arena {
	uint8_t *buf;
	size_t cap;
	size_t used; /* datagrams back to back up to here */
	struct gso_seg *segs;
	size_t segs_cap;
	size_t segs_n;
};

/* Appends the packets of f to the arena.
 *
 * mtu: of the port; padding never lengthens a packet beyond it (a packet already longer is not
 * padded). On success returns the number of packets appended (>= 1). When the arena has too
 * little room for all of them, returns 0 with *why = DROP_COUNT and appends nothing: the caller
 * flushes and repeats; a frame that cannot fit even in an empty arena is DROP_TX_TOO_BIG. When
 * the frame is malformed returns 0 with *why = DROP_TX_INNER or DROP_TX_OFFLOAD. f->data is not
 * written to. */
size_t gso_split(const struct frame *f, uint16_t mtu, struct gso_arena *a, enum drop_reason *why);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* struct virtio_net_hdr, the 10 bytes before every frame of a TUN opened with IFF_VNET_HDR and
 * of a stream link.
 *
 * The 16-bit fields are little-endian here. The kernel's legacy header is in the byte order of
 * the host, which is the same on little-endian machines; on others whoever opens the TUN sets
 * TUNSETVNETLE. */
#ifndef WEFT_WIRE_VNET_H
#define WEFT_WIRE_VNET_H

#include <stdint.h>

#include "base/err.h"

struct frame;
struct gro_frame;

#define VNET_HDR_LEN 10

/* Reads the header of a frame whose data and len are already set; everything else of f is
 * filled on success.
 *
 * WEFT_EPARSE: unknown type or UFO, ECN without TCP, segmentation without a segment size or
 * without an IP header of the family it names, a checksum field beyond the frame. hdr_len is
 * passed on as it came: it is a hint. Flags other than NEEDS_CSUM are hints too and ignored. */
WEFT_MUST_CHECK enum weft_err vnet_decode(const uint8_t hdr[VNET_HDR_LEN], struct frame *f);

/* Writes the header of a frame on its way into the port. */
void vnet_encode(const struct gro_frame *f, uint8_t hdr[VNET_HDR_LEN]);

#endif

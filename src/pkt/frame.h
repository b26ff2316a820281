/* SPDX-License-Identifier: Apache-2.0 */
/* A plaintext frame at a port: one IP packet, or a super-packet that stands for a run of equal
 * segments, with what virtio_net_hdr says of it in host terms.
 *
 * A frame does not own bytes: the buffer that they lie in belongs to the worker. */
#ifndef WEFT_PKT_FRAME_H
#define WEFT_PKT_FRAME_H

#include <stdbool.h>
#include <stdint.h>

enum frame_gso {
	FRAME_GSO_NONE,
	FRAME_GSO_TCP4,
	FRAME_GSO_TCP6,
	FRAME_GSO_UDP4,
	FRAME_GSO_UDP6,
};

/* What a port hands in (plaintext on its way out to a peer). */
struct frame {
	uint8_t *data; /* the IP header */
	uint32_t len;  /* whole frame, up to 65,535 B of IP packet */
	enum frame_gso gso;
	uint16_t gso_size;   /* payload bytes a segment; 0 without gso */
	uint16_t hdr_len;    /* hint only, never trusted */
	bool has_ecn_gso;    /* VIRTIO_NET_HDR_GSO_ECN: CWR stands in the first segment alone */
	bool needs_csum;     /* the checksum field holds the pseudo-header sum only */
	uint16_t csum_start; /* from data; valid with needs_csum */
	uint16_t csum_offset;
};

#endif

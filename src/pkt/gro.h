/* SPDX-License-Identifier: Apache-2.0 */
/* Joining: opened IP packets become frames again, as scatter lists over the bytes where they
 * lie. The mirror of gso.h.
 *
 * Consecutive TCP segments of one flow (contiguous sequence, equal ECN, DSCP, TTL, DF, flow
 * label, extension headers, window, acknowledgement, options, flags but PSH, which ends a run)
 * and UDP datagrams of one flow and size become one super-packet. A shorter one ends a run. What
 * the kernel cuts from it again equals what came in, byte for byte, with one exception: the
 * IPv4 ids of a run must count up by one or, with DF, all be equal, and in the latter case the
 * kernel counts them up; the id of a packet that may not be fragmented means nothing (RFC 6864).
 *
 * Never joined: fragments, IPv4 options, AH, TCP with FIN, SYN, RST, URG or CWR or without data,
 * UDP without a checksum or without data. These pass alone; they end the run of their own flow
 * (a fragment, whose flow cannot be seen, ends all), so that the order inside a flow is never
 * changed. A pure ACK of another flow does not end a run.
 *
 * A checksum, that of the IPv4 header included, is verified only when a packet is about to be
 * joined; a wrong one is never joined and passes as it came with a zeroed vnet header. */
#ifndef WEFT_PKT_GRO_H
#define WEFT_PKT_GRO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkt/frame.h"

/* A frame stands for so many packets at most, and has as many pieces: as many as the kernel's
 * own joining takes of UDP (UDP_GRO_CNT_MAX). TCP of an ordinary MSS reaches 64 KiB before. */
#define GRO_PACKETS_MAX 64

/* One opened packet. gro may rewrite its headers in place. */
struct gro_pkt {
	uint8_t *data; /* the IP header; at least 10 bytes before it are free to overwrite */
	uint32_t len;  /* exact length of the IP packet, padding removed */
};

/* A piece of a frame: writev's element, without its header. */
struct gro_piece {
	uint8_t *data;
	size_t len;
};

/* One frame to write: header fields, and pieces[first .. first+n-1] in order. */
struct gro_frame {
	enum frame_gso gso;
	uint16_t gso_size;
	uint16_t hdr_len; /* all headers up to the payload */
	bool needs_csum;  /* the checksum field holds the pseudo-header sum */
	bool csum_valid;  /* verified by us: VIRTIO_NET_HDR_F_DATA_VALID */
	uint16_t csum_start;
	uint16_t csum_offset;
	uint32_t len; /* sum of the pieces */
	uint32_t first;
	uint32_t n;       /* pieces; n > 1 or gso_size != 0 means joined */
	uint32_t packets; /* how many packets it stands for */
};

/* What the port can take; without it nothing of that kind is joined. */
struct gro_caps {
	bool has_tcp4, has_tcp6, has_udp4, has_udp6;
};

struct gro_out {
	struct gro_frame *frames;
	size_t frames_cap, frames_n; /* frames_cap >= number of packets */
	struct gro_piece *pieces;
	size_t pieces_cap, pieces_n; /* pieces_cap >= 2 x number of packets */
};

/* Joins a batch, filling out from its beginning. Every packet ends in exactly one frame; the
 * frames' order is the packets' order of arrival per flow. Stateless between calls: nothing
 * waits for the next batch. n < 2^32. The pieces behind pieces_n are scratch space meanwhile. */
void gro_join(const struct gro_caps *caps, struct gro_pkt *pkts, size_t n, struct gro_out *out);

#endif

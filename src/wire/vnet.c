/* SPDX-License-Identifier: Apache-2.0 */
/* struct virtio_net_hdr (virtio 1.2, section 5.1.6; linux/virtio_net.h):
 *
 *   0 flags  1 gso_type  2 hdr_len  4 gso_size  6 csum_start  8 csum_offset */
#include "wire/vnet.h"

#include "base/endian.h"
#include "pkt/frame.h"
#include "pkt/gro.h"

#define VIRTIO_NET_HDR_F_NEEDS_CSUM 1u
#define VIRTIO_NET_HDR_F_DATA_VALID 2u

#define VIRTIO_NET_HDR_GSO_NONE 0u
#define VIRTIO_NET_HDR_GSO_TCPV4 1u
#define VIRTIO_NET_HDR_GSO_TCPV6 4u
#define VIRTIO_NET_HDR_GSO_UDP_L4 5u
#define VIRTIO_NET_HDR_GSO_ECN 0x80u

/* version: first nibble of the frame, 0 when it is empty. */
static enum weft_err
decode_gso(uint8_t type, uint8_t version, struct frame *f)
{
	f->has_ecn_gso = (type & VIRTIO_NET_HDR_GSO_ECN) != 0;
	switch (type & ~VIRTIO_NET_HDR_GSO_ECN) {
	case VIRTIO_NET_HDR_GSO_NONE:
		f->gso = FRAME_GSO_NONE;
		return f->has_ecn_gso ? WEFT_EPARSE : WEFT_OK;
	case VIRTIO_NET_HDR_GSO_TCPV4:
		f->gso = FRAME_GSO_TCP4;
		return version == 4 ? WEFT_OK : WEFT_EPARSE;
	case VIRTIO_NET_HDR_GSO_TCPV6:
		f->gso = FRAME_GSO_TCP6;
		return version == 6 ? WEFT_OK : WEFT_EPARSE;
	case VIRTIO_NET_HDR_GSO_UDP_L4:
		if (f->has_ecn_gso || (version != 4 && version != 6)) {
			return WEFT_EPARSE;
		}
		f->gso = version == 4 ? FRAME_GSO_UDP4 : FRAME_GSO_UDP6;
		return WEFT_OK;
	default:
		return WEFT_EPARSE;
	}
}

enum weft_err
vnet_decode(const uint8_t hdr[VNET_HDR_LEN], struct frame *f)
{
	struct frame r = {.data = f->data, .len = f->len};
	enum weft_err err = decode_gso(hdr[1], f->len > 0 ? f->data[0] >> 4 : 0, &r);
	if (err) {
		return err;
	}
	r.hdr_len = load_le16(hdr + 2);
	if (r.gso != FRAME_GSO_NONE) {
		r.gso_size = load_le16(hdr + 4);
		if (r.gso_size == 0) {
			return WEFT_EPARSE;
		}
	}
	r.needs_csum = (hdr[0] & VIRTIO_NET_HDR_F_NEEDS_CSUM) != 0;
	if (r.needs_csum) {
		r.csum_start = load_le16(hdr + 6);
		r.csum_offset = load_le16(hdr + 8);
		if ((uint32_t)r.csum_start + r.csum_offset + 2 > f->len) {
			return WEFT_EPARSE;
		}
	}
	*f = r;
	return WEFT_OK;
}

static uint8_t
type_of(enum frame_gso gso)
{
	switch (gso) {
	case FRAME_GSO_TCP4:
		return VIRTIO_NET_HDR_GSO_TCPV4;
	case FRAME_GSO_TCP6:
		return VIRTIO_NET_HDR_GSO_TCPV6;
	case FRAME_GSO_UDP4:
	case FRAME_GSO_UDP6:
		return VIRTIO_NET_HDR_GSO_UDP_L4;
	case FRAME_GSO_NONE:
		break;
	}
	return VIRTIO_NET_HDR_GSO_NONE;
}

void
vnet_encode(const struct gro_frame *f, uint8_t hdr[VNET_HDR_LEN])
{
	memset(hdr, 0, VNET_HDR_LEN);
	if (f->needs_csum) {
		hdr[0] = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		store_le16(hdr + 6, f->csum_start);
		store_le16(hdr + 8, f->csum_offset);
	} else if (f->csum_valid) {
		hdr[0] = VIRTIO_NET_HDR_F_DATA_VALID;
	}
	if (f->gso != FRAME_GSO_NONE) {
		hdr[1] = type_of(f->gso);
		store_le16(hdr + 2, f->hdr_len);
		store_le16(hdr + 4, f->gso_size);
	}
}

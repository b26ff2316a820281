/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of a run differ in few fields: length, IPv4 id, TCP sequence and flags. All that
 * they share is summed once a frame; a segment adds what is its own and the sum of its payload,
 * which falls out of copying it. */
#include "pkt/gso.h"

#include <string.h>

#include "base/assert.h"
#include "base/endian.h"
#include "pkt/csum.h"
#include "pkt/ip.h"
#include "pkt/l4.h"

#define PAD_TO 16u

/* What segments of a frame have in common. */
struct run {
	const uint8_t *data; /* the frame */
	uint32_t l4_off;
	uint32_t hdr_len; /* IP and L4 */
	uint32_t payload_len;
	uint32_t seg_payload; /* of each segment but the last */
	uint32_t segs;
	bool is_v4;
	bool is_tcp;
	bool is_unchecked; /* UDP without a checksum */
	uint16_t id;       /* IPv4, of the first segment */
	uint32_t seq;      /* TCP, of the first segment */
	uint64_t ip_sum;   /* IPv4 header without length, id and checksum */
	uint64_t l4_sum;   /* pseudo-header and header without length, sequence, flags, checksum */
};

static uint32_t
padded_len(uint32_t len, uint16_t mtu)
{
	if (len >= mtu) {
		return len;
	}
	uint32_t padded = (len + PAD_TO - 1) / PAD_TO * PAD_TO;
	return padded < mtu ? padded : mtu;
}

static size_t
datagram_len(uint32_t len, uint16_t mtu)
{
	return GSO_HEADROOM + (size_t)padded_len(len, mtu) + GSO_TAILROOM;
}

static bool
has_room(const struct gso_arena *a, size_t segs, size_t bytes, enum drop_reason *why)
{
	weft_dassert(a->used <= a->cap && a->segs_n <= a->segs_cap);
	if (segs <= a->segs_cap - a->segs_n && bytes <= a->cap - a->used) {
		return true;
	}
	*why = segs > a->segs_cap || bytes > a->cap ? DROP_TX_TOO_BIG : DROP_COUNT;
	return false;
}

/* Where the next packet goes. */
static uint8_t *
slot(const struct gso_arena *a)
{
	return a->buf + a->used + GSO_HEADROOM;
}

/* The packet in slot() is complete: pads and accounts for it. */
static void
commit(struct gso_arena *a, uint32_t len, uint16_t mtu)
{
	uint32_t padded = padded_len(len, mtu);
	memset(slot(a) + len, 0, padded - len);
	a->segs[a->segs_n++] = (struct gso_seg){
		.off = (uint32_t)a->used, .len = (uint16_t)len, .padded_len = (uint16_t)padded};
	a->used += GSO_HEADROOM + padded + GSO_TAILROOM;
}

/* A frame that is one packet already; at most its checksum is missing. */
static size_t
split_none(const struct frame *f, const struct ip_view *v, uint16_t mtu, struct gso_arena *a,
	enum drop_reason *why)
{
	uint32_t start = f->csum_start;
	if (f->needs_csum) {
		/* Nothing of the IP header is a checksum that an offload fills in, and its
		 * length has been relied upon already. */
		uint32_t start_min = v->version == 4 ? v->l4_off : IP6_HEADER_LEN;
		if (start < start_min || start + f->csum_offset + 2 > v->len) {
			*why = DROP_TX_OFFLOAD;
			return 0;
		}
	}
	if (!has_room(a, 1, datagram_len(v->len, mtu), why)) {
		return 0;
	}
	uint8_t *d = slot(a);
	if (f->needs_csum) {
		memcpy(d, f->data, start);
		uint64_t sum = csum_copy(d + start, f->data + start, v->len - start);
		if (v->has_l4 && v->proto == IP_PROTO_UDP) {
			csum_store_nonzero(d + start + f->csum_offset, sum);
		} else {
			csum_store(d + start + f->csum_offset, sum);
		}
	} else {
		memcpy(d, f->data, v->len);
	}
	commit(a, v->len, mtu);
	return 1;
}

/* The pseudo-header's sum without the length. The partial sum that came with the frame counts,
 * for only its maker knows the final destination behind a routing header (RFC 8200, 8.1). */
static uint64_t
pseudo_sum(const struct frame *f, const struct ip_view *v, uint32_t csum_off)
{
	if (f->needs_csum) {
		uint32_t l4_len = f->len - v->l4_off;
		return csum_load(f->data + v->l4_off + csum_off) +
		       csum_negate(csum_fold(csum_dword(l4_len)));
	}
	return v->version == 4 ? csum_pseudo4(v->src, v->proto) : csum_pseudo6(v->src, v->proto);
}

static bool
plan_tcp(const struct frame *f, const struct ip_view *v, struct run *r)
{
	const uint8_t *tcp = f->data + v->l4_off;
	uint32_t left = f->len - v->l4_off;
	if (left < TCP_HEADER_LEN) {
		return false;
	}
	uint32_t len = (tcp[TCP_DATA_OFFSET] >> 4) * 4u;
	if (len < TCP_HEADER_LEN || len > left) {
		return false;
	}
	r->is_tcp = true;
	r->hdr_len = v->l4_off + len;
	r->seq = load_be32(tcp + TCP_SEQ);
	r->l4_sum = pseudo_sum(f, v, TCP_CHECKSUM) + csum_header(tcp, len) +
		    csum_negate(csum_fold(csum_dword(r->seq))) +
		    csum_negate(csum_load(tcp + TCP_DATA_OFFSET)) +
		    csum_negate(csum_load(tcp + TCP_CHECKSUM));
	return true;
}

static bool
plan_udp(const struct frame *f, const struct ip_view *v, struct run *r)
{
	const uint8_t *udp = f->data + v->l4_off;
	if (f->len - v->l4_off < UDP_HEADER_LEN) {
		return false;
	}
	r->is_unchecked = !f->needs_csum && load_be16(udp + UDP_CHECKSUM) == 0;
	r->hdr_len = v->l4_off + UDP_HEADER_LEN;
	r->l4_sum = pseudo_sum(f, v, UDP_CHECKSUM) + csum_header(udp, 4);
	return true;
}

/* Everything is taken from the packet itself; of the offload header only the segment's size
 * counts, and what else it says must agree. */
static bool
plan(const struct frame *f, const struct ip_view *v, struct run *r)
{
	bool is_tcp = f->gso == FRAME_GSO_TCP4 || f->gso == FRAME_GSO_TCP6;
	bool is_v4 = f->gso == FRAME_GSO_TCP4 || f->gso == FRAME_GSO_UDP4;
	uint16_t csum_offset = is_tcp ? TCP_CHECKSUM : UDP_CHECKSUM;
	if (f->gso_size == 0 || v->len != f->len || v->version != (is_v4 ? 4 : 6) ||
		v->proto != (is_tcp ? IP_PROTO_TCP : IP_PROTO_UDP) || !v->has_l4 ||
		v->is_fragment || v->has_ah) {
		return false;
	}
	if (f->needs_csum && (f->csum_start != v->l4_off || f->csum_offset != csum_offset)) {
		return false;
	}
	*r = (struct run){.data = f->data, .l4_off = v->l4_off, .is_v4 = is_v4};
	if (!(is_tcp ? plan_tcp(f, v, r) : plan_udp(f, v, r))) {
		return false;
	}
	r->payload_len = f->len - r->hdr_len;
	r->seg_payload = f->gso_size < r->payload_len ? f->gso_size : r->payload_len;
	r->segs = r->payload_len == 0 ? 1 : (r->payload_len - 1) / r->seg_payload + 1;
	if (is_v4) {
		r->id = load_be16(f->data + 4);
		r->ip_sum = csum_header(f->data, v->l4_off) + csum_negate(csum_load(f->data + 2)) +
			    csum_negate(csum_load(f->data + 4)) +
			    csum_negate(csum_load(f->data + 10));
	}
	return true;
}

static void
write_ip(const struct run *r, uint32_t i, uint8_t *d, uint32_t len)
{
	if (!r->is_v4) {
		store_be16(d + 4, (uint16_t)(len - IP6_HEADER_LEN));
		return;
	}
	/* Counts up with and without DF, as the kernel's own segmentation does. */
	uint16_t id = (uint16_t)(r->id + i);
	store_be16(d + 2, (uint16_t)len);
	store_be16(d + 4, id);
	csum_store(d + 10, r->ip_sum + csum_word((uint16_t)len) + csum_word(id));
}

static void
write_tcp(const struct run *r, uint32_t i, uint8_t *tcp, uint64_t sum)
{
	uint32_t seq = r->seq + i * r->seg_payload;
	/* FIN and PSH stand behind the last byte, CWR says that one event was answered. URG and
	 * its pointer stay as they are, as in the kernel. */
	uint8_t drop = (uint8_t)((i + 1 < r->segs ? TCP_FIN | TCP_PSH : 0) | (i > 0 ? TCP_CWR : 0));
	store_be32(tcp + TCP_SEQ, seq);
	tcp[TCP_FLAGS] &= (uint8_t)~drop;
	csum_store(tcp + TCP_CHECKSUM, sum + csum_dword(seq) + csum_load(tcp + TCP_DATA_OFFSET));
}

static void
write_udp(const struct run *r, uint8_t *udp, uint32_t l4_len, uint64_t sum)
{
	store_be16(udp + UDP_LEN, (uint16_t)l4_len);
	if (!r->is_unchecked) {
		csum_store_nonzero(udp + UDP_CHECKSUM, sum + csum_word((uint16_t)l4_len));
	}
}

static void
write_segment(const struct run *r, uint32_t i, uint32_t payload_len, uint8_t *d)
{
	const uint8_t *payload = r->data + r->hdr_len + (size_t)i * r->seg_payload;
	uint32_t len = r->hdr_len + payload_len, l4_len = len - r->l4_off;
	memcpy(d, r->data, r->hdr_len);
	uint64_t sum =
		r->l4_sum + csum_dword(l4_len) + csum_copy(d + r->hdr_len, payload, payload_len);
	write_ip(r, i, d, len);
	if (r->is_tcp) {
		write_tcp(r, i, d + r->l4_off, sum);
	} else {
		write_udp(r, d + r->l4_off, l4_len, sum);
	}
}

size_t
gso_split(const struct frame *f, uint16_t mtu, struct gso_arena *a, enum drop_reason *why)
{
	struct ip_view v;
	if (f->len > IP_LEN_MAX) {
		*why = DROP_TX_TOO_BIG;
		return 0;
	}
	if (ip_parse(f->data, f->len, &v)) {
		*why = DROP_TX_INNER;
		return 0;
	}
	if (f->gso == FRAME_GSO_NONE) {
		return split_none(f, &v, mtu, a, why);
	}
	struct run r;
	if (!plan(f, &v, &r)) {
		*why = DROP_TX_OFFLOAD;
		return 0;
	}
	uint32_t last = r.payload_len - (r.segs - 1) * r.seg_payload;
	size_t bytes = (r.segs - 1) * datagram_len(r.hdr_len + r.seg_payload, mtu) +
		       datagram_len(r.hdr_len + last, mtu);
	if (!has_room(a, r.segs, bytes, why)) {
		return 0;
	}
	for (uint32_t i = 0; i < r.segs; i++) {
		uint32_t payload_len = i + 1 < r.segs ? r.seg_payload : last;
		write_segment(&r, i, payload_len, slot(a));
		commit(a, r.hdr_len + payload_len, mtu);
	}
	return r.segs;
}

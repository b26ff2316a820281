/* SPDX-License-Identifier: Apache-2.0 */
#include "emu/ether.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "emu/channel.h"
#include "emu/histogram.h"
#include "pkt/ip.h"
#include "wire/vnet.h"

#define MAC_LEN 12u
#define TYPE_LEN 2u
#define TAG_LEN 4u
#define TYPE_VLAN 0x8100u
#define TYPE_VLAN_OUTER 0x88a8u
#define TYPE_IP4 0x0800u
#define TYPE_IP6 0x86ddu

#define VNET_FLAGS 0
#define VNET_HDR_LEN_AT 2
#define VNET_CSUM_START_AT 6
#define VNET_NEEDS_CSUM 1u

/* The longest super-frame in segments of 32 bytes; a shorter segment has no sane sender. */
#define SEGS_MAX 2048u
/* Beside the payload each segment takes head- and tailroom, and up to 60 + 60 bytes of headers. */
#define ARENA_BYTES (65536u + SEGS_MAX * (GSO_HEADROOM + GSO_TAILROOM + 120u))
/* Before the first packet, for its Ethernet header; before the others there is the tailroom of
 * the one in front. */
#define ARENA_FRONT 32u

struct emu_ether {
	struct gro_caps caps;
	struct gso_arena arena;
	struct gso_seg segs[SEGS_MAX];

	struct emu_ether_frame frames[EMU_ETHER_BATCH];
	size_t frames_n;
	struct gro_piece pieces[EMU_ETHER_PIECES];
	size_t pieces_n;
	uint8_t vnet[EMU_ETHER_BATCH][EMU_ETHER_VNET_LEN]; /* of each frame */
	/* Headers are copied: gro may use the room before an IP header. */
	struct emu_ether_header headers[EMU_ETHER_BATCH];

	/* The run of IP packets with one Ethernet header that is being collected. */
	struct gro_pkt run[EMU_ETHER_BATCH];
	size_t run_n;
	struct emu_ether_header run_header;
	struct gro_frame joined[EMU_ETHER_BATCH];
	struct gro_piece joined_pieces[2 * EMU_ETHER_BATCH];

	uint8_t mem[ARENA_FRONT + ARENA_BYTES];
};

enum weft_err
emu_ether_new(const struct gro_caps *caps, struct emu_ether **out)
{
	struct emu_ether *e = malloc(sizeof(*e));
	if (!e) {
		return WEFT_ENOMEM;
	}
	e->caps = *caps;
	e->run_n = 0;
	*out = e;
	return WEFT_OK;
}

void
emu_ether_free(struct emu_ether *e)
{
	free(e);
}

/* Length of the Ethernet header of a frame that carries IP; 0 for every other frame. */
static uint32_t
ip_header_at(const uint8_t *data, uint32_t len)
{
	uint32_t at = MAC_LEN;
	for (int tags = 0; tags <= 2; tags++, at += TAG_LEN) {
		if (at + TYPE_LEN > len) {
			return 0;
		}
		uint16_t type = load_be16(data + at);
		if (type == TYPE_IP4 || type == TYPE_IP6) {
			return at + TYPE_LEN;
		}
		if (type != TYPE_VLAN && type != TYPE_VLAN_OUTER) {
			return 0;
		}
	}
	return 0;
}

static bool
is_plain(const uint8_t vnet[EMU_ETHER_VNET_LEN])
{
	return (vnet[VNET_FLAGS] & VNET_NEEDS_CSUM) == 0 && vnet[1] == 0;
}

/* The offload header with offsets from the IP header instead of the Ethernet header. */
static bool
rebase(const uint8_t in[EMU_ETHER_VNET_LEN], uint32_t header_len, uint8_t out[EMU_ETHER_VNET_LEN])
{
	memcpy(out, in, EMU_ETHER_VNET_LEN);
	uint16_t hdr_len = load_le16(in + VNET_HDR_LEN_AT);
	uint16_t start = load_le16(in + VNET_CSUM_START_AT);
	store_le16(
		out + VNET_HDR_LEN_AT, hdr_len > header_len ? (uint16_t)(hdr_len - header_len) : 0);
	if (in[VNET_FLAGS] & VNET_NEEDS_CSUM) {
		if (start < header_len) {
			return false;
		}
		store_le16(out + VNET_CSUM_START_AT, (uint16_t)(start - header_len));
	}
	return true;
}

static bool
split(struct emu_ether *e, const uint8_t vnet[EMU_ETHER_VNET_LEN], const uint8_t *data,
	uint32_t len, uint32_t header_len)
{
	uint8_t rebased[EMU_ETHER_VNET_LEN];
	enum drop_reason why;
	/* gso_split() does not write to the frame. */
	struct frame f = {.data = (uint8_t *)data + header_len, .len = len - header_len};
	if (!rebase(vnet, header_len, rebased) || vnet_decode(rebased, &f)) {
		return false;
	}
	e->arena = (struct gso_arena){.buf = e->mem + ARENA_FRONT,
		.cap = ARENA_BYTES,
		.segs = e->segs,
		.segs_cap = SEGS_MAX};
	/* mtu 0: no padding. */
	return gso_split(&f, 0, &e->arena, &why) > 0;
}

enum weft_err
emu_ether_push(struct emu_ether *e, struct emu_channel *c, struct mono now,
	const uint8_t vnet[EMU_ETHER_VNET_LEN], const uint8_t *data, uint32_t len)
{
	if (is_plain(vnet)) {
		emu_channel_push(c, now, data, len, 0);
		return WEFT_OK;
	}
	uint32_t header_len = ip_header_at(data, len);
	if (header_len == 0 || !split(e, vnet, data, len, header_len)) {
		return WEFT_EPARSE;
	}
	for (size_t i = 0; i < e->arena.segs_n; i++) {
		uint8_t *ip = e->arena.buf + e->segs[i].off + GSO_HEADROOM;
		memcpy(ip - header_len, data, header_len);
		emu_channel_push(c, now, ip - header_len, header_len + e->segs[i].len, 0);
	}
	return WEFT_OK;
}

static struct gro_piece *
add_piece(struct emu_ether *e, uint8_t *data, size_t len)
{
	weft_dassert(e->pieces_n < EMU_ETHER_PIECES);
	struct gro_piece *p = &e->pieces[e->pieces_n++];
	*p = (struct gro_piece){.data = data, .len = len};
	return p;
}

/* A frame as it is, without offloads. */
static void
add_plain(struct emu_ether *e, uint8_t *data, uint32_t len)
{
	size_t i = e->frames_n++;
	memset(e->vnet[i], 0, EMU_ETHER_VNET_LEN);
	struct gro_piece *first = add_piece(e, e->vnet[i], EMU_ETHER_VNET_LEN);
	add_piece(e, data, len);
	e->frames[i] =
		(struct emu_ether_frame){.pieces = first, .pieces_n = 2, .len = len, .packets = 1};
}

static void
add_joined(struct emu_ether *e, const struct gro_frame *g)
{
	size_t i = e->frames_n++;
	struct emu_ether_header *h = &e->headers[i];
	struct gro_frame moved = *g;
	*h = e->run_header;
	moved.hdr_len = (uint16_t)(moved.hdr_len + h->len);
	moved.csum_start = (uint16_t)(moved.csum_start + h->len);
	vnet_encode(&moved, e->vnet[i]);
	struct gro_piece *first = add_piece(e, e->vnet[i], EMU_ETHER_VNET_LEN);
	add_piece(e, h->b, h->len);
	for (uint32_t k = 0; k < g->n; k++) {
		const struct gro_piece *p = &e->joined_pieces[g->first + k];
		add_piece(e, p->data, p->len);
	}
	e->frames[i] = (struct emu_ether_frame){.pieces = first,
		.pieces_n = 2 + g->n,
		.len = h->len + g->len,
		.packets = g->packets};
}

static void
end_run(struct emu_ether *e)
{
	if (e->run_n == 0) {
		return;
	}
	struct gro_out out = {.frames = e->joined,
		.frames_cap = EMU_ETHER_BATCH,
		.pieces = e->joined_pieces,
		.pieces_cap = 2 * EMU_ETHER_BATCH};
	gro_join(&e->caps, e->run, e->run_n, &out);
	for (size_t i = 0; i < out.frames_n; i++) {
		add_joined(e, &out.frames[i]);
	}
	e->run_n = 0;
}

static void
take_packet(struct emu_ether *e, const struct emu_packet *p)
{
	uint32_t header_len = ip_header_at(p->data, p->len);
	uint32_t ip_len = 0;
	/* With bytes behind the IP packet (padding), or damaged, it stays as it is. */
	if (header_len == 0 || ip_exact_len(p->data + header_len, p->len - header_len, &ip_len) ||
		ip_len != p->len - header_len) {
		end_run(e);
		add_plain(e, p->data, p->len);
		return;
	}
	if (e->run_n > 0 && (e->run_header.len != header_len ||
				    memcmp(e->run_header.b, p->data, header_len) != 0)) {
		end_run(e);
	}
	if (e->run_n == 0) {
		e->run_header.len = (uint8_t)header_len;
		memcpy(e->run_header.b, p->data, header_len);
	}
	e->run[e->run_n++] = (struct gro_pkt){.data = p->data + header_len, .len = ip_len};
}

size_t
emu_ether_pop(struct emu_ether *e, struct emu_channel *c, struct mono now,
	struct emu_histogram *lateness, const struct emu_ether_frame **frames)
{
	struct emu_packet p;
	e->frames_n = e->pieces_n = 0;
	for (uint32_t n = 0; n < EMU_ETHER_BATCH && emu_channel_pop(c, now, &p); n++) {
		emu_histogram_add(lateness, mono_diff_ns(now, p.due));
		take_packet(e, &p);
	}
	end_run(e);
	*frames = e->frames;
	return e->frames_n;
}

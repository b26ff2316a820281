/* SPDX-License-Identifier: Apache-2.0 */
/* Two passes. The first looks at each packet once and either chains it to the run of its flow
 * or begins a frame with it; a frame stands where its first packet stood. The second lays each
 * chain out as pieces in a row and rewrites the header of what was joined.
 *
 * Until the second pass a frame's `first` is the index of its first packet, and the upper half
 * of the pieces holds one entry a packet: where its bytes for the frame begin, and in `len`
 * which packet follows it in the chain. */
#include "pkt/gro.h"

#include <string.h>

#include "base/assert.h"
#include "base/endian.h"
#include "pkt/csum.h"
#include "pkt/ip.h"
#include "pkt/l4.h"

/* Runs open at once; a batch seldom mixes more flows. The oldest of more is ended. */
#define RUNS_MAX 16
#define NO_RUN RUNS_MAX

/* What a packet is to the joining. */
enum kind {
	KIND_OTHER, /* belongs to no flow that could be joined */
	KIND_FENCE, /* may belong to any: ends all runs */
	KIND_FLOW,  /* of a flow, but never joined */
	KIND_JOINABLE,
};

/* Kind in one field, and len not beside l4_off as in struct ip_view: what was just written
 * field by field and is then loaded as a pair stalls the load (2 ns of 32 a packet). */
struct candidate {
	uint8_t *data;
	uint32_t len;
	uint32_t hdr_len;
	uint32_t l4_off;
	uint32_t payload_len;
	uint32_t tag; /* hash of the flow */
	enum frame_gso gso;
};

struct run {
	struct candidate head; /* its first packet */
	uint32_t frame;        /* index in out->frames */
	uint32_t tail;         /* index of its last packet */
	uint32_t next_seq;
	uint16_t next_id;
	uint16_t id_step; /* 1, or 0 for equal ids; settled by the second packet */
	bool is_verified; /* the head's checksums are right */
};

struct joiner {
	const struct gro_caps *caps;
	const struct gro_pkt *pkts;
	struct gro_out *out;
	struct gro_piece *chain; /* upper half of the pieces */
	uint32_t runs_n;
	uint32_t victim;         /* next run to end when the table is full */
	uint32_t last;           /* run of the last packet */
	uint32_t tags[RUNS_MAX]; /* of the runs, apart from them to be searched quickly */
	struct run runs[RUNS_MAX];
};

static uint32_t
load32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return v;
}

static uint16_t
load16(const uint8_t *p)
{
	uint16_t v;
	memcpy(&v, p, 2);
	return v;
}

static uint64_t
load64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
	return v;
}

static bool
is_v4(const struct candidate *c)
{
	return c->gso == FRAME_GSO_TCP4 || c->gso == FRAME_GSO_UDP4;
}

static bool
is_tcp(const struct candidate *c)
{
	return c->gso == FRAME_GSO_TCP4 || c->gso == FRAME_GSO_TCP6;
}

static const uint8_t *
addrs_of(const struct candidate *c)
{
	return c->data + (is_v4(c) ? 12 : 8);
}

/* Not meant to withstand an attacker: equal tags cost a comparison. */
static uint32_t
tag_of(const struct candidate *c)
{
	const uint8_t *a = addrs_of(c);
	uint64_t x = load64(a);
	if (!is_v4(c)) {
		x = x * 31 + load64(a + 8);
		x = x * 31 + load64(a + 16);
		x = x * 31 + load64(a + 24);
	}
	x = (x ^ load32(c->data + c->l4_off) ^ (is_tcp(c) ? 1u << 16 : 0)) * 0x9e3779b97f4a7c15u;
	return (uint32_t)(x >> 32);
}

static bool
is_same_flow(const struct candidate *a, const struct candidate *b)
{
	return a->gso == b->gso && load32(a->data + a->l4_off) == load32(b->data + b->l4_off) &&
	       memcmp(addrs_of(a), addrs_of(b), is_v4(a) ? 8 : 32) == 0;
}

/* What the packet would be joined to; FRAME_GSO_NONE if the port takes nothing of the kind. */
static enum frame_gso
gso_of(const struct gro_caps *caps, const struct ip_view *v)
{
	bool v4 = v->version == 4;
	if (v->proto == IP_PROTO_TCP && (v4 ? caps->has_tcp4 : caps->has_tcp6)) {
		return v4 ? FRAME_GSO_TCP4 : FRAME_GSO_TCP6;
	}
	if (v->proto == IP_PROTO_UDP && (v4 ? caps->has_udp4 : caps->has_udp6)) {
		return v4 ? FRAME_GSO_UDP4 : FRAME_GSO_UDP6;
	}
	return FRAME_GSO_NONE;
}

static enum kind
classify_tcp(struct candidate *c, uint32_t left)
{
	const uint8_t *tcp = c->data + c->l4_off;
	if (left < TCP_HEADER_LEN) {
		return KIND_FENCE;
	}
	uint32_t len = (tcp[TCP_DATA_OFFSET] >> 4) * 4u;
	if (len < TCP_HEADER_LEN || len > left) {
		return KIND_FLOW;
	}
	c->hdr_len = c->l4_off + len;
	c->payload_len = left - len;
	bool is_plain = (tcp[TCP_FLAGS] & ~(TCP_PSH | TCP_ECE)) == TCP_ACK;
	return is_plain && c->payload_len > 0 ? KIND_JOINABLE : KIND_FLOW;
}

static enum kind
classify_udp(struct candidate *c, uint32_t left)
{
	const uint8_t *udp = c->data + c->l4_off;
	if (left < UDP_HEADER_LEN) {
		return KIND_FENCE;
	}
	c->hdr_len = c->l4_off + UDP_HEADER_LEN;
	c->payload_len = left - UDP_HEADER_LEN;
	bool is_plain = load16(udp + UDP_CHECKSUM) != 0 && load_be16(udp + UDP_LEN) == left;
	return is_plain && c->payload_len > 0 ? KIND_JOINABLE : KIND_FLOW;
}

static enum kind
classify(const struct gro_caps *caps, const struct gro_pkt *pkt, struct candidate *c)
{
	struct ip_view v;
	if (ip_parse(pkt->data, pkt->len, &v)) {
		return KIND_OTHER;
	}
	if (v.is_fragment || !v.has_l4 || v.len != pkt->len) {
		return KIND_FENCE;
	}
	enum frame_gso gso = gso_of(caps, &v);
	if (gso == FRAME_GSO_NONE) {
		return KIND_OTHER;
	}
	*c = (struct candidate){.data = pkt->data, .len = v.len, .l4_off = v.l4_off, .gso = gso};
	uint32_t left = v.len - v.l4_off;
	enum kind kind = is_tcp(c) ? classify_tcp(c, left) : classify_udp(c, left);
	if (kind == KIND_FENCE) {
		return kind;
	}
	c->tag = tag_of(c);
	bool has_options = is_v4(c) && c->l4_off != IP4_HEADER_LEN;
	return has_options || v.has_ah ? KIND_FLOW : kind;
}

/* The other form of a zero, which verifies too: the kernel would write 0 in its place, and UDP
 * has it for another reason. */
static bool
is_minus_zero(const uint8_t *field)
{
	return load16(field) == 0xffff;
}

static bool
is_verified(const struct candidate *c)
{
	if (is_v4(c) && (csum_fold(csum_header(c->data, IP4_HEADER_LEN)) != 0xffff ||
				is_minus_zero(c->data + 10))) {
		return false;
	}
	if (is_tcp(c) && is_minus_zero(c->data + c->l4_off + TCP_CHECKSUM)) {
		return false;
	}
	uint32_t l4_len = c->len - c->l4_off;
	uint8_t proto = is_tcp(c) ? IP_PROTO_TCP : IP_PROTO_UDP;
	uint64_t sum =
		is_v4(c) ? csum_pseudo4(addrs_of(c), proto) : csum_pseudo6(addrs_of(c), proto);
	sum += csum_dword(l4_len) + csum_partial(c->data + c->l4_off, l4_len);
	return csum_fold(sum) == 0xffff;
}

static bool
has_equal_ip_header(const struct run *r, const struct candidate *c)
{
	const uint8_t *a = r->head.data, *b = c->data;
	if (is_v4(c)) {
		/* Version, length and TOS; flags (there is no offset); TTL. The protocol is the
		 * flow's. */
		return load16(a) == load16(b) && load16(a + 6) == load16(b + 6) && a[8] == b[8];
	}
	/* Version, traffic class, flow label; hop limit; extension headers and their chain. */
	return load32(a) == load32(b) && load16(a + 6) == load16(b + 6) &&
	       c->l4_off == r->head.l4_off &&
	       memcmp(a + IP6_HEADER_LEN, b + IP6_HEADER_LEN, c->l4_off - IP6_HEADER_LEN) == 0;
}

static bool
has_next_id(const struct run *r, const struct candidate *c, uint32_t packets)
{
	if (!is_v4(c)) {
		return true;
	}
	uint16_t id = load_be16(c->data + 4);
	if (packets > 1) {
		return id == r->next_id;
	}
	uint16_t head_id = load_be16(r->head.data + 4);
	bool has_df = (c->data[6] & 0x40) != 0;
	return id == (uint16_t)(head_id + 1) || (has_df && id == head_id);
}

static bool
has_next_tcp_header(const struct run *r, const struct candidate *c)
{
	const uint8_t *a = r->head.data + r->head.l4_off, *b = c->data + c->l4_off;
	uint16_t psh;
	memcpy(&psh, (const uint8_t[]){0, TCP_PSH}, 2);
	return load_be32(b + TCP_SEQ) == r->next_seq &&
	       load32(a + TCP_ACK_NUMBER) == load32(b + TCP_ACK_NUMBER) &&
	       ((load16(a + TCP_DATA_OFFSET) ^ load16(b + TCP_DATA_OFFSET)) & ~psh) == 0 &&
	       load16(a + TCP_WINDOW) == load16(b + TCP_WINDOW) &&
	       load16(a + TCP_URGENT) == load16(b + TCP_URGENT) &&
	       memcmp(a + TCP_HEADER_LEN, b + TCP_HEADER_LEN,
		       c->hdr_len - c->l4_off - TCP_HEADER_LEN) == 0;
}

/* Checks what costs least first, the checksums last. */
static bool
can_join(struct run *r, struct gro_frame *f, const struct candidate *c)
{
	if (c->payload_len > r->head.payload_len || f->len + c->payload_len > IP_LEN_MAX ||
		f->packets == GRO_PACKETS_MAX || !has_equal_ip_header(r, c) ||
		!has_next_id(r, c, f->packets) || (is_tcp(c) && !has_next_tcp_header(r, c))) {
		return false;
	}
	if (!r->is_verified) {
		if (!is_verified(&r->head)) {
			return false;
		}
		r->is_verified = true;
		f->csum_valid = true;
	}
	return is_verified(c);
}

static bool
ends_run(const struct candidate *c, uint32_t seg_payload)
{
	bool has_psh = is_tcp(c) && (c->data[c->l4_off + TCP_FLAGS] & TCP_PSH) != 0;
	return has_psh || c->payload_len < seg_payload;
}

static void
append(struct joiner *j, struct run *r, const struct candidate *c, uint32_t i)
{
	struct gro_frame *f = &j->out->frames[r->frame];
	if (f->packets == 1) {
		f->gso = c->gso;
		f->gso_size = (uint16_t)r->head.payload_len;
		f->hdr_len = (uint16_t)r->head.hdr_len;
		f->csum_start = (uint16_t)r->head.l4_off;
		f->csum_offset = is_tcp(c) ? TCP_CHECKSUM : UDP_CHECKSUM;
		f->needs_csum = true;
		f->csum_valid = false;
		r->id_step =
			is_v4(c) ? (uint16_t)(load16(r->head.data + 4) != load16(c->data + 4)) : 0;
	}
	if (is_v4(c)) {
		r->next_id = (uint16_t)(load_be16(c->data + 4) + r->id_step);
	}
	r->next_seq += c->payload_len;
	j->chain[r->tail].len = i;
	j->chain[i].data = c->data + c->hdr_len;
	r->tail = i;
	f->len += c->payload_len;
	f->packets++;
	if (is_tcp(c)) {
		r->head.data[r->head.l4_off + TCP_FLAGS] |=
			c->data[c->l4_off + TCP_FLAGS] & TCP_PSH;
	}
}

static uint32_t
find_run(const struct joiner *j, const struct candidate *c)
{
	if (j->last < j->runs_n && j->tags[j->last] == c->tag &&
		is_same_flow(&j->runs[j->last].head, c)) {
		return j->last;
	}
	for (uint32_t k = 0; k < j->runs_n; k++) {
		if (j->tags[k] == c->tag && is_same_flow(&j->runs[k].head, c)) {
			return k;
		}
	}
	return NO_RUN;
}

static void
end_run(struct joiner *j, uint32_t k)
{
	j->runs_n--;
	j->runs[k] = j->runs[j->runs_n];
	j->tags[k] = j->tags[j->runs_n];
}

static uint32_t
begin_frame(struct joiner *j, uint32_t i)
{
	uint32_t frame = (uint32_t)j->out->frames_n++;
	j->out->frames[frame] = (struct gro_frame){.len = j->pkts[i].len, .first = i, .packets = 1};
	j->chain[i].data = j->pkts[i].data;
	return frame;
}

static void
begin_run(struct joiner *j, const struct candidate *c, uint32_t frame, uint32_t i)
{
	/* PSH ends a run, and a run of one needs no entry. */
	if (is_tcp(c) && (c->data[c->l4_off + TCP_FLAGS] & TCP_PSH) != 0) {
		return;
	}
	uint32_t k = j->runs_n;
	if (k == RUNS_MAX) {
		k = j->victim;
		j->victim = (j->victim + 1) % RUNS_MAX;
	} else {
		j->runs_n++;
	}
	j->tags[k] = c->tag;
	j->runs[k] = (struct run){.head = *c, .frame = frame, .tail = i};
	if (is_tcp(c)) {
		j->runs[k].next_seq = load_be32(c->data + c->l4_off + TCP_SEQ) + c->payload_len;
	}
	j->last = k;
}

static void
take(struct joiner *j, uint32_t i)
{
	struct candidate c;
	enum kind kind = classify(j->caps, &j->pkts[i], &c);
	if (kind == KIND_FENCE) {
		j->runs_n = 0;
	}
	if (kind == KIND_FLOW || kind == KIND_JOINABLE) {
		uint32_t k = find_run(j, &c);
		if (k != NO_RUN) {
			struct run *r = &j->runs[k];
			struct gro_frame *f = &j->out->frames[r->frame];
			if (kind == KIND_JOINABLE && can_join(r, f, &c)) {
				append(j, r, &c, i);
				j->last = k;
				if (ends_run(&c, r->head.payload_len)) {
					end_run(j, k);
				}
				return;
			}
			end_run(j, k);
		}
	}
	uint32_t frame = begin_frame(j, i);
	if (kind == KIND_JOINABLE) {
		begin_run(j, &c, frame, i);
	}
}

/* The header of the first packet becomes that of the whole. */
static void
rewrite_header(const struct gro_frame *f, uint8_t *ip)
{
	bool is_v4 = ip[0] >> 4 == 4;
	uint32_t l4_len = f->len - f->csum_start;
	uint8_t *l4 = ip + f->csum_start;
	uint64_t pseudo;
	bool is_tcp = f->gso == FRAME_GSO_TCP4 || f->gso == FRAME_GSO_TCP6;
	uint8_t proto = is_tcp ? IP_PROTO_TCP : IP_PROTO_UDP;
	if (is_v4) {
		store_be16(ip + 2, (uint16_t)f->len);
		store_be16(ip + 10, 0);
		csum_store(ip + 10, csum_header(ip, IP4_HEADER_LEN));
		pseudo = csum_pseudo4(ip + 12, proto);
	} else {
		store_be16(ip + 4, (uint16_t)(f->len - IP6_HEADER_LEN));
		pseudo = csum_pseudo6(ip + 8, proto);
	}
	if (!is_tcp) {
		store_be16(l4 + UDP_LEN, (uint16_t)l4_len);
	}
	csum_store_partial(l4 + f->csum_offset, pseudo + csum_dword(l4_len));
}

static void
lay_out(struct joiner *j)
{
	struct gro_out *out = j->out;
	for (size_t k = 0; k < out->frames_n; k++) {
		struct gro_frame *f = &out->frames[k];
		uint32_t i = f->first;
		if (f->packets > 1) {
			rewrite_header(f, j->pkts[i].data);
		}
		f->first = (uint32_t)out->pieces_n;
		f->n = f->packets;
		for (uint32_t left = f->packets; left > 0; left--) {
			const struct gro_pkt *p = &j->pkts[i];
			uint8_t *from = j->chain[i].data;
			uint32_t next = (uint32_t)j->chain[i].len;
			out->pieces[out->pieces_n++] = (struct gro_piece){
				.data = from, .len = (size_t)(p->data + p->len - from)};
			i = next;
		}
	}
}

void
gro_join(const struct gro_caps *caps, struct gro_pkt *pkts, size_t n, struct gro_out *out)
{
	weft_assert(out->frames_cap >= n && out->pieces_cap / 2 >= n);
	out->frames_n = 0;
	out->pieces_n = 0;
	struct joiner j;
	j.caps = caps;
	j.pkts = pkts;
	j.out = out;
	j.chain = out->pieces + n;
	j.runs_n = 0;
	j.victim = 0;
	j.last = 0;
	for (size_t i = 0; i < n; i++) {
		take(&j, (uint32_t)i);
	}
	lay_out(&j);
}

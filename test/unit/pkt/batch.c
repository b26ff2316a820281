/* SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between packets, since gro_join() may count on room before each. */
#define GAP 16

static uint8_t *
must_alloc(size_t n)
{
	uint8_t *p = malloc(n);
	if (!p) {
		fprintf(stderr, "out of memory\n");
		abort();
	}
	return p;
}

void
batch_init(struct batch *b, size_t cap)
{
	b->cap = cap;
	b->bytes = must_alloc(cap);
	b->bytes_before = must_alloc(cap);
	b->whole = must_alloc(NAIVE_LEN_MAX + 1);
	/* A frame that is cut again is not longer than the packets that it came from. */
	b->cut = must_alloc(cap);
	batch_begin(b);
}

void
batch_fini(struct batch *b)
{
	free(b->bytes);
	free(b->bytes_before);
	free(b->whole);
	free(b->cut);
}

void
batch_begin(struct batch *b)
{
	b->used = 0;
	b->n = 0;
	b->out = (struct gro_out){.frames = b->frames,
		.frames_cap = BATCH_PACKETS_MAX,
		.pieces = b->pieces,
		.pieces_cap = 2 * BATCH_PACKETS_MAX};
}

bool
batch_has_room(const struct batch *b, uint32_t len)
{
	return b->n < BATCH_PACKETS_MAX && b->used + GAP + len <= b->cap;
}

uint8_t *
batch_next(struct batch *b)
{
	return b->bytes + b->used + GAP;
}

void
batch_add(struct batch *b, uint32_t len)
{
	if (!batch_has_room(b, len)) {
		fprintf(stderr, "batch is full\n");
		abort();
	}
	b->pkts[b->n++] = (struct gro_pkt){.data = batch_next(b), .len = len};
	b->used += GAP + len;
}

uint8_t *
batch_add_built(struct batch *b, const struct naive_packet *n, uint32_t payload_len)
{
	for (uint32_t i = 0; i < payload_len; i++) {
		b->whole[i] = (uint8_t)(n->seq + i * 7 + n->id);
	}
	uint8_t *p = batch_next(b);
	batch_add(b, naive_build(p, n, b->whole, payload_len));
	return p;
}

uint8_t *
batch_add_next(struct batch *b, struct naive_packet *n, uint32_t payload_len)
{
	uint8_t *p = batch_add_built(b, n, payload_len);
	n->seq += payload_len;
	n->id++;
	return p;
}

void
batch_join(struct batch *b, const struct gro_caps *caps)
{
	memcpy(b->bytes_before, b->bytes, b->used);
	gro_join(caps, b->pkts, b->n, &b->out);
}

uint8_t *
batch_was(const struct batch *b, size_t i)
{
	return b->bytes_before + (b->pkts[i].data - b->bytes);
}

uint32_t
batch_gather(const struct batch *b, const struct gro_frame *f, uint8_t *out)
{
	uint32_t len = 0;
	for (uint32_t i = 0; i < f->n; i++) {
		const struct gro_piece *p = &b->out.pieces[f->first + i];
		memcpy(out + len, p->data, p->len);
		len += (uint32_t)p->len;
	}
	return len;
}

/* Are the two the same but for the id of a packet that may not be fragmented, which the kernel
 * counts up? */
static bool
is_same_packet(uint8_t *got, uint8_t *want, uint32_t len)
{
	bool is_atomic = len >= 20 && want[0] == 0x45 && (want[6] & 0x40) != 0;
	if (is_atomic && memcmp(got + 4, want + 4, 2) != 0) {
		if (naive_sum(got, 20, 0) != 0xffff || naive_sum(want, 20, 0) != 0xffff) {
			return false;
		}
		memcpy(got + 4, want + 4, 2);
		memcpy(got + 10, want + 10, 2);
	}
	return memcmp(got, want, len) == 0;
}

/* The first packet of that flow that no frame has shown yet; b->n if there is none. */
static size_t
oldest_unseen(const struct batch *b, const bool *is_seen, const uint8_t *packet, uint32_t len)
{
	uint8_t want[NAIVE_FLOW_LEN], flow[NAIVE_FLOW_LEN];
	naive_flow(packet, len, want);
	for (size_t i = 0; i < b->n; i++) {
		if (is_seen[i]) {
			continue;
		}
		naive_flow(batch_was(b, i), b->pkts[i].len, flow);
		if (memcmp(flow, want, NAIVE_FLOW_LEN) == 0) {
			return i;
		}
	}
	return b->n;
}

static const char *
check_fields(struct batch *b, const struct gro_frame *f, uint32_t len)
{
	const uint8_t *p = b->whole;
	if (len != f->len || f->n != f->packets || f->packets > GRO_PACKETS_MAX) {
		return "length or number of pieces";
	}
	if (f->packets == 1) {
		bool is_clean = f->gso == FRAME_GSO_NONE && f->gso_size == 0 && !f->needs_csum;
		return is_clean ? NULL : "offload of a single packet";
	}
	uint8_t proto;
	uint32_t l4 = naive_l4(p, len, &proto);
	uint32_t header = l4 + (proto == 6 ? (p[l4 + 12] >> 4) * 4u : 8);
	if (!f->needs_csum || f->csum_valid || f->csum_start != l4 || f->hdr_len != header ||
		f->csum_offset != (proto == 6 ? 16 : 6) || f->gso_size == 0 ||
		(f->packets - 1) * f->gso_size >= len - header ||
		f->packets * f->gso_size < len - header) {
		return "offload fields";
	}
	memcpy(b->cut, p, len);
	uint32_t field = naive_make_partial(b->cut, len);
	return memcmp(p + field, b->cut + field, 2) == 0 ? NULL : "partial sum";
}

/* One frame against the packets that it stands for. */
static const char *
check_frame(struct batch *b, const struct gro_frame *f, bool *is_seen)
{
	uint32_t lens[GRO_PACKETS_MAX] = {batch_gather(b, f, b->whole)};
	const char *wrong = check_fields(b, f, lens[0]);
	if (wrong) {
		return wrong;
	}
	memcpy(b->cut, b->whole, lens[0]);
	if (f->packets > 1 && naive_segment(b->whole, lens[0], f->gso_size, false, b->cut, b->cap,
				      lens, GRO_PACKETS_MAX) != f->packets) {
		return "number of packets";
	}
	uint8_t *p = b->cut;
	for (uint32_t i = 0; i < f->packets; i++) {
		size_t at = oldest_unseen(b, is_seen, p, lens[i]);
		if (at == b->n || b->pkts[at].len != lens[i] ||
			!is_same_packet(p, batch_was(b, at), lens[i])) {
			return "not the next packet of its flow";
		}
		is_seen[at] = true;
		p += lens[i];
	}
	return NULL;
}

const char *
batch_check(struct batch *b)
{
	bool is_seen[BATCH_PACKETS_MAX] = {false};
	size_t packets = 0, pieces = 0;
	for (size_t k = 0; k < b->out.frames_n; k++) {
		const struct gro_frame *f = &b->out.frames[k];
		if (f->first != pieces) {
			return "pieces are not in a row";
		}
		const char *wrong = check_frame(b, f, is_seen);
		if (wrong) {
			return wrong;
		}
		pieces += f->n;
		packets += f->packets;
	}
	return packets == b->n && pieces == b->out.pieces_n ? NULL : "packets are missing";
}

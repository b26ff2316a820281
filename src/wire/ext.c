/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/ext.h"

#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"

#define HELLO_ANSWER 0x01u

#define REPAIR_LARGE 0x01u
#define REPAIR_WHY_SHIFT 1
#define REPAIR_WHY_MASK 0x06u
#define REPAIR_BITMAP 0x08u
#define REPAIR_ALONE 0x10u
#define REPAIR_FLAGS (REPAIR_LARGE | REPAIR_WHY_MASK | REPAIR_BITMAP | REPAIR_ALONE)
/* The shortest payload: a length and an IPv4 header. */
#define REPAIR_PAYLOAD_MIN (2 + 20)

#define WANT_MAX 64

static size_t
bitmap_len(uint8_t span)
{
	return (span + 7u) / 8;
}

/* The bits of a span's last byte. */
static uint8_t
last_mask(uint8_t span)
{
	return (uint8_t)(0xffu >> (-span & 7));
}

static bool
bitmap_is_full(const uint8_t *bits, uint8_t span)
{
	size_t last = bitmap_len(span) - 1;
	for (size_t i = 0; i < last; i++) {
		if (bits[i] != 0xff) {
			return false;
		}
	}
	return bits[last] == last_mask(span);
}

static bool
bitmap_is_empty(const uint8_t *bits, uint8_t span)
{
	for (size_t i = 0; i < bitmap_len(span); i++) {
		if (bits[i]) {
			return false;
		}
	}
	return true;
}

/* Are the bits from span on zero? Reads bytes of the span alone, as they lie on the wire. */
static bool
bitmap_fits(const uint8_t *bits, uint8_t span)
{
	return !(bits[bitmap_len(span) - 1] & ~last_mask(span));
}

static void
bitmap_fill(uint8_t *bits, uint8_t span)
{
	memset(bits, 0xff, bitmap_len(span));
	bits[bitmap_len(span) - 1] = last_mask(span);
}

static bool
span_is_valid(uint8_t span)
{
	return span >= 1 && span <= WIRE_EXT_SPAN_MAX;
}

static size_t
written(const struct writer *w, const uint8_t *out)
{
	return w->failed ? 0 : (size_t)(w->p - out);
}

static bool
hello_is_valid(const struct wire_ext_hello *h)
{
	if (h->version_min < 1 || h->version_min > h->version_max ||
		h->name_len > WIRE_EXT_NAME_MAX || (!h->is_answer && (h->echo_us || h->delay_us))) {
		return false;
	}
	for (size_t i = 0; i < h->name_len; i++) {
		if (h->name[i] < 0x21 || h->name[i] > 0x7e) {
			return false;
		}
	}
	return true;
}

size_t
wire_ext_hello_encode(const struct wire_ext_hello *h, uint8_t *out, size_t cap)
{
	weft_assert(hello_is_valid(h));
	struct writer w;
	writer_init(&w, out, cap);
	writer_u8(&w, WIRE_EXT_TYPE_HELLO);
	writer_u8(&w, h->is_answer ? HELLO_ANSWER : 0);
	writer_u8(&w, h->version_min);
	writer_u8(&w, h->version_max);
	writer_u8(&w, h->ciphers);
	writer_u8(&w, h->name_len);
	writer_le16(&w, h->datagram_max);
	writer_le32(&w, h->features);
	writer_le32(&w, h->clock_us);
	writer_le32(&w, h->echo_us);
	writer_le32(&w, h->delay_us);
	writer_copy(&w, h->name, h->name_len);
	return written(&w, out);
}

bool
wire_ext_hello_decode(const uint8_t *data, size_t len, struct wire_ext_hello *out)
{
	struct wire_ext_hello h = {0};
	struct reader r;
	reader_init(&r, data, len);
	if (reader_u8(&r) != WIRE_EXT_TYPE_HELLO) {
		return false;
	}
	h.is_answer = reader_u8(&r) & HELLO_ANSWER;
	h.version_min = reader_u8(&r);
	h.version_max = reader_u8(&r);
	h.ciphers = reader_u8(&r);
	h.name_len = reader_u8(&r);
	h.datagram_max = reader_le16(&r);
	h.features = reader_le32(&r);
	h.clock_us = reader_le32(&r);
	h.echo_us = reader_le32(&r);
	h.delay_us = reader_le32(&r);
	if (h.name_len > WIRE_EXT_NAME_MAX) {
		return false;
	}
	reader_copy(&r, h.name, h.name_len);
	if (r.failed || !hello_is_valid(&h)) {
		return false;
	}
	*out = h;
	return true;
}

static bool
repair_is_valid(const struct wire_ext_repair *r)
{
	return span_is_valid(r->span) && r->back >= r->span && bitmap_fits(r->sources, r->span);
}

size_t
wire_ext_repair_encode(const struct wire_ext_repair *r, uint8_t *out, size_t cap)
{
	weft_dassert(repair_is_valid(r) && r->why <= WIRE_EXT_WHY_TAIL);
	bool is_full = bitmap_is_full(r->sources, r->span);
	struct writer w;
	writer_init(&w, out, cap);
	writer_u8(&w, WIRE_EXT_TYPE_REPAIR);
	writer_u8(&w, (uint8_t)((r->class == WIRE_EXT_CLASS_LARGE ? REPAIR_LARGE : 0) |
				((unsigned)r->why << REPAIR_WHY_SHIFT) |
				(is_full ? 0 : REPAIR_BITMAP) | (r->is_alone ? REPAIR_ALONE : 0)));
	writer_u8(&w, (uint8_t)(r->span - 1));
	writer_le16(&w, r->back);
	if (!is_full) {
		writer_copy(&w, r->sources, bitmap_len(r->span));
	}
	return written(&w, out);
}

bool
wire_ext_repair_decode(const uint8_t *data, size_t len, struct wire_ext_repair *out)
{
	struct wire_ext_repair f = {0};
	struct reader r;
	reader_init(&r, data, len);
	if (reader_u8(&r) != WIRE_EXT_TYPE_REPAIR) {
		return false;
	}
	uint8_t flags = reader_u8(&r);
	uint8_t span = reader_u8(&r); /* less 1 */
	f.back = reader_le16(&r);
	unsigned why = (flags & REPAIR_WHY_MASK) >> REPAIR_WHY_SHIFT;
	if (r.failed || flags & ~REPAIR_FLAGS || why > WIRE_EXT_WHY_TAIL ||
		span >= WIRE_EXT_SPAN_MAX) {
		return false;
	}
	f.class = flags & REPAIR_LARGE ? WIRE_EXT_CLASS_LARGE : WIRE_EXT_CLASS_SMALL;
	f.why = (enum wire_ext_repair_why)why;
	f.is_alone = flags & REPAIR_ALONE;
	f.span = (uint8_t)(span + 1);
	if (flags & REPAIR_BITMAP) {
		reader_copy(&r, f.sources, bitmap_len(f.span));
		/* One frame a meaning: a full bitmap is left out. */
		if (r.failed || bitmap_is_full(f.sources, f.span)) {
			return false;
		}
	} else {
		bitmap_fill(f.sources, f.span);
	}
	f.payload = r.p;
	f.payload_len = reader_left(&r);
	if (!repair_is_valid(&f) ||
		(bitmap_is_empty(f.sources, f.span) ? f.payload_len != 0
						    : f.payload_len < REPAIR_PAYLOAD_MIN)) {
		return false;
	}
	*out = f;
	return true;
}

static bool
block_is_valid(const struct wire_ext_block *b)
{
	return span_is_valid(b->span) && b->back + 1u >= b->span && b->want <= WANT_MAX &&
	       bitmap_fits(b->missing, b->span);
}

size_t
wire_ext_feedback_encode(const struct wire_ext_feedback *f, uint8_t *out, size_t cap)
{
	weft_assert(f->blocks_n <= WIRE_EXT_BLOCKS_MAX);
	struct writer w;
	writer_init(&w, out, cap);
	writer_u8(&w, WIRE_EXT_TYPE_FEEDBACK);
	writer_u8(&w, f->blocks_n);
	writer_le32(&w, f->highest);
	writer_le32(&w, f->received);
	writer_le32(&w, f->lost);
	writer_le32(&w, f->runs);
	writer_le32(&w, f->recovered_ahead);
	writer_le32(&w, f->recovered_answer);
	writer_le32(&w, f->given_up);
	writer_le32(&w, f->clock_us);
	writer_le32(&w, f->delay_us);
	for (size_t i = 0; i < f->blocks_n; i++) {
		const struct wire_ext_block *b = &f->blocks[i];
		weft_assert(block_is_valid(b));
		writer_le16(&w, b->back);
		writer_u8(&w, (uint8_t)(b->span - 1));
		writer_u8(&w, b->want);
		writer_copy(&w, b->missing, bitmap_len(b->span));
	}
	if (f->edge_back != 0) {
		writer_le16(&w, f->edge_back);
		writer_le32(&w, f->edge_us);
	}
	return written(&w, out);
}

static bool
decode_block(struct reader *r, struct wire_ext_block *b)
{
	b->back = reader_le16(r);
	uint8_t span = reader_u8(r); /* less 1 */
	b->want = reader_u8(r);
	if (span >= WIRE_EXT_SPAN_MAX) {
		return false;
	}
	b->span = (uint8_t)(span + 1);
	reader_copy(r, b->missing, bitmap_len(b->span));
	return !r->failed && block_is_valid(b);
}

bool
wire_ext_feedback_decode(const uint8_t *data, size_t len, struct wire_ext_feedback *out)
{
	struct wire_ext_feedback f = {0};
	struct reader r;
	reader_init(&r, data, len);
	if (reader_u8(&r) != WIRE_EXT_TYPE_FEEDBACK) {
		return false;
	}
	f.blocks_n = reader_u8(&r);
	f.highest = reader_le32(&r);
	f.received = reader_le32(&r);
	f.lost = reader_le32(&r);
	f.runs = reader_le32(&r);
	f.recovered_ahead = reader_le32(&r);
	f.recovered_answer = reader_le32(&r);
	f.given_up = reader_le32(&r);
	f.clock_us = reader_le32(&r);
	f.delay_us = reader_le32(&r);
	if (r.failed || f.blocks_n > WIRE_EXT_BLOCKS_MAX) {
		return false;
	}
	for (size_t i = 0; i < f.blocks_n; i++) {
		if (!decode_block(&r, &f.blocks[i])) {
			return false;
		}
	}
	if (reader_left(&r) >= 6) {
		f.edge_back = reader_le16(&r);
		f.edge_us = f.edge_back != 0 ? reader_le32(&r) : 0;
	}
	*out = f;
	return true;
}

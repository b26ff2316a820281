/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/encoder.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/endian.h"
#include "fec/coef.h"
#include "fec/gf256.h"
#include "fec/store.h"
#include "fec/symbol.h"
#include "pkt/ip.h"

#define HEADER_MIN (WIRE_EXT_REPAIR_HEADER_MAX - WIRE_EXT_BITMAP_MAX)
#define RECORDS_MIN 256
#define RECORDS_MAX 65536
#define FRAME_MIN 64
#define GROWTH (2 * FEC_STORE_BLOCK) /* at a time */

struct record {
	uint64_t mark; /* counter + 1; 0 = never used */
	uint64_t place;
	struct mono sent;
	uint16_t len;
	uint8_t class;
};

/* Payloads of repairs over the same sources with the counters own, own + 1, ...: rows are computed
 * together, which takes two thirds of the time, and the first is used at once. */
struct batch {
	uint64_t own;
	unsigned n; /* 0: none */
	uint64_t first, last;
	size_t k, len;
	uint8_t *rows; /* n - 1 of frame_max bytes each */
};

struct fec_encoder {
	const struct gf256 *gf;
	uint64_t expected_own; /* that many repairs are likely from this counter on */
	unsigned expected_n;
	struct batch batch;
	struct fec_store store;
	struct record *records; /* by counter & mask; a counter without source writes none */
	uint64_t mask;
	uint64_t floor;                        /* counters below are unknown */
	uint64_t next;                         /* above the last source */
	uint64_t newest[WIRE_EXT_CLASS_COUNT]; /* counter + 1 of the last; 0 = none */
	struct mono source_at;                 /* of the last */
	uint64_t block;                        /* of the store, that it went to */
	/* When each block of the store was begun, by block & the size less 1. */
	struct mono begun[2 * FEC_STORE_BLOCKS_MAX];
	uint16_t packet_max, frame_max;
	bool is_paused;
	struct fec_budget *budget;
	uint64_t size; /* taken from it */
};

enum knowledge {
	KNOWN_AS_NONE,   /* no source that could be repaired */
	KNOWN_AS_SOURCE, /* remembered */
	FORGOTTEN,       /* or never given */
};

/* What a repair will combine. */
struct choice {
	uint64_t first, last; /* counters covered */
	size_t k;
	uint16_t len_max;
	bool is_alone; /* no source of the other class among the counters that count */
	uint8_t at[WIRE_EXT_SPAN_MAX]; /* last - counter of each, ascending */
	uint16_t lens[WIRE_EXT_SPAN_MAX];
	const uint8_t *data[WIRE_EXT_SPAN_MAX];
};

static uint64_t
encoder_bytes(uint32_t records, uint32_t bytes, uint16_t frame_max)
{
	return sizeof(struct fec_encoder) + records * sizeof(struct record) +
	       fec_store_size(bytes) + (GF256_ROWS_MAX - 1) * (size_t)frame_max;
}

enum weft_err
fec_encoder_new(const struct fec_encoder_config *c, struct fec_encoder **out)
{
	if (!c->gf || c->records < RECORDS_MIN || c->records > RECORDS_MAX ||
		(c->records & (c->records - 1)) || c->bytes < FEC_STORE_MIN ||
		c->bytes > FEC_STORE_MAX || c->packet_max < FEC_PACKET_MIN ||
		c->packet_max > FEC_PACKET_MAX || c->frame_max < FRAME_MIN) {
		return WEFT_EINVAL;
	}
	uint64_t size = encoder_bytes(c->records, c->bytes, c->frame_max);
	if (!fec_budget_take(c->budget, size, c->use)) {
		return WEFT_ENOMEM;
	}
	struct fec_encoder *e = calloc(1, sizeof(*e));
	if (!e) {
		goto undo_budget;
	}
	e->records = calloc(c->records, sizeof(*e->records));
	if (!e->records) {
		goto undo_encoder;
	}
	if (!fec_store_init(&e->store, c->bytes)) {
		goto undo_records;
	}
	e->batch.rows = malloc((GF256_ROWS_MAX - 1) * (size_t)c->frame_max);
	if (!e->batch.rows) {
		goto undo_store;
	}
	e->gf = c->gf;
	e->mask = c->records - 1;
	/* One that does not fit a frame by itself cannot be protected. */
	size_t fits = c->frame_max - HEADER_MIN - FEC_LEN_BYTES;
	e->packet_max = c->packet_max < fits ? c->packet_max : (uint16_t)fits;
	e->frame_max = c->frame_max;
	e->is_paused = true;
	e->budget = c->budget;
	e->size = size;
	*out = e;
	return WEFT_OK;
undo_store:
	fec_store_fini(&e->store);
undo_records:
	free(e->records);
undo_encoder:
	free(e);
undo_budget:
	fec_budget_give(c->budget, size);
	return WEFT_ENOMEM;
}

void
fec_encoder_free(struct fec_encoder *e)
{
	if (e) {
		free(e->batch.rows);
		fec_store_fini(&e->store);
		free(e->records);
		fec_budget_give(e->budget, e->size);
		free(e);
	}
}

uint64_t
fec_encoder_size(const struct fec_encoder *e)
{
	return e->size;
}

static bool
grow_records(struct fec_encoder *e, uint32_t n)
{
	struct record *to = calloc(n, sizeof(*to));
	if (!to) {
		return false;
	}
	/* What these have written over is forgotten; the larger table cannot tell. */
	uint64_t low = e->next > e->mask ? e->next - e->mask - 1 : 0;
	e->floor = e->floor > low ? e->floor : low;
	for (uint64_t i = 0; i <= e->mask; i++) {
		const struct record *r = &e->records[i];
		if (r->mark > e->floor) {
			to[(r->mark - 1) & (n - 1)] = *r;
		}
	}
	free(e->records);
	e->records = to;
	e->mask = n - 1;
	return true;
}

bool
fec_encoder_grow(struct fec_encoder *e, uint32_t records, uint32_t bytes, enum fec_budget_use use)
{
	weft_assert(
		records <= RECORDS_MAX && (records & (records - 1)) == 0 && bytes <= FEC_STORE_MAX);
	records = records > e->mask + 1 ? records : (uint32_t)e->mask + 1;
	bytes = bytes > e->store.cap ? bytes : (uint32_t)e->store.cap;
	uint64_t size = encoder_bytes(records, bytes, e->frame_max);
	if (size <= e->size) {
		return true;
	}
	if (!fec_budget_take(e->budget, size - e->size, use)) {
		return false;
	}
	bool is_done = (records <= e->mask + 1 || grow_records(e, records)) &&
		       (bytes <= e->store.cap || fec_store_grow(&e->store, bytes));
	uint64_t taken = size;
	e->size = encoder_bytes((uint32_t)e->mask + 1, (uint32_t)e->store.cap, e->frame_max);
	fec_budget_give(e->budget, taken - e->size);
	return is_done;
}

static int64_t
age_ns(const struct fec_encoder *e, uint64_t block)
{
	return mono_diff_ns(e->source_at, e->begun[block % WEFT_ARRAY_LEN(e->begun)]);
}

bool
fec_encoder_is_short(
	const struct fec_encoder *e, int64_t keep_ns, uint32_t *records, uint32_t *bytes)
{
	const struct record *r = &e->records[e->next & e->mask];
	const struct fec_store *s = &e->store;
	bool by_records = r->mark > e->floor && e->mask + 1 < RECORDS_MAX &&
			  mono_diff_ns(e->source_at, r->sent) < keep_ns;
	/* The youngest of a block is as old as the next one. */
	bool by_bytes = s->spares_n == 0 && s->cap < FEC_STORE_MAX &&
			(s->first == s->newest || age_ns(e, s->first + 1) < keep_ns);
	uint64_t more = s->cap + GROWTH < FEC_STORE_MAX ? s->cap + GROWTH : FEC_STORE_MAX;
	*records = (uint32_t)(e->mask + 1) << by_records;
	*bytes = (uint32_t)(by_bytes ? more : s->cap);
	return by_records || by_bytes;
}

void
fec_encoder_shrink(struct fec_encoder *e, int64_t keep_ns, uint32_t bytes)
{
	const struct fec_store *s = &e->store;
	if (s->cap <= bytes || s->spares_n > 0 || s->first == s->newest ||
		age_ns(e, s->first + 1) < keep_ns) {
		return;
	}
	if (fec_store_shrink(&e->store)) {
		e->size -= FEC_STORE_BLOCK;
		fec_budget_give(e->budget, FEC_STORE_BLOCK);
	}
}

void
fec_encoder_source(
	struct fec_encoder *e, struct mono now, uint64_t counter, const uint8_t *packet, size_t len)
{
	weft_dassert(counter >= e->next);
	if (e->is_paused) {
		e->is_paused = false;
		e->floor = counter;
	}
	e->next = counter + 1;
	e->batch.n = 0;
	uint32_t exact;
	uint64_t place;
	/* The receiver finds the length in the same way, after the padding of the data message. */
	if (ip_exact_len(packet, len, &exact) || exact > e->packet_max ||
		!fec_store_put(&e->store, packet, (uint16_t)exact, FEC_STORE_FREE, &place)) {
		return;
	}
	e->source_at = now;
	if (fec_store_block(place) != e->block) {
		e->block = fec_store_block(place);
		e->begun[e->block % WEFT_ARRAY_LEN(e->begun)] = now;
	}
	enum wire_ext_class class = fec_class(exact);
	e->newest[class] = counter + 1;
	e->records[counter & e->mask] = (struct record){
		.mark = counter + 1,
		.place = place,
		.sent = now,
		.len = (uint16_t)exact,
		.class = (uint8_t) class,
	};
}

void
fec_encoder_pause(struct fec_encoder *e)
{
	e->is_paused = true;
}

static enum knowledge
look_up(const struct fec_encoder *e, uint64_t counter, const struct record **out)
{
	const struct record *r = &e->records[counter & e->mask];
	if (counter >= e->next) {
		return e->is_paused ? FORGOTTEN : KNOWN_AS_NONE;
	}
	if (counter < e->floor || r->mark > counter + 1) {
		return FORGOTTEN;
	}
	if (r->mark < counter + 1) {
		return KNOWN_AS_NONE; /* else it would have written over this record */
	}
	*out = r;
	return fec_store_has(&e->store, r->place) ? KNOWN_AS_SOURCE : FORGOTTEN;
}

bool
fec_encoder_sent_at(const struct fec_encoder *e, uint64_t counter, struct mono *out)
{
	const struct record *r;
	if (look_up(e, counter, &r) != KNOWN_AS_SOURCE) {
		return false;
	}
	*out = r->sent;
	return true;
}

bool
fec_encoder_has(const struct fec_encoder *e, uint64_t counter, enum wire_ext_class class)
{
	const struct record *r;
	return look_up(e, counter, &r) == KNOWN_AS_SOURCE && r->class == class;
}

static size_t
frame_len(size_t span, size_t k, size_t len_max)
{
	return HEADER_MIN + (k == span ? 0 : (span + 7) / 8) + (k ? FEC_LEN_BYTES + len_max : 0);
}

static void
choose(const struct fec_encoder *e, struct choice *c, uint64_t counter, const struct record *r)
{
	c->at[c->k] = (uint8_t)(c->last - counter);
	c->lens[c->k] = (uint16_t)(r->len + FEC_LEN_BYTES);
	c->data[c->k] = fec_store_at(&e->store, r->place);
	c->len_max = r->len > c->len_max ? r->len : c->len_max;
	c->k++;
}

void
fec_encoder_expect(struct fec_encoder *e, uint64_t own, unsigned n)
{
	e->expected_own = own;
	e->expected_n = n;
}

/* Coefficients of the chosen sources in the repair with that counter. */
static void
coefficients(const struct choice *c, uint64_t own, uint8_t *cs)
{
	size_t span = (size_t)(c->last - c->first) + 1;
	uint8_t row[FEC_COEFS_MAX];
	fec_coefs(fec_key(own), row, span);
	for (size_t i = 0; i < c->k; i++) {
		cs[i] = row[span - 1 - c->at[i]];
	}
}

static void
combine(struct fec_encoder *e, const struct choice *c, uint64_t own, uint8_t *out, size_t len)
{
	struct batch *b = &e->batch;
	if (own > b->own && own - b->own < b->n && b->first == c->first && b->last == c->last &&
		b->k == c->k && b->len == len) {
		memcpy(out, b->rows + (own - b->own - 1) * e->frame_max, len);
		return;
	}
	unsigned n = own == e->expected_own && e->expected_n > 1 ? e->expected_n : 1;
	n = n < GF256_ROWS_MAX ? n : GF256_ROWS_MAX;
	uint8_t cs[GF256_ROWS_MAX * FEC_COEFS_MAX], *dsts[GF256_ROWS_MAX];
	for (unsigned i = 0; i < n; i++) {
		coefficients(c, own + i, cs + i * c->k);
		dsts[i] = i == 0 ? out : b->rows + (i - 1) * (size_t)e->frame_max;
		memset(dsts[i], 0, len);
	}
	struct gf256_sources sources = {.data = c->data, .lens = c->lens, .k = c->k};
	e->gf->dot_multi(dsts, n, &sources, cs, len);
	*b = (struct batch){.own = own,
		.n = n,
		.first = c->first,
		.last = c->last,
		.k = c->k,
		.len = len,
		.rows = b->rows};
}

static size_t
write_repair(struct fec_encoder *e, const struct choice *c, struct wire_ext_repair *r,
	const struct fec_place *to)
{
	size_t span = (size_t)(c->last - c->first) + 1;
	size_t len = c->k ? FEC_LEN_BYTES + (size_t)c->len_max : 0;
	r->is_alone = c->is_alone;
	r->span = (uint8_t)span;
	r->back = (uint16_t)(to->own - c->first);
	for (size_t i = 0; i < c->k; i++) {
		size_t at = span - 1 - c->at[i];
		r->sources[at / 8] |= (uint8_t)(1u << (at % 8));
	}
	size_t header = wire_ext_repair_encode(r, to->bytes, to->cap);
	if (header == 0 || to->cap - header < len) {
		return 0;
	}
	combine(e, c, to->own, to->bytes + header, len);
	return header + len;
}

/* A source's counter + 1, `skip` sources of the class before the newest; the newest's where so many
 * are not known any more. */
static uint64_t
newest_but(const struct fec_encoder *e, enum wire_ext_class class, unsigned skip)
{
	uint64_t newest = e->newest[class];
	for (uint64_t at = newest; at > 0; at--) {
		const struct record *r;
		enum knowledge known = look_up(e, at - 1, &r);
		if (known == FORGOTTEN) {
			break;
		}
		if (known == KNOWN_AS_SOURCE && r->class == class && skip-- == 0) {
			return at;
		}
	}
	return newest;
}

size_t
fec_encoder_ahead(struct fec_encoder *e, enum wire_ext_class class, unsigned window, unsigned skip,
	enum wire_ext_repair_why why, const struct fec_place *to)
{
	weft_dassert(window >= 1 && to->own >= e->next);
	uint64_t newest = newest_but(e, class, skip);
	struct choice c = {.first = newest - 1, .last = newest - 1, .is_alone = true};
	size_t max = to->cap < e->frame_max ? to->cap : e->frame_max;
	bool other = false; /* a source of the other class since the last one taken */
	for (uint64_t at = newest; at > 0 && c.k < window; at--) {
		uint64_t counter = at - 1;
		const struct record *r;
		enum knowledge known = look_up(e, counter, &r);
		size_t span = (size_t)(newest - counter);
		if (known == FORGOTTEN || span > WIRE_EXT_SPAN_MAX ||
			to->own - counter > UINT16_MAX) {
			break;
		}
		if (known == KNOWN_AS_NONE) {
			continue;
		}
		if (r->class != class) {
			other = true;
			continue;
		}
		size_t len_max = r->len > c.len_max ? r->len : c.len_max;
		if (frame_len(span, c.k + 1, len_max) > max) {
			break;
		}
		choose(e, &c, counter, r);
		c.first = counter;
		c.is_alone = !other;
	}
	if (c.k == 0) {
		return 0;
	}
	struct wire_ext_repair r = {.class = class, .why = why};
	return write_repair(e, &c, &r, to);
}

/* The counters first..last as far as they are known, from the end on. False: none is. */
static bool
choose_missing(const struct fec_encoder *e, struct choice *c, const struct fec_wanted *w)
{
	uint64_t first = c->first;
	bool is_any = false;
	for (uint64_t at = c->last + 1; at > first; at--) {
		uint64_t counter = at - 1;
		const struct record *r;
		enum knowledge known = look_up(e, counter, &r);
		if (known == FORGOTTEN) {
			break;
		}
		c->first = counter;
		is_any = true;
		if (known == KNOWN_AS_SOURCE &&
			fec_has_bit(w->missing, (size_t)(counter - w->base))) {
			if (r->class == w->class) {
				choose(e, c, counter, r);
			} else {
				c->is_alone = false;
			}
		}
	}
	return is_any;
}

/* By how many counters a span that is too wide for its bitmap shrinks. */
static uint64_t
excess(const struct choice *c, size_t span, size_t max)
{
	size_t fixed = HEADER_MIN + FEC_LEN_BYTES + (size_t)c->len_max;
	size_t bits = max > fixed ? 8 * (max - fixed) : 0;
	return bits > 0 && span > bits ? span - bits : 1;
}

size_t
fec_encoder_answer(struct fec_encoder *e, const struct fec_wanted *w, const struct fec_place *to)
{
	weft_dassert(w->span >= 1 && w->span <= WIRE_EXT_SPAN_MAX && to->own >= w->base + w->span);
	size_t max = to->cap < e->frame_max ? to->cap : e->frame_max;
	uint64_t first = w->base, last = w->base + w->span - 1;
	if (to->own - w->base > UINT16_MAX) {
		return 0;
	}
	if (e->is_paused && last >= e->next) {
		last = e->next - 1; /* else nothing would be known, from the end on */
	}
	while (e->next > 0 && first <= last) {
		struct choice c = {.first = first, .last = last, .is_alone = true};
		if (!choose_missing(e, &c, w)) {
			return 0;
		}
		size_t span = (size_t)(last - c.first) + 1;
		if (frame_len(span, c.k, c.len_max) <= max) {
			struct wire_ext_repair r = {.class = w->class, .why = WIRE_EXT_WHY_ANSWER};
			return write_repair(e, &c, &r, to);
		}
		if (to->own % 2) {
			last -= excess(&c, span, max);
		} else {
			first = c.first + excess(&c, span, max);
		}
	}
	return 0;
}

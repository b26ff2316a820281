/* SPDX-License-Identifier: Apache-2.0 */
#include "line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fec/gf256.h"

#define OUT_MAX 64

void
line_open(struct line *l, const struct line_config *c)
{
	uint32_t records = c->records ? c->records : 1024;
	uint32_t bytes = c->bytes ? c->bytes : 1u << 20;
	memset(l, 0, sizeof(*l));
	l->seed = c->seed;
	l->first = c->first;
	l->cap = c->cap;
	l->sent = calloc(c->cap, sizeof(*l->sent));
	l->log = malloc(c->cap * sizeof(*l->log));
	assert_true(l->sent && l->log);
	const struct fec_encoder_config e = {.gf = gf256_get(GF256_ISA_AUTO),
		.records = records,
		.bytes = bytes,
		.packet_max = LINE_PACKET_MAX,
		.frame_max = LINE_FRAME_MAX};
	l->config = (struct fec_decoder_config){.gf = gf256_get(GF256_ISA_AUTO),
		.records = records,
		.bytes = bytes,
		.packet_max = LINE_PACKET_MAX};
	assert_int_equal(fec_encoder_new(&e, &l->e), WEFT_OK);
	assert_int_equal(fec_decoder_new(&l->config, &l->d), WEFT_OK);
}

void
line_restart(struct line *l)
{
	fec_decoder_free(l->d);
	assert_int_equal(fec_decoder_new(&l->config, &l->d), WEFT_OK);
	l->log_n = 0;
	for (size_t i = 0; i < l->n; i++) {
		struct line_sent *s = &l->sent[i];
		s->is_used = s->is_recovered = false;
		s->arrived_ns = s->delivered_ns = 0;
	}
}

void
line_close(struct line *l)
{
	fec_encoder_free(l->e);
	fec_decoder_free(l->d);
	free(l->sent);
	free(l->log);
}

struct line_sent *
line_at(const struct line *l, uint64_t counter)
{
	assert_true(counter >= l->first && counter - l->first < l->n);
	return &l->sent[counter - l->first];
}

static struct line_sent *
next(struct line *l)
{
	assert_true(l->n < l->cap);
	return &l->sent[l->n++];
}

uint64_t
line_source(struct line *l, int64_t now_ns, enum packet_kind kind, size_t len)
{
	uint64_t counter = l->first + l->n;
	struct line_sent *s = next(l);
	s->len = (uint16_t)packet_make(
		s->bytes, l->seed, counter, kind, kind != PACKET_UDP && counter % 2, len);
	s->is_source = true;
	s->is_ordered = kind == PACKET_TCP_DATA || kind == PACKET_TCP_FIN;
	fec_encoder_source(l->e, (struct mono){now_ns}, counter, s->bytes, s->len);
	return counter;
}

uint64_t
line_keepalive(struct line *l)
{
	next(l);
	return l->first + l->n - 1;
}

uint64_t
line_ahead(struct line *l, enum wire_ext_class class, unsigned window)
{
	uint64_t counter = l->first + l->n;
	struct line_sent *s = next(l);
	s->len = (uint16_t)fec_encoder_ahead(l->e, class, window, 0, l->why,
		&(struct fec_place){counter, s->bytes, LINE_FRAME_MAX});
	if (s->len == 0) {
		l->n--;
		return UINT64_MAX;
	}
	return counter;
}

static size_t
count(const struct line *l, const struct wire_ext_block *b, uint64_t base,
	enum wire_ext_class class)
{
	size_t n = 0;
	for (size_t i = 0; i < b->span; i++) {
		n += (b->missing[i / 8] >> (i % 8) & 1) && fec_encoder_has(l->e, base + i, class);
	}
	return n;
}

size_t
line_answer(struct line *l, const struct wire_ext_feedback *f)
{
	size_t before = l->n;
	uint64_t highest = l->first + l->n - 1;
	highest -= (uint32_t)highest - f->highest;
	for (size_t i = 0; i < f->blocks_n; i++) {
		const struct wire_ext_block *b = &f->blocks[i];
		uint64_t base = highest - b->back;
		size_t n[2] = {count(l, b, base, WIRE_EXT_CLASS_SMALL),
			count(l, b, base, WIRE_EXT_CLASS_LARGE)};
		for (unsigned k = 0; k < 2; k++) {
			size_t frames = n[k]       ? (n[k] + 2 < b->want ? n[k] + 2 : b->want)
					: n[1 - k] ? 0
						   : k;
			for (size_t j = 0; j < frames; j++) {
				uint64_t own = l->first + l->n;
				struct line_sent *s = next(l);
				s->len = (uint16_t)fec_encoder_answer(l->e,
					&(struct fec_wanted){
						(enum wire_ext_class)k, base, b->span, b->missing},
					&(struct fec_place){own, s->bytes, LINE_FRAME_MAX});
				l->n -= s->len == 0;
			}
		}
	}
	return l->n - before;
}

/* As the caller of a decoder has to do it. */
static void
deliver(struct line *l, int64_t now_ns, const struct fec_packet *p)
{
	struct line_sent *s = line_at(l, p->counter);
	if (p->is_recovered) {
		if (s->is_used) {
			return;
		}
		s->is_used = true;
		s->is_recovered = true;
	}
	assert_true(s->is_source && s->is_used && s->delivered_ns == 0);
	assert_int_equal(p->len, s->len);
	assert_memory_equal(p->data, s->bytes, s->len);
	assert_int_equal(p->ecn, p->is_recovered ? 0 : p->counter % 4);
	s->delivered_ns = now_ns;
	l->log[l->log_n++] = p->counter;
}

void
line_take(struct line *l, int64_t now_ns)
{
	struct fec_packet packets[OUT_MAX];
	static uint8_t arena[OUT_MAX * PACKET_LEN_MAX];
	bool is_more = true;
	while (is_more) {
		struct fec_out out = {.packets = packets,
			.cap = l->out_cap ? l->out_cap : OUT_MAX,
			.arena = arena,
			.arena_cap = l->out_cap == 1 ? LINE_PACKET_MAX : sizeof(arena)};
		is_more = fec_decoder_take(l->d, (struct mono){now_ns}, &out);
		assert_true(!is_more || out.n > 0);
		for (size_t i = 0; i < out.n; i++) {
			deliver(l, now_ns, &out.packets[i]);
		}
	}
}

void
line_arrive(struct line *l, int64_t now_ns, uint64_t counter)
{
	struct line_sent *s = line_at(l, counter);
	if (s->is_used) {
		return;
	}
	s->is_used = true;
	s->arrived_ns = now_ns;
	struct fec_packet packet;
	struct fec_out out = {.packets = &packet, .cap = 1};
	fec_decoder_packet(l->d, (struct mono){now_ns},
		&(struct fec_arrival){counter, s->bytes, s->len, counter % 4, s->is_source}, &out);
	for (size_t i = 0; i < out.n; i++) {
		deliver(l, now_ns, &out.packets[i]);
	}
	if (!s->is_source && wire_ext_type(s->bytes, s->len) == WIRE_EXT_TYPE_REPAIR) {
		struct wire_ext_repair r;
		assert_true(wire_ext_repair_decode(s->bytes, s->len, &r));
		l->refused += !fec_decoder_repair(l->d, (struct mono){now_ns}, counter, &r);
	}
}

bool
line_is_delivered(const struct line *l, uint64_t counter)
{
	return line_at(l, counter)->delivered_ns != 0;
}

struct fec_decoder_stats
line_stats(const struct line *l)
{
	struct fec_decoder_stats s;
	fec_decoder_stats(l->d, &s);
	return s;
}

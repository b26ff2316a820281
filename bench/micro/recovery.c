/* SPDX-License-Identifier: Apache-2.0 */
/* Loss recovery a packet: what protecting one costs the sender, by instruction set and by the loss
 * that is protected against, and what one costs the receiver that corrects that loss. Repairs are
 * twice the loss, over the last 64 packets. */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/rng.h"
#include "fec/decoder.h"
#include "fec/encoder.h"
#include "fec/gf256.h"

#define PACKET 1420
#define FRAME_MAX 1440
#define BATCH 44 /* packets of a super-frame, after which repairs leave */
#define WINDOW 64
#define RECORDS 4096
#define STORE_BYTES (4u << 20)
#define SOURCES 1024 /* of one step of the receiver */
#define FRAMES_MAX (2 * SOURCES)
#define FIRST RECORDS /* counter of the first frame */
#define OUT_MAX 64

static const double losses[] = {0.05, 0.1, 0.2};

struct sender {
	struct fec_encoder *e;
	uint8_t packet[PACKET];
	uint8_t frame[FRAME_MAX];
	uint64_t counter;
	unsigned in_batch;
	double share, due; /* repairs a source; fractions of one that have come together */
	bool is_failed;
};

struct frame {
	uint16_t len;
	bool is_source, is_lost;
	uint8_t bytes[FRAME_MAX];
};

struct receiver {
	const struct gf256 *gf;
	struct fec_decoder *d;
	struct frame frames[FRAMES_MAX];
	size_t n;
	struct fec_packet packets[OUT_MAX];
	uint8_t arena[OUT_MAX * PACKET];
	size_t delivered;
	bool is_failed;
};

static void
make_packet(struct rng *r, uint8_t *out)
{
	rng_fill(r, out, PACKET);
	out[0] = 0x45;
	store_be16(out + 2, PACKET);
	out[9] = 17;
}

static bool
new_encoder(const struct gf256 *gf, struct fec_encoder **out)
{
	const struct fec_encoder_config c = {.gf = gf,
		.records = RECORDS,
		.bytes = STORE_BYTES,
		.packet_max = PACKET,
		.frame_max = FRAME_MAX};
	return fec_encoder_new(&c, out) == WEFT_OK;
}

static void
protect(void *ctx, uint64_t n)
{
	struct sender *s = ctx;
	for (uint64_t i = 0; i < n; i++) {
		fec_encoder_source(s->e, (struct mono){1}, s->counter++, s->packet, PACKET);
		s->due += s->share;
		if (++s->in_batch < BATCH) {
			continue;
		}
		s->in_batch = 0;
		for (; s->due >= 1; s->due--) {
			fec_encoder_expect(s->e, s->counter, (unsigned)s->due);
			s->is_failed |=
				fec_encoder_ahead(s->e, WIRE_EXT_CLASS_LARGE, WINDOW, 0,
					WIRE_EXT_WHY_AHEAD,
					&(struct fec_place){s->counter, s->frame, FRAME_MAX}) == 0;
			s->counter++;
		}
	}
}

static void
run_sender(struct bench *b, const struct gf256 *gf)
{
	struct sender s = {0};
	struct rng rng;
	if (!new_encoder(gf, &s.e)) {
		bench_fail(b, "out of memory");
		return;
	}
	rng_init(&rng, 1);
	make_packet(&rng, s.packet);
	struct bench_label l = {.plot = "sender: protecting a packet of 1420 bytes",
		.series = gf->name,
		.x_name = "repairs for 100 packets, each over 64",
		.unit = "ns/packet"};
	bench_time(b, &l, protect, &s, 1); /* the copy alone */
	for (size_t i = 0; i < WEFT_ARRAY_LEN(losses); i++) {
		s.share = 2 * losses[i];
		l.x = 100 * s.share;
		bench_time(b, &l, protect, &s, 1);
	}
	if (s.is_failed) {
		bench_fail(b, "no repair was made");
	}
	bench_use(b, s.frame[100]);
	fec_encoder_free(s.e);
}

/* What a sender that protects against `loss` sends, and which of it is lost. */
static bool
record_frames(struct receiver *r, double loss)
{
	struct rng rng;
	struct fec_encoder *e;
	if (!new_encoder(r->gf, &e)) {
		return false;
	}
	rng_init(&rng, 7);
	r->n = 0;
	double due = 0;
	for (size_t i = 0; i < SOURCES; i++) {
		struct frame *f = &r->frames[r->n];
		*f = (struct frame){.len = PACKET, .is_source = true};
		f->is_lost = rng_is_hit(&rng, loss);
		make_packet(&rng, f->bytes);
		fec_encoder_source(e, (struct mono){1}, FIRST + r->n, f->bytes, PACKET);
		r->n++;
		for (due += 2 * loss; due >= 1; due--) {
			f = &r->frames[r->n];
			*f = (struct frame){.is_lost = rng_is_hit(&rng, loss)};
			f->len = (uint16_t)fec_encoder_ahead(e, WIRE_EXT_CLASS_LARGE, WINDOW, 0,
				WIRE_EXT_WHY_AHEAD,
				&(struct fec_place){FIRST + r->n, f->bytes, FRAME_MAX});
			r->n++;
		}
	}
	fec_encoder_free(e);
	return true;
}

static void
take(struct receiver *r, struct mono now)
{
	struct fec_out out = {.packets = r->packets,
		.cap = OUT_MAX,
		.arena = r->arena,
		.arena_cap = sizeof(r->arena)};
	while (fec_decoder_take(r->d, now, &out)) {
		r->delivered += out.n;
		out.n = out.arena_used = 0;
	}
	r->delivered += out.n;
}

static void
receive_one(struct receiver *r, size_t i)
{
	struct frame *f = &r->frames[i];
	uint64_t counter = FIRST + i;
	struct mono now = {(int64_t)counter * 11500}; /* as at 1 Gbit/s */
	struct fec_packet room;
	struct fec_out out = {.packets = &room, .cap = 1};
	fec_decoder_packet(
		r->d, now, &(struct fec_arrival){counter, f->bytes, f->len, 0, f->is_source}, &out);
	r->delivered += out.n;
	struct wire_ext_repair repair;
	if (!f->is_source) {
		r->is_failed |= !wire_ext_repair_decode(f->bytes, f->len, &repair) ||
				!fec_decoder_repair(r->d, now, counter, &repair);
	}
	if (counter % 32 == 31) {
		take(r, now);
	}
}

/* A decoder that is awake and whose memory has been touched. */
static void
prepare(void *ctx)
{
	struct receiver *r = ctx;
	const struct fec_decoder_config c = {
		.gf = r->gf, .records = RECORDS, .bytes = STORE_BYTES, .packet_max = PACKET};
	fec_decoder_free(r->d);
	if (fec_decoder_new(&c, &r->d)) {
		r->d = NULL;
		r->is_failed = true;
		return;
	}
	struct fec_packet room;
	for (uint64_t i = 0; i < FIRST; i++) {
		struct fec_out out = {.packets = &room, .cap = 1};
		if (i != 1) {
			fec_decoder_packet(r->d, (struct mono){0},
				&(struct fec_arrival){i, r->frames[0].bytes, PACKET, 0, true},
				&out);
		}
	}
	r->delivered = 0;
}

static void
receive(void *ctx)
{
	struct receiver *r = ctx;
	for (size_t i = 0; r->d && i < r->n; i++) {
		if (!r->frames[i].is_lost) {
			receive_one(r, i);
		}
	}
	if (r->d) {
		take(r, (struct mono){WEFT_NS_PER_S});
	}
}

static void
run_receiver(struct bench *b, struct receiver *r)
{
	static const struct bench_steps steps = {prepare, receive};
	char series[32];
	snprintf(series, sizeof(series), "%s", r->gf->name);
	struct bench_label l = {.plot = "receiver: a packet of 1420 bytes, losses corrected",
		.series = series,
		.x_name = "% of packets lost",
		.unit = "ns/packet"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(losses); i++) {
		if (!record_frames(r, losses[i])) {
			bench_fail(b, "out of memory");
			return;
		}
		l.x = 100 * losses[i];
		bench_time_steps(b, &l, &steps, r, SOURCES);
		if (r->is_failed || r->delivered < SOURCES * 97 / 100) {
			bench_fail(b, "%zu of %d packets came through", r->delivered, SOURCES);
		}
	}
	bench_use(b, r->arena[0]);
	fec_decoder_free(r->d);
	r->d = NULL;
}

void
bench_recovery(struct bench *b)
{
	struct receiver *r = calloc(1, sizeof(*r));
	if (!r) {
		bench_fail(b, "out of memory");
		return;
	}
	for (int isa = GF256_ISA_SCALAR; isa < GF256_ISA_COUNT; isa++) {
		r->gf = gf256_get((enum gf256_isa)isa);
		if (r->gf) {
			run_sender(b, r->gf);
			run_receiver(b, r);
		}
	}
	free(r);
}

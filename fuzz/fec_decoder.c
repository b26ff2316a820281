/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder of loss recovery behind the AEAD: packets, true and false REPAIR frames, time. Nothing
 * that was received may be lost or come twice, whatever the frames say.
 *
 * Input is a row of operations: a byte for which, then its arguments. Packets are made from their
 * counter; true repairs come from an encoder that has seen all of them, lost ones included. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/endian.h"
#include "fec/budget.h"
#include "fec/decoder.h"
#include "fec/encoder.h"
#include "fec/gf256.h"
#include "fuzz.h"
#include "pkt/ip.h"

#define PACKET_MAX 400
#define FRAME_MAX 430
#define RECORDS 256
#define STORE_BYTES 65536
#define RECORDS_GROWN 4096
#define STORE_BYTES_GROWN (512u << 10)
#define BUDGET_BYTES (600u << 10) /* not enough for both */
#define QUIET_NS WEFT_NS_PER_MS
#define COUNTERS (1u << 20)
#define OPERATIONS_MAX 3000
#define OUT_MAX 8

enum operation {
	SOURCE,      /* takes a counter, arrives */
	SOURCE_LOST, /* takes a counter, may arrive later */
	SKIP,        /* some that arrive in a run, given together if the decoder likes */
	KEEPALIVE,
	JUMP,   /* some counters that never arrive */
	REPAIR, /* from the encoder */
	FORGED, /* from the input's bytes */
	LATE,   /* an old counter arrives */
	TIME,
	TAKE,
	RTT,
	PAUSE,
	OPERATIONS
};

struct target {
	struct fec_encoder *e;
	struct fec_decoder *d;
	struct mono now;
	struct fec_budget budget; /* of the decoder */
	uint64_t next;
	uint8_t used[COUNTERS / 8];   /* the replay window */
	uint8_t out_of[COUNTERS / 8]; /* delivered */
	size_t given_n, delivered_n;
};

static bool
take_bit(uint8_t *bits, uint64_t i)
{
	uint8_t bit = (uint8_t)(1u << (i % 8));
	bool was = bits[i / 8] & bit;
	bits[i / 8] |= bit;
	return !was;
}

/* UDP and TCP with data, small and large, padded and not. */
static size_t
make_packet(uint64_t counter, uint8_t *out)
{
	size_t len = 41 + counter * 2654435761u % (PACKET_MAX - 40);
	memset(out, (int)counter, PACKET_MAX + 16);
	memset(out, 0, 40);
	out[0] = 0x45;
	store_be16(out + 2, (uint16_t)len);
	out[9] = counter % 3 ? IP_PROTO_TCP : IP_PROTO_UDP;
	out[32] = 5 << 4;
	return len;
}

static void
check_out(struct target *t, const struct fec_out *out)
{
	for (size_t i = 0; i < out->n; i++) {
		const struct fec_packet *p = &out->packets[i];
		uint32_t len;
		weft_assert(p->counter < COUNTERS);
		weft_assert(ip_exact_len(p->data, p->len, &len) == WEFT_OK);
		if (p->is_recovered) {
			weft_assert(len == p->len && p->len <= PACKET_MAX);
			if (!take_bit(t->used, p->counter)) {
				continue; /* its own came meanwhile */
			}
		} else {
			uint8_t packet[PACKET_MAX + 16];
			t->delivered_n++;
			weft_assert(len == make_packet(p->counter, packet));
			weft_assert(p->ecn == p->counter % 4);
		}
		weft_assert(take_bit(t->out_of, p->counter));
	}
}

static void
take(struct target *t, size_t cap)
{
	struct fec_packet packets[OUT_MAX];
	uint8_t arena[PACKET_MAX * 2];
	struct fec_out out = {
		.packets = packets, .cap = cap, .arena = arena, .arena_cap = sizeof(arena)};
	bool is_more = fec_decoder_take(t->d, t->now, &out);
	weft_assert(!is_more || out.n > 0);
	check_out(t, &out);
}

static void
receive(struct target *t, uint64_t counter, bool is_source)
{
	uint8_t packet[PACKET_MAX + 16];
	struct fec_packet room;
	struct fec_out out = {.packets = &room, .cap = 1};
	if (!take_bit(t->used, counter)) {
		return;
	}
	size_t len = is_source ? make_packet(counter, packet) : 0;
	t->given_n += is_source;
	len += is_source ? counter % 16 : 0; /* padding */
	fec_decoder_packet(t->d, t->now,
		&(struct fec_arrival){counter, packet, len, counter % 4, is_source}, &out);
	check_out(t, &out);
}

static void
repair(struct target *t, struct reader *r, bool is_true)
{
	uint8_t bytes[FRAME_MAX];
	const uint8_t *frame = bytes;
	size_t len;
	uint64_t own = t->next++;
	if (is_true) {
		uint8_t how = reader_u8(r);
		unsigned skip = how % 5 ? 0 : (unsigned)(own % 64);
		len = fec_encoder_ahead(t->e, (enum wire_ext_class)(how % 2), 1 + how / 2u, skip,
			(enum wire_ext_repair_why)(how % 3),
			&(struct fec_place){own, bytes, sizeof(bytes)});
		/* Some are spoilt a little. */
		uint8_t where = reader_u8(r);
		if (where >= 128 && len > where) {
			bytes[where] ^= reader_u8(r);
		}
	} else {
		len = reader_u8(r) * 2u;
		len = len < reader_left(r) ? len : reader_left(r);
		frame = reader_take(r, len);
	}
	receive(t, own, false);
	struct wire_ext_repair x;
	if (len > 0 && wire_ext_repair_decode(frame, len, &x)) {
		(void)fec_decoder_repair(t->d, t->now, own, &x);
	}
}

static void
source(struct target *t, bool is_lost)
{
	uint8_t packet[PACKET_MAX + 16];
	uint64_t counter = t->next++;
	size_t len = make_packet(counter, packet);
	fec_encoder_source(t->e, t->now, counter, packet, len);
	if (!is_lost) {
		receive(t, counter, true);
	}
}

static void
skip(struct target *t, uint8_t n)
{
	bool is_skipped = fec_decoder_skip(t->d, t->now, t->next, n);
	for (uint8_t i = 0; i < n; i++) {
		if (is_skipped) {
			take_bit(t->used, t->next);
			take_bit(t->out_of, t->next);
			t->next++;
			fec_encoder_pause(t->e);
		} else {
			source(t, false);
		}
	}
}

static void
pass_time(struct target *t, uint8_t n)
{
	struct wire_ext_feedback f;
	uint8_t bytes[WIRE_EXT_FEEDBACK_MAX];
	t->now.ns += (int64_t)n * n * 10000;
	if (fec_decoder_feedback(t->d, t->now, &f)) {
		weft_assert(wire_ext_feedback_encode(&f, bytes, sizeof(bytes)) > 0);
		weft_assert(!fec_decoder_feedback(t->d, t->now, &f));
	}
	if (n % 2) {
		(void)fec_decoder_grow(t->d);
	}
	if (n % 16 == 15) {
		fec_decoder_rest(t->d, t->now, QUIET_NS);
	}
}

static void
operate(struct target *t, enum operation op, struct reader *r)
{
	uint8_t n = op == LATE || op == JUMP || op == TIME || op == TAKE || op == RTT || op == SKIP
			    ? reader_u8(r)
			    : 0;
	switch (op) {
	case SOURCE:
	case SOURCE_LOST:
		source(t, op == SOURCE_LOST);
		break;
	case SKIP:
		skip(t, n);
		break;
	case KEEPALIVE:
		receive(t, t->next++, false);
		break;
	case JUMP:
		t->next += (uint64_t)n * (n % 4 ? 1 : 8);
		fec_encoder_pause(t->e);
		break;
	case REPAIR:
	case FORGED:
		repair(t, r, op == REPAIR);
		break;
	case LATE:
		if (t->next > n) {
			receive(t, t->next - 1 - n, n % 8 != 0);
		}
		break;
	case TIME:
		pass_time(t, n);
		break;
	case TAKE:
		take(t, 1 + n % OUT_MAX);
		break;
	case RTT:
		fec_decoder_set_rtt(t->d, (int64_t)n * WEFT_NS_PER_MS);
		break;
	case PAUSE:
		fec_encoder_pause(t->e);
		break;
	case OPERATIONS:
		break;
	}
	/* So that a caller that does its duty loses nothing. */
	take(t, OUT_MAX);
}

/* At its deadlines all comes out, and then it is silent. */
static void
finish(struct target *t)
{
	struct wire_ext_feedback f;
	for (int i = 0; i < 5000; i++) {
		struct mono at = fec_decoder_deadline(t->d);
		if (at.ns == INT64_MAX) {
			break;
		}
		t->now = at.ns > t->now.ns ? at : t->now;
		take(t, OUT_MAX);
		(void)fec_decoder_feedback(t->d, t->now, &f);
	}
	weft_assert(fec_decoder_deadline(t->d).ns == INT64_MAX);
	weft_assert(t->delivered_n == t->given_n);
	struct fec_decoder_stats s;
	fec_decoder_stats(t->d, &s);
	weft_assert(s.recovered_ahead + s.recovered_answer <= s.lost);
	weft_assert(s.runs <= s.lost && s.given_up <= s.lost && s.late <= s.lost);
	weft_assert(s.repairs_useless + s.repairs_refused <= s.repairs + s.received);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct target *t = calloc(1, sizeof(*t));
	weft_assert(t);
	t->now = (struct mono){WEFT_NS_PER_S};
	const struct gf256 *gf = gf256_get(GF256_ISA_AUTO);
	const struct fec_encoder_config e = {.gf = gf,
		.records = RECORDS,
		.bytes = STORE_BYTES,
		.packet_max = PACKET_MAX,
		.frame_max = FRAME_MAX};
	t->budget.bytes_max = BUDGET_BYTES;
	const struct fec_decoder_config d = {.gf = gf,
		.records = RECORDS,
		.bytes = STORE_BYTES,
		.records_max = RECORDS_GROWN,
		.bytes_max = STORE_BYTES_GROWN,
		.packet_max = PACKET_MAX,
		.budget = &t->budget};
	weft_assert(fec_encoder_new(&e, &t->e) == WEFT_OK);
	weft_assert(fec_decoder_new(&d, &t->d) == WEFT_OK);
	struct reader r;
	reader_init(&r, data, size);
	for (int i = 0; i < OPERATIONS_MAX && reader_left(&r) > 0 && t->next < COUNTERS - 4096;
		i++) {
		operate(t, (enum operation)(reader_u8(&r) % OPERATIONS), &r);
	}
	finish(t);
	fec_encoder_free(t->e);
	fec_decoder_free(t->d);
	weft_assert(t->budget.bytes == 0);
	free(t);
	return 0;
}

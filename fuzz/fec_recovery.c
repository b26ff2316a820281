/* SPDX-License-Identifier: Apache-2.0 */
/* Loss recovery with a peer that is authenticated and malicious: any frames, any counters, any
 * time. Frames end, waits end, and none is longer than it may be.
 *
 * Input is a row of operations: a byte for which, then its arguments. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/endian.h"
#include "fec/recovery.h"
#include "fuzz.h"

#define PACKET_MAX 400
#define FRAME_MAX 430
#define OPERATIONS_MAX 2000
#define OUT_MAX 4
/* Answers saved up, and repairs ahead of three sessions. */
#define FRAMES_MAX 6000
#define SESSIONS 5
/* Half of the inputs have it: some of what is asked for is refused. */
#define BUDGET (UINT64_C(2) << 20)

enum operation {
	SOURCES,
	SENT_RUN,
	UNTOLD,
	RECEIVED,
	SKIP,
	JUMP,
	FEEDBACK,
	REPAIR,
	FORGED,
	TIME,
	FLUSH,
	FORGET,
	POLICY,
	PATH,
	OVERFLOW,
	OPERATIONS
};

struct target {
	struct fec_recovery *r;
	struct mono now;
	uint64_t tx[SESSIONS + 1], rx[SESSIONS + 1];
	size_t given_n, delivered_n;
};

static size_t
make_packet(uint64_t counter, uint8_t *out)
{
	size_t len = 41 + counter * 2654435761u % (PACKET_MAX - 40);
	memset(out, 0, PACKET_MAX + 16);
	out[0] = 0x45;
	store_be16(out + 2, (uint16_t)len);
	out[9] = counter % 3 ? 6 : 17;
	out[32] = 5 << 4;
	return len;
}

static void
count(struct target *t, const struct fec_out *out)
{
	for (size_t i = 0; i < out->n; i++) {
		t->delivered_n += !out->packets[i].is_recovered;
	}
}

static void
take(struct target *t)
{
	struct fec_packet packets[OUT_MAX];
	uint8_t arena[PACKET_MAX * 2];
	uint64_t id;
	bool has_more = true;
	for (int i = 0; has_more; i++) {
		struct fec_out out = {packets, OUT_MAX, 0, arena, sizeof(arena), 0};
		weft_assert(i < 200000);
		has_more = fec_recovery_take(t->r, t->now, &id, &out);
		count(t, &out);
	}
}

static void
receive(struct target *t, uint64_t s, uint8_t *data, size_t len)
{
	struct fec_packet packets[OUT_MAX];
	uint8_t arena[PACKET_MAX];
	struct fec_out out = {packets, OUT_MAX, 0, arena, sizeof(arena), 0};
	(void)fec_recovery_received(
		t->r, t->now, s, &(struct fec_arrival){t->rx[s]++, data, len, 0, false}, &out);
	count(t, &out);
	take(t);
}

static void
flush(struct target *t)
{
	uint8_t frame[FRAME_MAX];
	uint64_t id;
	for (int i = 0; (id = fec_recovery_due_session(t->r, t->now, 0)); i++) {
		size_t n = fec_recovery_frames_due(t->r, t->now, id);
		weft_assert(i < 100 && n > 0 && n <= FRAMES_MAX);
		for (; n > 0; n--) {
			size_t len = fec_recovery_frame(
				t->r, t->now, id, t->tx[id]++, frame, sizeof(frame));
			weft_assert(len > 0 && len <= sizeof(frame));
		}
	}
}

static void
feedback(struct target *t, uint64_t s, struct reader *r)
{
	uint8_t bytes[WIRE_EXT_FEEDBACK_MAX];
	int8_t ahead = (int8_t)reader_u8(r);
	uint8_t how = reader_u8(r);
	struct wire_ext_feedback f = {
		.highest = (uint32_t)(t->tx[s] + (uint64_t)(int64_t)(ahead * 40)),
		.received = how * 7u,
		.lost = reader_u8(r),
		.runs = reader_u8(r) % 8u,
		.given_up = how / 4u,
		.clock_us = (uint32_t)(t->now.ns / 1000) + how * 100u,
		.delay_us = how * 13u,
		.edge_back = how % 5,
		.edge_us = how,
		.blocks_n = how % (WIRE_EXT_BLOCKS_MAX + 1)};
	for (unsigned i = 0; i < f.blocks_n; i++) {
		struct wire_ext_block *b = &f.blocks[i];
		b->span = (uint8_t)(1 + reader_u8(r) % WIRE_EXT_SPAN_MAX);
		b->back = (uint16_t)(b->span - 1 + reader_u8(r) * 2);
		b->want = reader_u8(r) % 65;
		memset(b->missing, reader_u8(r), (b->span + 7u) / 8);
		if (b->span % 8) {
			b->missing[b->span / 8] &= (uint8_t)((1u << (b->span % 8)) - 1);
		}
	}
	size_t len = wire_ext_feedback_encode(&f, bytes, sizeof(bytes));
	receive(t, s, bytes, len);
}

static void
forged(struct target *t, uint64_t s, struct reader *r, uint8_t type)
{
	uint8_t bytes[512];
	size_t len = reader_u8(r) * 2u;
	len = len < reader_left(r) ? len : reader_left(r);
	if (len > 0) {
		memcpy(bytes, reader_take(r, len), len);
		bytes[0] = type ? type : bytes[0];
		if (wire_ext_is_frame(bytes, len)) {
			receive(t, s, bytes, len);
		}
	}
}

static void
operate(struct target *t, enum operation op, struct reader *r)
{
	uint8_t packet[PACKET_MAX + 16];
	uint8_t n = reader_u8(r);
	uint64_t s = 1 + n % SESSIONS;
	n /= SESSIONS;
	switch (op) {
	case SOURCES:
		for (; n > 0; n--) {
			size_t len = make_packet(t->tx[s], packet);
			fec_recovery_source(t->r, t->now, s, t->tx[s]++, packet, len);
		}
		break;
	case SENT_RUN:
		fec_recovery_sent_run(t->r, t->now, s, t->tx[s], n, n * 100u);
		t->tx[s] += n;
		break;
	case UNTOLD:
		t->tx[s] += n;
		break;
	case RECEIVED:
		for (n = n % 8 + 1; n > 0; n--) {
			size_t len = make_packet(t->rx[s], packet);
			t->given_n++;
			receive(t, s, packet, len);
		}
		break;
	case SKIP:
		if (n > 0 && fec_recovery_skip(t->r, t->now, s, t->rx[s], n)) {
			t->rx[s] += n;
		}
		break;
	case JUMP:
		t->rx[s] += n < 45 ? n : (uint64_t)1 << (n - 20);
		break;
	case FEEDBACK:
		feedback(t, s, r);
		break;
	case REPAIR:
		forged(t, s, r, WIRE_EXT_TYPE_REPAIR);
		break;
	case FORGED:
		forged(t, s, r, 0);
		break;
	case TIME:
		t->now.ns += (int64_t)n * n * n * 20000;
		break;
	case FLUSH:
		flush(t);
		break;
	case FORGET:
		fec_recovery_forget(t->r, s);
		break;
	case POLICY: {
		struct fec_policy p = {.mode = (enum fec_mode)(n % 3),
			.percent = (uint8_t)(1 + n),
			.budget_us = n * 1000u};
		fec_recovery_set_policy(t->r, &p);
		break;
	}
	case PATH:
		fec_recovery_set_path(t->r, t->now, (int64_t)n * n * 100000, n);
		break;
	case OVERFLOW:
		fec_recovery_set_overflow(t->r, n % 2);
		break;
	case OPERATIONS:
		break;
	}
	take(t);
}

static void
finish(struct target *t)
{
	for (int i = 0; i < 20000; i++) {
		struct mono at = fec_recovery_deadline(t->r);
		if (at.ns == INT64_MAX) {
			break;
		}
		t->now = at.ns > t->now.ns ? at : t->now;
		take(t);
		flush(t);
	}
	weft_assert(fec_recovery_deadline(t->r).ns == INT64_MAX);
	weft_assert(t->delivered_n <= t->given_n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct target *t = calloc(1, sizeof(*t));
	weft_assert(t);
	t->now = (struct mono){WEFT_NS_PER_S};
	struct fec_budget budget = {.bytes_max = BUDGET};
	struct fec_recovery_config c = {.policy = {.mode = FEC_MODE_AUTO},
		.packet_max = PACKET_MAX,
		.frame_max = FRAME_MAX,
		.budget = size % 2 ? &budget : NULL};
	weft_assert(!fec_recovery_new(&c, &t->r));
	struct reader r;
	reader_init(&r, data, size);
	for (int i = 0; i < OPERATIONS_MAX && reader_left(&r) > 0; i++) {
		operate(t, (enum operation)(reader_u8(&r) % OPERATIONS), &r);
		weft_assert(budget.bytes <= BUDGET);
	}
	finish(t);
	fec_recovery_free(t->r);
	weft_assert(budget.bytes == 0);
	free(t);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting a super-frame into packets ready to be sealed, and joining opened packets. */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/micro/flow.h"
#include "pkt/gro.h"
#include "pkt/gso.h"

#define BATCH 45
#define MTU 1420
#define ARENA_BYTES (BATCH * (MTU + GSO_HEADROOM + GSO_TAILROOM + 16))

static const uint32_t sizes[] = {64, 256, 1280, 1420};

struct split_work {
	struct frame frame; /* in super */
	uint8_t super[65536];
	struct gso_arena arena; /* over packets */
	struct gso_seg segs[BATCH];
	uint8_t packets[ARENA_BYTES];
	size_t made;

	uint8_t copy[ARENA_BYTES]; /* of packets: joining rewrites headers */
	struct gro_pkt pkts[BATCH];
	struct gro_frame frames[BATCH];
	struct gro_piece pieces[2 * BATCH];
	struct gro_out out;
};

static void
split_many(void *ctx, uint64_t n)
{
	struct split_work *w = ctx;
	for (uint64_t i = 0; i < n; i++) {
		enum drop_reason why;
		w->arena.used = 0;
		w->arena.segs_n = 0;
		w->made = gso_split(&w->frame, MTU, &w->arena, &why);
	}
}

static void
join_prepare(void *ctx)
{
	struct split_work *w = ctx;
	memcpy(w->copy, w->packets, w->arena.used);
	for (size_t i = 0; i < w->arena.segs_n; i++) {
		w->pkts[i] =
			(struct gro_pkt){w->copy + w->segs[i].off + GSO_HEADROOM, w->segs[i].len};
	}
	w->out.frames_n = 0;
	w->out.pieces_n = 0;
}

static void
join_once(void *ctx)
{
	static const struct gro_caps caps = {true, true, true, true};
	struct split_work *w = ctx;
	gro_join(&caps, w->pkts, w->arena.segs_n, &w->out);
}

static void
run_one(struct bench *b, struct split_work *w, const struct flow *f, uint32_t size)
{
	static const struct bench_steps join = {join_prepare, join_once};
	char series[32];
	uint32_t headers = flow_header_len(f), payload = size - headers;
	struct bench_label l = {
		.series = series, .x_name = "bytes a packet", .x = size, .unit = "ns/packet"};
	snprintf(series, sizeof(series), "IPv%d %s", f->family, f->is_tcp ? "TCP" : "UDP");

	flow_frame(f, w->super, headers + BATCH * payload, (uint16_t)payload, &w->frame);
	l.plot = "split a super-frame of 45 packets";
	bench_time(b, &l, split_many, w, BATCH);
	if (w->made != BATCH) {
		bench_fail(b, "%s of %u bytes: split into %zu", series, size, w->made);
		return;
	}
	l.plot = "join 45 packets to a super-frame";
	bench_time_steps(b, &l, &join, w, BATCH);
	if (w->out.frames_n != 1 || w->out.frames[0].packets != BATCH) {
		bench_fail(
			b, "%s of %u bytes: joined to %zu frames", series, size, w->out.frames_n);
	}
	bench_use(b, w->packets[w->arena.used - 40] + w->out.frames[0].len);
}

void
bench_split_join(struct bench *b)
{
	struct split_work *w = calloc(1, sizeof(*w));
	if (!w) {
		bench_fail(b, "out of memory");
		return;
	}
	w->arena = (struct gso_arena){
		.buf = w->packets, .cap = sizeof(w->packets), .segs = w->segs, .segs_cap = BATCH};
	w->out = (struct gro_out){.frames = w->frames,
		.frames_cap = BATCH,
		.pieces = w->pieces,
		.pieces_cap = 2 * BATCH};
	for (int k = 0; k < 4; k++) {
		struct flow f = {.family = k & 1 ? IP_FAMILY_V6 : IP_FAMILY_V4,
			.is_tcp = k < 2,
			.src = {10, 0, 0, 1},
			.dst = {10, 0, 0, 2},
			.sport = 40000,
			.dport = 443,
			.seq = 1};
		for (size_t i = 0; i < WEFT_ARRAY_LEN(sizes); i++) {
			/* IPv6 and TCP take 60 bytes, so 64 are 4 of payload. */
			run_one(b, w, &f, sizes[i]);
		}
	}
	free(w);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* GF(256) on packets: one source into one destination, and many sources into one to four, by
 * instruction set, beside copying a packet; coefficients of a repair. */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "fec/coef.h"
#include "fec/gf256.h"

#define PACKET 1408
/* Sources lie one behind the other, as an encoder's ring keeps them; 128 of them are 185 KB,
 * which the L2 cache holds. Not a multiple of 4096 in any few steps. */
#define SLOT 1448

static const uint32_t sizes[] = {64, 256, PACKET, 1422};
static const size_t counts[] = {16, 64, 128};

struct fec_work {
	const struct gf256 *g;
	uint8_t memory[GF256_SOURCES_MAX * SLOT];
	uint8_t dsts[GF256_ROWS_MAX][SLOT];
	const uint8_t *srcs[GF256_SOURCES_MAX];
	uint16_t lens[GF256_SOURCES_MAX];
	uint8_t cs[GF256_ROWS_MAX * GF256_SOURCES_MAX];
	uint8_t *rows[GF256_ROWS_MAX];
	size_t k, r, n;
	uint32_t key;
};

static void
copy_many(void *ctx, uint64_t n)
{
	struct fec_work *w = ctx;
	for (uint64_t i = 0; i < n; i++) {
		memcpy(w->dsts[i % GF256_ROWS_MAX], w->srcs[i % GF256_SOURCES_MAX], w->n);
	}
}

static void
mul_add_many(void *ctx, uint64_t n)
{
	struct fec_work *w = ctx;
	for (uint64_t i = 0; i < n; i++) {
		size_t at = i % GF256_SOURCES_MAX;
		w->g->mul_add(w->dsts[0], w->srcs[at], w->cs[at], w->n);
	}
}

static void
dot_many(void *ctx, uint64_t n)
{
	struct fec_work *w = ctx;
	for (uint64_t i = 0; i < n; i++) {
		w->g->dot(w->dsts[0], w->srcs, w->lens, w->cs, w->k, w->n);
	}
}

static void
dot_multi_many(void *ctx, uint64_t n)
{
	struct fec_work *w = ctx;
	const struct gf256_sources s = {w->srcs, w->lens, w->k};
	for (uint64_t i = 0; i < n; i++) {
		w->g->dot_multi(w->rows, w->r, &s, w->cs, w->n);
	}
}

static void
coefs_many(void *ctx, uint64_t n)
{
	struct fec_work *w = ctx;
	for (uint64_t i = 0; i < n; i++) {
		fec_coefs(w->key++, w->cs, w->k);
	}
}

static void
set_length(struct fec_work *w, uint32_t n)
{
	w->n = n;
	for (size_t i = 0; i < GF256_SOURCES_MAX; i++) {
		w->lens[i] = (uint16_t)n;
	}
}

static void
run_sizes(struct bench *b, struct fec_work *w)
{
	struct bench_label l = {.plot = "one source times a constant, added",
		.series = w->g ? w->g->name : "memcpy",
		.x_name = "bytes a packet",
		.unit = "ns/packet"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(sizes); i++) {
		set_length(w, sizes[i]);
		l.x = sizes[i];
		bench_time(b, &l, w->g ? mul_add_many : copy_many, w, 1);
	}
	set_length(w, PACKET);
}

static void
run_kernel(struct bench *b, struct fec_work *w)
{
	char plot[64];
	struct bench_label l = {.plot = plot, .series = w->g->name, .unit = "ns/source"};
	run_sizes(b, w);
	snprintf(plot, sizeof(plot), "sources of %d bytes into one row", PACKET);
	l.x_name = "sources";
	for (size_t i = 0; i < WEFT_ARRAY_LEN(counts); i++) {
		w->k = counts[i];
		l.x = (double)counts[i];
		bench_time(b, &l, dot_many, w, (unsigned)counts[i]);
	}
	w->k = 64;
	snprintf(plot, sizeof(plot), "%zu sources of %d bytes into several rows", w->k, PACKET);
	l.x_name = "rows";
	l.unit = "ns/source and row";
	for (w->r = 1; w->r <= GF256_ROWS_MAX; w->r++) {
		l.x = (double)w->r;
		bench_time(b, &l, dot_multi_many, w, (unsigned)(w->k * w->r));
	}
	bench_use(b, w->dsts[0][0]);
}

static void
run_coefs(struct bench *b, struct fec_work *w)
{
	struct bench_label l = {.plot = "coefficients of a repair",
		.series = "fec_coefs",
		.x_name = "sources",
		.unit = "ns/repair"};
	for (size_t i = 0; i < WEFT_ARRAY_LEN(counts); i++) {
		w->k = counts[i];
		l.x = (double)counts[i];
		bench_time(b, &l, coefs_many, w, 1);
	}
	bench_use(b, w->cs[0]);
}

void
bench_fec(struct bench *b)
{
	struct fec_work *w = aligned_alloc(64, (sizeof(*w) + 63) / 64 * 64);
	struct rng rng;
	if (!w) {
		bench_fail(b, "out of memory");
		return;
	}
	memset(w, 0, sizeof(*w));
	rng_init(&rng, 1);
	rng_fill(&rng, w->memory, sizeof(w->memory));
	rng_fill(&rng, w->cs, sizeof(w->cs));
	for (size_t i = 0; i < GF256_SOURCES_MAX; i++) {
		w->srcs[i] = w->memory + i * SLOT;
	}
	for (size_t i = 0; i < GF256_ROWS_MAX; i++) {
		w->rows[i] = w->dsts[i];
	}
	run_sizes(b, w);
	for (int isa = GF256_ISA_SCALAR; isa < GF256_ISA_COUNT; isa++) {
		w->g = gf256_get((enum gf256_isa)isa);
		if (w->g) {
			run_kernel(b, w);
		}
	}
	run_coefs(b, w);
	free(w);
}

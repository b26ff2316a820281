/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of gro.c over random packets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/endian.h"
#include "batch.h"
#include "naive.h"
#include "pkt/gro.h"
#include "pkt/gso.h"

#define BATCH_BYTES (2u << 20)

static struct batch batch;
static uint8_t whole[NAIVE_LEN_MAX + 1], cut[NAIVE_LEN_MAX + 1], payload[NAIVE_LEN_MAX];
static const struct gro_caps all_caps = {true, true, true, true};

static int
set_up(void **state)
{
	(void)state;
	batch_init(&batch, BATCH_BYTES);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	batch_fini(&batch);
	return 0;
}

/* Makes the next packet of a flow a little different now and then. */
static void
perturb(struct rng *r, struct naive_packet *n, struct naive_packet *m)
{
	switch (rng_below(r, 60)) {
	case 0:
		n->tos ^= (uint8_t)(1u << rng_below(r, 8));
		break;
	case 1:
		n->ttl--;
		break;
	case 2:
		n->window++;
		break;
	case 3:
		n->ack += 1000;
		break;
	case 4:
		n->seq += 1000;
		break;
	case 5:
		n->id = (uint16_t)rng_u64(r);
		break;
	case 6:
		n->fragment ^= 0x4000;
		break;
	case 7:
		n->options[3]++;
		break;
	case 8:
		m->flags |= (uint8_t)(1u << rng_below(r, 8));
		break;
	case 9:
		m->flags |= 8;
		break;
	case 10:
		m->has_zero_csum = n->proto == 17;
		break;
	case 11:
		n->flow_label ^= 1;
		break;
	case 12:
		m->urgent = 3;
		break;
	case 13:
		n->ext[4] ^= n->ext_len > 0;
		break;
	default:
		break;
	}
}

static void
add_soup_packet(struct rng *r, struct naive_packet *n, uint32_t size)
{
	uint32_t len = rng_below(r, 12) == 0 ? (uint32_t)rng_below(r, 1400) : size;
	if (rng_below(r, 20) == 0) {
		len = 0;
	}
	bool has_fixed_id = n->sport & 1;
	struct naive_packet m = *n;
	perturb(r, n, &m);
	uint8_t *p = batch_add_built(&batch, &m, len);
	if (rng_below(r, 40) == 0) {
		p[rng_below(r, batch.pkts[batch.n - 1].len)] ^= (uint8_t)(1u << rng_below(r, 8));
	}
	if (rng_below(r, 80) == 0 && m.version == 4) {
		p[6] |= 0x20;
	}
	n->seq += len;
	n->id = (uint16_t)(n->id + !has_fixed_id);
}

static void
gro_random_soup_is_cut_into_exactly_what_came_in(void **state)
{
	(void)state;
	size_t packets = 0, frames = 0;
	for (uint64_t seed = 0; seed < naive_seeds(1500); seed++) {
		struct rng r;
		struct naive_packet flows[24];
		uint32_t sizes[24];
		rng_init(&r, seed);
		size_t flows_n = 1 + rng_below(&r, seed % 8 == 0 ? 24 : 5);
		for (size_t k = 0; k < flows_n; k++) {
			flows[k] = naive_random(&r, true);
			sizes[k] = 1 + (uint32_t)rng_below(&r, seed % 16 == 0 ? 9000 : 1400);
		}
		batch_begin(&batch);
		size_t n = 1 + rng_below(&r, 100);
		size_t k = 0;
		for (size_t i = 0; i < n; i++) {
			if (rng_below(&r, 3) == 0) {
				k = rng_below(&r, flows_n);
			}
			add_soup_packet(&r, &flows[k], sizes[k]);
		}
		batch_join(&batch, &all_caps);
		const char *wrong = batch_check(&batch);
		if (wrong) {
			fail_msg("seed %llu: %s", (unsigned long long)seed, wrong);
		}
		packets += batch.n;
		frames += batch.out.frames_n;
	}
	/* Not vacuous: about half of the packets find a run. */
	assert_true(frames * 10 < packets * 8);
}

static void
gro_join_after_split_gives_the_frame_back(void **state)
{
	(void)state;
	static struct gso_seg segs[GRO_PACKETS_MAX];
	for (uint64_t seed = 0; seed < naive_seeds(1500); seed++) {
		struct rng r;
		rng_init(&r, seed);
		struct naive_packet n = naive_random(&r, false);
		n.flags = rng_below(&r, 2) ? 0x18 : 0x10;
		uint16_t size = (uint16_t)(1 + rng_below(&r, 1400));
		uint32_t len = size + 1 + (uint32_t)rng_below(&r, (GRO_PACKETS_MAX - 1) * size);
		if (len > 65000) {
			len = 65000;
		}
		rng_fill(&r, payload, len);
		struct frame f = {.data = whole, .gso_size = size, .needs_csum = true};
		f.len = naive_build(whole, &n, payload, len);
		bool is_v4 = n.version == 4;
		f.gso = n.proto == 6 ? (is_v4 ? FRAME_GSO_TCP4 : FRAME_GSO_TCP6)
				     : (is_v4 ? FRAME_GSO_UDP4 : FRAME_GSO_UDP6);
		f.csum_start = is_v4 ? 20 : 40;
		f.csum_offset = n.proto == 6 ? 16 : 6;
		naive_make_partial(whole, f.len);
		struct gso_arena a = {.buf = batch.bytes,
			.cap = BATCH_BYTES,
			.segs = segs,
			.segs_cap = GRO_PACKETS_MAX};
		enum drop_reason why;
		assert_int_not_equal(gso_split(&f, 1500, &a, &why), 0);
		batch_begin(&batch);
		for (size_t i = 0; i < a.segs_n; i++) {
			batch.pkts[i] =
				(struct gro_pkt){.data = batch.bytes + segs[i].off + GSO_HEADROOM,
					.len = segs[i].len};
		}
		gro_join(&all_caps, batch.pkts, a.segs_n, &batch.out);
		const struct gro_frame *g = &batch.frames[0];
		if (batch.out.frames_n != 1 || g->gso != f.gso || g->gso_size != size ||
			g->len != f.len || batch_gather(&batch, g, cut) != f.len ||
			memcmp(cut, whole, f.len) != 0) {
			fail_msg("seed %llu", (unsigned long long)seed);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gro_random_soup_is_cut_into_exactly_what_came_in),
		cmocka_unit_test(gro_join_after_split_gives_the_frame_back),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}

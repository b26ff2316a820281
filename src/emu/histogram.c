/* SPDX-License-Identifier: Apache-2.0 */
#include "emu/histogram.h"

#define SUB_BITS 3
#define SUB (1u << SUB_BITS)

/* The values below SUB have a bucket each; above, the leading bit and the SUB_BITS behind it
 * name the bucket. 63 - SUB_BITS doublings of SUB buckets, and the first SUB: 488. */
static unsigned
bucket_of(uint64_t v)
{
	if (v < SUB) {
		return (unsigned)v;
	}
	unsigned shift = 0;
	while (v >> shift >= 2 * SUB) {
		shift++;
	}
	return shift * SUB + (unsigned)(v >> shift);
}

static int64_t
bucket_end(unsigned b)
{
	if (b < 2 * SUB) {
		return b;
	}
	unsigned shift = b / SUB - 1;
	uint64_t first = (uint64_t)(b - shift * SUB) << shift;
	return (int64_t)(first + (UINT64_C(1) << shift) - 1);
}

void
emu_histogram_add(struct emu_histogram *h, int64_t ns)
{
	ns = ns > 0 ? ns : 0;
	h->count++;
	h->bucket[bucket_of((uint64_t)ns)]++;
	h->max_ns = ns > h->max_ns ? ns : h->max_ns;
}

int64_t
emu_histogram_quantile(const struct emu_histogram *h, double share)
{
	uint64_t before = 0;
	for (unsigned b = 0; b < EMU_HISTOGRAM_BUCKETS; b++) {
		before += h->bucket[b];
		if (before > 0 && (double)before >= share * (double)h->count) {
			int64_t end = bucket_end(b);
			return end < h->max_ns ? end : h->max_ns;
		}
	}
	return 0;
}

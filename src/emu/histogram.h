/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles of times, in constant memory: buckets of one eighth of a power of two, so a
 * quantile is at most 12.5 % above the true one. */
#ifndef WEFT_EMU_HISTOGRAM_H
#define WEFT_EMU_HISTOGRAM_H

#include <stdint.h>

#define EMU_HISTOGRAM_BUCKETS 512

struct emu_histogram {
	uint64_t count;
	int64_t max_ns;
	uint64_t bucket[EMU_HISTOGRAM_BUCKETS];
};

/* Below zero counts as zero. */
void emu_histogram_add(struct emu_histogram *h, int64_t ns);
/* Upper bound of the bucket that holds the share-th part of all (0.99), at most the maximum;
 * 0 without any. */
int64_t emu_histogram_quantile(const struct emu_histogram *h, double share);

#endif

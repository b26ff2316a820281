/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/budget.h"

#include "base/assert.h"

static uint64_t
limit(const struct fec_budget *b, enum fec_budget_use use)
{
	switch (use) {
	case FEC_BUDGET_SPARE:
		return b->bytes_max / 4;
	case FEC_BUDGET_CALM:
		return b->bytes_max / 2;
	case FEC_BUDGET_GROWTH:
		return b->bytes_max - b->bytes_max / 4;
	case FEC_BUDGET_NEED:
		return b->bytes_max;
	}
	return 0;
}

bool
fec_budget_take(struct fec_budget *b, uint64_t bytes, enum fec_budget_use use)
{
	if (!b) {
		return true;
	}
	uint64_t max = limit(b, use);
	uint64_t before = atomic_load_explicit(&b->bytes, memory_order_relaxed);
	do {
		if (before > max || bytes > max - before) {
			return false;
		}
	} while (!atomic_compare_exchange_weak_explicit(
		&b->bytes, &before, before + bytes, memory_order_relaxed, memory_order_relaxed));
	return true;
}

void
fec_budget_give(struct fec_budget *b, uint64_t bytes)
{
	if (b) {
		uint64_t before = atomic_fetch_sub_explicit(&b->bytes, bytes, memory_order_relaxed);
		weft_assert(before >= bytes);
	}
}

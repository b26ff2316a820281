/* SPDX-License-Identifier: Apache-2.0 */
/* What a decoder holds of packets: taken when it wakes, more of it when it is short, and given back
 * when it has rested. */
#include "fec/decoder_state.h"

#include "base/assert.h"
#include "fec/symbol.h"

/* Where there is not the budget for what is usual: the spans of repairs, and twice a window of
 * packets of full size. */
#define RECORDS_LEAST 512u
#define BYTES_LEAST (128u << 10)

static uint64_t
decoder_bytes(const struct fec_decoder *d, uint32_t records, uint32_t bytes)
{
	return records * (sizeof(struct fec_record) + sizeof(struct fec_held) + sizeof(uint32_t)) +
	       fec_store_size(bytes) + fec_solver_size((size_t)d->packet_max + FEC_LEN_BYTES);
}

static bool
take_size(struct fec_decoder *d, uint32_t records, uint32_t bytes, enum fec_budget_use use)
{
	uint64_t size = decoder_bytes(d, records, bytes);
	if (!fec_budget_take(d->budget, size, use)) {
		return false;
	}
	d->records = records;
	d->bytes = bytes;
	d->size = size;
	return true;
}

/* Many peers with a little each recover more than a few with plenty. */
static bool
take_budget(struct fec_decoder *d)
{
	uint32_t records = d->records_min < RECORDS_LEAST ? d->records_min : RECORDS_LEAST;
	uint32_t bytes = d->bytes_min < BYTES_LEAST ? d->bytes_min : BYTES_LEAST;
	return take_size(d, d->records_min, d->bytes_min, FEC_BUDGET_GROWTH) ||
	       take_size(d, records, bytes, FEC_BUDGET_NEED);
}

static bool
take_memory(struct fec_decoder *d)
{
	if (!take_budget(d)) {
		return false;
	}
	if (!fec_gaps_init(&d->gaps, d->records)) {
		goto undo_budget;
	}
	if (!fec_hold_init(&d->hold, d->records)) {
		goto undo_gaps;
	}
	if (!fec_store_init(&d->store, d->bytes)) {
		goto undo_hold;
	}
	if (!fec_solver_init(&d->solver, d->gf, (size_t)d->packet_max + FEC_LEN_BYTES)) {
		goto undo_store;
	}
	d->has_memory = true;
	return true;
undo_store:
	fec_store_fini(&d->store);
undo_hold:
	fec_hold_fini(&d->hold);
undo_gaps:
	fec_gaps_fini(&d->gaps);
undo_budget:
	fec_budget_give(d->budget, d->size);
	d->size = 0;
	return false;
}

/* Room for what is held: the gap that TCP waits behind is a round trip long, and more. */
static bool
grow_tables(struct fec_decoder *d, uint32_t n)
{
	if (!fec_gaps_grow(&d->gaps, n)) {
		return false;
	}
	d->records = n;
	return fec_hold_grow(&d->hold, n);
}

bool
fec_decoder_grow(struct fec_decoder *d)
{
	if (!d->is_short_of_records && !d->is_short_of_bytes) {
		return true;
	}
	uint32_t records = d->records << (d->is_short_of_records && d->records < d->records_max);
	uint32_t bytes = d->bytes << (d->is_short_of_bytes && d->bytes < d->bytes_max);
	d->is_short_of_records = d->is_short_of_bytes = false;
	bytes = bytes < d->bytes_max ? bytes : d->bytes_max;
	bytes = bytes > d->bytes ? bytes : d->bytes;
	uint64_t size = decoder_bytes(d, records, bytes);
	if (!d->has_memory || size <= d->size) {
		return true;
	}
	if (!fec_budget_take(d->budget, size - d->size, FEC_BUDGET_GROWTH)) {
		return false;
	}
	bool is_done = (bytes == d->bytes || fec_store_grow(&d->store, bytes)) &&
		       (records == d->records || grow_tables(d, records));
	d->bytes = (uint32_t)d->store.cap;
	d->size = decoder_bytes(d, d->records, d->bytes);
	fec_budget_give(d->budget, size - d->size); /* where there was not all of it */
	return is_done;
}

uint64_t
fec_decoder_size(const struct fec_decoder *d)
{
	return d->size;
}

void
fec_decoder_release(struct fec_decoder *d)
{
	if (d->has_memory) {
		fec_solver_fini(&d->solver);
		fec_store_fini(&d->store);
		fec_hold_fini(&d->hold);
		fec_gaps_fini(&d->gaps);
		d->has_memory = false;
		fec_budget_give(d->budget, d->size);
		d->size = 0;
		d->records = d->records_min;
		d->bytes = d->bytes_min;
	}
}

bool
fec_decoder_wake(struct fec_decoder *d, uint64_t counter)
{
	if (!d->has_memory && !take_memory(d)) {
		d->stats.unawake++;
		return false;
	}
	fec_gaps_start(&d->gaps, counter);
	fec_hold_start(&d->hold, counter);
	fec_solver_clear(&d->solver);
	d->quiet_n = 0;
	d->is_awake = true;
	return true;
}

void
fec_decoder_sleep(struct fec_decoder *d)
{
	d->next = d->gaps.high;
	d->is_awake = false;
	d->asleep_at = d->now;
}

struct mono
fec_decoder_rest_at(const struct fec_decoder *d, int64_t quiet_ns)
{
	if (!d->has_memory) {
		return MONO_NEVER;
	}
	if (!d->is_awake) {
		return mono_add_ns(d->asleep_at, quiet_ns);
	}
	/* Lost frames of the other side's are never judged when no source comes behind them. */
	bool is_idle = fec_gaps_is_idle(&d->gaps) && fec_hold_is_empty(&d->hold) &&
		       d->report.settle_ns == INT64_MAX;
	return is_idle ? mono_add_ns(d->highest_at, quiet_ns) : MONO_NEVER;
}

void
fec_decoder_rest(struct fec_decoder *d, struct mono now, int64_t quiet_ns)
{
	if (mono_is_before(now, fec_decoder_rest_at(d, quiet_ns))) {
		return;
	}
	if (d->is_awake) {
		fec_decoder_sleep(d);
	}
	fec_decoder_release(d);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/solver.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "fec/gf256.h"

#define NONE FEC_UNKNOWNS_MAX

static uint64_t
bit(unsigned i)
{
	return UINT64_C(1) << i;
}

static size_t
stride_of(size_t len_max)
{
	return (len_max + 63) & ~(size_t)63;
}

size_t
fec_solver_size(size_t len_max)
{
	return FEC_UNKNOWNS_MAX * stride_of(len_max);
}

bool
fec_solver_init(struct fec_solver *s, const struct gf256 *gf, size_t len_max)
{
	size_t stride = stride_of(len_max);
	uint8_t *bytes = malloc(fec_solver_size(len_max));
	if (!bytes) {
		return false;
	}
	*s = (struct fec_solver){.gf = gf, .bytes = bytes, .stride = stride, .pending = NONE};
	return true;
}

void
fec_solver_fini(struct fec_solver *s)
{
	free(s->bytes);
	*s = (struct fec_solver){0};
}

void
fec_solver_clear(struct fec_solver *s)
{
	s->columns_used = s->rows_used = 0;
	s->pending = NONE;
}

static uint8_t *
bytes_of(const struct fec_solver *s, unsigned row)
{
	return s->bytes + row * s->stride;
}

static unsigned
column_of(const struct fec_solver *s, uint64_t counter)
{
	for (uint64_t left = s->columns_used; left; left &= left - 1) {
		unsigned i = WEFT_LOW_BIT64(left);
		if (s->counters[i] == counter) {
			return i;
		}
	}
	return NONE;
}

/* bytes of row ^= c * src */
static void
add_bytes(struct fec_solver *s, unsigned row, const uint8_t *src, uint8_t c, uint16_t len)
{
	struct fec_row *r = &s->rows[row];
	uint8_t *dst = bytes_of(s, row);
	if (r->len < len) {
		memset(dst + r->len, 0, (size_t)(len - r->len));
		r->len = len;
	}
	s->gf->mul_add(dst, src, c, len);
}

static void
add_row(struct fec_solver *s, unsigned to, unsigned from, uint8_t c)
{
	s->gf->mul_add(s->rows[to].cs, s->rows[from].cs, c, FEC_UNKNOWNS_MAX);
	add_bytes(s, to, bytes_of(s, from), c, s->rows[from].len);
}

/* Makes `column` the pivot of `row`, which has it: 1 there, 0 in every other row. */
static void
pivot_on(struct fec_solver *s, unsigned row, unsigned column)
{
	struct fec_row *r = &s->rows[row];
	uint8_t inverse = gf256_inv(r->cs[column]);
	if (inverse != 1) {
		s->gf->scale(r->cs, inverse, FEC_UNKNOWNS_MAX);
		s->gf->scale(bytes_of(s, row), inverse, r->len);
	}
	r->pivot = (uint8_t)column;
	for (uint64_t left = s->rows_used & ~bit(row); left; left &= left - 1) {
		unsigned other = WEFT_LOW_BIT64(left);
		if (s->rows[other].cs[column]) {
			add_row(s, other, row, s->rows[other].cs[column]);
		}
	}
}

/* The oldest unknown of a row; NONE when it has none. Old ones as pivots make them the first to be
 * determined. */
static unsigned
oldest_of(const struct fec_solver *s, unsigned row)
{
	unsigned oldest = NONE;
	for (uint64_t left = s->columns_used; left; left &= left - 1) {
		unsigned i = WEFT_LOW_BIT64(left);
		if (s->rows[row].cs[i] &&
			(oldest == NONE || s->counters[i] < s->counters[oldest])) {
			oldest = i;
		}
	}
	return oldest;
}

/* A row that has the column: the one whose pivot it is, if there is one. */
static unsigned
row_with(const struct fec_solver *s, unsigned column)
{
	unsigned found = NONE;
	for (uint64_t left = s->rows_used; left; left &= left - 1) {
		unsigned row = WEFT_LOW_BIT64(left);
		if (s->rows[row].cs[column]) {
			found = row;
			if (s->rows[row].pivot == column) {
				break;
			}
		}
	}
	return found;
}

/* Forgets an unknown: the equations that do not have it stay as they are, and of those that have
 * it one is used up to free the others of it. */
static void
forget(struct fec_solver *s, unsigned column)
{
	unsigned row = row_with(s, column);
	if (row != NONE) {
		if (s->rows[row].pivot != column) {
			pivot_on(s, row, column);
		}
		s->rows_used &= ~bit(row);
	}
	s->columns_used &= ~bit(column);
}

void
fec_solver_forget(struct fec_solver *s, uint64_t counter)
{
	unsigned column = column_of(s, counter);
	if (column != NONE) {
		forget(s, column);
	}
}

void
fec_solver_forget_below(struct fec_solver *s, uint64_t counter)
{
	for (uint64_t left = s->columns_used; left; left &= left - 1) {
		unsigned i = WEFT_LOW_BIT64(left);
		if (s->counters[i] < counter) {
			forget(s, i);
		}
	}
}

bool
fec_solver_has(const struct fec_solver *s, uint64_t counter)
{
	return column_of(s, counter) != NONE;
}

unsigned
fec_solver_rank(const struct fec_solver *s, uint64_t first, uint64_t last)
{
	unsigned n = 0;
	for (uint64_t left = s->rows_used; left; left &= left - 1) {
		uint64_t counter = s->counters[s->rows[WEFT_LOW_BIT64(left)].pivot];
		n += counter >= first && counter <= last;
	}
	return n;
}

/* Was column a out of use for longer? The same equation: the older one. */
static bool
is_staler(const struct fec_solver *s, unsigned a, unsigned b)
{
	return s->used_at[a] != s->used_at[b] ? s->used_at[a] < s->used_at[b]
					      : s->counters[a] < s->counters[b];
}

/* A free column; the stalest unknown outside of `keep` makes room. */
static unsigned
take_column(struct fec_solver *s, uint64_t counter, uint64_t keep)
{
	if (~s->columns_used == 0) {
		unsigned stalest = NONE;
		for (uint64_t left = ~keep; left; left &= left - 1) {
			unsigned i = WEFT_LOW_BIT64(left);
			if (stalest == NONE || is_staler(s, i, stalest)) {
				stalest = i;
			}
		}
		weft_assert(stalest != NONE); /* an equation has at most as many as there are */
		forget(s, stalest);
		s->crowded++;
	}
	unsigned column = WEFT_LOW_BIT64(~s->columns_used);
	s->columns_used |= bit(column);
	s->counters[column] = counter;
	return column; /* no row has it: whoever leaves the solver leaves its rows first */
}

/* Columns of all n unknowns, in the order given. Room is made before any is looked up for use, so
 * that none of them is forgotten for another. */
static void
find_columns(struct fec_solver *s, const uint64_t *counters, size_t n, uint8_t *columns)
{
	uint64_t keep = 0;
	for (size_t i = 0; i < n; i++) {
		columns[i] = (uint8_t)column_of(s, counters[i]);
		keep |= columns[i] == NONE ? 0 : bit(columns[i]);
	}
	for (size_t i = 0; i < n; i++) {
		if (columns[i] == NONE) {
			columns[i] = (uint8_t)take_column(s, counters[i], keep);
			keep |= bit(columns[i]);
		}
	}
}

uint8_t *
fec_solver_begin(struct fec_solver *s, const uint64_t *counters, const uint8_t *cs, size_t n)
{
	weft_dassert(s->pending == NONE);
	if (n == 0 || n > FEC_UNKNOWNS_MAX) {
		return NULL;
	}
	uint8_t columns[FEC_UNKNOWNS_MAX];
	find_columns(s, counters, n, columns);
	s->equations++;
	for (size_t i = 0; i < n; i++) {
		s->used_at[columns[i]] = s->equations;
	}
	/* With as many rows as columns everything would be determined, and taken. */
	weft_assert(~s->rows_used != 0);
	unsigned row = WEFT_LOW_BIT64(~s->rows_used);
	struct fec_row *r = &s->rows[row];
	memset(r->cs, 0, sizeof(r->cs));
	for (size_t i = 0; i < n; i++) {
		r->cs[columns[i]] = cs[i];
	}
	/* Coefficients first: whether the bytes are worth the work shows in them. A row has no
	 * pivot of another, so the order does not matter. */
	s->pending_n = 0;
	for (uint64_t left = s->rows_used; left; left &= left - 1) {
		unsigned other = WEFT_LOW_BIT64(left);
		uint8_t c = r->cs[s->rows[other].pivot];
		if (c) {
			s->gf->mul_add(r->cs, s->rows[other].cs, c, FEC_UNKNOWNS_MAX);
			s->pending_parts[s->pending_n].row = (uint8_t)other;
			s->pending_parts[s->pending_n].c = c;
			s->pending_n++;
		}
	}
	if (oldest_of(s, row) == NONE) {
		return NULL;
	}
	s->pending = (uint8_t)row;
	return bytes_of(s, row);
}

void
fec_solver_finish(struct fec_solver *s, uint16_t len)
{
	unsigned row = s->pending;
	weft_dassert(row != NONE && len <= s->stride);
	s->pending = NONE;
	s->rows[row].len = len;
	for (size_t i = 0; i < s->pending_n; i++) {
		unsigned other = s->pending_parts[i].row;
		add_bytes(s, row, bytes_of(s, other), s->pending_parts[i].c, s->rows[other].len);
	}
	s->rows_used |= bit(row);
	pivot_on(s, row, oldest_of(s, row));
}

static bool
is_determined(const struct fec_solver *s, unsigned row)
{
	unsigned n = 0;
	for (size_t i = 0; i < FEC_UNKNOWNS_MAX; i++) {
		n += s->rows[row].cs[i] != 0;
	}
	return n == 1;
}

bool
fec_solver_take(struct fec_solver *s, struct fec_solved *out)
{
	for (uint64_t left = s->rows_used; left; left &= left - 1) {
		unsigned row = WEFT_LOW_BIT64(left);
		if (!is_determined(s, row)) {
			continue;
		}
		unsigned column = s->rows[row].pivot;
		*out = (struct fec_solved){s->counters[column], bytes_of(s, row), s->rows[row].len};
		s->rows_used &= ~bit(row);
		s->columns_used &= ~bit(column);
		return true;
	}
	return false;
}

void
fec_solver_known(struct fec_solver *s, uint64_t counter, const uint8_t *bytes, uint16_t len)
{
	unsigned column = column_of(s, counter);
	if (column == NONE) {
		return;
	}
	unsigned freed = NONE; /* the row whose pivot it was */
	for (uint64_t left = s->rows_used; left; left &= left - 1) {
		unsigned row = WEFT_LOW_BIT64(left);
		uint8_t c = s->rows[row].cs[column];
		if (c) {
			add_bytes(s, row, bytes, c, len);
			s->rows[row].cs[column] = 0;
			freed = s->rows[row].pivot == column ? row : freed;
		}
	}
	s->columns_used &= ~bit(column);
	if (freed != NONE) {
		unsigned oldest = oldest_of(s, freed);
		if (oldest == NONE) {
			s->rows_used &= ~bit(freed); /* it said what is known now */
		} else {
			pivot_on(s, freed, oldest);
		}
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "naive.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "fec/gf256.h"

void
naive_init(struct naive *s, size_t columns, size_t cap)
{
	*s = (struct naive){.columns = columns, .cap = cap, .rows = malloc(columns * cap)};
	weft_assert(s->rows);
}

void
naive_fini(struct naive *s)
{
	free(s->rows);
}

void
naive_add(struct naive *s, const uint8_t *row)
{
	weft_assert(s->n < s->cap);
	memcpy(s->rows + s->n * s->columns, row, s->columns);
	s->n++;
}

void
naive_known(struct naive *s, size_t column)
{
	for (size_t i = 0; i < s->n; i++) {
		s->rows[i * s->columns + column] = 0;
	}
}

static void
swap_rows(uint8_t *a, uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t t = a[i];
		a[i] = b[i];
		b[i] = t;
	}
}

size_t
naive_solve(const struct naive *s, bool *is_solved)
{
	size_t w = s->columns, rank = 0;
	uint8_t *m = malloc(w * s->n + 1);
	weft_assert(m);
	memcpy(m, s->rows, w * s->n);
	memset(is_solved, 0, w * sizeof(*is_solved));
	for (size_t c = 0; c < w && rank < s->n; c++) {
		size_t p = rank;
		while (p < s->n && m[p * w + c] == 0) {
			p++;
		}
		if (p == s->n) {
			continue;
		}
		swap_rows(m + p * w, m + rank * w, w);
		uint8_t inverse = gf256_inv(m[rank * w + c]);
		for (size_t i = 0; i < w; i++) {
			m[rank * w + i] = gf256_mul(m[rank * w + i], inverse);
		}
		for (size_t r = 0; r < s->n; r++) {
			uint8_t f = m[r * w + c];
			for (size_t i = 0; r != rank && f && i < w; i++) {
				m[r * w + i] ^= gf256_mul(f, m[rank * w + i]);
			}
		}
		rank++;
	}
	for (size_t r = 0; r < rank; r++) {
		size_t n = 0, last = 0;
		for (size_t c = 0; c < w; c++) {
			if (m[r * w + c]) {
				n++;
				last = c;
			}
		}
		is_solved[last] = is_solved[last] || n == 1;
	}
	free(m);
	return rank;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which unknowns a set of equations over GF(256) determines, by plain Gaussian elimination of the
 * whole matrix each time it is asked. Bytes are not carried: a determined unknown has one value. */
#ifndef WEFT_TEST_FEC_NAIVE_H
#define WEFT_TEST_FEC_NAIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct naive {
	size_t columns, n;
	uint8_t *rows; /* n of `columns` each, as they were given */
	size_t cap;
};

void naive_init(struct naive *s, size_t columns, size_t cap);
void naive_fini(struct naive *s);
/* row: a coefficient for each column, 0 for those that are known or not in it. */
void naive_add(struct naive *s, const uint8_t *row);
/* The column has become known. */
void naive_known(struct naive *s, size_t column);
/* is_solved: for each column, whether the equations determine it. Returns the rank. */
size_t naive_solve(const struct naive *s, bool *is_solved);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Solver: unknown packets and the equations about them, in reduced row echelon form after every
 * step.
 *
 * An unknown is a source packet that is missing and that some equation has. Known packets do not
 * come in: the caller has taken them out of an equation's bytes before. In the reduced form an
 * unknown is determined exactly when a row has nothing but it, so nothing that could be solved
 * stays unsolved. Knows nothing of what the bytes mean. */
#ifndef WEFT_FEC_SOLVER_H
#define WEFT_FEC_SOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FEC_UNKNOWNS_MAX 64

struct gf256;

struct fec_row {
	uint16_t len;  /* bytes behind are zero and not written */
	uint8_t pivot; /* the column that no other row has; its coefficient is 1 */
	uint8_t cs[FEC_UNKNOWNS_MAX];
};

struct fec_solver {
	const struct gf256 *gf;
	uint8_t *bytes; /* FEC_UNKNOWNS_MAX rows of `stride` */
	size_t stride;
	uint64_t columns_used, rows_used;    /* bit i: column i, row i */
	uint64_t counters[FEC_UNKNOWNS_MAX]; /* of each column */
	uint64_t used_at[FEC_UNKNOWNS_MAX];  /* of each column: the last equation that had it */
	uint64_t equations;                  /* that came, ever */
	uint64_t crowded;                    /* unknowns forgotten for room, ever */
	struct fec_row rows[FEC_UNKNOWNS_MAX];
	/* The equation between fec_solver_begin() and fec_solver_finish(). */
	uint8_t pending;
	uint8_t pending_n;
	struct {
		uint8_t row, c;
	} pending_parts[FEC_UNKNOWNS_MAX]; /* multiples of rows to add */
};

/* What a solver of that len_max takes. */
size_t fec_solver_size(size_t len_max);
/* len_max: longest equation in bytes. False: no memory. */
bool fec_solver_init(struct fec_solver *s, const struct gf256 *gf, size_t len_max);
void fec_solver_fini(struct fec_solver *s);
void fec_solver_clear(struct fec_solver *s);

/* An equation over n unknowns, cs[i] != 0 for counters[i]. NULL: it follows from those at hand, or
 * has more than FEC_UNKNOWNS_MAX unknowns. Else where its bytes are to be written, before
 * fec_solver_finish(). For room the other unknowns that no equation had for longest are forgotten:
 * those that many are about just now are the likely ones to be determined. */
uint8_t *fec_solver_begin(
	struct fec_solver *s, const uint64_t *counters, const uint8_t *cs, size_t n);
void fec_solver_finish(struct fec_solver *s, uint16_t len);

struct fec_solved {
	uint64_t counter;
	const uint8_t *bytes; /* the solver's, until its next call */
	uint16_t len;
};
/* Takes one unknown that is determined out of the solver, if there is any. */
bool fec_solver_take(struct fec_solver *s, struct fec_solved *out);

/* The unknown has become known otherwise: its multiples leave the equations. Then there may be
 * something to take. */
void fec_solver_known(struct fec_solver *s, uint64_t counter, const uint8_t *bytes, uint16_t len);
/* An unknown, and those below a counter, are given up, each with the one equation that it costs. */
void fec_solver_forget(struct fec_solver *s, uint64_t counter);
void fec_solver_forget_below(struct fec_solver *s, uint64_t counter);

bool fec_solver_has(const struct fec_solver *s, uint64_t counter);
/* How many equations are about first..last in the first place. */
unsigned fec_solver_rank(const struct fec_solver *s, uint64_t first, uint64_t last);

#endif

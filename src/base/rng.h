/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded pseudo-random numbers for simulation, emulation, jitter and tests: xoshiro256**,
 * seeded by splitmix64. Never for keys: those come from an entropy source. */
#ifndef WEFT_BASE_RNG_H
#define WEFT_BASE_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t s[4];
};

void rng_init(struct rng *r, uint64_t seed);
uint64_t rng_u64(struct rng *r);
/* Uniform in [0, bound); bound > 0. */
uint64_t rng_below(struct rng *r, uint64_t bound);
/* Uniform in [0, 1). */
double rng_unit(struct rng *r);
bool rng_is_hit(struct rng *r, double probability);
void rng_fill(struct rng *r, void *out, size_t len);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

#include <string.h>

static uint64_t
rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

void
rng_init(struct rng *r, uint64_t seed)
{
	for (int i = 0; i < 4; i++) {
		seed += UINT64_C(0x9e3779b97f4a7c15);
		uint64_t z = seed;
		z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
		r->s[i] = z ^ (z >> 31);
	}
}

uint64_t
rng_u64(struct rng *r)
{
	uint64_t *s = r->s;
	uint64_t result = rotl(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

uint64_t
rng_below(struct rng *r, uint64_t bound)
{
	/* Values under the remainder of 2^64 / bound are thrown again, so none is favoured. */
	uint64_t skip = (UINT64_MAX - bound + 1) % bound;
	uint64_t x;
	do {
		x = rng_u64(r);
	} while (x < skip);
	return x % bound;
}

double
rng_unit(struct rng *r)
{
	return (double)(rng_u64(r) >> 11) * 0x1.0p-53;
}

bool
rng_is_hit(struct rng *r, double probability)
{
	return rng_unit(r) < probability;
}

void
rng_fill(struct rng *r, void *out, size_t len)
{
	uint8_t *p = out;
	while (len > 0) {
		uint64_t x = rng_u64(r);
		size_t n = len < 8 ? len : 8;
		memcpy(p, &x, n);
		p += n;
		len -= n;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/siphash.h"

#include "base/endian.h"

struct sip {
	uint64_t v0, v1, v2, v3;
};

static uint64_t
rotl64(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

static void
sip_rounds(struct sip *s, int n)
{
	for (int i = 0; i < n; i++) {
		s->v0 += s->v1;
		s->v2 += s->v3;
		s->v1 = rotl64(s->v1, 13) ^ s->v0;
		s->v3 = rotl64(s->v3, 16) ^ s->v2;
		s->v0 = rotl64(s->v0, 32);
		s->v2 += s->v1;
		s->v0 += s->v3;
		s->v1 = rotl64(s->v1, 17) ^ s->v2;
		s->v3 = rotl64(s->v3, 21) ^ s->v0;
		s->v2 = rotl64(s->v2, 32);
	}
}

static void
sip_absorb(struct sip *s, uint64_t m)
{
	s->v3 ^= m;
	sip_rounds(s, 2);
	s->v0 ^= m;
}

void
siphash_key_init(struct siphash_key *k, const uint8_t bytes[SIPHASH_KEY_LEN])
{
	k->k0 = load_le64(bytes);
	k->k1 = load_le64(bytes + 8);
}

uint64_t
siphash(const struct siphash_key *k, const void *data, size_t len)
{
	struct sip s = {
		.v0 = k->k0 ^ UINT64_C(0x736f6d6570736575),
		.v1 = k->k1 ^ UINT64_C(0x646f72616e646f6d),
		.v2 = k->k0 ^ UINT64_C(0x6c7967656e657261),
		.v3 = k->k1 ^ UINT64_C(0x7465646279746573),
	};
	const uint8_t *p = data;
	size_t tail = len & 7;
	for (const uint8_t *end = p + (len - tail); p != end; p += 8) {
		sip_absorb(&s, load_le64(p));
	}
	uint64_t last = (uint64_t)len << 56;
	for (size_t i = 0; i < tail; i++) {
		last |= (uint64_t)p[i] << (8 * i);
	}
	sip_absorb(&s, last);
	s.v2 ^= 0xff;
	sip_rounds(&s, 4);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

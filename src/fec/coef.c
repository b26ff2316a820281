/* SPDX-License-Identifier: Apache-2.0 */
#include "fec/coef.h"

#include <string.h>

#include "base/assert.h"
#include "base/endian.h"

static uint64_t
word(uint32_t key, uint32_t i)
{
	uint64_t z = ((uint64_t)key << 32 | (i + 1)) * UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	/* Bytes of zero become one: the sum sets the top bit of a byte with any low bit set, and
	 * carries into no other. */
	const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
	uint64_t zeros = ~(((z & low) + low) | z) & ~low;
	return z | zeros >> 7;
}

void
fec_coefs(uint32_t key, uint8_t *out, size_t n)
{
	weft_dassert(n <= FEC_COEFS_MAX);
	uint32_t i = 0;
	for (; n >= 8; n -= 8, out += 8) {
		store_le64(out, word(key, i++));
	}
	if (n > 0) {
		uint8_t last[8];
		store_le64(last, word(key, i));
		memcpy(out, last, n);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Portable kernel, and the choice among kernels.
 *
 * The choice is made in every call by testing a bit that the C runtime set before main: a load
 * and a branch that is always predicted, and no global of ours. */
#include "pkt/csum.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "pkt/csum_isa.h"

/* Below this the AVX2 kernel is not worth its set-up and its tail. */
#define AVX2_BYTES_MIN 64

static uint64_t
add_carry(uint64_t a, uint64_t b)
{
	a += b;
	return a + (a < b);
}

static uint64_t
load64(const uint8_t *p)
{
	uint64_t w;
	memcpy(&w, p, 8);
	return w;
}

/* Copies fewer than 8 bytes and sums them, the last of an odd count as if a zero followed it. */
static uint64_t
copy_tail(uint8_t *d, const uint8_t *s, size_t len)
{
	uint64_t sum = 0;
	if (len & 4) {
		uint32_t w;
		memcpy(&w, s, 4);
		memcpy(d, &w, 4);
		sum = w;
		s += 4;
		d += 4;
	}
	if (len & 2) {
		uint16_t w;
		memcpy(&w, s, 2);
		memcpy(d, &w, 2);
		sum += w;
		s += 2;
		d += 2;
	}
	if (len & 1) {
		*d = *s;
		sum += csum_word((uint16_t)(*s << 8));
	}
	return sum;
}

static uint64_t
sum_tail(const uint8_t *p, size_t len)
{
	uint8_t sink[8];
	return copy_tail(sink, p, len);
}

static uint64_t
halve(uint64_t sum)
{
	return (sum & 0xffffffff) + (sum >> 32);
}

uint64_t
csum_partial_portable(const void *p, size_t len)
{
	const uint8_t *s = p;
	uint64_t a = 0, b = 0;
	for (; len >= 16; s += 16, len -= 16) {
		a = add_carry(a, load64(s));
		b = add_carry(b, load64(s + 8));
	}
	if (len >= 8) {
		a = add_carry(a, load64(s));
		s += 8;
		len -= 8;
	}
	return halve(a) + halve(b) + sum_tail(s, len);
}

uint64_t
csum_copy_portable(void *dst, const void *src, size_t len)
{
	const uint8_t *s = src;
	uint8_t *d = dst;
	uint64_t a = 0, b = 0;
	for (; len >= 16; s += 16, d += 16, len -= 16) {
		uint64_t w0 = load64(s), w1 = load64(s + 8);
		memcpy(d, &w0, 8);
		memcpy(d + 8, &w1, 8);
		a = add_carry(a, w0);
		b = add_carry(b, w1);
	}
	if (len >= 8) {
		uint64_t w = load64(s);
		memcpy(d, &w, 8);
		a = add_carry(a, w);
		s += 8;
		d += 8;
		len -= 8;
	}
	return halve(a) + halve(b) + copy_tail(d, s, len);
}

uint64_t
csum_partial(const void *p, size_t len)
{
	weft_dassert(len <= CSUM_LEN_MAX);
#if CSUM_HAVE_X86
	if (WEFT_CPU_HAS("avx512bw")) {
		return csum_partial_avx512(p, len);
	}
	if (len >= AVX2_BYTES_MIN && WEFT_CPU_HAS("avx2")) {
		return csum_partial_avx2(p, len);
	}
#endif
	return csum_partial_portable(p, len);
}

uint64_t
csum_copy(void *dst, const void *src, size_t len)
{
	weft_dassert(len <= CSUM_LEN_MAX);
#if CSUM_HAVE_X86
	if (WEFT_CPU_HAS("avx512bw")) {
		return csum_copy_avx512(dst, src, len);
	}
	if (len >= AVX2_BYTES_MIN && WEFT_CPU_HAS("avx2")) {
		return csum_copy_avx2(dst, src, len);
	}
#endif
	return csum_copy_portable(dst, src, len);
}

const struct csum_kernel *
csum_kernel_at(size_t i)
{
	static const struct csum_kernel portable = {
		"portable", csum_partial_portable, csum_copy_portable};
	if (i == 0) {
		return &portable;
	}
#if CSUM_HAVE_X86
	static const struct csum_kernel avx2 = {"avx2", csum_partial_avx2, csum_copy_avx2};
	static const struct csum_kernel avx512 = {"avx512", csum_partial_avx512, csum_copy_avx512};
	if (i == 1 && WEFT_CPU_HAS("avx2")) {
		return &avx2;
	}
	if (i == 2 && WEFT_CPU_HAS("avx512bw")) {
		return &avx512;
	}
#endif
	return NULL;
}
